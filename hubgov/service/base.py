"""What every handler has: sign-in, strict bodies, one table from errors to HTTP, headers that confine."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from jupyterhub.services.auth import HubOAuth, HubOAuthenticated, UserNotAllowed
from pydantic import BaseModel
from tornado import web

from hubgov import errors, texts
from hubgov.clock import Clock
from hubgov.control.actor import Actor
from hubgov.control.attachments import Attachments
from hubgov.control.governor import Governor, Key
from hubgov.control.submit import Refused
from hubgov.control.unit import Unit
from hubgov.control.watch import Watch
from hubgov.core.model import AllocationId
from hubgov.core.policy import Kind
from hubgov.service import reading_json
from hubgov.service.auth import actor_of
from hubgov.service.documents import Desk
from hubgov.service.error_texts import told
from hubgov.service.feed import Feed
from hubgov.service.limits import Limits
from hubgov.telemetry.probe import Probe
from hubgov.wire_json import to_json

STATUS: Mapping[type[errors.HubgovError], int] = {
    errors.Invalid: 400,
    errors.NotAllowed: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.PolicyMoved: 412,
    errors.KeyReused: 422,
    errors.TooMany: 429,
    errors.Unavailable: 503,
}
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
Body = TypeVar("Body", bound=BaseModel)
_READING = ("GET", "HEAD", "OPTIONS")
MAX_BODY_BYTES = 2 * 1024 * 1024
READ_BYTES = 8 * 1024 * 1024
"""What is read of a body at most: above `MAX_BODY_BYTES` the answer says so, above this the connection ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the handlers work with; put together by `app`."""

    governor: Governor
    attachments: Attachments
    probes: Mapping[str, Probe]
    clock: Clock
    runnable: frozenset[Kind]
    log_folder: Callable[[AllocationId], Path]
    """Where the log of a job's attempt lies."""
    hub_base_url: str
    service_url: str
    """Where servers on this machine reach the service, without the proxy."""
    prefix: str
    state: str
    """Tells the services of one state folder from others'."""
    site: str
    """Tells this ledger's processes from those of another hub on the machine."""
    isolation: str
    limits: Limits
    feed: Feed
    watch: Watch
    log: logging.Logger


class Base(HubOAuthenticated, web.RequestHandler):  # type: ignore[misc]
    """A handler behind the hub's sign-in. `self.actor` is who calls."""

    hub_auth_class = HubOAuth
    actor: Actor

    @property
    def services(self) -> Services:
        found: Services = self.application.settings["hubgov"]
        return found

    @property
    def governor(self) -> Governor:
        return self.services.governor

    async def prepare(self) -> None:
        """Find out who calls before anything else; programs get a 401, people the hub's sign-in page."""
        if len(self.request.body) > MAX_BODY_BYTES:
            raise web.HTTPError(413)
        try:
            model = await self.hub_auth.get_user(self, sync=False)
        except web.HTTPError as error:
            if error.status_code >= 500:
                raise errors.Unavailable("the hub doesn't answer", hint="try again in a moment") from error
            raise
        if model is None:
            self.not_signed_in()
            return
        try:
            self.actor = self.known(actor_of(self.check_hub_user(model)))
        except UserNotAllowed:
            raise errors.NotAllowed(
                "the hub doesn't let you use this service", hint="ask an admin for access:services!service=hubgov"
            ) from None
        if not getattr(self, "_token_authenticated", False):
            self.check_xsrf_cookie()
        if self.request.method not in _READING:
            self.services.limits.spend(self.actor)

    def known(self, actor: Actor) -> Actor:
        """The actor with what the ledger says of its name: since when it has it."""
        return replace(actor, since=self.governor.state.known_since(actor.principal))

    def not_signed_in(self) -> None:
        raise _Unauthorized("no valid token of the hub", hint="get one at /hub/token")

    def check_xsrf_cookie(self) -> None:
        """Tornado calls this before `prepare`, when nobody is known yet; `prepare` calls the hub's own."""
        if hasattr(self, "actor") and self.request.method not in _READING:
            self.hub_auth.check_xsrf_cookie(self)

    def set_default_headers(self) -> None:
        self.set_header("Content-Security-Policy", CSP)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "same-origin")
        self.set_header("Cache-Control", "no-store")

    @property
    def lang_in_query(self) -> str:
        """`?lang=` as it was sent, whatever that is."""
        return self.request.query_arguments.get("lang", [b""])[-1].decode(errors="replace")

    @property
    def lang(self) -> str:
        """The reader's language: `?lang=`, the `hubgov_lang` cookie, then Accept-Language."""
        asked = self.lang_in_query or self.get_cookie("hubgov_lang", "") or ""
        if asked in texts.LANGUAGES:
            return asked
        return texts.best_language(self.request.headers.get("Accept-Language"))

    def desk(self, reader: Actor | None = None, teams: frozenset[str] = frozenset()) -> Desk:
        """Writes documents for the caller, or for `reader`, from the picture as it is now."""
        return Desk(
            self.governor.state,
            self.services.clock.now(),
            reader or self.actor,
            self.lang,
            self.services.clock.rate,
            self.services.hub_base_url,
            teams,
        )

    def decode_argument(self, value: bytes, name: str | None = None) -> str:
        """As tornado's; no address or query holds a NUL, which no database keeps."""
        text: str = super().decode_argument(value, name)
        if "\x00" in text:
            raise web.HTTPError(400)
        return text

    def _request_summary(self) -> str:
        """For log lines: without the query, which may carry what is nobody's business."""
        return f"{self.request.method} {self.request.path}"

    def body(self, kind: type[Body]) -> Body:
        return reading_json.parse(kind, self.request.body)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number of the query, within its bounds; Invalid else."""
        given = self.get_query_arguments(name)
        if not given:
            return default
        if len(given) > 1:
            raise errors.Invalid(f"{name}: given {len(given)} times", hint="give it once")
        text = given[0]
        if not re.fullmatch(r"-?[0-9]{1,19}", text):
            raise errors.Invalid(f"{name}: {text[:40]!r} is not a whole number", hint=f"{least} to {most}")
        if not least <= int(text) <= most:
            raise errors.Invalid(f"{name}: {text} is out of bounds", hint=f"{least} to {most}")
        return int(text)

    def query(self, name: str, most: int = 200) -> str | None:
        """A text of the query, or None; Invalid when it is too long or holds control characters."""
        text = self.get_query_argument(name, "")
        if len(text) > most or any(ord(ch) < 32 for ch in text):
            raise errors.Invalid(f"{name}: not a valid text", hint=f"at most {most} visible characters")
        return text or None

    async def once(self, intent: Callable[[Unit], tuple[int, Any]]) -> None:
        """Run a mutation that answers (status, document); at most once when it came with an Idempotency-Key.

        A key is kept for a day (`governor.KEYS_KEPT_MS`); the request is its address, its `If-Match` and its body.
        """
        key = self.request.headers.get("Idempotency-Key")
        if key is None:
            status, document = await self.governor.do(intent)
            self.reply(document, status)
            return
        if not 1 <= len(key) <= 200 or not key.isprintable():
            raise errors.Invalid(
                "Idempotency-Key must have 1 to 200 printable characters", hint="a UUID made for each request"
            )
        parts = (self.request.path, self.request.headers.get("If-Match", ""))
        digest = hashlib.sha256(b"\0".join([*(p.encode() for p in parts), self.request.body])).hexdigest()
        wanted = Key(
            principal=f"{self.actor.kind}:{self.actor.name}", route=self.request.path, key=key, digest=digest
        )

        def keyed(unit: Unit) -> str:
            status, document = intent(unit)
            return json.dumps({"status": status, "body": to_json(document)})

        answer = await self.governor.do_once(wanted, keyed)
        stored = json.loads(answer.text)
        first = int(stored["status"])
        self.reply(stored["body"], 200 if answer.replayed and first == 201 else first)

    def reply(self, document: Any, status: int = 200) -> None:
        """The document as JSON."""
        self.set_status(status)
        if document is None and status == 204:
            self.finish()
            return
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps(to_json(document), ensure_ascii=False, default=str))

    def reply_list(self, items: list[Any], next_: str | None = None, total: int | None = None) -> None:
        """A list in its envelope."""
        self.reply({"items": items, "next": next_, "total": len(items) if total is None else total})

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Whatever was raised, as {"error": {code, message, details, hint}} with the right status."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        status, document = self._error_document(status_code, error)
        self.show_error(status, document)

    def show_error(self, status: int, document: dict[str, Any]) -> None:
        """The error document as the answer."""
        self.error_headers(status, document)
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps({"error": document}, ensure_ascii=False))

    def error_headers(self, status: int, document: dict[str, Any]) -> None:
        """The status with the headers that belong to it."""
        self.set_status(status)
        if status in (429, 503):
            self.set_header("Retry-After", str(document["details"].get("retry_after_seconds", 5)))
        if status == 405:
            self.set_header("Allow", ", ".join(self.methods()))

    def _error_document(self, status_code: int, error: BaseException | None) -> tuple[int, dict[str, Any]]:
        match error:
            case Refused():
                decision = self.desk().decision(error.decision)
                document: dict[str, Any] = {"code": decision.code, "message": decision.headline}
                hint = "; ".join(decision.next_steps)
                return 422, document | {"details": to_json(decision), "hint": hint}
            case _Unauthorized():
                return 401, self._told(error)
            case errors.HubgovError():
                status = next(STATUS[k] for k in type(error).__mro__ if k in STATUS) if _known(error) else 500
                return status, self._told(error)
            case web.HTTPError():
                status = error.status_code
                code = _CODES.get(status, "invalid" if status < 500 else "error")
                return status, self._plain_error(code)
            case _:
                return status_code, self._plain_error("error")

    def _told(self, error: errors.HubgovError) -> dict[str, Any]:
        """An error of ours in the reader's language."""
        message, hint = told(error.message, error.hint, self.lang)
        details = error.details
        if error.code == "policy_invalid":
            problems = [problem.told(self.lang) for problem in details["problems"]]
            details, hint = {"problems": problems}, problems[0]
        return {"code": error.code, "message": message, "details": to_json(details), "hint": hint}

    def _plain_error(self, code: str) -> dict[str, Any]:
        """What tornado alone raised, in words and with what to do."""
        message = texts.word(texts.HTTP_ERRORS, code, self.lang)
        return {
            "code": code,
            "message": message,
            "details": {},
            "hint": texts.word(texts.HTTP_HINTS, code, self.lang),
        }

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Refusals are everyday; only what nobody expected gets a traceback. What the caller isn't told of
        something that doesn't answer is said here."""
        if isinstance(value, errors.Unavailable) and value.__cause__ is not None:
            self.services.log.warning("event=unavailable path=%s error=%r", self.request.path, str(value.__cause__))
            return
        if isinstance(value, errors.HubgovError | Refused):
            code = value.decision.code if isinstance(value, Refused) else value.code
            self.services.log.info("event=refused path=%s code=%s", self.request.path, code)
            return
        super().log_exception(typ, value, tb)

    @classmethod
    def methods(cls) -> list[str]:
        """The methods that this address has."""
        missing = web.RequestHandler._unimplemented_method
        return [m for m in cls.SUPPORTED_METHODS if getattr(cls, m.lower()) is not missing]


class Open(Base):
    """What needs no sign-in."""

    async def prepare(self) -> None:
        """Nobody is asked who he is."""


class _Unauthorized(errors.NotAllowed):
    code = "unauthorized"


_CODES = {401: "unauthorized", 403: "not_allowed", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}


def _known(error: errors.HubgovError) -> bool:
    return any(kind in STATUS for kind in type(error).__mro__)


class Page(Base):
    """A page for people: without a sign-in it goes to the hub's; errors are pages too."""

    def not_signed_in(self) -> None:
        if self.request.method in ("GET", "HEAD"):
            self.redirect(self.get_login_url())
            return
        super().not_signed_in()

    def show_error(self, status: int, document: dict[str, Any]) -> None:
        """The error as a page in the reader's language."""
        self.error_headers(status, document)
        self.render_page("error.html", status, error=document)

    def render_page(self, template: str, status: int = 200, **facts: Any) -> None:
        """The template in the reader's language."""
        environment = self.application.settings["templates"]
        other = "zh" if self.lang == "en" else "en"
        switch = "?" + urlencode({"lang": other})
        html = environment.get_template(template).render(
            lang=self.lang,
            status=status,
            switch=switch,
            hub=self.services.hub_base_url,
            prefix=self.services.prefix,
            actor=getattr(self, "actor", None),
            xsrf=self.xsrf_token.decode() if isinstance(self.xsrf_token, bytes) else self.xsrf_token,
            **facts,
        )
        self.set_status(status)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        if self.lang_in_query in texts.LANGUAGES:
            self.set_cookie("hubgov_lang", self.lang, path="/", samesite="Lax", expires_days=365)
        self.finish(html)
