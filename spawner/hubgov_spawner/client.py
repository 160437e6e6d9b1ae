"""The governing service as the spawner sees it: one coroutine a call of its REST interface.

While the service is away (nobody listens, 503) calls are tried again with growing pauses for as long as the
caller allows: every one of them may be repeated. The token is in the headers only and never in a message.
"""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from hubgov import errors, processes
from hubgov.wire import API, Decision, Launch, ProcessRef, Receipt, Workload
from hubgov.wire_json import from_json, to_json

T = TypeVar("T")
Query = list[tuple[str, str | int | float | bool | None]]

PATIENCE_SECONDS = 10.0
"""How long one answer may take, beyond the wait that was asked for."""
LONGEST_PAUSE_SECONDS = 5.0
_CONNECT_SECONDS = 3.0
_AWAY = (502, 503, 504)

# One pool of connections a loop and identity: a hub has a spawner object for each of its users.
_shared: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], httpx.AsyncClient]]
_shared = weakref.WeakKeyDictionary()


class ServiceError(errors.HubgovError):
    """The service said no, or nothing. `decision` is there when the policy said it."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int = 0,
        hint: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint, details=details)
        self.status = status
        """The HTTP status; 0 when there was no answer."""

    @property
    def away(self) -> bool:
        """Whether it may answer if asked again."""
        return self.status == 0 or self.status in _AWAY

    @property
    def decision(self) -> Decision | None:
        """The refusal with its numbers."""
        if self.status != 422 or "outcome" not in self.details:
            return None
        return from_json(Decision, self.details)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Calls in the spawner's name. `lang` is the language that sentences come in."""

    url: str
    token: str
    lang: str = "en"

    async def spawn_options(
        self, user: str, groups: list[str], server: str, *, within: float = 0.0
    ) -> dict[str, Any]:
        """What this user may ask for: profiles with the decision now, projects, quota, the last choice."""
        query: Query = [("user", user), ("server", server), *(("groups", group) for group in groups)]
        found = await self._ask("GET", "/spawn-options", query=query, within=within)
        if not isinstance(found, dict):
            raise _unreadable(200)
        return found

    async def ensure_ticket(self, request: Mapping[str, Any], *, within: float = 0.0) -> Workload:
        """The open ticket of the server, or a new one."""
        return _document(Workload, await self._ask("POST", "/workloads", body=request, within=within))

    async def live_tickets(self, user: str, *, within: float = 0.0) -> list[Workload]:
        """What of this user waits or runs."""
        query: Query = [("owner", user), ("state", "live")]
        found = await self._ask("GET", "/workloads", query=query, within=within)
        return [_document(Workload, item) for item in found["items"]]

    async def workload(
        self, workload: str, *, after: int = 0, wait: int = 0, attach: bool = False, within: float = 0.0
    ) -> Workload:
        """The workload once its version is above `after`, or as it is after `wait` seconds."""
        query: Query = [("after", str(after)), ("wait", str(wait)), *([("attach", "1")] if attach else [])]
        path = f"/workloads/{quote(workload, safe='')}"
        return _document(Workload, await self._ask("GET", path, query=query, patience=wait, within=within))

    async def launch(self, workload: str, attempt: int, *, within: float = 0.0) -> Launch:
        """Begin what was granted."""
        return _document(Launch, await self._report(workload, "launch", {"attempt": attempt}, within))

    async def processes(
        self, workload: str, attempt: int, main: ProcessRef, init: ProcessRef | None, *, within: float = 0.0
    ) -> None:
        """Which processes the server is."""
        body = {"attempt": attempt, "main": to_json(main), "init": to_json(init)}
        await self._report(workload, "processes", body, within)

    async def ready(self, workload: str, attempt: int, url: str, *, within: float = 0.0) -> None:
        """The server answers: the lease begins."""
        await self._report(workload, "ready", {"attempt": attempt, "url": url}, within)

    async def stopping(self, workload: str, attempt: int, *, now: bool) -> Workload:
        """The hub was told to stop the server; the workload says whether its documents are saved first."""
        body = {"attempt": attempt, "now": now}
        return _document(Workload, await self._report(workload, "stopping", body, 0.0))

    async def ended(
        self,
        workload: str,
        attempt: int,
        *,
        code: int | None,
        signal: int | None,
        by_owner: bool,
        within: float = 0.0,
    ) -> None:
        """The server's processes are gone."""
        body = {"attempt": attempt, "code": code, "signal": signal, "by_owner": by_owner}
        await self._report(workload, "ended", body, within)

    async def cancel(self, workload: str, reason: str, *, now: bool, within: float = 0.0) -> None:
        """Take the ticket out of the line, or stop what it started."""
        path = f"/workloads/{quote(workload, safe='')}"
        await self._ask("DELETE", path, body={"reason": reason, "now": now}, within=within)

    async def departed(self, user: str, *, ago_seconds: int = 0, within: float = 0.0) -> None:
        """The hub deleted this user so long ago: who has the name next is another."""
        body = {"reason": "", "ago_seconds": ago_seconds}
        await self._ask("POST", f"/owners/{quote(user, safe='')}/departed", body=body, within=within)

    async def receipt(self, user: str, server: str) -> Receipt | None:
        """The receipt of the server's last session; None when there is none."""
        parts = [quote(part, safe="") for part in (user, server) if part]
        try:
            return _document(Receipt, await self._ask("GET", f"/servers/{'/'.join(parts)}/receipt"))
        except ServiceError as error:
            if error.status == 404:
                return None
            raise

    async def _report(self, workload: str, what: str, body: Mapping[str, Any], within: float) -> Any:
        return await self._ask("POST", f"/workloads/{quote(workload, safe='')}/{what}", body=body, within=within)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        patience: float = 0.0,
        within: float = 0.0,
    ) -> Any:
        """The answer's JSON; tried again for `within` seconds while the service is away."""
        now = asyncio.get_running_loop().time
        deadline, pause = now() + within, 0.1
        while True:
            try:
                return await self._once(method, path, query, body, patience)
            except ServiceError as error:
                left = deadline - now()
                if not error.away or left <= 0:
                    raise
            # Uneven, so that the spawners of a hub don't all come back at the same instant.
            await asyncio.sleep(min(pause * random.uniform(0.8, 1.2), left))
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _once(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Mapping[str, Any] | None,
        patience: float,
    ) -> Any:
        impostor = processes.impostor_at(self.url, from_outside=True)
        if impostor is not None:
            raise ServiceError(f"its port is held by uid {impostor}, which gets no token", code="unavailable")
        try:
            answer = await _http(self.url, self.token).request(
                method,
                f"{self.url.rstrip('/')}{API}{path}",
                params=query,
                json=body,
                headers={"Accept-Language": self.lang},
                timeout=httpx.Timeout(PATIENCE_SECONDS + patience, connect=_CONNECT_SECONDS),
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServiceError(f"no answer ({type(error).__name__})", code="unavailable") from error
        if answer.status_code >= 400:
            raise _refusal(answer)
        if answer.status_code == 204:
            return None
        try:
            return answer.json()
        except ValueError as error:
            raise _unreadable(answer.status_code) from error


def _http(url: str, token: str) -> httpx.AsyncClient:
    clients = _shared.setdefault(asyncio.get_running_loop(), {})
    if (url, token) not in clients:
        # Every attached spawn holds one connection while it waits, so their number isn't limited here.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        headers = {"Authorization": f"token {token}", "Accept": "application/json"}
        clients[url, token] = httpx.AsyncClient(headers=headers, limits=limits, trust_env=False)
    return clients[url, token]


def _refusal(answer: httpx.Response) -> ServiceError:
    try:
        error = answer.json()["error"]
        return ServiceError(
            str(error["message"]),
            code=str(error["code"]),
            status=answer.status_code,
            hint=str(error.get("hint") or ""),
            details=error.get("details") or {},
        )
    except (ValueError, TypeError, KeyError):  # a proxy in between, or not our service at all
        return ServiceError(f"HTTP {answer.status_code}", code="error", status=answer.status_code)


def _document(kind: type[T], data: Any) -> T:
    try:
        return from_json(kind, data)
    except (TypeError, AttributeError, KeyError) as error:
        raise _unreadable(200) from error


def _unreadable(status: int) -> ServiceError:
    return ServiceError("the answer is not what was agreed", code="error", status=status, hint="same version?")
