"""What can go wrong, without HTTP: one class a kind, each with a stable `code` and a next step.

A refusal by policy is not an error but a value (`core.decision.Decision`); only the REST handlers and the
spawner turn one into something a person sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class HubgovError(Exception):
    """Base of all. `code` is a stable word, `hint` says what to do next, `details` carry the numbers."""

    code = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.hint = hint
        self.details: Mapping[str, Any] = details or {}


class Refusal(Exception):
    """A refusal by policy on its way to the edge: nothing went wrong, and nothing was written."""


class Invalid(HubgovError, ValueError):
    """A value breaks a rule of form: wrong type, out of bounds, not one of the known words."""

    code = "invalid"


class NotFound(HubgovError, LookupError):
    """No such thing, or none that the caller may see (the two are not told apart)."""

    code = "not_found"


class NotAllowed(HubgovError):
    """The caller is known and lacks the right."""

    code = "not_allowed"


class Conflict(HubgovError):
    """The thing moved since the caller looked: it ended, or its version is another."""

    code = "conflict"


class Ended(Conflict):
    """The workload is over; nothing about it can be changed any more."""

    code = "ended"


class PolicyMoved(Conflict):
    """A policy edit was made from a version that is no longer the current one."""

    code = "policy_moved"


class KeyReused(HubgovError):
    """An idempotency key came back with another body."""

    code = "key_reused"


class TooMany(HubgovError):
    """The caller asks too often or holds too much of the service at once."""

    code = "too_many"


class Unavailable(HubgovError):
    """Something this needs does not answer: database, engine, hub. Trying again later may work."""

    code = "unavailable"
