"""What an owner, a lead or an admin does to a workload: cancel, extend; and to a queue: hold, release."""

from __future__ import annotations

from dataclasses import replace

from hubgov.clock import Instant
from hubgov.control.actor import Actor, approvers, check_admin, check_change
from hubgov.control.granting import grant
from hubgov.control.submit import Refused
from hubgov.control.unit import Unit
from hubgov.core.decision import Blocker, Decision, Outcome
from hubgov.core.delays import delays
from hubgov.core.lease import judge_extension
from hubgov.core.model import (
    Allocation,
    Change,
    ExtensionId,
    ExtensionRequest,
    ExtensionState,
    QueueHold,
    Workload,
)
from hubgov.core.transitions import SERVICE, cancelled
from hubgov.errors import Conflict, Ended, Invalid, NotFound
from hubgov.ledger.reading import number_of
from hubgov.wire import MAX_SPAN_MS

REPEATED_MS = 60_000
"""How long a denial answers for the same request again, in real milliseconds, without another record."""


def cancel(
    unit: Unit, workload_id: str, actor: Actor, *, reason: str, now: bool, grace_ms: int | None = None
) -> Workload:
    """Cancel in whatever state, named servers too. A stop on its way already is left as it is, or hastened.

    Another's work needs a reason, which its owner reads; his running notebook goes on for `grace_ms` (its own
    grace if None, never less than the time to save), unless it is to stop `now`.
    """
    workload = unit.workload(workload_id)
    check_change(actor, unit.state.policy, workload)
    if now and grace_ms is not None:
        raise Invalid("grace_seconds: a stop at once has no grace", hint="give either now or grace_seconds")
    own = actor.owns(workload)
    if not own and not reason.strip():
        raise Invalid("stopping another's work needs a reason", code="reason_required", hint="say why")
    save_ms = unit.state.policy.reclaim.save_ms
    if grace_ms is None and not own:
        allocation = unit.state.allocation_of(workload)
        grace_ms = allocation.lease.grace_ms if allocation is not None else 0
    unit.write(
        cancelled(
            unit.state, workload, unit.now, actor=actor.principal, reason=reason,
            code="cancelled" if own else "admin", now=now, save_within_ms=save_ms,
            grace_ms=max(grace_ms, save_ms) if grace_ms is not None else 0,
        )
    )  # fmt: skip
    return unit.latest(workload)


def extend(
    unit: Unit, workload_id: str, actor: Actor, *, by_ms: int, reason: str, lease_version: int | None
) -> tuple[ExtensionRequest, Decision]:
    """Move the end of a lease, within the queue's rules; the request and its outcome are recorded either way, but
    a denial asked for again within `REPEATED_MS` is the one on record.

    Granted in the grace it returns the allocation to running, as long as the stop isn't sent: extension and
    expiry are changes of one writer, so exactly one of them comes first.
    """
    workload = unit.workload(workload_id)
    check_change(actor, unit.state.policy, workload)
    allocation = unit.state.allocation_of(workload)
    if allocation is None or allocation.started_at is None:
        raise Conflict(
            f"{workload.id} isn't running yet; its time begins when it does",
            code="not_running",
            hint="extend it once it runs",
        )
    if allocation.outcome is not None:
        raise Ended(f"{workload.id} is already being stopped", hint="resume it when it has ended")
    if lease_version is not None and lease_version != allocation.lease.version:
        raise Conflict(
            "the end of this lease moved since you looked",
            code="stale_lease_version",
            hint="look at the new end first",
            details={"lease_version": allocation.lease.version},
        )
    if by_ms > MAX_SPAN_MS:
        raise Refused(_beyond_bounds(unit, by_ms))
    verdict = judge_extension(unit.state.policy, workload, allocation, by_ms, unit.now)
    decision = verdict.decision
    if decision.outcome is Outcome.NEEDS_APPROVAL and _reason_missing(unit, workload, reason):
        raise Invalid(
            "asking for more than the self-serve limit needs a reason", code="reason_required", hint="say why"
        )
    if decision.outcome is Outcome.NEEDS_APPROVAL:
        delayed = frozenset(d.team for d in delays(unit.state, allocation, by_ms, unit.now))
        names = ", ".join(approvers(unit.state.policy, workload, actor.principal, delayed))
        decision = replace(decision, facts={**decision.facts, "approvers": names or "-"})
    repeated = _denied_before(unit, workload, allocation, actor, by_ms, reason, decision)
    if repeated is not None:
        return repeated, decision
    if decision.outcome is Outcome.NEEDS_APPROVAL:
        open_request = _replace_open(unit, workload, actor, by_ms, reason)
        if open_request is not None:
            return open_request, decision
    if verdict.lease is not None:
        grant(unit, workload, allocation, verdict.lease, actor, reason, counted=True)
    return _record(unit, workload, allocation, actor, by_ms, reason, decision), decision


def _replace_open(unit: Unit, workload: Workload, actor: Actor, by_ms: int, reason: str) -> ExtensionRequest | None:
    """The open request if it is the same one; another one takes its place: one at a time is to be decided on."""
    for request in list(unit.state.extensions.values()):
        if request.workload != workload.id or request.state is not ExtensionState.NEEDS_APPROVAL:
            continue
        if (request.requested_by, request.by_ms, request.reason) == (actor.principal, by_ms, reason):
            return request
        after = replace(request, state=ExtensionState.WITHDRAWN, decided_by=actor.principal, decided_at=unit.now)
        unit.write(
            [Change(event="extension_withdrawn", before=request, after=after, actor=actor.principal, reason=reason)]
        )
    return None


def _denied_before(
    unit: Unit,
    workload: Workload,
    allocation: Allocation,
    actor: Actor,
    by_ms: int,
    reason: str,
    decision: Decision,
) -> ExtensionRequest | None:
    """The recorded denial of the same request for the same reason, a moment ago."""
    asked = (actor.principal, by_ms, reason, decision.code, allocation.lease.version)
    for e in unit.state.extensions.values():
        if e.workload != workload.id or e.state is not ExtensionState.DENIED:
            continue
        before = (e.requested_by, e.by_ms, e.reason, e.code, e.lease_version)
        if before == asked and unit.now - e.requested_at < REPEATED_MS * unit.clock_rate:
            return e
    return None


def _beyond_bounds(unit: Unit, by_ms: int) -> Decision:
    over = Blocker(
        code="above_maximum", need=by_ms, have=MAX_SPAN_MS, limit=MAX_SPAN_MS, unit="ms", scope="by_seconds"
    )
    return Decision(
        outcome=Outcome.REFUSED,
        code="above_maximum",
        rule="bounds.by_seconds",
        blockers=(over,),
        facts={"field": "by_seconds", "asked": by_ms, "limit": MAX_SPAN_MS, "unit": "ms"},
        next_steps=("shorter_extension",),
        evaluated_at=unit.now,
        policy_version=unit.state.policy.version,
    )


def _reason_missing(unit: Unit, workload: Workload, reason: str) -> bool:
    rule = unit.state.policy.queues[workload.queue].extension
    return rule is not None and rule.reason_required and not reason.strip()


_STATE = {
    Outcome.GRANTED: ExtensionState.GRANTED,
    Outcome.NEEDS_APPROVAL: ExtensionState.NEEDS_APPROVAL,
    Outcome.REFUSED: ExtensionState.DENIED,
}


def _record(
    unit: Unit,
    workload: Workload,
    allocation: Allocation,
    actor: Actor,
    by_ms: int,
    reason: str,
    decision: Decision,
) -> ExtensionRequest:
    # Not by counting: of denials the picture has the last one only.
    mine = (number_of(e) for e in unit.state.extensions.values() if e.workload == workload.id)
    number = 1 + max(mine, default=0)
    granted = decision.outcome is Outcome.GRANTED
    expires_at = allocation.lease.expires_at
    request = ExtensionRequest(
        id=ExtensionId(f"{workload.id}-x{number}"),
        workload=workload.id,
        by_ms=by_ms,
        reason=reason,
        requested_by=actor.principal,
        requested_at=unit.now,
        state=_STATE[decision.outcome],
        code=decision.code,
        lease_version=allocation.lease.version,
        expires_at=Instant(expires_at + by_ms) if granted and expires_at is not None else expires_at,
        decided_by=SERVICE if decision.outcome is not Outcome.NEEDS_APPROVAL else None,
        decided_at=unit.now if decision.outcome is not Outcome.NEEDS_APPROVAL else None,
    )
    unit.write(
        [
            Change(
                event=f"extension_{request.state.value}",
                before=None,
                after=request,
                actor=actor.principal,
                reason=reason,
            )
        ]
    )
    return request


def hold(unit: Unit, queue: str, actor: Actor, *, held: bool, closed: bool, reason: str) -> QueueHold:
    """Hold a queue (nothing starts; `closed` also refuses new work) or let it go on."""
    check_admin(actor)
    if queue not in unit.state.policy.queues:
        raise NotFound(f"no queue {queue}", hint="hubgov policy show")
    before = unit.state.holds.get(queue)
    after = QueueHold(
        queue=queue, held=held, closed=held and closed, by=actor.principal, reason=reason, at=unit.now
    )
    event = "queue_held" if held else "queue_released"
    unit.write([Change(event=event, before=before, after=after, actor=actor.principal, reason=reason)])
    return after
