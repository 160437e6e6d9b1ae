"""The idle rule of one allocation: suspected, asked, kept or given back; every step a change of the one writer.

suspect → ask the owner → confirm → grace → stop. A sign of life, an extension or Keep leads back at any point
before the stop is sent; so does anything that is no longer known. Deadlines are absolute and on record; the
samples are not, so after a restart a phase stands, and nothing is stopped until the session was watched for a
whole grace again (semantics §8).
"""

from __future__ import annotations

from dataclasses import replace

from hubgov.clock import Instant
from hubgov.core.idleness import Idleness, IdlePhase
from hubgov.core.model import Allocation, Change, Notice
from hubgov.core.policy import IdleRule, Kind, Mode
from hubgov.core.signals import Signal
from hubgov.core.state import State
from hubgov.core.states import AllocationState, Event, WorkloadState
from hubgov.core.transitions import SERVICE, moved
from hubgov.core.watching import GAP_PERIODS, Standing, Verdict, Watched, judge

_P = IdlePhase


def rule_of(state: State, allocation: Allocation) -> IdleRule | None:
    """The idle rule that its queue has now; None for none."""
    return state.policy.queues[state.workload_of(allocation).queue].idle


def verdict_on(state: State, allocation: Allocation, now: Instant) -> Verdict | None:
    """What the samples say by its queue's rule; None without a rule, or while nothing was seen yet."""
    rule, watched = rule_of(state, allocation), state.watched.get(allocation.id)
    if rule is None or watched is None:
        return None
    return judge(watched, rule, now, _window_from(allocation))


def in_grace(allocation: Allocation) -> bool:
    """Whether it is about to be stopped for idleness, and for nothing else."""
    idled = allocation.state is AllocationState.EXPIRING and allocation.idle.phase is _P.GRACE
    return idled and allocation.outcome is None


def returned_at(rule: IdleRule | None, allocation: Allocation) -> Instant | None:
    """When its devices are taken back, or when it is looked at again: the deadline that people are shown."""
    idle = allocation.idle
    if in_grace(allocation):
        return allocation.stop_at
    if allocation.state is not AllocationState.RUNNING or idle.until is None:
        return None
    grace = rule.grace_ms if rule is not None and idle.phase is _P.ASKED else 0
    return Instant(idle.until + grace)


def step(state: State, allocation: Allocation, now: Instant) -> tuple[Change, ...]:
    """What the idle rule does with one allocation at `now`; () mostly."""
    rule = rule_of(state, allocation)
    if in_grace(allocation):
        return _step_in_grace(state, allocation, rule, now)
    if allocation.state is not AllocationState.RUNNING:
        return ()
    verdict = verdict_on(state, allocation, now)
    match allocation.idle.phase:
        case _P.ACTIVE if rule is not None and verdict is not None:
            return _step_active(state, allocation, rule, verdict, now)
        case _P.SUSPECT | _P.ASKED | _P.KEPT | _P.GRACE if rule is None:
            return _changed(state, allocation, "idle_rule_gone", back(allocation.idle))
        case _P.KEPT if _ended(allocation, now):
            return _changed(state, allocation, "idle_keep_ended", back(allocation.idle))
        case _P.GRACE:  # it was to be reclaimed meanwhile, or its node was away
            return _changed(state, allocation, "idle_withdrawn", back(allocation.idle))
        case _P.SUSPECT | _P.ASKED if verdict is not None:
            assert rule is not None
            return _step_suspect(state, allocation, rule, verdict, now)
        case _P.KEPT if verdict is not None and verdict.at_work:
            # Real activity: the owner may keep it as often again.
            worked = replace(back(allocation.idle), keeps_used=0)
            return _changed(state, allocation, "idle_at_work", worked)
        case _:
            return ()


def _step_active(
    state: State, allocation: Allocation, rule: IdleRule, verdict: Verdict, now: Instant
) -> tuple[Change, ...]:
    idle = allocation.idle
    if verdict.by_claim and idle.claims_ended_at != verdict.claims_end:
        # A finding: nothing but what the session says of itself speaks for it.
        noted = replace(idle, claims_ended_at=verdict.claims_end)
        return _changed(state, allocation, "alive_only_by_claim", noted)
    if verdict.standing is Standing.IDLE:
        return _suspected(state, allocation, rule, verdict, now)
    if verdict.at_work and idle.keeps_used:
        return _changed(state, allocation, "idle_at_work", replace(idle, keeps_used=0))
    return ()


def _suspected(
    state: State, allocation: Allocation, rule: IdleRule, verdict: Verdict, now: Instant
) -> tuple[Change, ...]:
    """A whole window is idle: its owner is asked; where the policy only observes it is noted."""
    enforced = state.policy.mode is Mode.ENFORCE
    idle = replace(
        allocation.idle,
        phase=_P.ASKED if enforced else _P.SUSPECT,
        since=verdict.since,
        until=Instant(now + rule.confirm_ms if enforced else now + rule.confirm_ms + rule.grace_ms),
        asked=allocation.idle.asked + enforced,
        evidence=_evidence(state, allocation),
    )
    if not enforced:
        return _changed(state, allocation, "idle_suspected", idle)
    notice = Notice(
        id=f"{allocation.id}-idle-{idle.asked}",
        allocation=allocation.id,
        workload=allocation.workload,
        kind="idle",
        threshold_ms=0,
        lease_version=allocation.lease.version,
        deadline=Instant(now + rule.confirm_ms + rule.grace_ms),
        issued_at=now,
        quiet_ms=now - verdict.since,
    )
    told = Change(event="warning_issued", before=None, after=notice, actor=SERVICE)
    return (told, *_changed(state, allocation, "idle_asked", idle))


def _step_suspect(
    state: State, allocation: Allocation, rule: IdleRule, verdict: Verdict, now: Instant
) -> tuple[Change, ...]:
    idle = allocation.idle
    if not _still(state, allocation, verdict):
        after = back(idle)
        if verdict.at_work:
            after = replace(after, keeps_used=0)
        return _changed(state, allocation, "idle_withdrawn", after, reason=verdict.standing.value)
    if state.policy.mode is not Mode.ENFORCE:
        if idle.phase is _P.ASKED:
            return _changed(state, allocation, "idle_withdrawn", back(idle), reason="observe")
        if _ended(allocation, now):
            return _changed(state, allocation, "idle_stop_observed", replace(idle, until=None))
        return ()
    if idle.phase is _P.SUSPECT:
        return _suspected(state, allocation, rule, verdict, now)
    if not _ended(allocation, now) or _seen(state, allocation) < (idle.until or now) or not _quiet(verdict):
        return ()
    after = replace(idle, phase=_P.GRACE, until=None, evidence=_evidence(state, allocation))
    return moved(
        state, allocation, Event.IDLED, now, reason="idle", idle=after, stop_at=Instant(now + rule.grace_ms),
        save=f"{allocation.id}-idle-{idle.asked}-end",
    )  # fmt: skip


def _step_in_grace(state: State, allocation: Allocation, rule: IdleRule | None, now: Instant) -> tuple[Change, ...]:
    """The stop is sent only after a sample that was taken when it was due; until then everything leads back."""
    assert allocation.stop_at is not None
    verdict = verdict_on(state, allocation, now)
    expires_at = allocation.lease.expires_at
    if rule is None or state.policy.mode is not Mode.ENFORCE:
        return revived(state, allocation, now, back(allocation.idle), reason="policy")
    if expires_at is not None and now >= expires_at:
        # Its grace goes on as that of its lease: it was asked to end already.
        return moved(
            state, allocation, Event.REVIVED, now, reason=allocation.lease.rule, idle=back(allocation.idle),
            stop_at=None, halted_at=None, asked_at=allocation.asked_at,
        )  # fmt: skip
    if verdict is not None and not _still(state, allocation, verdict):
        after = back(allocation.idle)
        if verdict.at_work:
            after = replace(after, keeps_used=0)
        return revived(state, allocation, now, after, reason=verdict.standing.value)
    earliest = Instant(state.began + rule.grace_ms)
    if allocation.stop_at < earliest and allocation.since < state.began:
        after_restart = replace(allocation, stop_at=earliest)
        return written(state, allocation, "idle_grace_moved", after_restart)
    if now < allocation.stop_at or _seen(state, allocation) < allocation.stop_at or not _quiet(verdict):
        return ()
    return moved(
        state, allocation, Event.GRACE_ENDED, now, reason="idle", stop_at=now,
        # As at the end of a lease: a job had its signal when the grace began.
        kill_at=None if state.workload_of(allocation).kind is Kind.NOTEBOOK else now,
        outcome=WorkloadState.CULLED, end_reason="idle",
        idle=replace(allocation.idle, evidence=_evidence(state, allocation)),
    )  # fmt: skip


def revived(
    state: State, allocation: Allocation, now: Instant, idle: Idleness, *, actor: str = SERVICE, reason: str = ""
) -> tuple[Change, ...]:
    """Back from an idle stop's grace to running."""
    return moved(
        state, allocation, Event.REVIVED, now, actor=actor, reason=reason, idle=idle, stop_at=None, halted_at=None
    )


def back(idle: Idleness, window_from: Instant | None = None) -> Idleness:
    """Active again; with `window_from` by an act of the owner, from which the window begins anew."""
    begins = idle.window_from if window_from is None else window_from
    return replace(idle, phase=_P.ACTIVE, since=None, until=None, window_from=begins, evidence=())


def _still(state: State, allocation: Allocation, verdict: Verdict) -> bool:
    """Whether it is as quiet as when it was asked.

    After a restart the samples begin anew: the phase on record stands while nothing speaks against it, and what
    isn't known in the first moments may just not be read yet. A silence within this process's life is no such
    thing: it starts the window anew.
    """
    if verdict.standing is Standing.IDLE:
        return True
    watched = state.watched[allocation.id]
    restarted = not watched.after_gap and watched.began > (allocation.idle.since or 0)
    if not restarted or verdict.at_work or max(watched.busy_at.values(), default=0) > watched.began:
        return False
    first_moments = watched.began + GAP_PERIODS * watched.period_ms
    return (watched.at if verdict.standing is Standing.UNKNOWN else watched.quiet_since) <= first_moments


def _quiet(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.standing in (Standing.IDLE, Standing.SETTLING)


def _window_from(allocation: Allocation) -> Instant:
    return Instant(max(allocation.idle.window_from, allocation.started_at or 0))


def _ended(allocation: Allocation, now: Instant) -> bool:
    return allocation.idle.until is not None and now >= allocation.idle.until


def _seen(state: State, allocation: Allocation) -> Instant:
    """When it was last sampled."""
    watched: Watched | None = state.watched.get(allocation.id)
    return watched.at if watched is not None else Instant(0)


def _evidence(state: State, allocation: Allocation) -> tuple[Signal, ...]:
    watched = state.watched.get(allocation.id)
    if watched is None:
        return allocation.idle.evidence
    return tuple(
        replace(signal, busy_at=watched.busy_at.get(kind, signal.busy_at))
        for kind, signal in watched.signals.items()
    )


def _changed(
    state: State, allocation: Allocation, event: str, idle: Idleness, *, actor: str = SERVICE, reason: str = ""
) -> tuple[Change, ...]:
    """The phase on record moves; the session's document with it, so that who polls hears of it."""
    return written(state, allocation, event, replace(allocation, idle=idle), actor=actor, reason=reason)


def written(
    state: State, allocation: Allocation, event: str, after: Allocation, *, actor: str = SERVICE, reason: str = ""
) -> tuple[Change, ...]:
    """A new state of the allocation, and a new version of its document."""
    workload = state.workload_of(allocation)
    seen = replace(workload, version=workload.version + 1)
    return (
        Change(event=event, before=allocation, after=after, actor=actor, reason=reason),
        Change(event="workload_moved", before=workload, after=seen, actor=actor),
    )


def kept(state: State, allocation: Allocation, rule: IdleRule, now: Instant, *, actor: str) -> tuple[Change, ...]:
    """Its owner keeps it, for `keep.for` but never beyond what claims count for."""
    idle = replace(
        back(allocation.idle),
        phase=_P.KEPT,
        until=Instant(now + min(rule.keep_for_ms, rule.max_unverified_ms)),
        keeps_used=allocation.idle.keeps_used + 1,
    )
    if in_grace(allocation):
        return revived(state, allocation, now, idle, actor=actor, reason="kept")
    return _changed(state, allocation, "idle_kept", idle, actor=actor)


def keeps_left(rule: IdleRule, allocation: Allocation) -> int:
    """How many more times its owner may keep it before it does real work again."""
    return max(0, rule.keep_count - allocation.idle.keeps_used)
