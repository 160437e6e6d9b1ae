"""A real Jupyter server with hubgov's extension, governed by a real service, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from service_under_test import PREFIX, ServiceUnderTest
from waiting import until
from websocket import WebSocket, create_connection

from hubgov import processes


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


RUN = {"silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
"""The rest of a request to run code."""


def request(kind: str, content: dict[str, Any], channel: str = "shell", **header: Any) -> dict[str, Any]:
    """A message to a kernel as the websocket takes it."""
    named = {
        "msg_id": f"m-{os.urandom(4).hex()}", "username": "", "session": "s", "msg_type": kind, "version": "5.3",
        "date": "2026-03-02T09:00:00Z", **header,
    }  # fmt: skip
    return {"header": named, "parent_header": {}, "metadata": {}, "content": content, "channel": channel}


class Server:
    """A Jupyter server with the extension, told by its environment who governs it."""

    def __init__(self, folder: Path, environment: dict[str, str], **settings: Any) -> None:
        self.folder = folder
        (folder / "work").mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        clean = {n: v for n, v in os.environ.items() if not n.startswith(("JUPYTER", "HUBGOV_"))}
        config = {
            "ServerApp.port": self.port, "ServerApp.root_dir": str(folder / "work"),
            "IdentityProvider.token": "t", "ServerApp.jpserver_extensions": "hubgov_lab=True",
            "ServerApp.allow_root": True, "ServerApp.open_browser": False, **settings,
        }  # fmt: skip
        command = [sys.executable, "-m", "jupyter_server", *(f"--{name}={value}" for name, value in config.items())]
        with (folder / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, env={**clean, "HOME": str(folder), **environment}, cwd=folder, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self.url, self.sign = f"http://127.0.0.1:{self.port}", {"Authorization": "token t"}
        self.http = httpx.Client(base_url=self.url, headers=self.sign, timeout=60, trust_env=False)

    def wait(self) -> None:
        until(self._answers, 60, "the Jupyter server to answer")

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log()[-3000:]
        try:
            return self.http.get("/api").status_code == 200
        except httpx.HTTPError:
            return False

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    def open(self, path: str) -> str:
        """A notebook with a kernel; the kernel's id."""
        cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "1", "outputs": []}
        cells = [cell | {"execution_count": None}]
        content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        put = self.http.put(f"/api/contents/{path}", json={"type": "notebook", "content": content})
        assert put.status_code in (200, 201), put.text
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        made = self.http.post("/api/sessions", json=body)
        assert made.status_code == 201, made.text
        return str(made.json()["kernel"]["id"])

    def kernels(self) -> set[str]:
        return {kernel["id"] for kernel in self.http.get("/api/kernels").json()}

    def channels(self, kernel: str) -> WebSocket:
        """A connection to the kernel, as a browser has one."""
        address = f"ws://127.0.0.1:{self.port}/api/kernels/{kernel}/channels"
        return create_connection(address, header=["Authorization: token t"], timeout=60)

    def execute(self, kernel: str, code: str) -> None:
        """Send the code and go: nobody listens for an answer."""
        channels = self.channels(kernel)
        channels.send(json.dumps(request("execute_request", {**RUN, "code": code})))
        channels.recv()  # it has arrived when the kernel says anything
        channels.close()

    def stop(self) -> None:
        self.http.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(15)


class Notebook(Server):
    """The server of one user's workload. Its processes are reported as the spawner would report them."""

    def __init__(self, service: ServiceUnderTest, user: str, folder: Path, **settings: Any) -> None:
        self.service, self.user = service, user
        self.id = str(service.ask(user).json()["id"])
        until(lambda: self.show()["state"] == "admitted", 10, f"{self.id} to be admitted")
        self.attempt = self.show()["attempt"]
        environment = self._spawner("launch", {}).json()["environment"]
        environment["HUBGOV_URL"] = f"http://127.0.0.1:{service.port}{PREFIX}".rstrip("/")
        environment["JUPYTERHUB_API_TOKEN"] = f"{user}-server-token"
        super().__init__(folder, environment, **settings)
        main = processes.identify(self.process.pid)
        assert main is not None
        ref = {"pid": main.pid, "start_ticks": main.start_ticks, "boot_id": main.boot_id}
        self._spawner("processes", {"main": ref})
        self.wait()
        service.hub.servers.setdefault(user, {})[""] = {"ready": True}
        self._spawner("ready", {"url": f"{self.url}/"})

    def _spawner(self, what: str, body: dict[str, Any]) -> httpx.Response:
        answer = self.service.call(
            "spawner", "POST", f"/workloads/{self.id}/{what}", {"attempt": self.attempt, **body}
        )
        assert answer.status_code < 300, answer.text
        return answer

    def show(self) -> dict[str, Any]:
        return self.service.show(self.id)

    def why(self) -> dict[str, Any]:
        found: dict[str, Any] = self.service.call(self.user, "GET", f"/workloads/{self.id}/why").json()
        return found
