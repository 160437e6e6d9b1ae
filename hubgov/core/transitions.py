"""The moves of workloads and allocations as changes: what the ledger writes when something happens.

Each function answers with the changes to write, empty where the table of states has no such move. None of
them applies anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hubgov.clock import Instant
from hubgov.core.idleness import IdlePhase
from hubgov.core.lease import granted_lease, lease_left, reason_of_end, started_lease
from hubgov.core.model import Allocation, AllocationId, Change, ExtensionState, Notice, Workload
from hubgov.core.placement import Fit, Offer
from hubgov.core.policy import Kind
from hubgov.core.state import State
from hubgov.core.states import GRACE, METERED, AllocationState, Event, WorkloadState, advance

SERVICE = "hubgov"
"""The actor of what the service does by itself."""

UNAVAILABLE = "environment_unavailable"
OWNERS_FAILURES = frozenset(
    {"command_not_found", "command_not_executable", "directory_missing", "directory_closed", "owner_departed"}
)
"""Failures of a start that another try can't mend: its owner's to mend, or nobody's since the hub deleted him."""

_S = AllocationState
_SENT_SIGNALS = frozenset({9, 15})
"""SIGKILL and SIGTERM: what a job gets from hubgov in its grace."""
_GRACIOUS = frozenset({_S.RUNNING, _S.EXPIRING, _S.PREEMPTING})
"""States in which a stop by another has a grace."""


def submitted(workload: Workload, actor: str) -> tuple[Change, ...]:
    """A new request in line."""
    return (Change(event="workload_submitted", before=None, after=workload, actor=actor),)


def admitted(
    state: State, workload: Workload, offer: Offer, fit: Fit, milli: int, now: Instant
) -> tuple[Change, ...]:
    """Devices bound and charged; from here on they are nobody else's."""
    attempt = workload.attempt + 1
    request = workload.request
    allocation = Allocation(
        id=AllocationId(f"{workload.id}.{attempt}"),
        workload=workload.id,
        attempt=attempt,
        pool=offer.pool,
        flavor=offer.flavor,
        milli_gpus=milli,
        devices=fit.devices,
        node=fit.node,
        cpus=request.cpus or 0,
        ram_mib=request.ram_mib or 0,
        lease=granted_lease(state.policy.queues[workload.queue], workload),
        reserved_at=now,
        policy_version=state.policy.version,
        since=now,
    )
    after = replace(
        workload,
        version=workload.version + 1,
        state=WorkloadState.ADMITTED,
        attempt=attempt,
        allocation=allocation.id,
        waited_ms=workload.waited_ms + _current_wait(workload, now),
        pending_since=None,
        not_before=None,
    )
    return (
        Change(event="workload_admitted", before=workload, after=after, actor=SERVICE),
        Change(event="allocation_reserved", before=None, after=allocation, actor=SERVICE),
    )


def moved(
    state: State,
    allocation: Allocation,
    event: Event,
    at: Instant,
    *,
    actor: str = SERVICE,
    reason: str = "",
    **updates: Any,
) -> tuple[Change, ...]:
    """The changes when `event` happens to an allocation at `at`; () where it may not happen in its state.

    One that is reported with a time before its present state began happens when that began: spans of usage
    never overlap.
    """
    target = advance(allocation.state, event)
    if target is None:
        return ()
    at = Instant(max(at, allocation.since))
    workload = state.workload_of(allocation)
    asked_at = _asked_at(allocation, target, at)
    after = replace(allocation, **{"state": target, "since": at, "asked_at": asked_at, **updates})
    if target not in METERED and after.halted_at is None and allocation.state in METERED:
        after = replace(after, halted_at=at)
    if event is Event.READY:
        after = _on_ready(state, workload, after, at)
    if target is _S.RELEASED:
        after = replace(after, ended_at=at)
    changes = [
        Change(event=f"allocation_{event.value}", before=allocation, after=after, actor=actor, reason=reason)
    ]
    then = _workload_after(state, workload, after, at)
    if then != workload:
        # Any move is a new version of the document that clients poll for.
        name = f"workload_{then.state.value}" if then.state is not workload.state else "workload_moved"
        changes.append(Change(event=name, before=workload, after=then, actor=actor, reason=reason))
    if target not in METERED and allocation.state in METERED:
        changes.extend(_lapsed(state, workload, at))
    return tuple(changes)


def _asked_at(allocation: Allocation, target: AllocationState, at: Instant) -> Instant | None:
    """One grace that follows on another is the same; one after it ran again is a new one."""
    if target is _S.RUNNING:
        return None
    ends = target in GRACE or target is _S.STOPPING
    return at if ends and allocation.asked_at is None else allocation.asked_at


def _lapsed(state: State, workload: Workload, at: Instant) -> Iterator[Change]:
    """A request for more time that nobody decided ends with the session: its stop is sent, or it is over."""
    for request in sorted(state.extensions.values(), key=lambda e: e.id):
        if request.workload == workload.id and request.state is ExtensionState.NEEDS_APPROVAL:
            after = replace(request, state=ExtensionState.LAPSED, decided_at=at, decided_by=SERVICE)
            yield Change(event="extension_lapsed", before=request, after=after, actor=SERVICE)


def _on_ready(state: State, workload: Workload, allocation: Allocation, at: Instant) -> Allocation:
    """The lease clock starts when the workload is ready: waiting and starting cost no lease."""
    lease = started_lease(state.policy.queues[workload.queue], workload, allocation.lease, at)
    claim = state.policy.queues[workload.queue].claim_ms
    claim_by = Instant(at + claim) if allocation.unattended else None
    return replace(allocation, started_at=at, lease=lease, claim_by=claim_by)


def _workload_after(state: State, workload: Workload, allocation: Allocation, at: Instant) -> Workload:
    after = replace(workload, version=workload.version + 1)
    if allocation.state is _S.RUNNING:
        started = workload.started_at if workload.started_at is not None else at
        return replace(after, state=WorkloadState.RUNNING, started_at=started)
    if allocation.state is not _S.RELEASED:
        return after
    ran = workload.ran_ms + ran_ms(allocation, at)
    if allocation.outcome is WorkloadState.FAILED and _may_retry(state, workload, allocation):
        backoff = state.policy.queues[workload.queue].retry.backoff_ms
        again = _waiting_again(after, at, ran)
        return replace(again, retries=workload.retries + 1, not_before=Instant(at + backoff))
    outcome, end_reason = allocation.outcome, allocation.end_reason
    if outcome is None:
        if _time_left(state, workload, allocation):
            return _waiting_again(after, at, ran)
        outcome, end_reason = WorkloadState.EXPIRED, reason_of_end(allocation.lease)
    return replace(
        after,
        state=outcome,
        ended_at=at,
        ran_ms=ran,
        end_reason=end_reason,
        ended_by=allocation.stop_by,
        note=allocation.stop_reason or workload.note,
        exit_code=allocation.exit_code,
        signal=allocation.signal,
        failure_class=allocation.failure_class,
    )


def _waiting_again(workload: Workload, at: Instant, ran: int) -> Workload:
    """Back in line at its original place."""
    return replace(
        workload, state=WorkloadState.PENDING, allocation=None, pending_since=at, ran_ms=ran, end_reason=None
    )


def _may_retry(state: State, workload: Workload, allocation: Allocation) -> bool:
    if allocation.end_reason == UNAVAILABLE:
        return False  # a command that isn't there isn't there the next time either
    if allocation.last_try or not _time_left(state, workload, allocation):
        return False
    asked = workload.request.retry_max
    limit = state.policy.queues[workload.queue].retry.max
    return workload.retries < (limit if asked is None else min(asked, limit))


def _time_left(state: State, workload: Workload, allocation: Allocation) -> bool:
    """Whether another attempt would have any lease. One that never ran has used up nothing."""
    if allocation.started_at is None:
        return True
    ended_at = allocation.halted_at if allocation.halted_at is not None else allocation.since
    ran = workload.ran_ms + ran_ms(allocation, ended_at)
    return lease_left(state.policy.queues[workload.queue], workload, ran) != 0


def ran_ms(allocation: Allocation, now: Instant) -> int:
    """Running time of this attempt so far: from ready to the end of its process, in ms."""
    if allocation.started_at is None:
        return 0
    end = allocation.halted_at if allocation.halted_at is not None else now
    return max(0, end - allocation.started_at)


def exited(
    state: State,
    allocation: Allocation,
    at: Instant,
    *,
    code: int | None,
    signal: int | None = None,
    failure: str | None = None,
) -> tuple[Change, ...]:
    """The process ended by itself. A reason decided before (a stop on its way) stands, however it ended.

    An exit within the grace counts as its own end: succeeded or failed by its code, and no other try is made of it.
    A job that ends by the signal that it got for its grace ended for the reason of that. `failure` names what went
    wrong where neither code nor signal tells it, as of a command that isn't there.
    """
    updates: dict[str, Any] = {"exit_code": code, "signal": signal}
    if allocation.state in (_S.EXPIRING, _S.STOPPING):
        updates["last_try"] = True
    if allocation.outcome is None:
        by_ours = signal in _SENT_SIGNALS and state.workload_of(allocation).kind is not Kind.NOTEBOOK
        if by_ours and allocation.state in GRACE:
            updates |= _by_its_grace(allocation)
        elif allocation.state in (_S.RESERVED, _S.STARTING):
            updates |= {
                "outcome": WorkloadState.FAILED, "end_reason": "start_failed", "failure_class": failure,
            }  # fmt: skip
            if failure in OWNERS_FAILURES:
                updates["end_reason"] = UNAVAILABLE
        elif code == 0:
            updates |= {"outcome": WorkloadState.SUCCEEDED, "end_reason": "completed"}
        else:
            told = failure or ("signal" if signal else "exit_code" if code else None)
            updates |= {"outcome": WorkloadState.FAILED, "end_reason": "failed", "failure_class": told}
    return moved(state, allocation, Event.EXITED, at, **updates)


def _by_its_grace(allocation: Allocation) -> dict[str, Any]:
    """What becomes of a job that its signal ended; one that gave way to somebody else waits again."""
    if allocation.state is _S.PREEMPTING:
        return {}
    if allocation.idle.phase is IdlePhase.GRACE:
        return {"outcome": WorkloadState.CULLED, "end_reason": "idle"}
    return {"outcome": WorkloadState.EXPIRED, "end_reason": reason_of_end(allocation.lease)}


def cancelled(
    state: State,
    workload: Workload,
    at: Instant,
    *,
    actor: str,
    reason: str,
    code: str,
    now: bool,
    save_within_ms: int = 0,
    grace_ms: int = 0,
) -> tuple[Change, ...]:
    """Cancel in whatever state: waiting ends at once, running is told to stop.

    A notebook that runs is asked to save first, for `save_within_ms` at most; a job gets its signal and then its
    grace at most. Not with `now`, which also shortens a stop that still waits for either. With `grace_ms` (a stop
    by another) a notebook goes on that long, its owner is told, and it saves meanwhile. What ended it first stands:
    its owner may only hasten such a stop.
    """
    allocation = state.allocation_of(workload)
    if allocation is None:
        return _cancelled_waiting(workload, at, actor=actor, reason=reason, code=code)
    if grace_ms > 0 and not now and allocation.state in _GRACIOUS and workload.kind is Kind.NOTEBOOK:
        return _stop_ordered(state, allocation, at, actor=actor, reason=reason, code=code, grace_ms=grace_ms)
    if now and allocation.state is _S.STOPPING and max(stop_due_at(allocation), allocation.kill_at or 0) > at:
        due, kill = min(stop_due_at(allocation), at), at if allocation.kill_at is not None else None
        hastened = replace(allocation, stop_at=Instant(due), stop_now=True, kill_at=kill)
        return (Change(event="stop_hastened", before=allocation, after=hastened, actor=actor, reason=reason),)
    updates: dict[str, Any] = {
        "outcome": WorkloadState.CANCELLED,
        "end_reason": code,
        "stop_at": at,
        "stop_now": now,
    }
    if allocation.outcome is not None:
        updates |= {"outcome": allocation.outcome, "end_reason": allocation.end_reason}
    elif actor != workload.owner:
        updates |= {"stop_by": actor, "stop_reason": reason}
    if save_within_ms > 0 and not now and allocation.state in METERED and workload.kind is Kind.NOTEBOOK:
        updates |= {
            "stop_at": Instant(at + save_within_ms),
            "save": f"{allocation.id}-{allocation.lease.version}-stop",
        }
    if workload.kind is not Kind.NOTEBOOK:
        updates["kill_at"] = at if now else _kill_after_grace(allocation, at)
    changes = moved(state, allocation, Event.CANCELLED, at, actor=actor, reason=reason, **updates)
    if changes or not _comes_back(state, workload, allocation):
        return changes
    # Its process is over already and it would wait again (lost, or to be retried): now it won't.
    after = replace(allocation, outcome=WorkloadState.CANCELLED, end_reason=code)
    return (Change(event="retry_cancelled", before=allocation, after=after, actor=actor, reason=reason),)


def _stop_ordered(
    state: State, allocation: Allocation, at: Instant, *, actor: str, reason: str, code: str, grace_ms: int
) -> tuple[Change, ...]:
    """Its end is now, and the stop comes after the grace, which never lasts longer than the one it has already."""
    ends = allocation.stop_at if allocation.state in GRACE else None
    if ends is None and allocation.lease.expires_at is not None:
        ends = Instant(allocation.lease.expires_at + allocation.lease.grace_ms)
    stop_at = Instant(at + grace_ms if ends is None else max(at, min(ends, at + grace_ms)))
    if allocation.outcome is not None and stop_at == allocation.stop_at:
        return ()
    lease = replace(allocation.lease, expires_at=at, version=allocation.lease.version + 1, rule=code)
    updates: dict[str, Any] = {
        "lease": lease,
        "stop_at": stop_at,
        "save": f"{allocation.id}-{lease.version}-ordered",
    }
    if allocation.outcome is None:
        updates |= {
            "outcome": WorkloadState.CANCELLED, "end_reason": code, "stop_by": actor, "stop_reason": reason
        }  # fmt: skip
    notice = Notice(
        id=f"{allocation.id}-{lease.version}-told",
        allocation=allocation.id,
        workload=allocation.workload,
        kind="stop_ordered",
        threshold_ms=0,
        lease_version=lease.version,
        deadline=stop_at,
        issued_at=at,
        by=actor,
        reason=reason,
    )
    told = Change(event="stop_told", before=None, after=notice, actor=actor, reason=reason)
    changes = moved(state, allocation, Event.STOP_ORDERED, at, actor=actor, reason=reason, **updates)
    return (*changes, told, *_lapsed(state, state.workload_of(allocation), at))


def _kill_after_grace(allocation: Allocation, at: Instant) -> Instant:
    """When a cancelled job is killed: its grace from its signal, which it got already if it is in its grace. One
    that starts may have begun a moment ago."""
    end = at + allocation.lease.grace_ms
    return Instant(min(end, allocation.stop_at) if allocation.state in GRACE and allocation.stop_at else end)


def stop_due_at(allocation: Allocation) -> Instant:
    """When the stop of an allocation in STOPPING or RELEASING is sent: before that its documents are saved."""
    if allocation.state is not _S.STOPPING or allocation.stop_at is None:
        return allocation.since
    return max(allocation.since, allocation.stop_at)


def kill_due_at(state: State, allocation: Allocation) -> Instant:
    """When what doesn't end by itself in STOPPING or RELEASING is killed."""
    if allocation.state is _S.STOPPING and allocation.kill_at is not None:
        return max(stop_due_at(allocation), allocation.kill_at)
    return Instant(stop_due_at(allocation) + (0 if allocation.stop_now else state.policy.reclaim.term_ms))


def _comes_back(state: State, workload: Workload, allocation: Allocation) -> bool:
    """Whether the workload waits again once the devices of this attempt are free."""
    if allocation.outcome is WorkloadState.FAILED:
        return _may_retry(state, workload, allocation)
    return allocation.outcome is None and _time_left(state, workload, allocation)


def _cancelled_waiting(
    workload: Workload, at: Instant, *, actor: str, reason: str, code: str
) -> tuple[Change, ...]:
    if workload.state is not WorkloadState.PENDING:
        return ()
    after = replace(
        workload,
        version=workload.version + 1,
        state=WorkloadState.CANCELLED,
        ended_at=at,
        end_reason=code,
        waited_ms=workload.waited_ms + _current_wait(workload, at),
        pending_since=None,
        note=reason,
        ended_by="" if actor in (workload.owner, SERVICE) else actor,
    )
    return (Change(event="workload_cancelled", before=workload, after=after, actor=actor, reason=reason),)


def _current_wait(workload: Workload, now: Instant) -> int:
    return max(0, now - workload.pending_since) if workload.pending_since is not None else 0
