"""What somebody chose in the spawn form, kept while the form is shown again after a refusal.

The hub shows the form again at once where the refusal comes within a second; later it ends on a page of its own
that leads back to the form. The first is known by the request itself, the second is kept in memory for a while.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

KEPT_SECONDS = 3600.0
"""How long a refused choice fills in the form, if nothing starts meanwhile."""
_MOST = 63
_FIELDS = ("profile", "project", "hours", "minutes", "lease")


@dataclass(slots=True, kw_only=True)
class Choice:
    """One submitted form. `fields` are its texts as they came, `reason` the HTML of why it was refused."""

    fields: Mapping[str, str]
    lang: str = ""
    """The language of who submitted it; empty while not known."""
    reason: str = ""
    at: float = field(default_factory=time.monotonic)


_submitted: ContextVar[Choice | None] = ContextVar("hubgov_submitted", default=None)
# By the names of user and server.
_kept: dict[tuple[str, str], Choice] = {}


def submit(form: Mapping[str, Sequence[Any]]) -> None:
    """Note the form that this request brings; what it starts knows it by `submitted`."""
    texts = {name: form[name][0] for name in _FIELDS if form.get(name)}
    fields = {name: text.strip()[:_MOST] for name, text in texts.items() if isinstance(text, str)}
    _submitted.set(Choice(fields=fields))


def submitted() -> Choice | None:
    """The form that the running request brought, if it is one that submits a form."""
    return _submitted.get()


def refuse(user: str, server: str, reason: str, lang: str) -> None:
    """Keep the submitted form for this server of this user, with why it came to nothing: HTML, or nothing."""
    for place in [place for place, choice in _kept.items() if _is_old(choice)]:
        del _kept[place]
    if (choice := _submitted.get()) is not None:
        choice.reason, choice.lang = reason, lang
        _kept[user, server] = choice


def forget(user: str, server: str) -> None:
    """Keep nothing for this server any more."""
    _kept.pop((user, server), None)


def kept(user: str, server: str) -> Choice | None:
    """What was kept for this server of this user, if that isn't too long ago."""
    choice = _kept.get((user, server))
    return None if choice is None or _is_old(choice) else choice


def reason_once(user: str, server: str) -> str:
    """Why the kept form came to nothing, the first time that is asked for; what was chosen stays."""
    choice = kept(user, server)
    if choice is None:
        return ""
    reason, choice.reason = choice.reason, ""
    return reason


def _is_old(choice: Choice) -> bool:
    return time.monotonic() - choice.at > KEPT_SECONDS
