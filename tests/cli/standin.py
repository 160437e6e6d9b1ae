"""A scripted stand-in for the service, in a thread of its own: answers what the test sets, notes what was asked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from tornado import web
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

TOKEN = "0123456789abcdef0123456789abcdef"
API = "/services/hubgov/api/v1"
NOW = "2026-03-02T08:00:00.000Z"
"""16:00 in Shanghai, where the tests' clocks stand."""


class Asked(NamedTuple):
    """One request: what was asked, and what came with it."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]


class Standin:
    """Answers by (method, path below the API). A path that nothing is set for is a 404 as the service writes it."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {}
        self._later: dict[tuple[str, str], tuple[int, Any]] = {}
        self.asked: list[Asked] = []
        self.drop = 0
        """So many requests lose their connection before they are answered."""
        self.port = 0
        self._begun = threading.Event()
        self._changed: asyncio.Condition
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._begun.wait(10)

    @property
    def hub(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.hub}/services/hubgov"

    def set(self, method: str, path: str, document: Any, status: int = 200) -> None:
        """What this route answers from now on. A path that begins with /hub is the hub's."""
        self.answers[method, path] = (status, document)

    def then(self, method: str, path: str, document: Any, status: int = 200) -> None:
        """What this route answers the second time, and from then on."""
        self._later[method, path] = (status, document)

    def answer(self, method: str, path: str) -> tuple[int, Any]:
        found = self.answers.get((method, path), (404, error("not_found", f"no {path}")))
        if (method, path) in self._later:
            self.answers[method, path] = self._later.pop((method, path))
        return found

    def last(self, method: str, path: str) -> Asked:
        """The last request of this route."""
        return next(a for a in reversed(self.asked) if (a.method, a.path) == (method, path))

    def change(self, path: str, document: Any) -> None:
        """Set a GET's answer and answer who waits for it."""
        self.set("GET", path, document)
        asyncio.run_coroutine_threadsafe(self._notify(), self._loop).result(10)

    def close(self) -> None:
        """Stop serving; a second time does nothing."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _serve(self) -> None:
        self._loop, self._stop, self._changed = asyncio.get_running_loop(), asyncio.Event(), asyncio.Condition()
        socket, self.port = bind_unused_port()
        server = HTTPServer(web.Application([(r".*", _Any, {"standin": self})]))
        server.add_socket(socket)
        self._begun.set()
        await self._stop.wait()
        server.stop()
        await self._notify()
        await server.close_all_connections()

    async def wait_beyond(self, path: str, version: int, seconds: float) -> None:
        def beyond() -> bool:
            return self._stop.is_set() or int(self.answers["GET", path][1]["version"]) > version

        async with self._changed:
            try:
                await asyncio.wait_for(self._changed.wait_for(beyond), seconds)
            except TimeoutError:
                return


class _Any(web.RequestHandler):
    def initialize(self, standin: Standin) -> None:
        self.standin = standin

    async def _answer(self) -> None:
        path = self.request.path.removeprefix(API)
        query = {name: self.get_query_argument(name) for name in self.request.query_arguments}
        body = json.loads(self.request.body) if self.request.body else None
        method = str(self.request.method)
        self.standin.asked.append(Asked(method, path, query, body, dict(self.request.headers.get_all())))
        if self.standin.drop > 0:
            self.standin.drop -= 1
            self.request.connection.stream.close()
            self.finish()
            return
        if "wait" in query:
            await self.standin.wait_beyond(path, int(query["after"]), float(query["wait"]))
        status, document = self.standin.answer(method, path)
        if not path.startswith("/hub/") and self.request.headers.get("Authorization") != f"token {TOKEN}":
            status, document = 401, error("unauthorized", "no valid token of the hub")
        self.set_status(status)
        if isinstance(document, str):
            self.set_header("Content-Type", "text/html")
            self.finish(document)
        elif document is not None:
            self.set_header("Content-Type", "application/json")
            self.finish(json.dumps(document))

    get = post = put = delete = _answer


def error(code: str, message: str, hint: str = "", details: Any = None) -> dict[str, Any]:
    """An error as the service writes it."""
    return {"error": {"code": code, "message": message, "hint": hint, "details": details or {}}}


def workload(**changes: Any) -> dict[str, Any]:
    """A running session on one simulated card that lasts another 1 h 42 m."""
    return {
        "id": "nb-7", "version": 3, "now": NOW, "clock_rate": 1, "name": "probe", "kind": "notebook",
        "owner": "ann", "team": "vision", "project": "seg", "environment": "experiment", "queue": "experiment",
        "class": "standard", "priority": 0, "state": "running", "gpus": 1, "flavor": "l40s-48g",
        "devices": [{"node": "box", "index": 0, "uuid": "SIM-1", "slice": None, "simulated": True}],
        "simulated": True, "headline": "Running.", "submitted_at": "2026-03-02T06:00:00.000Z",
        "started_at": "2026-03-02T06:01:00.000Z", "expires_at": "2026-03-02T09:42:30.000Z",
        "grace_until": "2026-03-02T09:47:30.000Z", "lease_seconds": 14400, "lease_version": 1, "extensions_left": 2,
        "cost": {"amount": "41.254000", "currency": "CNY"}, "added_later": "kept",
        **changes,
    }  # fmt: skip


def waiting(**changes: Any) -> dict[str, Any]:
    """One that waits for its owner's own limit."""
    return workload(
        **{
            "id": "nb-8",
            "state": "pending",
            "why": "over_own_limit",
            "headline": "Waiting for your own limit.",
            "devices": [],
            "simulated": False,
            "started_at": None,
            "expires_at": None,
            "position": 1,
            "cost": None,
            **changes,
        }
    )


def decision(**changes: Any) -> dict[str, Any]:
    """A refused extension with its numbers."""
    return {
        "outcome": "refused", "code": "max_total",
        "headline": "Not extended: queue experiment allows 24h in all, 1h left, this request +2h.",
        "rule": "queues.experiment.extension.max_total",
        "blockers": [
            {"code": "max_total", "need": 7200, "have": 3600, "limit": 86400, "unit": "seconds",
             "scope": "experiment", "node": None, "pool": "dev", "flavor": None,
             "frees_at": "2026-03-02T10:36:00.000Z",
             "held_by": [{"workload": "nb-7", "owner": "ann", "until": "2026-03-02T10:36:00.000Z",
                          "ends_at": "2026-03-02T10:30:00.000Z"}]}
        ],
        "evaluated_at": NOW, "policy_version": 3, "position": None, "latest_start": None,
        "cost": {"amount": "37.000000", "currency": "CNY"},
        "next_steps": ["Ask for a shorter extension", "Save your work before the end"], "simulated": True,
        **changes,
    }  # fmt: skip


DELAYS = [
    {"workload": "nb-8", "team": "vision", "by_seconds": 1800},
    {"workload": "-", "team": "nlp", "by_seconds": None},
]


def extension(state: str = "granted", **changes: Any) -> dict[str, Any]:
    """An answer to a request for more time."""
    told = decision(outcome="granted", code="extended", headline="Extended to 19:42 (+2h). Extensions left: 1.")
    return {
        "id": "ex-1", "workload": "nb-7", "state": state, "by_seconds": 7200,
        "expires_at": "2026-03-02T11:42:30.000Z", "delays": [], "needs": [], "requested_by": "ann",
        "reason": "evaluation", "decision": told, **changes,
    }  # fmt: skip


def device(**changes: Any) -> dict[str, Any]:
    """A simulated card that nb-7 holds."""
    return {
        "node": "box", "index": 0, "uuid": "SIM-1", "pool": "dev", "team": "vision", "project": "seg",
        "environment": "experiment", "owner": "ann", "flavor": "l40s-48g", "state": "held", "health": "ok",
        "workload": "nb-7", "used_mib": 12595, "utilisation": 73, "unknown_because": None, "age_seconds": 3,
        "isolation": "enforced", "simulated": True, "holder": "ann", "since": "2026-03-02T06:01:00.000Z",
        "until": "2026-03-02T09:42:30.000Z", **changes,
    }  # fmt: skip


def quota(**changes: Any) -> dict[str, Any]:
    """A team's quota on one card type."""
    return {
        "team": "vision", "project": None, "pool": "dev", "flavor": "l40s-48g", "guaranteed": 4, "borrow": None,
        "lend": 2, "used": 1, "borrowed": 0, "lent": 0, "available": 3, "window": None,
        "next_change": None, "simulated": True, **changes,
    }  # fmt: skip


WHY = decision(outcome="waiting", code="over_own_limit", headline="At most 2 GPUs per user.")
UNSEEN = device(
    index=1, uuid="SIM-2", state="free", workload=None, utilisation=None, used_mib=None, age_seconds=600,
    unknown_because="not measurable on MIG",
)  # fmt: skip


def listed(*items: Any, total: int | None = None, next_: str | None = None) -> dict[str, Any]:
    """A list in its envelope."""
    return {"items": list(items), "next": next_, "total": len(items) if total is None else total}


RECEIPT = {
    "workload": workload(state="expired", ended_at="2026-03-02T09:42:31.000Z", headline="Ended: time limit."),
    "documents": [
        {"path": "train.ipynb", "outcome": "saved", "bytes": 2048, "sha256": "a", "saved_at": NOW, "copy": None,
         "error": ""}
    ],
    "kernels": [], "terminals": 0, "saved_by_lab": True, "used_seconds": 5400, "gpu_seconds": 5400,
    "cost": {"amount": "27.750000", "currency": "CNY"}, "devices_free_at": NOW,
    "lost": ["variables of kernel python3 (train.ipynb)"],
}  # fmt: skip
_COST = {
    "gpu_seconds": 5400, "list_cost": {"amount": "27.750000", "currency": "CNY"},
    "discount": {"amount": "8.325000", "currency": "CNY"}, "credited": {"amount": "0.000000", "currency": "CNY"},
    "cost": {"amount": "19.425000", "currency": "CNY"}, "borrowed_gpu_seconds": 1800, "failed_gpu_seconds": 0,
    "overhead_gpu_seconds": 900,
}  # fmt: skip
COSTS = {
    "by": ["team", "user"], "from": "2026-03-01T00:00:00Z", "to": NOW, "timezone": "UTC", "total": _COST,
    "items": [{**_COST, "team": "vision", "user": "=ann"}], "simulated": False, "simulated_left_out": True,
}  # fmt: skip
QUEUE = {
    "name": "experiment", "kinds": ["notebook"], "pools": ["dev"], "class": "standard", "priority": 50,
    "order": "fair", "lease_default_seconds": 14400, "lease_max_seconds": None, "held": True, "closed": False,
    "pending": 2, "running": 1,
}  # fmt: skip
POOL = {
    "name": "dev", "engine": "local", "team": "platform", "project": "lab", "environment": "experiment",
    "owner": "wei", "placement": "pack", "devices": 2, "free": 1, "isolation": "enforced", "simulated": True,
}  # fmt: skip
LINE = {
    "seq": 9, "at": NOW, "event": "queue_held", "kind": "hold", "record": "train", "workload": None, "actor": "wei",
    "reason": "storage is being repaired", "from": None, "to": "held", "changed": {},
}  # fmt: skip
POLICY = {"version": 3, "text": "version: 1\n# 试验\n", "applied_at": NOW, "applied_by": "wei"}


def script(standin: Standin) -> None:
    """Every route of the first part with an everyday answer."""
    get = {
        "/workloads": listed(workload(), waiting()), "/workloads/nb-7": workload(), "/workloads/nb-8": waiting(),
        "/workloads/nb-8/why": WHY,
        "/workloads/nb-7/receipt": RECEIPT, "/extensions": listed(extension("needs_approval", delays=DELAYS)),
        "/queues": listed(QUEUE), "/quotas": listed(quota(), quota(team="speech", used=4)), "/pools": listed(POOL),
        "/devices": listed(device(), UNSEEN),
        "/costs": COSTS, "/audit": listed(LINE), "/policy": POLICY,
    }  # fmt: skip
    for path, document in get.items():
        standin.set("GET", path, document)
    standin.set("DELETE", "/workloads/nb-7", workload(state="stopping"))
    standin.set("POST", "/workloads/nb-7/extensions", extension(), 201)
    for verb, state in (("approve", "granted"), ("deny", "denied"), ("withdraw", "withdrawn")):
        standin.set("POST", f"/extensions/nb-7-x1/{verb}", extension(state))
    standin.set(
        "POST", "/plan", decision(outcome="granted", code="fits_now", headline="Can start now.", blockers=[])
    )
    standin.set("POST", "/policy/diff", {"version": 3, "edits": [
        {"path": "queues.experiment.grace", "before": "5m", "after": "10m"},
        {"path": "queues.batch", "before": None, "after": "{kinds: [training]}"},
        {"path": "queues.old", "before": "{}", "after": None},
    ], "warnings": ["policy.yaml:9: warning over_guaranteed: more than there is"]})  # fmt: skip
    standin.set("PUT", "/policy", {"version": 4, "applied_at": NOW})
    held = {"queue": "train", "held": True, "closed": True, "reason": "repair"}
    standin.set("POST", "/queues/train/hold", held)
    standin.set("POST", "/queues/train/release", {**held, "held": False, "closed": False})
    standin.set("POST", "/nodes/gpu-a/drain", {"node": "gpu-a", "drained": True})
    standin.set("POST", "/nodes/gpu-a/undrain", {"node": "gpu-a", "drained": False})
