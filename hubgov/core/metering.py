"""Which account a span of an allocation goes to: usage is attributed from the first day (semantics §11)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from hubgov.clock import Instant
from hubgov.core.amounts import cost_micro
from hubgov.core.entitlement import walk
from hubgov.core.idleness import IdlePhase
from hubgov.core.model import Allocation, AllocationId, Change, Tariff, Workload
from hubgov.core.policy import MICRO
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
    segments: tuple[UsageSegment, ...] = ()


def entry(state: State, change: Change) -> Entry:
    """The books' view of a change that is about to be applied to `state`."""
    after, before = change.after, change.before
    if not isinstance(after, Allocation):
        return Entry(change=change)
    workload = state.workload_of(after)
    segments = closed_segments(state, workload, before, after) if isinstance(before, Allocation) else ()
    return Entry(change=change, workload=workload, segments=segments)


def closed_segments(
    state: State, workload: Workload, before: Allocation, after: Allocation
) -> tuple[UsageSegment, ...]:
    """The spans that end with this move, priced and attributed; none where state and time stand as they were.

    `state` is the picture before the move: whether the charge was borrowed is judged while it still stands.
    """
    if (after.state, after.since) == (before.state, before.since):
        return ()
    if after.state is AllocationState.STARTING:
        return ()  # one span with the reservation: only its end tells who carries it
    spans = segments_until(state, workload, before, Instant(max(before.since, after.since)))
    failed = before.state in _UNTIL_READY and after.state is not AllocationState.RUNNING
    if failed and after.outcome is not WorkloadState.CANCELLED:
        # A failed start is credited: the pool carries it.
        return tuple(replace(span, account=Account.OVERHEAD) for span in spans)
    return spans


def segments_until(
    state: State, workload: Workload, allocation: Allocation, end: Instant
) -> tuple[UsageSegment, ...]:
    """The time of an allocation in its present state, up to `end`: a span for each tariff that held in it."""
    spans: list[UsageSegment] = []
    began = _began(allocation)
    for tariff in (*allocation.tariffs, _tariff(state, workload, allocation, _entitled(state, allocation, end))):
        until = end if tariff.until is None else min(tariff.until, end)
        if until > began or (tariff.until is None and not spans):
            spans.append(_segment(workload, allocation, tariff, began, until))
            began = until
    return tuple(spans)


def tariffs_ended(state: State, edit: Change, now: Instant) -> tuple[Change, ...]:
    """What an edit of the policy means for usage that goes on: where it costs otherwise from `now` on, the tariff
    until now is put on the allocation. To be written just before the edit, in its unit."""
    before = _tariffs(state, now)
    with state.what_if() as applied:
        state.apply(edit)
        applied.append(edit)
        after = _tariffs(state, now)
    changes = []
    for allocation_id in sorted(before):
        if before[allocation_id] != after[allocation_id]:
            allocation = state.allocations[allocation_id]
            ended = (*allocation.tariffs, replace(before[allocation_id], until=now))
            then = replace(allocation, tariffs=ended)
            changes.append(Change(event="tariff_ended", before=allocation, after=then, actor=edit.actor))
    return tuple(changes)


def _account(allocation: Allocation) -> Account:
    """Who carries its time now. The grace of an idle stop lies within the lease: it is the team's own."""
    if allocation.state is AllocationState.EXPIRING and allocation.idle.phase is IdlePhase.GRACE:
        return Account.TEAM
    return ACCOUNTS[allocation.state]


def _began(allocation: Allocation) -> Instant:
    return allocation.reserved_at if allocation.state in _UNTIL_READY else allocation.since


def _tariffs(state: State, now: Instant) -> dict[AllocationId, Tariff]:
    """What every live allocation costs by."""
    borrowed = {
        allocation
        for key in {a.charge_key for a in state.allocations.values()}
        if key is not None
        for allocation, entitled in walk(state, key, now).items()
        if not entitled
    }
    return {a.id: _tariff(state, state.workload_of(a), a, a.id not in borrowed) for a in state.allocations.values()}


def _tariff(state: State, workload: Workload, allocation: Allocation, entitled: bool) -> Tariff:
    policy = state.policy
    queue = policy.queues[workload.queue]
    flavor = policy.flavors.get(allocation.flavor or "")
    return Tariff(
        class_=queue.class_.value,
        price_micro_per_hour=flavor.price_micro_per_hour if flavor else 0,
        currency=policy.currency,
        queue_factor_micro=queue.cost_factor_micro,
        class_factor_micro=policy.costs.class_factor_micro.get(queue.class_, MICRO),
        borrowed_factor_micro=MICRO if entitled else policy.costs.borrowed_factor_micro,
        borrowed=not entitled,
    )


def _segment(
    workload: Workload, allocation: Allocation, tariff: Tariff, began: Instant, ended: Instant
) -> UsageSegment:
    return UsageSegment(
        allocation=allocation.id,
        workload=workload.id,
        account=_account(allocation),
        state=allocation.state.value,
        began=began,
        ended=ended,
        owner=workload.owner,
        team=workload.team,
        project=workload.project,
        environment=workload.environment,
        queue=workload.queue,
        kind=workload.kind.value,
        class_=tariff.class_,
        pool=allocation.pool,
        flavor=allocation.flavor,
        milli_gpus=allocation.milli_gpus,
        price_micro_per_hour=tariff.price_micro_per_hour,
        currency=tariff.currency,
        queue_factor_micro=tariff.queue_factor_micro,
        class_factor_micro=tariff.class_factor_micro,
        borrowed_factor_micro=tariff.borrowed_factor_micro,
        borrowed=tariff.borrowed,
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
