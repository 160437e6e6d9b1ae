"""Whom more time for one keeps waiting, and by how long: for who decides about it (semantics §5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hubgov.clock import Instant
from hubgov.core.forecast import Future, future
from hubgov.core.model import Allocation, Change, WorkloadId
from hubgov.core.state import State
from hubgov.core.states import METERED, AllocationState


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """One who would wait longer. `by_ms` None: he had a latest start and would have none."""

    workload: WorkloadId
    team: str
    by_ms: int | None


def delays(state: State, allocation: Allocation, by_ms: int, now: Instant) -> tuple[Delay, ...]:
    """Everybody whose latest start moves when this lease ends later by `by_ms`; the longest delay first.

    In the grace too: granted, it runs again until the new end.
    """
    end = allocation.lease.expires_at
    if end is None or allocation.state not in METERED:
        return ()
    key = ("delays", allocation.id, allocation.lease.version, by_ms)
    known = state.memo().get(key)
    if known is None or not (known[0].holds_at(now) and known[1].holds_at(now)):
        before = future(state, now)
        longer = replace(allocation.lease, expires_at=Instant(end + by_ms))
        extended = replace(allocation, state=AllocationState.RUNNING, lease=longer, stop_at=None)
        with state.what_if() as applied:
            change = Change(event="what_if", before=allocation, after=extended, actor="explain")
            state.apply(change)
            applied.append(change)
            after = future(state, now)
        known = state.memo()[key] = (before, after, _moved(state, before, after))
    found: tuple[Delay, ...] = known[2]
    return found


def _moved(state: State, before: Future, after: Future) -> tuple[Delay, ...]:
    found = []
    for workload_id, start in before.found.items():
        later = after.found.get(workload_id)
        if later is None or later > start:
            moved = later - start if later is not None else None
            found.append(Delay(workload=workload_id, team=state.workloads[workload_id].team, by_ms=moved))
    return tuple(sorted(found, key=lambda d: (-(d.by_ms if d.by_ms is not None else 1 << 62), d.workload)))
