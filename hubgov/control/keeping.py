"""Keep: its owner's answer to being asked about an idle session, in the bounds of its queue's rule."""

from __future__ import annotations

from hubgov.control.actor import Actor, check_change
from hubgov.control.submit import Refused
from hubgov.control.unit import Unit
from hubgov.core import idle
from hubgov.core.decision import Blocker, Decision, Outcome
from hubgov.core.idleness import IdlePhase
from hubgov.core.model import Workload
from hubgov.core.policy import IdleRule
from hubgov.core.states import AllocationState
from hubgov.errors import Conflict, Ended


def keep(unit: Unit, workload_id: str, actor: Actor) -> Workload:
    """The session is kept for the rule's `keep.for`; in an idle stop's grace it goes back to running.

    Keep and stop are changes of one writer, so exactly one of them comes first. Kept already: nothing changes and
    nothing is counted, so that two tabs make one. Refused with the numbers when it is used up.
    """
    workload = unit.workload(workload_id)
    check_change(actor, unit.state.policy, workload)
    allocation = unit.state.allocation_of(workload)
    if allocation is not None and allocation.outcome is not None:
        raise Ended(f"{workload.id} is already being stopped", hint="resume it when it has ended")
    if allocation is None or not (allocation.state is AllocationState.RUNNING or idle.in_grace(allocation)):
        raise Conflict(
            f"{workload.id} isn't running, so there is nothing to keep",
            code="not_running",
            hint="look again in a moment",
        )
    rule = idle.rule_of(unit.state, allocation)
    if rule is None or rule.keep_count == 0:
        raise Refused(_refused(unit, workload, "no_keep"))
    if allocation.idle.phase is IdlePhase.KEPT:
        return workload
    if allocation.idle.phase is IdlePhase.ACTIVE:
        raise Conflict(
            f"{workload.id} wasn't asked whether it is still needed", code="not_asked", hint="nothing is to be done"
        )
    if idle.keeps_left(rule, allocation) == 0:
        raise Refused(_refused(unit, workload, "keep_used_up", rule))
    unit.write(idle.kept(unit.state, allocation, rule, unit.now, actor=actor.principal))
    return unit.latest(workload)


def _refused(unit: Unit, workload: Workload, code: str, rule: IdleRule | None = None) -> Decision:
    scope = f"queues.{workload.queue}.idle.keep"
    blockers: tuple[Blocker, ...] = ()
    facts: dict[str, int | str] = {"queue": workload.queue}
    if rule is not None:
        limit = rule.keep_count
        over = Blocker(code=code, need=1, have=0, limit=limit, unit="times", scope=f"{scope}.count")
        blockers, facts = (over,), {**facts, "limit": limit, "unit": "times"}
    return Decision(
        outcome=Outcome.REFUSED,
        code=code,
        rule=blockers[0].scope if blockers else scope,
        blockers=blockers,
        facts=facts,
        next_steps=("run_something", "extend", "save_work") if blockers else ("run_something", "save_work"),
        evaluated_at=unit.now,
        policy_version=unit.state.policy.version,
    )
