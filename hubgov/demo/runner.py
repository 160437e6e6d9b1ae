"""Starts what isn't running of proxy, hub and service, and stops all of it again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

import httpx

from hubgov import processes
from hubgov.config import site_of
from hubgov.demo import proxy
from hubgov.demo.authenticator import STATE_VARIABLE
from hubgov.demo.settings import Settings, refuse_taken
from hubgov.errors import Unavailable
from hubgov.wire import ProcessRef
from hubgov.wire_json import from_json, to_json

START_SECONDS = 120.0
STOP_SECONDS = 60.0


class Runner:
    """The processes of one demo. Each is known by (pid, start time, boot), so a recycled pid is never ours."""

    def __init__(self, state: Path, settings: Settings) -> None:
        self._state, self._settings = state, settings
        self._url = f"http://127.0.0.1:{settings.port}"
        (state / "run").mkdir(mode=0o700, exist_ok=True)
        (state / "log").mkdir(mode=0o700, exist_ok=True)

    # --- up ------------------------------------------------------------------------------------------

    def up(self) -> None:
        """Bring up what is missing, and return once hub and service answer through the proxy."""
        if not self._alive("proxy"):
            port = self._settings.port
            refuse_taken(
                port, f"`ss -ltnp 'sport = :{port}'` tells what it is; --down ends what is left of this demo"
            )
            wanted = proxy.command(self._state, self._settings)
            self._start("proxy", wanted.arguments, wanted.environment)
        older = None
        if not self._alive("hub"):
            older = self._service_pid()  # of a hub that was killed: it answers until the new one has taken over
            config = Path(__file__).parent / "jupyterhub_config.py"
            self._start("hub", [sys.executable, "-m", "jupyterhub", "-f", str(config)], {})
        self._until(lambda: self._answers("/hub/health"), "the hub", "hub")
        self._until(lambda: self._service_pid() not in (None, older), "the hubgov service", "hub")

    def running(self) -> bool:
        """Whether proxy, hub and service are all there and answer."""
        alive = self._alive("proxy") and self._alive("hub")
        return alive and self._answers("/services/hubgov/health")

    def health(self) -> dict[str, object]:
        """What the service says of itself."""
        answer = httpx.get(f"{self._url}/services/hubgov/health", timeout=10, trust_env=False)
        try:
            document: dict[str, object] = answer.raise_for_status().json()
            int(str(document["pid"]))
        except (ValueError, TypeError, KeyError) as error:
            raise Unavailable(
                f"what answers at {self._url} is not this demo",
                hint=f"`ss -ltnp 'sport = :{self._settings.port}'` tells what it is",
            ) from error
        return document

    def _start(self, name: str, arguments: Sequence[str], environment: dict[str, str]) -> None:
        """Start a process that outlives this one, its output in log/NAME.log."""
        given = {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "LC_ALL", "TZ") if key in os.environ}
        given["PATH"] = f"{Path(sys.executable).parent}:{given.get('PATH', os.defpath)}"
        given |= environment | {STATE_VARIABLE: str(self._state), "PYTHONUNBUFFERED": "1"}
        with (self._state / "log" / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                list(arguments),
                env=given,
                cwd=self._state,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ref = processes.identify(child.pid)
        if ref is None:
            raise Unavailable(f"the {name} ended at once", hint=self._last_lines(name))
        (self._state / "run" / f"{name}.json").write_text(json.dumps(to_json(ref)))

    def _until(self, condition: Callable[[], bool], what: str, process: str) -> None:
        end = time.monotonic() + START_SECONDS
        while not condition():
            if not self._alive("proxy"):  # without it nothing answers, whatever becomes of the others
                raise Unavailable("the proxy ended while starting", hint=self._last_lines("proxy"))
            ref = self._ref(process)
            if ref is None or processes.wait_gone([ref], 0.1):
                raise Unavailable(f"{what} ended while starting", hint=self._last_lines(process))
            if time.monotonic() > end:
                raise Unavailable(
                    f"{what} does not answer after {START_SECONDS:.0f} s", hint=self._last_lines(process)
                )

    def _service_pid(self) -> int | None:
        """The process that answers as the service; None while none does."""
        try:
            return int(str(self.health()["pid"]))
        except (httpx.HTTPError, Unavailable):
            return None

    def _answers(self, path: str) -> bool:
        try:
            return httpx.get(self._url + path, timeout=5, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def _ref(self, name: str) -> ProcessRef | None:
        path = self._state / "run" / f"{name}.json"
        try:
            return from_json(ProcessRef, json.loads(path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def _alive(self, name: str) -> bool:
        ref = self._ref(name)
        return ref is not None and processes.is_alive(ref)

    def _last_lines(self, name: str) -> str:
        path = self._state / "log" / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines()[-8:] if path.exists() else []
        return f"see {path}:\n  " + "\n  ".join(lines)

    # --- down ----------------------------------------------------------------------------------------

    def down(self) -> None:
        """Stop servers, service, hub and proxy; whatever is left of them after a minute is killed."""
        hub = self._ref("hub")
        if hub is not None and processes.is_alive(hub) and self._ask_to_shut_down(hub):
            processes.wait_gone([hub], STOP_SECONDS)
        for name in ("hub", "proxy"):
            ref = self._ref(name)
            if ref is not None:
                self._end(ref)
            (self._state / "run" / f"{name}.json").unlink(missing_ok=True)
        left = self._leftovers()
        for ref in left:
            self._send(ref, signal.SIGTERM)
        processes.wait_gone(left, 10)
        # Who ignores that, and who was born meanwhile: pid 1 of a box takes all of its box along.
        while left := self._leftovers():
            for ref in left:
                self._send(ref, signal.SIGKILL)
            if not processes.wait_gone(left, 10):
                raise Unavailable(f"process {left[0].pid} does not end", hint="it waits for a device or a disk")

    def _ask_to_shut_down(self, hub: ProcessRef) -> bool:
        """Stop the servers one by one, as their owners would, and only then the hub: it ends its services first,
        and a session whose end nobody could report would be charged until the next start."""
        address = f"http://127.0.0.1:{self._settings.hub_port}/hub/api"
        headers = {"Authorization": f"token {self._settings.control_token}"}
        try:
            with httpx.Client(base_url=address, headers=headers, timeout=30, trust_env=False) as client:
                end = time.monotonic() + STOP_SECONDS
                while (running := _servers(client)) and time.monotonic() < end:
                    for path in running:
                        client.delete(path)
                    processes.wait_gone([hub], 0.5)
                return client.post("/shutdown", json={"servers": True, "proxy": False}).is_success
        except httpx.HTTPError:
            return False

    def _end(self, ref: ProcessRef) -> None:
        """End a process: asked first, killed when it doesn't go."""
        self._send(ref, signal.SIGTERM)
        if not processes.wait_gone([ref], 10):
            self._send(ref, signal.SIGKILL)
            processes.wait_gone([ref], 10)

    def _send(self, ref: ProcessRef, number: int) -> None:
        try:
            processes.send(ref, number)
        except PermissionError as error:
            raise Unavailable(
                f"process {ref.pid} of this demo belongs to another user", hint="run this as who started it"
            ) from error

    def _leftovers(self) -> list[ProcessRef]:
        """Processes of this demo that a killed hub left behind: the service, boxes with their servers, keepers of
        their ports. Told by what hubgov alone sets: HUBGOV_URL is also in the shells of who uses the demo."""
        state = str(self._state)
        ours = {f"{name}={state}".encode() for name in (STATE_VARIABLE, processes.PORT_VARIABLE)}
        allocation, site = f"{processes.ALLOCATION_VARIABLE}=".encode(), f"@{site_of(state)}".encode()

        def is_ours(entry: bytes) -> bool:
            return entry in ours or (entry.startswith(allocation) and entry.endswith(site))

        return [ref for ref in processes.with_environment(is_ours) if ref.pid != os.getpid()]


def _servers(client: httpx.Client) -> list[str]:
    """The API paths of all servers that run or are about to."""
    users = client.get("/users", params={"state": "active"}).raise_for_status().json()
    return [
        f"/users/{quote(user['name'], safe='')}/" + (f"servers/{quote(name, safe='')}" if name else "server")
        for user in users
        for name in user["servers"]
    ]
