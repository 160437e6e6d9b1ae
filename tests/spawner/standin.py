"""A scripted stand-in for the governing service: what spawners ask of it. It runs in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from tornado import web
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from hubgov.wire import FINAL_STATES

TOKEN = "token-of-the-spawners"


def stamp(seconds: float = 0) -> str:
    """The instant so many seconds from now, as the service writes it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds").replace("+00:00", "Z")


def decision(outcome: str = "granted", **changes: Any) -> dict[str, Any]:
    """A Decision document."""
    return {
        "outcome": outcome,
        "code": {"granted": "fits_now", "waiting": "waiting_quota", "refused": "above_maximum"}[outcome],
        "headline": f"headline of {outcome}",
        "next_steps": [],
        **changes,
    }


def profile(name: str = "one", **changes: Any) -> dict[str, Any]:
    """A profile of one A100 that could start now."""
    return {
        "name": name,
        "title": f"Profile {name}",
        "queue": "lab",
        "gpus": 1,
        "flavor": "A100",
        "flavors": ["A100"],
        "memory_mib": 40960,
        "cpus": 4,
        "ram_mib": None,
        "decision": decision(),
        "free": 3,
        "total": 8,
        "price_per_hour": {"amount": "18.500000", "currency": "CNY"},
        "lease_default_seconds": 4 * 3600,
        "lease_max_seconds": 8 * 3600,
        "own": "1 of 2 GPUs in queue lab",
        **changes,
    }


def options(**changes: Any) -> dict[str, Any]:
    """What GET /spawn-options answers."""
    return {
        "now": stamp(),
        "clock_rate": 1,
        "timezone": "Asia/Shanghai",
        "currency": "CNY",
        "simulated": False,
        "mode": "enforce",
        "projects": [{"name": "seg", "team": "vision", "environment": "experiment"}],
        "profiles": [profile()],
        "quota": [],
        "last": None,
        **changes,
    }


def workload(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A notebook that waits as third in line."""
    return {
        "id": f"nb-{number}",
        "version": 1,
        "now": stamp(),
        "clock_rate": 1,
        "name": "nb",
        "kind": "notebook",
        "owner": "amy",
        "team": "vision",
        "project": "seg",
        "environment": "experiment",
        "queue": "lab",
        "class": "standard",
        "priority": 0,
        "state": "pending",
        "headline": "All cards are in use.",
        "gpus": 1,
        "flavor": "A100",
        "submitted_at": stamp(),
        "position": 3,
        "attempt": 1,
        "server": "",
        **changes,
    }


def receipt(**changes: Any) -> dict[str, Any]:
    """The receipt of a session that reached its time limit on 2 March at 18:30 in Shanghai."""
    over = workload(
        7,
        state="expired",
        end_reason="lease",
        lease_seconds=8 * 3600,
        now="2026-03-02T11:00:00Z",
        ended_at="2026-03-02T10:30:00Z",
        position=None,
        devices=[
            {"node": "box", "index": i, "uuid": f"GPU-{i}", "slice": None, "simulated": False} for i in (0, 1)
        ],
    )
    document = {"path": "a.ipynb", "outcome": "saved", "bytes": 9, "saved_at": "2026-03-02T10:29:58Z"}
    return {
        "workload": over,
        "documents": [document],
        "kernels": [],
        "terminals": 0,
        "saved_by_lab": True,
        "used_seconds": 8 * 3600,
        "gpu_seconds": 8 * 3600,
        "cost": {"amount": "148.000000", "currency": "CNY"},
        "devices_free_at": "2026-03-02T10:35:04Z",
        "lost": ["variables of kernel python3 (a.ipynb)"],
        "timezone": "Asia/Shanghai",
        **changes,
    }


class Standin:
    """The service. Set `grant` to what a new ticket's state is; `tell` moves a ticket on."""

    def __init__(self) -> None:
        self.options = options()
        self.receipts: dict[tuple[str, str], dict[str, Any]] = {}
        self.tickets: dict[str, dict[str, Any]] = {}
        self.grant = "admitted"
        self.attach_seconds: int | None = None
        self.simulated = False
        self.refusal: tuple[int, dict[str, Any]] | None = None
        """Answer of the next POST /workloads instead of a ticket; stays until it is taken away."""
        self.failing: dict[str, tuple[int, str]] = {}
        """(status, code) by the last word of a report's address."""
        self.full = False
        self.saving = False
        """Whether a stop waits for documents to be saved."""
        self.device_nodes: list[str] = []
        self.environment = {"CUDA_VISIBLE_DEVICES": "GPU-1", "HUBGOV_URL": "http://where.servers/find/it"}
        self.asked: list[tuple[str, str, Any]] = []
        """(method, address, body) of each request but the long polls, in order."""
        self.languages: list[str] = []
        self.polls = 0
        self.site = ""
        """What the mark of a server's processes ends in: of tests that end processes by it each has its own."""
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._sockets = bind_sockets(0, "127.0.0.1")
        self._http: HTTPServer | None = None
        self.url = f"http://127.0.0.1:{self._sockets[0].getsockname()[1]}/services/hubgov"
        up = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(up,))
        self._thread.start()
        assert up.wait(10)

    def _run(self, up: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._open)
        self._loop.call_soon(up.set)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _open(self) -> None:
        application = web.Application([(r"/services/hubgov/api/v1(/.*)", _Handler, {"standin": self})])
        self._http = HTTPServer(application)
        self._http.add_sockets(self._sockets)

    def close(self) -> None:
        """End the thread and its connections."""

        async def end() -> None:
            assert self._http is not None
            self._http.stop()
            await self._http.close_all_connections()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        self._thread.join(10)

    def tell(self, ticket: str, **changes: Any) -> None:
        """Change a ticket and wake who waits for it."""

        def change() -> None:
            self.tickets[ticket] |= changes | {"version": self.tickets[ticket]["version"] + 1}
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

        self._loop.call_soon_threadsafe(change)

    def told(self, what: str) -> list[Any]:
        """The bodies of the reports of one kind, in order."""
        return [body for method, path, body in self.asked if method == "POST" and path.endswith(f"/{what}")]

    def cancelled(self) -> list[str]:
        """The tickets that were cancelled, in order."""
        return [path.rsplit("/", 1)[1] for method, path, _ in self.asked if method == "DELETE"]

    def words(self) -> list[str]:
        """The kinds of reports in the order they came."""
        return [
            path.rsplit("/", 1)[1] for method, path, _ in self.asked if method == "POST" and path.count("/") == 3
        ]

    # --- what the handler asks ---

    def submit(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.refusal is not None:
            return self.refusal
        for ticket in self.tickets.values():
            mine = (ticket["owner"], ticket["server"]) == (body["user"], body["server"])
            if mine and ticket["state"] not in FINAL_STATES:
                return 200, ticket
        number = len(self.tickets) + 1
        facts = {
            "owner": body["user"],
            "server": body["server"],
            "attach_seconds": self.attach_seconds,
            "simulated": self.simulated,
        }
        ticket = workload(number, state=self.grant, **facts)
        self.tickets[ticket["id"]] = ticket
        return 201, ticket

    async def later(self, ticket: str, after: int, wait: int) -> dict[str, Any]:
        self.polls += 1
        end = self._loop.time() + wait
        while self.tickets[ticket]["version"] <= after and self.tickets[ticket]["state"] not in FINAL_STATES:
            try:
                async with asyncio.timeout_at(end):
                    await self._changed.wait()
            except TimeoutError:
                break
        return self.tickets[ticket]

    def report(self, ticket: str, word: str, body: dict[str, Any]) -> Any:
        found = self.tickets[ticket]
        if word == "launch":
            found["state"] = "starting"
            allocation = f"{ticket}.{body['attempt']}"
            return {
                "workload": found,
                "allocation": allocation,
                "attempt": body["attempt"],
                "device_nodes": self.device_nodes,
                "environment": {
                    **self.environment,
                    "HUBGOV_WORKLOAD_ID": ticket,
                    "HUBGOV_ALLOCATION_ID": allocation + self.site,
                },
            }
        if word == "ready":
            found["state"] = "running"
        if word == "stopping":
            found |= {"state": "stopping", "save_requested": f"{ticket}.1-1-stop" if self.saving else None}
        if word == "ended":
            found["state"] = "cancelled" if body["by_owner"] else "failed"
        return found


class _Handler(web.RequestHandler):
    def initialize(self, standin: Standin) -> None:
        self.standin = standin

    def prepare(self) -> None:
        self.standin.languages.append(self.request.headers.get("Accept-Language", ""))
        if self.request.headers.get("Authorization") != f"token {TOKEN}":
            self.refuse(401, "unauthorized")

    def refuse(self, status: int, code: str) -> None:
        self.set_status(status)
        self.finish({"error": {"code": code, "message": f"message of {code}", "details": {}, "hint": ""}})

    def note(self, path: str) -> Any:
        body = json.loads(self.request.body) if self.request.body else None
        self.standin.asked.append((self.request.method or "", path, body))
        return body

    async def get(self, path: str) -> None:
        standin, parts = self.standin, path.strip("/").split("/")
        if "GET" in standin.failing:
            self.refuse(*standin.failing["GET"])
        elif parts == ["spawn-options"]:
            self.note(path)
            self.finish(standin.options)
        elif parts == ["workloads"]:
            live = [t for t in standin.tickets.values() if t["state"] not in FINAL_STATES]
            mine = [t for t in live if t["owner"] == self.get_query_argument("owner")]
            self.finish({"items": mine, "next": None, "total": len(mine)})
        elif parts[0] == "servers":
            found = standin.receipts.get((parts[1], parts[2] if len(parts) == 4 else ""))
            self.refuse(404, "not_found") if found is None else self.finish(found)
        elif standin.full and self.get_query_argument("attach", ""):
            self.refuse(429, "too_many")
        else:
            after, wait = int(self.get_query_argument("after", "0")), int(self.get_query_argument("wait", "0"))
            self.finish(await standin.later(parts[1], after, wait))

    def post(self, path: str) -> None:
        standin, body, parts = self.standin, self.note(path), path.strip("/").split("/")
        word = parts[-1]
        if word in standin.failing:
            self.refuse(*standin.failing[word])
        elif word == "departed":
            self.set_status(204)
        elif len(parts) == 1:
            status, document = standin.submit(body)
            self.set_status(status)
            self.finish(document)
        else:
            self.finish(standin.report(parts[1], word, body))

    def delete(self, path: str) -> None:
        self.note(path)
        if "DELETE" in self.standin.failing:
            self.refuse(*self.standin.failing["DELETE"])
            return
        ticket = path.rsplit("/", 1)[1]
        self.standin.tickets[ticket]["state"] = "cancelled"
        self.finish(self.standin.tickets[ticket])

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """A poll that is cut off is no error."""
        if not isinstance(value, asyncio.CancelledError):
            super().log_exception(typ, value, tb)
