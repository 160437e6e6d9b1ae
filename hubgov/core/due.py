"""What the clock alone brings about: warnings, ends, overdue starts and stops. The sweep asks this.

Pure and idempotent: run it never, once or twice in a tick, the same things happen. Deadlines are stored, so
a pause or a restart delays but never loses one.
"""

from __future__ import annotations

from dataclasses import replace

from hubgov.clock import Instant
from hubgov.core import idle, kernels
from hubgov.core.lease import due_notice, notice_id, reason_of_end
from hubgov.core.model import Allocation, Change, Workload
from hubgov.core.policy import Kind, Mode
from hubgov.core.state import State
from hubgov.core.states import AllocationState, Event, WorkloadState
from hubgov.core.transitions import SERVICE, cancelled, kill_due_at, moved

_S = AllocationState


def due(state: State, now: Instant) -> tuple[Change, ...]:
    """Every change that is due at `now`. Each allocation takes at most one step; ask again after applying."""
    changes: list[Change] = []
    for allocation in sorted(state.allocations.values(), key=lambda a: a.id):
        changes.extend(_due_of(state, allocation, now))
    for workload in state.pending():
        limit = state.policy.queues[workload.queue].max_wait_ms
        waited = _waited(workload, now)
        if limit is not None and waited >= limit:
            changes += cancelled(state, workload, now, actor=SERVICE, reason="max_wait", code="max_wait", now=False)
    return tuple(changes)


def stop_overdue_at(state: State, allocation: Allocation) -> Instant:
    """When a stop that isn't confirmed fences the device: `stop_timeout` after the kill."""
    return Instant(kill_due_at(state, allocation) + state.policy.reclaim.stop_timeout_ms)


def start_overdue_at(state: State, allocation: Allocation) -> Instant:
    """The start deadline of an attempt: its own, else its queue's, from the moment of reservation.

    Time in which its engine didn't answer doesn't count: nobody could start it.
    """
    workload = state.workload_of(allocation)
    own = workload.request.start_deadline_ms
    limit = own if own is not None else state.policy.queues[workload.queue].start_deadline_ms
    return Instant(max(allocation.reserved_at, state.back_at.get(workload.kind, 0)) + limit)


def _due_of(state: State, allocation: Allocation, now: Instant) -> tuple[Change, ...]:
    """The step that time takes with one allocation. `mode: observe` warns and stops nothing that runs."""
    enforced = state.policy.mode is Mode.ENFORCE
    match allocation.state:
        case _S.RESERVED | _S.STARTING if state.workload_of(allocation).kind in state.away:
            return ()
        case _S.RESERVED | _S.STARTING if now >= start_overdue_at(state, allocation):
            return moved(
                state, allocation, Event.START_OVERDUE, now, reason="start_deadline", stop_at=now, stop_now=True,
                outcome=WorkloadState.FAILED, end_reason="start_deadline",
            )  # fmt: skip
        case _S.RUNNING if enforced and allocation.claim_by is not None and now >= allocation.claim_by:
            return moved(
                state, allocation, Event.CANCELLED, now, reason="unclaimed", stop_at=now,
                outcome=WorkloadState.CULLED, end_reason="unclaimed",
            )  # fmt: skip
        case _S.RUNNING if enforced and _ended(allocation, now):
            return _lease_ended(state, allocation)
        case _S.RUNNING:
            return (
                _warning(state, allocation, now)
                or idle.step(state, allocation, now)
                or kernels.step(state, allocation, now)
            )
        case _S.EXPIRING if idle.in_grace(allocation):
            return idle.step(state, allocation, now)
        case _S.EXPIRING if (enforced or allocation.outcome is not None) and _grace_over(allocation, now):
            return _grace_ended(state, allocation, now)
        case _S.STOPPING | _S.RELEASING if now >= stop_overdue_at(state, allocation):
            return moved(state, allocation, Event.STOP_OVERDUE, now, reason="stop_timeout")
        case _:
            return ()


def _ended(allocation: Allocation, now: Instant) -> bool:
    return allocation.lease.expires_at is not None and now >= allocation.lease.expires_at


def _grace_over(allocation: Allocation, now: Instant) -> bool:
    return allocation.stop_at is not None and now >= allocation.stop_at


def _lease_ended(state: State, allocation: Allocation) -> tuple[Change, ...]:
    """EXPIRING begins at the end that people were shown, however late the sweep sees it.

    An end that passed while its node was silent, or while the policy only observed, begins when that was over:
    nobody is stopped without his grace.
    """
    assert allocation.lease.expires_at is not None
    enforced_since = state.policy_text.applied_at if state.policy_text is not None else 0
    at = Instant(max(allocation.lease.expires_at, allocation.since, enforced_since))
    notebook = state.workload_of(allocation).kind is Kind.NOTEBOOK
    return moved(
        state, allocation, Event.LEASE_ENDED, at, reason=allocation.lease.rule,
        stop_at=Instant(at + allocation.lease.grace_ms),
        save=f"{allocation.id}-{allocation.lease.version}-end" if notebook else None,
    )  # fmt: skip


def _grace_ended(state: State, allocation: Allocation, now: Instant) -> tuple[Change, ...]:
    """The stop is sent, because the lease ended or because somebody had ordered it; a notebook is asked to save
    what was done in its grace first, for `save_ms` at most. A job had its signal when the grace began: it is
    killed."""
    notebook = state.workload_of(allocation).kind is Kind.NOTEBOOK
    save_ms = state.policy.reclaim.save_ms if notebook else 0
    save = f"{allocation.id}-{allocation.lease.version}-stop" if save_ms else allocation.save
    if allocation.outcome is not None:
        return moved(
            state, allocation, Event.GRACE_ENDED, now, reason=allocation.stop_reason,
            stop_at=Instant(now + save_ms), save=save,
        )  # fmt: skip
    reason = reason_of_end(allocation.lease)
    return moved(
        state, allocation, Event.GRACE_ENDED, now, reason=reason, stop_at=Instant(now + save_ms), save=save,
        kill_at=None if notebook else now,
        outcome=WorkloadState.EXPIRED, end_reason=reason,
    )  # fmt: skip


def _warning(state: State, allocation: Allocation, now: Instant) -> tuple[Change, ...]:
    """The warning that is due; the last one also asks Lab to save."""
    workload = state.workload_of(allocation)
    warn_ms = allocation.lease.warn_ms
    given = frozenset(t for t in warn_ms if notice_id(allocation, t) in state.notices)
    notice = due_notice(allocation, given, now)
    if notice is None:
        return ()
    changes = [Change(event="warning_issued", before=None, after=notice, actor=SERVICE)]
    if notice.threshold_ms == min(warn_ms) and workload.kind is Kind.NOTEBOOK:
        after = replace(allocation, save=notice.id)
        changes.append(Change(event="save_requested", before=allocation, after=after, actor=SERVICE))
    seen = replace(workload, version=workload.version + 1)
    changes.append(Change(event="workload_moved", before=workload, after=seen, actor=SERVICE))
    return tuple(changes)


def _waited(workload: Workload, now: Instant) -> int:
    current = now - workload.pending_since if workload.pending_since is not None else 0
    return workload.waited_ms + current
