"""Run a real JupyterHub with BoxedSpawner in a folder of its own, and use its servers by REST and websocket."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import websocket
from waiting import until

TOKEN = "0123456789abcdef" * 4

CONFIG = '''
import os
from jupyterhub.proxy import Proxy
from hubgov_spawner.boxed import BoxedSpawner

class NoProxy(Proxy):
    """The tests talk to hub and servers directly."""
    should_start = False
    routes = {}
    async def add_route(self, routespec, target, data):
        self.routes[routespec] = {"routespec": routespec, "target": target, "data": data}
    async def delete_route(self, routespec):
        self.routes.pop(routespec, None)
    async def get_all_routes(self):
        return dict(self.routes)

class ForTests(BoxedSpawner):
    def box_device_nodes(self):
        return tuple(filter(None, [os.environ.get("TEST_NODE_OF_" + self.user.name.upper())]))

    async def start(self):
        if self.user.name == "carl":
            self.cmd = ["/bin/false"]
        return await super().start()

c.JupyterHub.spawner_class = ForTests
c.BoxedSpawner.state_dir = os.getcwd()
c.BoxedSpawner.isolation = os.environ["TEST_ISOLATION"]
c.Spawner.poll_interval = 1
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.ip = "127.0.0.1"
c.JupyterHub.port = 1
c.JupyterHub.hub_port = int(os.environ["TEST_HUB_PORT"])
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.cleanup_servers = False
c.JupyterHub.init_spawners_timeout = 1
c.JupyterHub.services = [{"name": "tests", "api_token": os.environ["TEST_TOKEN"]}]
c.JupyterHub.load_roles = [{
    "name": "tests", "services": ["tests"],
    "scopes": ["admin:users", "admin:servers", "access:servers", "admin:server_state"],
}]
'''


class HubUnderTest:
    """One hub process and its state folder; `start` again after `kill` finds what the first one left."""

    def __init__(self, state: Path, isolation: str, environment: dict[str, str]) -> None:
        self.state = state
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        (state / "jupyterhub_config.py").write_text(CONFIG)
        given = {"TEST_HUB_PORT": str(self.port), "TEST_ISOLATION": isolation, "TEST_TOKEN": TOKEN}
        self.environment = {**os.environ, **given, **environment}
        self.http = httpx.Client(headers={"Authorization": f"token {TOKEN}"}, timeout=60, trust_env=False)

    # --- hub ---

    def start(self) -> None:
        """Start the hub and wait until it answers and has looked for its servers."""
        program = Path(sys.executable).with_name("jupyterhub")
        with open(self.state / "hub.log", "ab") as log:
            self.process = subprocess.Popen(
                [program, "-f", "jupyterhub_config.py"],
                cwd=self.state,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._answers, 60, "the hub answers")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.state / "hub.log").read_text()[-3000:]
        try:
            return self.http.get(f"http://127.0.0.1:{self.port}/hub/api/").status_code == 200
        except httpx.TransportError:
            return False

    def end(self, how: signal.Signals) -> None:
        """End the hub's process by this signal."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(30)

    def api(self, method: str, path: str) -> httpx.Response:
        """Ask the hub's REST interface."""
        return self.http.request(method, f"http://127.0.0.1:{self.port}/hub/api{path}")

    # --- servers ---

    def launch(self, user: str) -> httpx.Response:
        """Ask for the user's server, making the user; 201 once it is up."""
        self.api("POST", f"/users/{user}")
        answer = self.api("POST", f"/users/{user}/server")
        if answer.status_code == 202:
            until(lambda: self.server(user).get("ready"), 60, f"the server of {user} is up")
        return answer

    def stop(self, user: str) -> None:
        """Stop the user's server, and wait until it is gone."""
        assert self.api("DELETE", f"/users/{user}/server").status_code in (202, 204)
        until(lambda: not self.server(user), 30, f"the server of {user} has stopped")

    def server(self, user: str) -> dict[str, Any]:
        """The hub's view of the user's server; empty when it has none."""
        found: dict[str, Any] = self.api("GET", f"/users/{user}").json()["servers"].get("", {})
        return found

    def base(self, user: str) -> str:
        """Where the user's server listens."""
        return f"http://127.0.0.1:{self.server(user)['state']['port']}/user/{user}"

    def kernel(self, user: str) -> str:
        """A new kernel of the user."""
        answer = self.http.post(f"{self.base(user)}/api/kernels", json={})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def run(self, user: str, kernel: str, code: str) -> str:
        """What a cell prints; an error in it is raised here."""
        return run_cell(f"{self.base(user)}/api/kernels/{kernel}/channels", f"token {TOKEN}", code)

    def terminal(self, user: str, line: str, awaited: str) -> None:
        """Type a line into a new terminal of the user and wait until it shows the awaited text."""
        answer = self.http.post(f"{self.base(user)}/api/terminals")
        assert answer.status_code == 200, answer.text
        path = f"/terminals/websocket/{answer.json()['name']}"
        url = f"{self.base(user)}{path}".replace("http://", "ws://")
        channel = websocket.create_connection(url, header=[f"Authorization: token {TOKEN}"], timeout=30)
        try:
            channel.send(json.dumps(["stdin", f"{line}\r"]))
            shown = ""
            deadline = time.monotonic() + 30
            while awaited not in shown:
                assert time.monotonic() < deadline, shown
                kind, *text = json.loads(channel.recv())
                shown += text[0] if kind == "stdout" else ""
        finally:
            channel.close()

    def close(self) -> None:
        """Stop all servers and the hub."""
        if self.process is not None and self.process.poll() is None:
            for user in self.api("GET", "/users").json():
                for _ in user["servers"]:
                    self.api("DELETE", f"/users/{user['name']}/server")
            self.end(signal.SIGTERM)
        self.http.close()


def run_cell(url: str, authorization: str, code: str) -> str:
    """What a cell prints that is run through a kernel's channels; an error in it is raised here."""
    address = url.replace("http://", "ws://")
    channel = websocket.create_connection(address, header=[f"Authorization: {authorization}"], timeout=60)
    try:
        request = uuid.uuid4().hex
        header = {"msg_id": request, "msg_type": "execute_request", "session": request, "username": "test"}
        content = {"code": code, "silent": False, "store_history": False, "stop_on_error": True}
        rest = {"parent_header": {}, "metadata": {}, "content": content, "channel": "shell", "buffers": []}
        channel.send(json.dumps({"header": {**header, "version": "5.3"}, **rest}))
        return _output(channel, request)
    finally:
        channel.close()


def _output(channel: Any, request: str) -> str:
    text = ""
    while True:
        message = json.loads(channel.recv())
        if message["parent_header"].get("msg_id") != request:
            continue
        content = message["content"]
        if message["msg_type"] == "stream":
            text += content["text"]
        elif message["msg_type"] == "error":
            raise AssertionError("\n".join(content["traceback"]))
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            return text


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
