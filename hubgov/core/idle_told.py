"""What the idle rule says of a session that runs, as facts of its Decision: where it stands and what comes next."""

from __future__ import annotations

from hubgov.clock import Instant
from hubgov.core import idle
from hubgov.core.idleness import IdlePhase
from hubgov.core.model import Allocation
from hubgov.core.state import State
from hubgov.core.states import AllocationState


def idle_facts(state: State, allocation: Allocation, now: Instant) -> dict[str, int | str]:
    """`idle` names the case: a phase, else what the samples say; () where no idle rule looks at it."""
    rule = idle.rule_of(state, allocation)
    if rule is None or not (allocation.state is AllocationState.RUNNING or idle.in_grace(allocation)):
        return {}
    verdict, phase = idle.verdict_on(state, allocation, now), allocation.idle.phase
    facts: dict[str, int | str] = {}
    if (deadline := idle.returned_at(rule, allocation)) is not None:
        facts["deadline"] = deadline
    if verdict is not None:
        facts |= {"since": verdict.since, "full_at": verdict.full_at, "kinds": ",".join(verdict.because)}
    if phase is IdlePhase.ACTIVE:
        return {**facts, "idle": verdict.standing.value if verdict is not None else "unseen"}
    since = allocation.idle.since if allocation.idle.since is not None else facts.get("since", now)
    return {**facts, "since": since, "idle": phase.value, "left": idle.keeps_left(rule, allocation)}


def idle_steps(state: State, allocation: Allocation) -> tuple[str, ...]:
    """What its owner can do about a session that he was asked about."""
    rule = idle.rule_of(state, allocation)
    asked = idle.in_grace(allocation) or allocation.idle.phase is IdlePhase.ASKED
    if rule is None or not asked:
        return ()
    return ("keep", "run_something") if idle.keeps_left(rule, allocation) else ("run_something", "save_work")
