"""When what runs ends and when its devices are free, for those who wait for them."""

from __future__ import annotations

from collections.abc import Iterable

from hubgov.clock import Instant
from hubgov.core.model import Allocation, HeldBy
from hubgov.core.policy import Mode
from hubgov.core.state import State
from hubgov.core.states import AllocationState


def start_overdue_at(state: State, allocation: Allocation) -> Instant:
    """The start deadline of an attempt: its own, else its queue's, from the moment of reservation."""
    workload = state.workload_of(allocation)
    own = workload.request.start_deadline_ms
    limit = own if own is not None else state.policy.queues[workload.queue].start_deadline_ms
    return Instant(allocation.reserved_at + limit)


def free_by(state: State, allocation: Allocation) -> Instant | None:
    """When an allocation's devices are free at the latest, if nobody extends it; None for an endless lease.

    The lease's end, its grace, and the time a stop may take.
    """
    queue = state.policy.queues[state.workload_of(allocation).queue]
    lease = allocation.lease
    ending = allocation.state in (AllocationState.STOPPING, AllocationState.RELEASING)
    if state.policy.mode is Mode.OBSERVE and not ending:
        return None  # nothing that runs is stopped
    match allocation.state:
        case AllocationState.RESERVED | AllocationState.STARTING:
            if lease.length_ms is None:
                return None
            end = start_overdue_at(state, allocation) + lease.length_ms + queue.grace_ms
        case AllocationState.RUNNING | AllocationState.SUSPECT:
            if lease.expires_at is None:
                return None
            end = lease.expires_at + queue.grace_ms
        case AllocationState.EXPIRING | AllocationState.PREEMPTING:
            end = allocation.stop_at if allocation.stop_at is not None else allocation.since + queue.grace_ms
        case AllocationState.STOPPING | AllocationState.RELEASING:
            end = allocation.since
        case _:
            return None
    return Instant(end + state.policy.reclaim.term_ms)


def holders(state: State, allocations: Iterable[Allocation]) -> tuple[HeldBy, ...]:
    """Who holds these, the first to be free first."""
    found = [
        HeldBy(
            workload=workload.id,
            owner=workload.owner,
            team=workload.team,
            until=free_by(state, allocation),
            ends_at=allocation.lease.expires_at if allocation.state is AllocationState.RUNNING else None,
        )
        for allocation in allocations
        if (workload := state.workload_of(allocation))
    ]
    return tuple(sorted(found, key=lambda h: (h.until if h.until is not None else 1 << 62, h.workload)))


def first_free(held_by: Iterable[HeldBy]) -> Instant | None:
    """When the first of them is free at the latest; None if none of them ever ends by itself."""
    return min((h.until for h in held_by if h.until is not None), default=None)
