"""Which account a span of an allocation goes to: usage is attributed from the first day (semantics §11)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from hubgov.clock import Instant
from hubgov.core.amounts import cost_micro
from hubgov.core.entitlement import walk
from hubgov.core.model import Allocation, Change, Workload
from hubgov.core.state import State
from hubgov.core.states import AllocationState, WorkloadState


class Account(StrEnum):
    """Who carries a span: the team, the pool's overhead (time past the end), or the pool as fenced."""

    TEAM = "team"
    OVERHEAD = "overhead"
    FENCED = "fenced"


_S = AllocationState
ACCOUNTS = {
    _S.RESERVED: Account.TEAM,
    _S.STARTING: Account.TEAM,
    _S.RUNNING: Account.TEAM,
    _S.PREEMPTING: Account.TEAM,
    _S.SUSPECT: Account.TEAM,
    _S.EXPIRING: Account.OVERHEAD,
    _S.STOPPING: Account.OVERHEAD,
    _S.RELEASING: Account.OVERHEAD,
    _S.QUARANTINED: Account.FENCED,
    _S.LOST: Account.FENCED,
}


_UNTIL_READY = (AllocationState.RESERVED, AllocationState.STARTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSegment:
    """A span of one allocation in which state, share, price, queue and class were constant: append-only."""

    allocation: str
    workload: str
    account: Account
    state: str
    began: Instant
    ended: Instant
    owner: str
    team: str
    project: str
    environment: str
    queue: str
    kind: str
    class_: str
    pool: str
    flavor: str | None
    milli_gpus: int
    price_micro_per_hour: int
    currency: str
    queue_factor_micro: int
    class_factor_micro: int
    borrowed_factor_micro: int
    borrowed: bool
    simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A change with what follows from it for the books, worked out on the picture just before it."""

    change: Change
    workload: Workload | None = None
    """Whose allocation it is about, for the ownership on the books."""
    segment: UsageSegment | None = None


def entry(state: State, change: Change) -> Entry:
    """The books' view of a change that is about to be applied to `state`."""
    after, before = change.after, change.before
    if not isinstance(after, Allocation):
        return Entry(change=change)
    workload = state.workload_of(after)
    segment = closed_segment(state, workload, before, after) if isinstance(before, Allocation) else None
    return Entry(change=change, workload=workload, segment=segment)


def closed_segment(state: State, workload: Workload, before: Allocation, after: Allocation) -> UsageSegment | None:
    """The span that ends with this move, priced and attributed; None where state and time stand as they were.

    `state` is the picture before the move: whether the charge was borrowed is judged while it still stands.
    """
    if (after.state, after.since) == (before.state, before.since):
        return None
    if after.state is AllocationState.STARTING:
        return None  # one span with the reservation: only its end tells who carries it
    span = segment_until(state, workload, before, Instant(max(before.since, after.since)))
    failed = before.state in _UNTIL_READY and after.state is not AllocationState.RUNNING
    if failed and after.outcome is not WorkloadState.CANCELLED:
        return replace(span, account=Account.OVERHEAD)  # a failed start is credited: the pool carries it
    return span


def segment_until(state: State, workload: Workload, allocation: Allocation, end: Instant) -> UsageSegment:
    """The span of an allocation's present state, up to `end`, at the prices of the current policy."""
    policy = state.policy
    queue = policy.queues[workload.queue]
    flavor = policy.flavors.get(allocation.flavor or "")
    entitled = _entitled(state, allocation, end)
    return UsageSegment(
        allocation=allocation.id,
        workload=workload.id,
        account=ACCOUNTS[allocation.state],
        state=allocation.state.value,
        began=allocation.reserved_at if allocation.state in _UNTIL_READY else allocation.since,
        ended=end,
        owner=workload.owner,
        team=workload.team,
        project=workload.project,
        environment=workload.environment,
        queue=workload.queue,
        kind=workload.kind.value,
        class_=queue.class_.value,
        pool=allocation.pool,
        flavor=allocation.flavor,
        milli_gpus=allocation.milli_gpus,
        price_micro_per_hour=flavor.price_micro_per_hour if flavor else 0,
        currency=policy.currency,
        queue_factor_micro=queue.cost_factor_micro,
        class_factor_micro=policy.costs.class_factor_micro.get(queue.class_, 1_000_000),
        borrowed_factor_micro=1_000_000 if entitled else policy.costs.borrowed_factor_micro,
        borrowed=not entitled,
        simulated=any(share.simulated for share in allocation.devices),
    )


def cost_of(segment: UsageSegment) -> Fraction:
    """What a span costs its team, in millionths of the currency, unrounded; nothing beyond the team's account."""
    if segment.account is not Account.TEAM:
        return Fraction(0)
    return cost_micro(
        segment.ended - segment.began,
        segment.milli_gpus,
        segment.price_micro_per_hour,
        segment.queue_factor_micro,
        segment.class_factor_micro,
        segment.borrowed_factor_micro,
    )


def _entitled(state: State, allocation: Allocation, at: Instant) -> bool:
    """Whether the charge is within its guarantee; no device is always within."""
    key = allocation.charge_key
    if key is None or allocation.milli_gpus == 0:
        return True
    return walk(state, key, at).get(allocation.id, True)
