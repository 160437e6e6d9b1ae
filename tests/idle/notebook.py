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
from websocket import create_connection

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


class Notebook:
    """The server of one user's workload. Its processes are reported as the spawner would report them."""

    def __init__(self, service: ServiceUnderTest, user: str, folder: Path, **settings: Any) -> None:
        self.service, self.user = service, user
        self.folder = folder
        (folder / "work").mkdir(parents=True)
        workload = service.ask(user).json()
        self.id = str(workload["id"])
        until(lambda: self.show()["state"] == "admitted", 10, f"{self.id} to be admitted")
        self.attempt = self.show()["attempt"]
        launch = self._spawner("launch", {}).json()
        self.port = free_port()
        self._start(launch["environment"], settings)

    def _start(self, environment: dict[str, str], settings: dict[str, Any]) -> None:
        clean = {n: v for n, v in os.environ.items() if not n.startswith(("JUPYTER", "HUBGOV_"))}
        url = f"http://127.0.0.1:{self.service.port}{PREFIX}".rstrip("/")
        clean |= environment | {
            "HOME": str(self.folder), "HUBGOV_URL": url, "JUPYTERHUB_API_TOKEN": f"{self.user}-server-token",
        }  # fmt: skip
        config = {
            "ServerApp.port": self.port, "ServerApp.root_dir": str(self.folder / "work"),
            "IdentityProvider.token": "t", "ServerApp.jpserver_extensions": "hubgov_lab=True",
            "ServerApp.allow_root": True, "ServerApp.open_browser": False, **settings,
        }  # fmt: skip
        command = [sys.executable, "-m", "jupyter_server", *(f"--{name}={value}" for name, value in config.items())]
        with (self.folder / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, env=clean, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )
        main = processes.identify(self.process.pid)
        assert main is not None
        ref = {"pid": main.pid, "start_ticks": main.start_ticks, "boot_id": main.boot_id}
        self._spawner("processes", {"main": ref})
        self.url, self.sign = f"http://127.0.0.1:{self.port}", {"Authorization": "token t"}
        self.http = httpx.Client(base_url=self.url, headers=self.sign, timeout=30, trust_env=False)
        until(self._answers, 60, f"the server of {self.id}")
        self.service.hub.servers.setdefault(self.user, {})[""] = {"ready": True}
        self._spawner("ready", {"url": f"http://127.0.0.1:{self.port}/"})

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log()[-3000:]
        try:
            return self.http.get("/api").status_code == 200
        except httpx.HTTPError:
            return False

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

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    # --- kernels ---

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

    def execute(self, kernel: str, code: str) -> None:
        """Send the code and go: nobody listens for an answer."""
        channels = f"ws://127.0.0.1:{self.port}/api/kernels/{kernel}/channels"
        socket_ = create_connection(channels, header=["Authorization: token t"], timeout=30)
        socket_.send(json.dumps(request("execute_request", {**RUN, "code": code})))
        socket_.recv()  # it has arrived when the kernel says anything
        socket_.close()

    def stop(self) -> None:
        self.http.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(15)
