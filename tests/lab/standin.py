"""A scripted stand-in for the governing service: what the server extension asks of it, and nothing more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tornado import web
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

TOKEN = "token-of-the-server"
WORKLOAD = "w-1"

Ask = Callable[..., Awaitable[Any]]
"""How tests ask the extension: the `ask` fixture."""


async def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    """Let the loop run until the condition holds; TimeoutError when it doesn't."""
    async with asyncio.timeout(seconds):
        # What is waited for is other code's state, which has no event of its own.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def stamp(seconds: float) -> str:
    """The instant so many seconds from now, as the service writes it."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def workload(**changes: Any) -> dict[str, Any]:
    """A running session of one simulated A100 that lasts another 1 h 42 m."""
    return {
        "id": WORKLOAD,
        "version": 1,
        "now": stamp(0),
        "clock_rate": 1,
        "name": "nb-7",
        "kind": "notebook",
        "owner": "amy",
        "team": "vision",
        "project": "seg",
        "environment": "experiment",
        "queue": "experiment",
        "class": "standard",
        "priority": 0,
        "state": "running",
        "gpus": 1,
        "flavor": "A100",
        "devices": [{"node": "sim-a", "index": 0, "uuid": "SIM-1", "slice": None, "simulated": True}],
        "simulated": True,
        "submitted_at": stamp(-9000),
        "expires_at": stamp(6165),
        "grace_until": stamp(6465),
        "hard_end_at": None,
        "binding_rule": "lease",
        "lease_seconds": 14400,
        "extensions_left": 2,
        "extension_step_seconds": 7200,
        "cost": {"amount": "41.250000", "currency": "CNY"},
        "notices": [],
        "save_requested": None,
        "resume_documents": [],
        **changes,
    }


def decision(**changes: Any) -> dict[str, Any]:
    """A refused extension with its numbers."""
    return {
        "outcome": "refused",
        "code": "above_maximum",
        "headline": "Not extended: queue experiment allows 10 h per session and this one is at 10 h.",
        "rule": "queues.experiment.extension.max_total",
        "blockers": [{"code": "above_maximum", "need": 43200, "have": 0, "limit": 36000, "unit": "seconds"}],
        "next_steps": ["Ask a team lead for an exception", "Submit the rest as a batch job"],
        **changes,
    }


class Standin:
    """The service's state, set by the test, and what it was asked."""

    def __init__(self) -> None:
        self.workload = workload()
        self.away = False
        self.extend_answer: tuple[int, dict[str, Any]] = (201, {})
        self.why = decision(outcome="granted", code="granted", headline="Granted: within the team's share.")
        self.refuse_saves = 0
        self.asked: list[dict[str, str]] = []
        self.extended: list[tuple[str, dict[str, Any]]] = []
        self.stopped: list[dict[str, Any]] = []
        self.saves: list[tuple[str, dict[str, Any]]] = []
        self.tokens: set[str] = set()
        self.claims = 0
        self.keeps: list[str] = []
        self.reports: list[dict[str, Any]] = []
        self.end_kernels: list[str] = []
        self.reported = asyncio.Event()
        self.saved = asyncio.Event()
        self._changed = asyncio.Condition()
        self.socket, self.port = bind_unused_port()
        base = rf"/services/hubgov/api/v1/workloads/{WORKLOAD}"
        self.server = HTTPServer(
            web.Application(
                [
                    (base, _Workload, {"standin": self}),
                    (f"{base}/extensions", _Extensions, {"standin": self}),
                    (f"{base}/why", _Why, {"standin": self}),
                    (f"{base}/claim", _Claim, {"standin": self}),
                    (f"{base}/keep", _Keep, {"standin": self}),
                    (f"{base}/activity", _Activity, {"standin": self}),
                    (f"{base}/saves/([^/]+)", _Saves, {"standin": self}),
                ]
            )
        )
        self.server.add_socket(self.socket)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/hubgov"

    async def change(self, **changes: Any) -> None:
        """Move the workload on by one version and answer who waits for it."""
        self.workload = {**self.workload, **changes, "version": self.workload["version"] + 1}
        async with self._changed:
            self._changed.notify_all()

    async def wait_beyond(self, version: int, seconds: float) -> None:
        async with self._changed:
            try:
                await asyncio.wait_for(self._changed.wait_for(lambda: self.workload["version"] > version), seconds)
            except TimeoutError:
                return

    async def close(self) -> None:
        self.server.stop()
        async with self._changed:
            self.workload["version"] += 1000
            self._changed.notify_all()
        await self.server.close_all_connections()


class _Handler(web.RequestHandler):
    def initialize(self, standin: Standin) -> None:
        self.standin = standin

    def prepare(self) -> None:
        self.standin.tokens.add(self.request.headers.get("Authorization", ""))
        if self.standin.away:
            self.set_status(503)
            self.finish("<html>away</html>")

    def sent(self) -> dict[str, Any]:
        return dict(json.loads(self.request.body))


class _Workload(_Handler):
    async def get(self) -> None:
        query = {name: self.get_query_argument(name) for name in self.request.query_arguments}
        self.standin.asked.append(query)
        if "after" in query:
            await self.standin.wait_beyond(int(query["after"]), float(query["wait"]))
        if self.standin.away:
            self.set_status(503)
            self.finish("<html>away</html>")
            return
        self.finish({**self.standin.workload, "now": stamp(0)})

    async def delete(self) -> None:
        self.standin.stopped.append(self.sent())
        await self.standin.change(state="stopping")
        self.finish(self.standin.workload)


class _Extensions(_Handler):
    async def post(self) -> None:
        body = self.sent()
        self.standin.extended.append((self.request.headers["Idempotency-Key"], body))
        status, answer = self.standin.extend_answer
        if status == 201:
            end = datetime.fromisoformat(self.standin.workload["expires_at"]) + timedelta(
                seconds=body["by_seconds"]
            )
            expires_at = end.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            left = self.standin.workload["extensions_left"] - 1
            await self.standin.change(expires_at=expires_at, extensions_left=left)
            answer = extension("granted", expires_at, body["by_seconds"])
        self.set_status(status)
        self.finish(answer)


class _Why(_Handler):
    def get(self) -> None:
        self.finish(self.standin.why)


class _Claim(_Handler):
    def post(self) -> None:
        self.standin.claims += 1
        self.set_status(204)
        self.finish()


class _Keep(_Handler):
    async def post(self) -> None:
        self.standin.keeps.append(self.request.headers["Idempotency-Key"])
        await self.standin.change(idle_phase="kept", idle_deadline=stamp(3600), keeps_left=1)
        self.finish(self.standin.workload)


class _Activity(_Handler):
    def put(self) -> None:
        self.standin.reports.append(self.sent())
        self.standin.reported.set()
        self.finish({"period_seconds": 1, "end_kernels": self.standin.end_kernels})


class _Saves(_Handler):
    def put(self, save: str) -> None:
        if self.standin.refuse_saves > 0:
            self.standin.refuse_saves -= 1
            self.set_status(503)
            self.finish()
            return
        self.standin.saves.append((save, self.sent()))
        self.standin.saved.set()
        self.set_status(204)
        self.finish()


def extension(state: str, expires_at: str | None, by_seconds: int, **changes: Any) -> dict[str, Any]:
    """An extension as the service writes it."""
    return {
        "id": "x-1",
        "workload": WORKLOAD,
        "state": state,
        "by_seconds": by_seconds,
        "expires_at": expires_at,
        "delays": [],
        "needs": [],
        **changes,
    }
