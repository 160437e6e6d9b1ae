"""Whom more time for one keeps waiting, and by how long: for who decides about it (semantics §5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hubgov.clock import Instant
from hubgov.core.forecast import latest_starts
from hubgov.core.model import Allocation, Change, WorkloadId
from hubgov.core.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """One who would wait longer. `by_ms` None: he had a latest start and would have none."""

    workload: WorkloadId
    team: str
    by_ms: int | None


def delays(state: State, allocation: Allocation, by_ms: int, now: Instant) -> tuple[Delay, ...]:
    """Everybody whose latest start moves when this lease ends later by `by_ms`; the longest delay first."""
    if allocation.lease.expires_at is None:
        return ()
    before = dict(latest_starts(state, now))
    longer = replace(allocation.lease, expires_at=Instant(allocation.lease.expires_at + by_ms))
    with state.what_if() as applied:
        change = Change(
            event="what_if",
            before=allocation,
            after=replace(allocation, lease=longer, stop_at=None),
            actor="explain",
        )
        state.apply(change)
        applied.append(change)
        after = dict(latest_starts(state, now))
    found = []
    for workload_id, start in before.items():
        later = after.get(workload_id)
        if later is None or later > start:
            moved = later - start if later is not None else None
            found.append(Delay(workload=workload_id, team=state.workloads[workload_id].team, by_ms=moved))
    return tuple(sorted(found, key=lambda d: (-(d.by_ms if d.by_ms is not None else 1 << 62), d.workload)))
