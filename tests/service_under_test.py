"""The real service as a process of its own, with a stand-in hub, simulated devices and a policy of the test's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from standin_hub import StandInHub
from waiting import until

PREFIX = "/services/hubgov/"

PEOPLE = """\
teams:
  platform: {leads: [admin]}
  research: {leads: [lena]}
  vision: {parent: research, groups: [vision]}
  nlp: {parent: research, groups: [nlp]}
projects:
  lab: {team: platform, owner: admin}
  seg: {team: vision, owner: amy}
  chat: {team: nlp, owner: bo}
"""
"""Teams and projects of the hub's users (`standin_hub`, and those of the demo)."""

POLICY = (
    PEOPLE
    + """\
version: 1
timezone: UTC
currency: CNY
defaults: {environment: experiment, owner: admin, team: platform}
flavors:
  a100: {vendor: nvidia, model: SIMULATED A100-80GB, memory: 80GiB, price_per_hour: 18.5}
pools:
  dev: {engine: local, share: {max_per_device: 4}, team: platform, project: lab, owner: admin}
nodes:
  box: {match: {hostname: HOSTNAME}, flavor: a100, pools: {dev: [0, 1]}}
queues:
  experiment:
    kinds: [notebook]
    pools: [dev]
    priority: 50
    lease: {default: 4h, max: 12h}
    extension: {self_serve: {count: 2, step: 2h}, approvers: [team-lead, admin], max_total: 9h, reason: required}
    caps: {per_user: {gpus: 2, workloads: 3, pending: 5}}
quotas:
  - {team: vision, pool: dev, flavor: a100, guaranteed: 1}
  - {team: nlp, pool: dev, flavor: a100, guaranteed: 1}
spawn_profiles:
  - {name: cpu, queue: experiment, gpus: 0, title: {en: CPU only, zh: 仅 CPU}}
  - {name: one, queue: experiment, gpus: 1, title: {en: One GPU, zh: 单卡}}
  - {name: two, queue: experiment, gpus: 2, title: {en: Two GPUs, zh: 双卡}}
"""
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ServiceUnderTest:
    """`start`, `kill`, `start` again: the state folder stays. `call` speaks REST with somebody's token."""

    def __init__(
        self,
        state: Path,
        policy: str = POLICY,
        *,
        devices: int = 2,
        database: str = "",
        changes_at_once: int = 10**6,
    ) -> None:
        self.state = state
        state.mkdir(mode=0o700, exist_ok=True)
        self.hub = StandInHub()
        self.port = free_port()
        self._devices, self._database, self._at_once = devices, database, changes_at_once
        self._policy = state / "policy.yaml"
        self._policy.write_text(policy.replace("HOSTNAME", socket.gethostname()))
        self.process: subprocess.Popen[bytes] | None = None
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=70, trust_env=False)

    def start(self) -> None:
        settings = {
            "state_dir": self.state,
            "devices": "simulated",
            "simulated_count": self._devices,
            "policy_file": self._policy,
            "service_port": self.port,
            "changes_at_once": self._at_once,
        }
        if self._database:
            settings["database_url"] = self._database
        environment = {
            "PATH": os.environ["PATH"],
            "JUPYTERHUB_API_URL": self.hub.url,
            "JUPYTERHUB_API_TOKEN": "service-token",
            "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{self.port}",
            "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
            "JUPYTERHUB_SERVICE_NAME": "hubgov",
            "JUPYTERHUB_BASE_URL": "/",
            "JUPYTERHUB_CLIENT_ID": "service-hubgov",
            "JUPYTERHUB_HOST": "",
            "JUPYTERHUB_OAUTH_CALLBACK_URL": f"{PREFIX}oauth_callback",
            "JUPYTERHUB_OAUTH_ACCESS_SCOPES": '["access:services!service=hubgov"]',
        }
        command = [sys.executable, "-m", "hubgov.cli", "service"]
        command += [f"--HubGov.{name}={value}" for name, value in settings.items()]
        with (self.state / "service.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        until(self._ready, 60, "the service to answer")

    def _ready(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            raise AssertionError(f"the service ended with {self.process.returncode}:\n{self.log()[-3000:]}")
        try:
            return self.http.get(f"{PREFIX}health").status_code == 200
        except httpx.HTTPError:
            return False

    def log(self) -> str:
        path = self.state / "service.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self, number: int = signal.SIGKILL) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(30)
        self.process = None
        return status

    def close(self) -> None:
        if self.process is not None:
            self.kill(signal.SIGTERM)
        self.http.close()
        self.hub.close()

    def call(self, who: str, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """A request to the REST interface with the token of `who`."""
        headers = {"Authorization": f"token {who}-token", **more.pop("headers", {})}
        if body is not None:
            more["json"] = body
        return self.http.request(method, f"{PREFIX}api/v1{path}", headers=headers, **more)

    # --- a notebook's life, as the spawner reports it ---

    def ask(self, user: str, profile: str = "one", server: str = "", **more: Any) -> httpx.Response:
        gpus = {"cpu": 0, "one": 1, "two": 2}[profile]
        group = {"amy": "vision", "ava": "vision", "bo": "nlp"}.get(user)
        body = {"user": user, "groups": [group] if group else [], "server": server, "profile": profile}
        body |= {"queue": "experiment", "kind": "notebook", "gpus": gpus, **more}
        return self.call("spawner", "POST", "/workloads", body)

    def run(self, user: str, profile: str = "one", server: str = "", **more: Any) -> dict[str, Any]:
        """Asked for, granted, launched and ready."""
        workload = self.ask(user, profile, server, **more).json()
        until(lambda: self.show(workload["id"])["state"] == "admitted", 10, f"{workload['id']} to be admitted")
        attempt = self.show(workload["id"])["attempt"]
        for step, body in (("launch", {}), ("ready", {"url": "http://127.0.0.1:1/"})):
            answer = self.call(
                "spawner", "POST", f"/workloads/{workload['id']}/{step}", {"attempt": attempt, **body}
            )
            assert answer.status_code == 200, answer.text
        # No process is reported; the hub knows the server, or the service would give it up after a while.
        self.hub.servers.setdefault(user, {})[server] = {"ready": True}
        return self.show(workload["id"])

    def show(self, workload: str, who: str = "admin") -> dict[str, Any]:
        answer = self.call(who, "GET", f"/workloads/{workload}")
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document
