"""Deciding about more time than a queue gives by itself: who may, and what follows (semantics §5)."""

from __future__ import annotations

from dataclasses import replace

from hubgov.clock import Instant
from hubgov.control.actor import Actor, check_seen
from hubgov.control.granting import grant
from hubgov.control.submit import Refused
from hubgov.control.unit import Unit
from hubgov.core.delays import Delay, delays
from hubgov.core.lease import judge_extension
from hubgov.core.model import Change, ExtensionId, ExtensionRequest, ExtensionState, Notice, Workload
from hubgov.core.policy import Policy
from hubgov.core.state import State
from hubgov.errors import Conflict, Invalid, NotAllowed, NotFound

ROLES = ("team-lead", "admin")
"""Words of a queue's `approvers` that are no user's name: a user who is called so is not meant."""
_OPEN = ExtensionState.NEEDS_APPROVAL


def may_decide(
    actor: Actor, policy: Policy, workload: Workload, requested_by: str, delayed: frozenset[str]
) -> bool:
    """Whether this one may agree to the request or refuse it; nobody decides on his own.

    `delayed`: the teams that would wait longer. None: any of the queue's approvers. The own team: its lead. Others
    too: who leads all of them, or an admin.
    """
    if not actor.approver or actor.principal == requested_by:
        return False
    if actor.admin:
        return True
    if delayed:
        return all(actor.leads(policy, team) for team in delayed | {workload.team})
    rule = policy.queues[workload.queue].extension
    for approver in rule.approvers if rule is not None else ():
        if approver == "team-lead" and actor.leads(policy, workload.team):
            return True
        if approver not in ROLES and actor.is_user(approver):
            return True
    return False


def delayed_by(state: State, request: ExtensionRequest, now: Instant) -> tuple[Delay, ...]:
    """Whom an open request would delay, as the line stands now."""
    workload = state.workloads.get(request.workload)
    allocation = state.allocation_of(workload) if workload is not None else None
    if allocation is None or request.state is not _OPEN:
        return ()
    return delays(state, allocation, _left_to_grant(request, allocation.lease.expires_at), now)


def teams_delayed_by(state: State, request: ExtensionRequest, now: Instant) -> frozenset[str]:
    """The teams that an open request would keep waiting."""
    return frozenset(delay.team for delay in delayed_by(state, request, now))


def approve(unit: Unit, extension_id: str, actor: Actor, *, by_ms: int | None, reason: str) -> ExtensionRequest:
    """Grant an open request, or part of it. Refused with the numbers where the queue's longest time forbids it."""
    request, workload = _open(unit, extension_id, actor)
    allocation = unit.allocation(workload)
    asked = _left_to_grant(request, allocation.lease.expires_at)
    if by_ms is not None and by_ms > asked:
        raise Invalid(
            f"seconds: {by_ms // 1000} is more than the {asked // 1000} s that were asked for",
            hint="approve what was asked for, or less",
        )
    given = asked if by_ms is None else by_ms
    if given <= 0:
        raise Conflict(
            f"{workload.id} has as much time as was asked for already",
            code="not_open",
            hint="deny it, or let it lapse",
        )
    verdict = judge_extension(unit.state.policy, workload, allocation, given, unit.now, approved=True)
    if verdict.lease is None:
        raise Refused(verdict.decision)
    grant(unit, workload, allocation, verdict.lease, actor, reason, counted=False)
    return _decided(
        unit, request, actor, ExtensionState.GRANTED, reason, by_ms=given, until=verdict.lease.expires_at
    )


def deny(unit: Unit, extension_id: str, actor: Actor, *, reason: str) -> ExtensionRequest:
    """Refuse an open request; the reason is what its author reads."""
    if not reason.strip():
        raise Invalid("a denial needs a reason", code="reason_required", hint="say why")
    request, _ = _open(unit, extension_id, actor)
    return _decided(unit, request, actor, ExtensionState.DENIED, reason)


def withdraw(unit: Unit, extension_id: str, actor: Actor) -> ExtensionRequest:
    """Take back one's own open request."""
    request, workload = _found(unit, extension_id, actor)
    if actor.principal != request.requested_by and not actor.owns(workload):
        raise NotAllowed(
            f"{request.id} was asked for by {request.requested_by}", hint="only who asked may take it back"
        )
    return _decided(unit, _still_open(request), actor, ExtensionState.WITHDRAWN, "")


def _found(unit: Unit, extension_id: str, actor: Actor) -> tuple[ExtensionRequest, Workload]:
    request = unit.state.extensions.get(ExtensionId(extension_id))
    workload = unit.state.workloads.get(request.workload) if request is not None else None
    if request is None or workload is None:
        raise NotFound(f"no request {extension_id} of live work", hint="hubgov extensions")
    check_seen(actor, unit.state.policy, workload)
    return request, workload


def _open(unit: Unit, extension_id: str, actor: Actor) -> tuple[ExtensionRequest, Workload]:
    """An open request that the actor may decide on."""
    request, workload = _found(unit, extension_id, actor)
    delayed = teams_delayed_by(unit.state, request, unit.now)
    if not may_decide(actor, unit.state.policy, workload, request.requested_by, delayed):
        raise NotAllowed(
            f"{request.id} is not yours to decide on",
            hint="hubgov extensions names who may",
        )
    return _still_open(request), workload


def _still_open(request: ExtensionRequest) -> ExtensionRequest:
    if request.state is not _OPEN:
        raise Conflict(
            f"{request.id} is {request.state.value}, by {request.decided_by or 'nobody'}",
            code="not_open",
            hint="look at it again: hubgov extensions",
        )
    return request


def _left_to_grant(request: ExtensionRequest, end: Instant | None) -> int:
    """What is still missing to the end that was asked for: it may have moved since."""
    if end is None or request.expires_at is None:
        return request.by_ms
    return request.expires_at + request.by_ms - end


def _decided(
    unit: Unit,
    request: ExtensionRequest,
    actor: Actor,
    state: ExtensionState,
    reason: str,
    *,
    by_ms: int | None = None,
    until: Instant | None = None,
) -> ExtensionRequest:
    """Record the decision, and have the session told of it: once, whatever tab or reload comes."""
    after = replace(
        request,
        state=state,
        by_ms=request.by_ms if by_ms is None else by_ms,
        expires_at=until if until is not None else request.expires_at,
        decided_by=actor.principal,
        decided_at=unit.now,
        decision_reason=reason,
    )
    changes = [
        Change(event=f"extension_{state.value}", before=request, after=after, actor=actor.principal, reason=reason)
    ]
    workload = unit.state.workloads[request.workload]
    allocation = unit.state.allocation_of(workload)
    if allocation is not None and state is not ExtensionState.WITHDRAWN:
        notice = Notice(
            id=f"{request.id}-{state.value}",
            allocation=allocation.id,
            workload=workload.id,
            kind=f"extension_{state.value}",
            threshold_ms=0,
            lease_version=allocation.lease.version,
            deadline=allocation.lease.expires_at or unit.now,
            issued_at=unit.now,
        )
        changes.append(Change(event="decision_told", before=None, after=notice, actor=actor.principal))
    seen = replace(workload, version=workload.version + 1)
    changes.append(Change(event="workload_moved", before=workload, after=seen, actor=actor.principal))
    unit.write(changes)
    return after
