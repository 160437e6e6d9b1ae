"""The caps that can't be lent: per user, per project and in total, of a queue and over all queues (§6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from hubgov.core.decision import Blocker
from hubgov.core.model import Allocation, Workload
from hubgov.core.policy import Caps
from hubgov.core.release import ends, enough_by, holders
from hubgov.core.state import State


class Scope(NamedTuple):
    """What a cap counts over: `of` is user, project or total; `queue` None = all queues."""

    of: str
    queue: str | None
    caps: Caps

    @property
    def name(self) -> str:
        """The cap's path in the policy: `queues.experiment.caps.per_user`."""
        base = f"queues.{self.queue}.caps" if self.queue else "caps"
        return f"{base}.total" if self.of == "total" else f"{base}.per_{self.of}"


def scopes(state: State, workload: Workload) -> tuple[Scope, ...]:
    """Every set of caps that binds this workload, the queue's own first."""
    own, over_all = state.policy.queues[workload.queue].caps, state.policy.caps
    return (
        Scope("user", workload.queue, own.per_user),
        Scope("project", workload.queue, own.per_project),
        Scope("total", workload.queue, own.total),
        Scope("user", None, over_all.per_user),
        Scope("project", None, over_all.per_project),
        Scope("total", None, over_all.total),
    )


def single_request_above(state: State, workload: Workload) -> Blocker | None:
    """The first cap that this one request breaks alone, so that it could never start; None if none does."""
    for scope in scopes(state, workload):
        for metric, limit, need in _asked(scope.caps, workload, workload.request.smallest):
            if limit is not None and need > limit:
                return _blocker(scope, metric, need, limit, limit)
    return None


def pending_full(state: State, workload: Workload) -> Blocker | None:
    """The `pending` cap that one more waiting request would break; None if there is room in all."""
    for scope in scopes(state, workload):
        if (limit := scope.caps.pending) is not None:
            waiting = sum(1 for w in state.pending() if _same(scope, w, workload))
            if waiting + 1 > limit:
                return _blocker(scope, "pending", 1, limit - waiting, limit)
    return None


def blocking(state: State, workload: Workload, milli: int) -> tuple[Blocker, ...]:
    """Every cap that admitting `milli` now would break, with who uses it up. Empty = none."""
    found = []
    for scope in scopes(state, workload):
        asked = [(m, limit, need) for m, limit, need in _asked(scope.caps, workload, milli) if limit is not None]
        if not asked:
            continue
        mine = _held_under(state, scope, workload)
        for metric, limit, need in asked:
            have = limit - sum(_uses(metric, a) for a in mine)
            if need > have:
                blocker = _blocker(scope, metric, need, have, limit)
                frees_at = enough_by(ends(state, mine, partial(_uses, metric)), need - have)
                found.append(replace(blocker, held_by=holders(state, mine), frees_at=frees_at))
    return tuple(found)


def _asked(caps: Caps, workload: Workload, milli: int) -> Iterator[tuple[str, int | None, int]]:
    yield "milli_gpus", caps.milli_gpus, milli
    yield "workloads", caps.workloads, 1
    yield "cpus", caps.cpus, workload.request.cpus or 0


def _uses(metric: str, allocation: Allocation) -> int:
    if metric == "workloads":
        return 1
    return allocation.cpus if metric == "cpus" else allocation.milli_gpus


def _held_under(state: State, scope: Scope, workload: Workload) -> Sequence[Allocation]:
    """The allocations that count under the scope's cap for `workload`; sorted out once per picture."""
    known, group = state.memo(), ("held under", scope.of, scope.queue)
    if group not in known:
        held: dict[str, list[Allocation]] = {}
        for allocation in state.allocations.values():
            other = state.workload_of(allocation)
            if scope.queue in (None, other.queue):
                held.setdefault(_of(scope, other), []).append(allocation)
        known[group] = held
    found: Sequence[Allocation] = known[group].get(_of(scope, workload), ())
    return found


def _same(scope: Scope, other: Workload, workload: Workload) -> bool:
    """Whether `other` counts under the scope's cap for `workload`."""
    return scope.queue in (None, other.queue) and _of(scope, other) == _of(scope, workload)


def _of(scope: Scope, workload: Workload) -> str:
    """Whose the cap is: the user's, the project's, or everybody's."""
    return {"user": workload.owner, "project": workload.project}.get(scope.of, "")


def _blocker(scope: Scope, unit: str, need: int, have: int, limit: int) -> Blocker:
    return Blocker(code="over_own_limit", need=need, have=have, limit=limit, unit=unit, scope=scope.name)
