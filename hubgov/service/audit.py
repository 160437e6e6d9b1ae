"""Which journal events are somebody's act or an end by rule; all others are the daily run."""

from __future__ import annotations

from hubgov.control import session, steer
from hubgov.core.model import ExtensionState
from hubgov.core.states import Event

_ENDS = (Event.CANCELLED, Event.GRACE_ENDED, Event.LEASE_ENDED, Event.STOP_OVERDUE, Event.START_OVERDUE)

AUDIT = (
    *(f"extension_{state.value}" for state in ExtensionState),
    *(f"allocation_{event.value}" for event in _ENDS),
    "workload_cancelled",
    "retry_cancelled",
    "stop_hastened",
    session.STOP_ASKED,
    session.SERVER_START_ASKED,
    session.USER_DEPARTED,
    "policy_applied",
    steer.QUEUE_HELD,
    steer.QUEUE_RELEASED,
    "node_drained",
    "node_undrained",
)
"""Shown by GET /audit; `all` shows the rest as well."""
