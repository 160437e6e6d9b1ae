"""When what is held comes free again: of one allocation, and of a set of them until enough is free."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from hubgov.clock import Instant
from hubgov.core.decision import HeldBy
from hubgov.core.due import start_overdue_at
from hubgov.core.lease import grace_until
from hubgov.core.model import Allocation, Change
from hubgov.core.policy import Kind, Mode
from hubgov.core.state import State
from hubgov.core.states import AllocationState
from hubgov.core.transitions import kill_due_at


def free_by(state: State, allocation: Allocation) -> Instant | None:
    """When an allocation's devices are free at the latest, if nobody extends it; None for an endless lease.

    The lease's end, its grace, the time that the last save and the stop may take.
    """
    lease, reclaim = allocation.lease, state.policy.reclaim
    saves = reclaim.save_ms if state.workload_of(allocation).kind is Kind.NOTEBOOK else 0
    ending = allocation.state in (AllocationState.STOPPING, AllocationState.RELEASING)
    if state.policy.mode is Mode.OBSERVE and not ending:
        return None  # nothing that runs is stopped
    end: int | None
    match allocation.state:
        case AllocationState.RESERVED | AllocationState.STARTING:
            if lease.length_ms is None:
                return None
            end = start_overdue_at(state, allocation) + lease.length_ms + lease.grace_ms + saves
        case AllocationState.RUNNING | AllocationState.SUSPECT:
            until = grace_until(allocation)
            end = until + saves if until is not None else None
        case AllocationState.EXPIRING | AllocationState.PREEMPTING:
            end = allocation.stop_at if allocation.stop_at is not None else allocation.since + lease.grace_ms
            end += saves
        case AllocationState.STOPPING | AllocationState.RELEASING:
            end = kill_due_at(state, allocation)
        case _:
            return None
    return Instant(end + (0 if ending else reclaim.term_ms)) if end is not None else None


def released(allocation: Allocation, at: Instant) -> Change:
    """Its release, for a what-if."""
    after = replace(allocation, state=AllocationState.RELEASED, ended_at=at)
    return Change(event="what_if", before=allocation, after=after, actor="explain")


def holders(state: State, allocations: Iterable[Allocation]) -> tuple[HeldBy, ...]:
    """Who holds, each with the time at which it is free at the latest; the soonest first."""
    found = [
        HeldBy(
            workload=w.id,
            owner=w.owner,
            team=w.team,
            until=free_by(state, a),
            ends_at=a.lease.expires_at if a.state is AllocationState.RUNNING else None,
        )
        for a in allocations
        if (w := state.workload_of(a))
    ]
    return tuple(sorted(found, key=lambda h: (h.until if h.until is not None else 1 << 62, h.workload)))


Ends = tuple[tuple[Instant, int], ...]
"""What leases that end give back: (when, how much), the soonest first. Endless ones give nothing."""


def ends(state: State, allocations: Iterable[Allocation], amount: Callable[[Allocation], int]) -> Ends:
    """When each is free at the latest, and what it then gives back of what `amount` measures."""
    return tuple(sorted((end, amount(a)) for a in allocations if (end := free_by(state, a)) is not None))


def enough_by(freed: Ends, short: int) -> Instant | None:
    """When the leases that end have given back what is short; None where they never do."""
    for end, given in freed:
        short -= given
        if short <= 0:
            return end
    return None
