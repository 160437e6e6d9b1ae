"""The whole product as its users get it: `hubgov demo` with real hub, proxy, service, boxes and kernels."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
from service_under_test import PEOPLE, free_port
from waiting import until

from hubgov import processes
from hubgov.wire import ProcessRef
from hubgov.wire_json import from_json

SHORT_LEASES = (
    PEOPLE
    + """\
version: 1
timezone: UTC
currency: CNY
defaults: {environment: experiment, owner: admin, team: platform}
flavors:
  a100: {vendor: nvidia, model: A100-80GB, memory: 80GiB, price_per_hour: 18.5}
pools:
  dev: {engine: local, team: platform, project: lab, owner: admin}
nodes:
  box: {match: {hostname: HOSTNAME}, flavor: a100, pools: {dev: [0]}}
queues:
  experiment:
    kinds: [notebook]
    pools: [dev]
    priority: 50
    lease: {default: 90s, max: 1h}
    extension: {self_serve: {count: 2, step: 30s}, approvers: [team-lead, admin], max_total: 10m, reason: required}
    warn: [60s, 30s, 10s]
    grace: 15s
    checkpoint_budget: 5s
    attach: 5s
    claim: 5m
    caps: {per_user: {gpus: 1, workloads: 3, pending: 5}}
quotas:
  - {team: vision, pool: dev, flavor: a100, guaranteed: 0}
  - {team: nlp, pool: dev, flavor: a100, guaranteed: 0}
spawn_profiles:
  - {name: cpu-only, queue: experiment, gpus: 0, title: {en: CPU only, zh: 仅 CPU}}
  - {name: one-gpu, queue: experiment, gpus: 1, title: {en: One GPU, zh: 单卡}}
"""
)


class DemoUnderTest:
    """One demo in a folder of its own. `up` again brings back whatever was killed."""

    def __init__(self, state: Path, policy: str = SHORT_LEASES) -> None:
        self.state = state
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.passwords: dict[str, str] = {}
        self._policy = state.parent / f"{state.name}-policy.yaml"
        self._policy.write_text(policy.replace("HOSTNAME", socket.gethostname()))
        self._tokens: dict[str, str] = {}
        self.http = httpx.Client(base_url=self.url, timeout=60, trust_env=False)

    # --- the two commands ---

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hubgov.cli", "demo", "--state", str(self.state), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    def up(self) -> str:
        done = self.run(
            "--port",
            str(self.port),
            "--simulated",
            "--no-browser",
            "--timezone",
            "UTC",
            "--policy",
            str(self._policy),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        for line in done.stdout.splitlines():
            if found := re.match(r"  (amy|bo|lena|admin) +(\S+-\d{4}) ", line):
                self.passwords[found[1]] = found[2]
        return done.stdout

    def down(self) -> None:
        done = self.run("--down")
        assert done.returncode == 0, done.stdout + done.stderr

    # --- its processes ---

    def process(self, name: str) -> ProcessRef:
        """The hub, the proxy or the service, as a process that can't be mistaken."""
        if name == "service":
            ref = processes.identify(int(self.health()["pid"]))
            assert ref is not None
            return ref
        return from_json(ProcessRef, json.loads((self.state / "run" / f"{name}.json").read_text()))

    def kill(self, name: str) -> None:
        ref = self.process(name)
        assert processes.send(ref, signal.SIGKILL)
        assert processes.wait_gone([ref], 10)

    def health(self) -> dict[str, Any]:
        document: dict[str, Any] = self.http.get("/services/hubgov/health").raise_for_status().json()
        return document

    def left(self) -> list[int]:
        """Processes of this demo that are still there."""
        demo = json.loads((self.state / "demo.json").read_text())
        service = f"http://127.0.0.1:{demo['service_port']}"
        marks = (
            f"HUBGOV_DEMO_STATE={self.state}",
            f"HUBGOV_PORT_OF={self.state}",
            f"JUPYTERHUB_SERVICE_URL={service}",
        )
        wanted = {mark.encode() for mark in marks}
        server = f"HUBGOV_URL={service}/".encode()
        found = processes.with_environment(lambda entry: entry in wanted or entry.startswith(server))
        return [ref.pid for ref in found if ref.pid != os.getpid()]

    # --- as one of its users ---

    def token(self, user: str) -> str:
        """A token of the user, got with the password as `hubgov login` does."""
        if user not in self._tokens:
            body = {"auth": {"username": user, "password": self.passwords[user]}}
            answer = self.http.post(f"/hub/api/users/{user}/tokens", json=body)
            assert answer.status_code in (200, 201), answer.text
            self._tokens[user] = answer.json()["token"]
        return self._tokens[user]

    def call(self, user: str, method: str, path: str, body: Any = None) -> httpx.Response:
        """The service's REST interface, with the user's own token."""
        return self._request(user, method, f"/services/hubgov/api/v1{path}", body)

    def hub(self, user: str, method: str, path: str, body: Any = None) -> httpx.Response:
        """The hub's REST interface, with the user's own token."""
        return self._request(user, method, f"/hub/api{path}", body)

    def _request(self, user: str, method: str, path: str, body: Any) -> httpx.Response:
        headers = {"Authorization": f"token {self.token(user)}"}
        return self.http.request(method, path, headers=headers, json=body)

    def spawn(self, user: str, profile: str = "one-gpu", server: str = "") -> httpx.Response:
        path = f"/users/{user}/servers/{server}" if server else f"/users/{user}/server"
        return self.hub(user, "POST", path, {"user_options": {"profile": profile}})

    def begin(self, user: str, profile: str = "one-gpu") -> threading.Thread:
        """`spawn` in the background: the hub answers only once the server runs, or after ten seconds."""

        def ask() -> None:
            # Whatever becomes of the request when its hub is killed, the ticket is in the ledger.
            with contextlib.suppress(httpx.HTTPError):
                self.spawn(user, profile)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        return thread

    def workload(self, user: str) -> dict[str, Any]:
        """The user's newest workload."""
        document: dict[str, Any] = self.call(user, "GET", "/workloads?limit=1").json()["items"][0]
        return document

    def until_state(self, user: str, state: str, timeout: float = 60) -> dict[str, Any]:
        """The user's newest workload once it is in that state."""

        def reached() -> dict[str, Any] | None:
            try:
                found = self.workload(user)
            except (httpx.HTTPError, KeyError, IndexError):
                return None
            return found if found["state"] == state else None

        return until(reached, timeout, f"{user}'s workload to be {state}") or {}
