"""What a session's answer to a save that it was asked for changes."""

from __future__ import annotations

from dataclasses import replace

from hubgov.clock import Instant
from hubgov.core.model import Allocation, Change
from hubgov.core.state import State
from hubgov.core.states import AllocationState
from hubgov.core.transitions import stop_due_at


def save_answered(state: State, allocation: Allocation, at: Instant, *, actor: str) -> tuple[Change, ...]:
    """The session has saved what it was last asked to save: a stop that waited for that is sent now."""
    after = replace(allocation, save_answered=allocation.save)
    if allocation.state is AllocationState.STOPPING and stop_due_at(allocation) > at:
        after = replace(after, stop_at=at)
    workload = state.workload_of(allocation)
    seen = replace(workload, version=workload.version + 1)
    return (
        Change(event="save_answered", before=allocation, after=after, actor=actor),
        Change(event="workload_moved", before=workload, after=seen, actor=actor),
    )
