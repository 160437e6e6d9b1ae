"""Which charges are within their guarantee, and which are borrowed (semantics §3). Derived, never stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hubgov.clock import Instant
from hubgov.core.model import Allocation, AllocationId, ChargeKey, Workload
from hubgov.core.policy import PriorityClass
from hubgov.core.quota import Place, team_place
from hubgov.core.state import State


def walk(state: State, key: ChargeKey, now: Instant) -> Mapping[AllocationId, bool]:
    """For every live charge on a (pool, flavor): True where it is entitled, False where borrowed as a whole.

    Charges are walked in order (protected, queue priority, workload priority, admitted time); one that doesn't
    fit under what is left of its guarantee is borrowed and uses up none of it.
    """
    return _walked(state, key, now).verdict


def would_be_entitled(state: State, key: ChargeKey, workload: Workload, milli: int, now: Instant) -> bool:
    """Whether a charge of `milli`, walked after its team's others, would stay within the guarantee."""
    place = judged_at(state, key, workload)
    left = _walked(state, key, now).left.get(place, state.tree(key, now).shares[place].guaranteed)
    return milli <= left


class _Walked(NamedTuple):
    """One walk: which charges are entitled, and what is left of the guarantee where any was judged."""

    verdict: Mapping[AllocationId, bool]
    left: Mapping[Place, int]


def _walked(state: State, key: ChargeKey, now: Instant) -> _Walked:
    known = state.memo(now)
    if ("walk", key) not in known:
        tree = state.tree(key, now)
        left: dict[Place, int] = {}
        verdict: dict[AllocationId, bool] = {}
        for allocation in sorted(_live_charges(state, key), key=lambda a: _walk_order(state, a)):
            place = judged_at(state, key, state.workload_of(allocation))
            room = left.get(place, tree.shares[place].guaranteed)
            verdict[allocation.id] = allocation.milli_gpus <= room
            left[place] = room - allocation.milli_gpus if verdict[allocation.id] else room
        known["walk", key] = _Walked(verdict, left)
    found: _Walked = known["walk", key]
    return found


def _live_charges(state: State, key: ChargeKey) -> list[Allocation]:
    return [a for a in state.allocations.values() if a.charged and a.charge_key == key]


def _walk_order(state: State, allocation: Allocation) -> tuple[bool, int, int, int, str]:
    workload = state.workload_of(allocation)
    queue = state.policy.queues[workload.queue]
    return (
        queue.class_ is not PriorityClass.PROTECTED,
        -queue.priority,
        -workload.priority,
        allocation.reserved_at,
        allocation.id,
    )


def judged_at(state: State, key: ChargeKey, workload: Workload) -> Place:
    """Its project where that has a row on `key`, else its team."""
    known = state.memo()
    if "projects with rows" not in known:
        known["projects with rows"] = {(r.project, (r.pool, r.flavor)) for r in state.policy.quotas if r.project}
    own = (workload.project, key) in known["projects with rows"]
    return state.place_of(workload) if own else team_place(workload.team)
