"""What the browser may ask of this extension, under `<base_url>/hubgov/`."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from jupyter_server.base.handlers import APIHandler
from tornado import web

from hubgov.errors import HubgovError, Invalid, NotFound, Unavailable
from hubgov.wire import MAX_SPAN_MS
from hubgov.wire_json import to_json
from hubgov_lab.service import described
from hubgov_lab.session import Session

_MAX_WAIT_SECONDS = 60
_MAX_PATHS = 1000
_STATUS = {"not_found": 404, "not_governed": 404, "not_allowed": 403, "conflict": 409, "ended": 409}


class GovernedHandler(APIHandler):
    """Base of all: hands out the session and turns the package's errors into answers."""

    def initialize(self, session: Session | None) -> None:
        self.session_or_none = session

    @property
    def governed(self) -> Session:
        """The session; NotFound on a server that nobody governs."""
        if self.session_or_none is None:
            raise NotFound("this server is not governed", code="not_governed")
        return self.session_or_none

    def body(self) -> dict[str, Any]:
        """The request's JSON object; Invalid for anything else."""
        try:
            found = json.loads(self.request.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise Invalid("the request's body is not JSON", hint="send a JSON object") from error
        if not isinstance(found, dict):
            raise Invalid("the request's body is not a JSON object", hint="send a JSON object")
        return found

    def asked_by(self, reason: str) -> str:
        """The reason, with who asked where it isn't the session's owner: an admin may be in somebody's Lab."""
        workload = self.governed.workload
        # What JupyterHub says of who is signed in; without a hub there is nobody but the owner.
        name = (getattr(self.current_user, "hub_user", None) or {}).get("name", "")
        if workload is None or name in ("", workload.owner):
            return reason
        return f"{reason} (asked by {name} in the owner's JupyterLab)".strip()

    def tab(self, given: Any) -> str:
        """The id that a browser tab gave itself; tabs without one count as one."""
        if given is None:
            return ""
        if not isinstance(given, str) or len(given) > 64:
            raise Invalid("`tab` is a text of at most 64 characters", hint="leave it out, or send one id a tab")
        return given

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Errors of this package keep their code and hint; everything else is answered as Jupyter does."""
        failure = kwargs.get("exc_info", (None, None, None))[1]
        if not isinstance(failure, HubgovError):
            super().write_error(status_code, **kwargs)
            return
        if isinstance(failure, Unavailable):
            status = 503
        else:
            status = _STATUS.get(failure.code, 400)
        self.set_status(status)
        self.finish({"error": described(failure)})

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """A refusal is an answer, not a failure of this server: no stack trace for it."""
        if not isinstance(value, HubgovError):
            super().log_exception(typ, value, tb)


class SessionHandler(GovernedHandler):
    """The session now, or as soon as it changes: `?after=REVISION&wait=SECONDS&tab=ID`.

    `workload` is what the tab was loaded for, as far as it knows, `visible=0` that nobody looks at it.
    """

    _track_activity = False

    @web.authenticated
    async def get(self) -> None:
        session = self.session_or_none
        if session is None:
            self.finish({"governed": False})
            return
        after, wait = self._number("after"), self._number("wait")
        tab = self.tab(self.get_query_argument("tab", None))
        session.saving.browsers.hear(tab)
        # A tab that was left open yesterday, or is in the background, is nobody who came for this session.
        loaded_for = self.get_query_argument("workload", "")
        if self.get_query_argument("visible", "1") == "1" and loaded_for in ("", session.service.governed.workload):
            session.opened()
        if after is not None and wait:
            await session.wait_beyond(after, min(wait, _MAX_WAIT_SECONDS))
        self.finish(session.document())

    def _number(self, name: str) -> int | None:
        given = self.get_query_argument(name, None)
        if given is None:
            return None
        if not given.isascii() or not given.isdigit() or len(given) > 12:
            raise Invalid(f"`{name}` is a whole number that is not negative", hint=f"{name}=20")
        return int(given)


class ExtendHandler(GovernedHandler):
    @web.authenticated
    async def post(self) -> None:
        session, body = self.governed, self.body()
        by_seconds, reason = body.get("by_seconds"), body.get("reason", "")
        if type(by_seconds) is not int or not 0 < by_seconds <= MAX_SPAN_MS // 1000:
            raise Invalid("`by_seconds` is a whole number of seconds above 0", hint="3600 for an hour")
        if not isinstance(reason, str) or len(reason) > 2000:
            raise Invalid("`reason` is a text of at most 2000 characters", hint="say it shorter")
        answer = await session.service.extend(by_seconds, self.asked_by(reason), _key(body))
        if answer.outcome != "failed":
            await session.refresh()
        self.finish({**to_json(answer), "workload": to_json(session.workload)})


class KeepHandler(GovernedHandler):
    """Its owner still uses the session: the answer to being asked."""

    @web.authenticated
    async def post(self) -> None:
        session = self.governed
        key = _key(self.body())
        await session.service.keep(key)
        await session.refresh()
        self.finish({"workload": to_json(session.workload)})


class EditedHandler(GovernedHandler):
    """Somebody types or clicks in a tab: `path` is the document that he is at."""

    _track_activity = False

    @web.authenticated
    async def post(self) -> None:
        path = self.body().get("path")
        if path is not None and not _is_path(path):
            raise Invalid("`path` is a path below the server's folder", hint="leave it out where there is none")
        self.governed.activity.edited(path)
        self.set_status(204)
        self.finish()


class StopHandler(GovernedHandler):
    @web.authenticated
    async def post(self) -> None:
        session = self.governed
        reason = self.body().get("reason", "")
        if not isinstance(reason, str) or len(reason) > 2000:
            raise Invalid("`reason` is a text of at most 2000 characters", hint="say it shorter")
        await session.service.stop(self.asked_by(reason or "stopped in JupyterLab"))
        await session.refresh()
        self.finish({"workload": to_json(session.workload)})


class WhyHandler(GovernedHandler):
    @web.authenticated
    async def get(self) -> None:
        self.finish(to_json(await self.governed.service.why()))


class NoticeHandler(GovernedHandler):
    """Claims one warning for the tab that asks: exactly one gets `first: true`."""

    _track_activity = False

    @web.authenticated
    async def post(self, notice: str) -> None:
        session = self.governed
        if not session.claimable(notice):
            raise NotFound("no such notice", hint="the session's answer lists those that there are")
        self.finish({"first": await session.claim_notice(notice)})


class ResumeHandler(GovernedHandler):
    """Claims opening the documents of the workload that this one resumes."""

    _track_activity = False

    @web.authenticated
    async def post(self) -> None:
        self.finish({"first": await self.governed.claim_resume()})


class DocumentsHandler(GovernedHandler):
    """Takes the list of documents that a tab has open."""

    _track_activity = False

    @web.authenticated
    async def post(self) -> None:
        session, body = self.governed, self.body()
        paths = body.get("paths")
        if not isinstance(paths, list) or len(paths) > _MAX_PATHS or not all(map(_is_path, paths)):
            raise Invalid(
                f"`paths` is a list of at most {_MAX_PATHS} paths", hint="paths below the server's folder"
            )
        browsers, tab = session.saving.browsers, self.tab(body.get("tab"))
        if body.get("closed") is True:
            browsers.leave(tab)
        else:
            browsers.hear(tab).documents = tuple(paths)
        self.set_status(204)
        self.finish()


class SavedHandler(GovernedHandler):
    """Takes what a tab says about the save that runs; `taken` is false when nobody waits for it any more."""

    _track_activity = False

    @web.authenticated
    async def post(self) -> None:
        session, body = self.governed, self.body()
        save, documents = body.get("save"), body.get("documents")
        if not isinstance(save, str) or not isinstance(documents, list) or len(documents) > _MAX_PATHS:
            _bad_saved()
        outcome: dict[str, str] = {}
        for document in documents:
            if not isinstance(document, dict) or not _is_path(document.get("path")):
                _bad_saved()
            error = document.get("error") or ""
            if type(document.get("saved")) is not bool or not isinstance(error, str):
                _bad_saved()
            outcome[document["path"]] = "" if document["saved"] else error or "no reason given"
        taken = session.saving.browsers.take(self.tab(body.get("tab")), save, outcome)
        self.finish({"taken": taken})


def _bad_saved() -> NoReturn:
    raise Invalid(
        "`save` is an id and `documents` a list of {path, saved, error}", hint="saved: true, or false with an error"
    )


def _key(body: dict[str, Any]) -> str:
    """The idempotency key of a wish."""
    key = body.get("key")
    if not isinstance(key, str) or not 8 <= len(key) <= 100 or not key.isascii() or not key.isprintable():
        raise Invalid(
            "`key` is a text of 8 to 100 printable ASCII characters",
            hint="a new one for each wish, the same one when it is repeated",
        )
    return key


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 4096


HANDLERS: tuple[tuple[str, type[GovernedHandler]], ...] = (
    (r"/hubgov/session", SessionHandler),
    (r"/hubgov/extend", ExtendHandler),
    (r"/hubgov/keep", KeepHandler),
    (r"/hubgov/edited", EditedHandler),
    (r"/hubgov/stop", StopHandler),
    (r"/hubgov/why", WhyHandler),
    (r"/hubgov/notices/([^/]+)/shown", NoticeHandler),
    (r"/hubgov/resume", ResumeHandler),
    (r"/hubgov/documents", DocumentsHandler),
    (r"/hubgov/saved", SavedHandler),
)
