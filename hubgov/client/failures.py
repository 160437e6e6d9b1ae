"""What the service said no to, as exceptions: one class a kind, made from the answer's status and document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from hubgov import errors, wire
from hubgov.wire_json import from_json

T = TypeVar("T")


class PolicyDenied(errors.HubgovError):
    """The policy refused it. `decision` carries the rule, every number compared and the next steps."""

    code = "policy_denied"

    def __init__(
        self, decision: wire.Decision, *, hint: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        hint = hint or "; ".join(decision.next_steps)
        super().__init__(decision.headline or decision.code, code=decision.code, hint=hint, details=details)
        self.decision = decision


class NeedsApproval(errors.HubgovError):
    """It was recorded and waits for somebody's yes. `extension` is the request as it stands."""

    code = "needs_approval"

    def __init__(self, extension: wire.Extension) -> None:
        decision = extension.decision
        message = decision.headline if decision is not None else f"{extension.id} needs approval"
        super().__init__(message, hint="; ".join(decision.next_steps) if decision is not None else "")
        self.extension = extension


class NotSignedIn(errors.NotAllowed):
    """No token, or one that the hub doesn't know (any more)."""

    code = "unauthorized"


_CLASSES: Mapping[int, type[errors.HubgovError]] = {
    400: errors.Invalid,
    401: NotSignedIn,
    403: errors.NotAllowed,
    404: errors.NotFound,
    405: errors.Invalid,
    409: errors.Conflict,
    412: errors.PolicyMoved,
    413: errors.Invalid,
    422: errors.Invalid,
    429: errors.TooMany,
    502: errors.Unavailable,
    503: errors.Unavailable,
    504: errors.Unavailable,
}


AWAY = (502, 503, 504)
"""What a proxy answers for a service behind it that is down or starts."""


def away(status: int, address: str) -> errors.Unavailable:
    """What was asked for isn't there now, though a proxy in front of it is."""
    return errors.Unavailable(
        f"{address} is away (status {status})",
        code="away",
        hint="what runs goes on; try again in a moment",
        details={"url": address, "status": status},
    )


def failure_of(status: int, document: Any, address: str) -> errors.HubgovError:
    """The exception for an answer that isn't a success.

    An answer without an error document did not come from hubgov but from a proxy or the hub in front of it: then
    what was asked for is not reachable, whatever the status says.
    """
    error = document.get("error") if isinstance(document, Mapping) else None
    if not isinstance(error, Mapping):
        if status in (401, 403):
            return NotSignedIn(f"{address} answers {status}: the token is not valid there", hint="hubgov login")
        if status in AWAY:
            return away(status, address)
        return errors.Unavailable(
            f"what answers at {address} is not hubgov (status {status})",
            code="not_hubgov",
            hint="check HUBGOV_URL",
            details={"url": address, "status": status},
        )
    code, message = str(error.get("code") or "error"), str(error.get("message") or "failed")
    hint, details = str(error.get("hint") or ""), error.get("details")
    details = details if isinstance(details, Mapping) else {}
    if status == 422 and "outcome" in details:
        return PolicyDenied(read(wire.Decision, details), hint=hint, details=details)
    kind = _CLASSES.get(status, errors.HubgovError)
    if code == errors.Ended.code:
        kind = errors.Ended
    elif code == errors.KeyReused.code:
        kind = errors.KeyReused
    return kind(message, code=code, hint=hint, details=details)


def read(kind: type[T], data: Any) -> T:
    """The document as its dataclass; Unavailable when the answer is of another shape."""
    try:
        return from_json(kind, data)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise errors.Unavailable(
            f"the service's answer is not a {kind.__name__}: {error}",
            code="bad_answer",
            hint="client and service are of different versions; update the older one",
        ) from error
