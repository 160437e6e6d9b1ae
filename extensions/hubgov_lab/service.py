"""What the governing service answers, as documents of `hubgov.wire` or as errors of `hubgov.errors`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse

from hubgov import processes
from hubgov.errors import Ended, HubgovError, Invalid, NotAllowed, NotFound, Unavailable
from hubgov.wire import API, ActivityAnswer, ActivityReport, Decision, Extension, SaveReport, Workload
from hubgov.wire_json import from_json, to_json
from hubgov_lab.settings import Governed

T = TypeVar("T")

PATIENCE_SECONDS = 10.0
"""How long any answer may take beyond the wait that was asked for."""

_REFUSALS: dict[int, type[HubgovError]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound, 409: Ended}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendAnswer:
    """What became of a wish for more time: granted, needs_approval, denied, ended or failed."""

    outcome: str
    extension: Extension | None = None
    decision: Decision | None = None
    error: dict[str, Any] | None = None


@dataclass(slots=True)
class Service:
    """The service as one workload's server sees it."""

    governed: Governed
    # A client of its own, so that closing it at the end cuts the long poll and nobody else's request; it
    # still takes over what JupyterHub configured for internal TLS.
    _http: AsyncHTTPClient = field(init=False)

    def __post_init__(self) -> None:
        self._http = AsyncHTTPClient(force_instance=True)

    def close(self) -> None:
        """Drop the connections."""
        self._http.close()

    async def workload(self, after: int | None = None, wait: int = 0) -> Workload:
        """The workload as soon as its version is above `after`, else as it is once `wait` seconds passed."""
        query = {"wait": wait} if after is None else {"after": after, "wait": wait}
        return _document(Workload, await self._ask("GET", "", query=query, patience=wait))

    async def why(self) -> Decision:
        """The latest decision about the workload, with its numbers."""
        return _document(Decision, await self._ask("GET", "/why"))

    async def extend(self, by_seconds: int, reason: str, key: str) -> ExtendAnswer:
        """Ask for more time. The key makes a repeated click one extension."""
        body = {"by_seconds": by_seconds, "reason": reason}
        try:
            answer = await self._send("POST", "/extensions", body, headers={"Idempotency-Key": key})
        except Unavailable as error:
            return ExtendAnswer(outcome="failed", error=described(error))
        if answer.code in (200, 201, 202):
            extension = _document(Extension, answer)
            outcome = extension.state if extension.state in ("granted", "needs_approval") else "denied"
            return ExtendAnswer(outcome=outcome, extension=extension, decision=extension.decision)
        refusal = _error(answer)
        if answer.code == 422 and isinstance(refusal["details"].get("outcome"), str):
            decision = _parsed(Decision, refusal["details"])
            return ExtendAnswer(outcome="denied", decision=decision, error=refusal)
        return ExtendAnswer(outcome="ended" if answer.code == 409 else "failed", error=refusal)

    async def stop(self, reason: str) -> None:
        """End the workload without waiting for its deadline: the service has the documents saved first."""
        await self._ask("DELETE", "", {"reason": reason, "now": False})

    async def claim(self) -> None:
        """Say that somebody has opened this server; saying so again changes nothing."""
        await self._ask("POST", "/claim", {})

    async def keep(self, key: str) -> Workload:
        """Keep the session although it is idle; the key makes a repeated click one."""
        return _document(Workload, await self._ask("POST", "/keep", {}, headers={"Idempotency-Key": key}))

    async def report_activity(self, report: ActivityReport) -> ActivityAnswer:
        """Say what goes on here; the answer says when to say it again, and which kernels to shut down."""
        return _document(ActivityAnswer, await self._ask("PUT", "/activity", to_json(report)))

    async def put_save(self, report: SaveReport) -> None:
        """Hand in what was saved; putting the same report again changes nothing."""
        await self._ask("PUT", f"/saves/{quote(report.save, safe='')}", to_json(report))

    async def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, int] | None = None,
        headers: dict[str, str] | None = None,
        patience: float = 0,
    ) -> HTTPResponse:
        answer = await self._send(method, path, body, query=query, headers=headers, patience=patience)
        if 200 <= answer.code < 300:
            return answer
        found = _error(answer)
        kind = _REFUSALS.get(answer.code, Invalid)
        raise kind(found["message"], code=found["code"], hint=found["hint"], details=found["details"])

    async def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, int] | None = None,
        headers: dict[str, str] | None = None,
        patience: float = 0,
    ) -> HTTPResponse:
        """The answer below 500; Unavailable when there is none, so that callers try again later."""
        impostor = processes.impostor_at(self.governed.url)
        if impostor is not None:
            raise Unavailable(f"the governing service's port is held by uid {impostor}, which gets no token")
        url = f"{self.governed.url}{API}/workloads/{quote(self.governed.workload, safe='')}{path}"
        request = HTTPRequest(
            f"{url}?{urlencode(query)}" if query else url,
            method=method,
            body=None if body is None else json.dumps(body),
            allow_nonstandard_methods=True,
            connect_timeout=PATIENCE_SECONDS,
            request_timeout=PATIENCE_SECONDS + patience,
            follow_redirects=False,
            headers={
                "Authorization": f"token {self.governed.token}",
                "Accept": "application/json",
                **({} if body is None else {"Content-Type": "application/json"}),
                **(headers or {}),
            },
        )
        try:
            answer = await self._http.fetch(request, raise_error=False)
        except (HTTPClientError, OSError) as error:
            raise Unavailable(f"the governing service does not answer: {error}") from error
        if answer.code >= 500 or answer.code == 429 or 300 <= answer.code < 400:
            raise Unavailable(f"the governing service answers {answer.code}")
        return answer


def described(error: HubgovError) -> dict[str, Any]:
    """The error as the REST interfaces of hubgov write it."""
    return {
        "code": error.code,
        "message": error.message,
        "details": dict(error.details),
        "hint": error.hint,
    }


def _error(answer: HTTPResponse) -> dict[str, Any]:
    """The error object of an answer, with every key present; something else than JSON is named as such."""
    try:
        found = json.loads(answer.body)["error"]
        given = dict(found)
    except (ValueError, KeyError, TypeError):
        given = {"code": "error", "message": f"the governing service answers {answer.code}"}
    details = given.get("details")
    return {
        "code": str(given.get("code") or "error"),
        "message": str(given.get("message") or ""),
        "details": details if isinstance(details, dict) else {},
        "hint": str(given.get("hint") or ""),
    }


def _document(kind: type[T], answer: HTTPResponse) -> T:
    try:
        found = json.loads(answer.body)
    except ValueError as error:
        raise Unavailable("the governing service answers with something that is not JSON") from error
    return _parsed(kind, found)


def _parsed(kind: type[T], found: Any) -> T:
    if not isinstance(found, dict):
        raise Unavailable(f"the governing service answers with no {kind.__name__}")
    try:
        return from_json(kind, found)
    except (TypeError, AttributeError) as error:
        raise Unavailable(f"the governing service answers with an incomplete {kind.__name__}") from error
