"""How the service is asked: one request with the token, a bounded number of tries, errors as exceptions."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hubgov import wire
from hubgov.client.connection import Connection, bad_url
from hubgov.client.failures import failure_of
from hubgov.errors import Invalid, Unavailable

if TYPE_CHECKING:
    import httpx

PAUSES_SECONDS = (0.2, 0.6)
"""Before the second and the third try. A restart of the service behind its proxy is shorter than this."""


class Transport:
    """Speaks HTTP. `httpx` is loaded at the first request: many verbs never make one."""

    def __init__(
        self,
        connection: Connection,
        lang: str = "en",
        timeout: float = 30.0,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.connection, self.lang = connection, lang
        self._timeout, self._pause = timeout, pause
        self._http: httpx.Client | None = None

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | None] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        wait_seconds: float = 0,
    ) -> tuple[int, Any]:
        """Status and document of the answer. A mutation carries one Idempotency-Key over all of its tries, so
        that a try whose answer got lost and the next one are the same act."""
        import httpx

        sent = {"Accept-Language": self.lang, **(headers or {})}
        if method != "GET":
            sent["Idempotency-Key"] = uuid.uuid4().hex
        address = f"{self.connection.url}{wire.API}{path}"
        params = {name: _text(str(value)) for name, value in (query or {}).items() if value is not None}
        content = _json(body) if body is not None else None
        if content is not None:
            sent["Content-Type"] = "application/json"
        for pause in (*PAUSES_SECONDS, None):
            try:
                answer = self._client().request(
                    method,
                    address,
                    params=params,
                    content=content,
                    headers=sent,
                    timeout=self._timeout + wait_seconds,
                )
                return self._read(answer)
            except (httpx.InvalidURL, UnicodeError):  # of a name that no host can have
                raise bad_url(self.connection.url) from None
            except httpx.TimeoutException as error:
                raise self._unreachable(f"no answer within {self._timeout + wait_seconds:g} s") from error
            except httpx.TransportError as error:
                if pause is None:
                    raise self._unreachable(str(error) or type(error).__name__) from error
                self._pause(pause)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Let go of the connections."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def _client(self) -> httpx.Client:
        import httpx

        if self._http is None:
            authorization = {"Authorization": f"token {self.connection.token}", "Accept": "application/json"}
            # Proxies of the environment are for the web, not for a service of the house, and would see the token.
            self._http = httpx.Client(headers=authorization, trust_env=False, follow_redirects=False)
        return self._http

    def _read(self, answer: httpx.Response) -> tuple[int, Any]:
        document: Any = None
        if answer.content:
            try:
                document = json.loads(answer.content)
            except (ValueError, RecursionError):
                document = None
        empty = answer.status_code == 204 and not answer.content
        if 200 <= answer.status_code < 300 and (empty or isinstance(document, dict)):
            return answer.status_code, document
        raise failure_of(answer.status_code, document, self.connection.url)

    def _unreachable(self, why: str) -> Unavailable:
        url = self.connection.url
        return Unavailable(
            f"{url} does not answer: {why}",
            code="unreachable",
            hint="what runs goes on; try again in a moment, or check HUBGOV_URL",
            details={"url": url, "why": why},
        )


def part(text: str) -> str:
    """One part of a path, quoted. Invalid for what a path can't carry: it would name another address."""
    if not text or text in (".", "..") or len(text) > 200:
        raise Invalid(f"{text[:40]!r} can't be an id or a name", code="bad_name")
    return quote(_text(text), safe="")


def _text(text: str) -> str:
    """The same text if it can be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid("an id or a name must be valid Unicode", code="bad_name") from None
    return text


def _json(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except ValueError as error:
        raise Invalid(f"this can't be sent: {error}", hint="NaN and infinity are not numbers of JSON") from error
