"""How a job is stopped (semantics §7): SIGTERM at the start of its grace, SIGKILL at its end, and nothing else."""

from __future__ import annotations

import pytest
from builders import HOUR_MS, MINUTE_MS, Play, a_policy

from hubgov.core.due import stop_overdue_at
from hubgov.core.idleness import Idleness, IdlePhase
from hubgov.core.policy import IdleRule, Kind, RetryRule
from hubgov.core.release import free_by
from hubgov.core.states import Event
from hubgov.core.transitions import OWNERS_FAILURES, cancelled, exited, kill_due_at

SECOND_MS = 1000


def running(kind: Kind = Kind.TRAINING) -> Play:
    """One that runs for an hour; its queue's grace is five minutes."""
    play = Play(a_policy().team("A").node("box", devices=1).queue("train"))
    play.run("w", lease_ms=HOUR_MS, kind=kind)
    return play


def cancel(play: Play, *, now: bool = False) -> None:
    workload = play.workload("w")
    play.unit(lambda: cancelled(play.state, workload, play.now, actor="ann", reason="", code="cancelled", now=now))


def kill_in_ms(play: Play) -> int:
    return kill_due_at(play.state, play.bound("w")) - play.now


def test_at_the_end_of_its_grace_it_is_killed_at_once() -> None:
    play = running()
    play.tick(HOUR_MS)
    assert (play.state_of("w"), play.bound("w").save) == ("expiring", None)
    play.tick(5 * MINUTE_MS)
    assert play.state_of("w") == "stopping"
    assert kill_in_ms(play) == 0
    notebook = running(Kind.NOTEBOOK)
    notebook.tick(HOUR_MS)
    notebook.tick(5 * MINUTE_MS)
    assert kill_in_ms(notebook) == 30 * SECOND_MS, "it saves once more, and its server is told only then"


def test_a_cancelled_one_has_its_grace_and_is_killed_then() -> None:
    play = running()
    cancel(play)
    assert kill_in_ms(play) == 5 * MINUTE_MS
    assert stop_overdue_at(play.state, play.bound("w")) == play.now + 6 * MINUTE_MS
    assert free_by(play.state, play.bound("w")) == play.now + 5 * MINUTE_MS
    play.tick(5 * MINUTE_MS)
    assert play.state_of("w") == "stopping", "not fenced before it was killed"
    play.tick(MINUTE_MS)
    assert play.state_of("w") == "quarantined"


def test_one_that_is_cancelled_within_its_grace_gets_no_second_one() -> None:
    play = running()
    play.tick(HOUR_MS)
    play.tick(4 * MINUTE_MS)
    cancel(play)
    assert kill_in_ms(play) == MINUTE_MS


def test_now_is_now_also_after_a_cancel_with_grace() -> None:
    play = running()
    cancel(play, now=True)
    assert kill_in_ms(play) == 0
    play = running()
    cancel(play)
    play.tick(MINUTE_MS)
    cancel(play, now=True)
    assert kill_in_ms(play) == 0
    assert play.bound("w").stop_now


def test_an_exit_within_the_grace_decides_by_its_code() -> None:
    for code, state in ((0, "succeeded"), (1, "failed")):
        play = running()
        play.tick(HOUR_MS)
        play.exit("w", code)
        play.gone("w")
        assert play.state_of("w") == state


def test_what_only_its_owner_can_mend_is_not_tried_again() -> None:
    for failure, state in (*((known, "failed") for known in OWNERS_FAILURES), ("box_failed", "pending")):
        policy = a_policy().team("A").node("box", devices=1).queue("train", retry=RetryRule(max=2))
        play = Play(policy)
        play.submit("w")
        allocation = play.bound("w")
        play.unit(lambda a=allocation, f=failure, p=play: exited(p.state, a, p.now, code=None, failure=f))
        assert play.workload("w").state.value == state, failure


IDLE = IdleRule(
    kernel_after_ms=None, after_ms=HOUR_MS, confirm_ms=MINUTE_MS, grace_ms=5 * MINUTE_MS, keep_count=1,
    keep_for_ms=HOUR_MS, max_unverified_ms=HOUR_MS,
)  # fmt: skip


def in_a_grace(how: str) -> Play:
    """A job in its grace, of a queue that tries failed ones twice more."""
    policy = a_policy().team("A").node("box", devices=1).queue("train", retry=RetryRule(max=2), idle=IDLE)
    policy.extension("train", self_serve_count=2, step_ms=HOUR_MS, max_total_ms=2 * HOUR_MS)
    play = Play(policy)
    play.run("w", lease_ms=HOUR_MS)
    if how == "max":
        play.extend("w", HOUR_MS)
        play.tick(HOUR_MS)
    play.tick(HOUR_MS if how in ("lease", "max") else MINUTE_MS)
    stop_at = play.now + 5 * MINUTE_MS
    if how == "idle":
        play.event("w", Event.IDLED, idle=Idleness(phase=IdlePhase.GRACE), stop_at=stop_at)
    if how == "preempted":
        play.event("w", Event.PREEMPTED, stop_at=stop_at)
    assert play.state_of("w") == ("preempting" if how == "preempted" else "expiring")
    return play


def ends(play: Play, **how: int | None) -> tuple[str, str | None, int]:
    allocation = play.bound("w")
    play.unit(lambda: exited(play.state, allocation, play.now, **{"code": None, **how}))
    play.gone("w")
    workload = play.workload("w")
    return workload.state.value, workload.end_reason, workload.retries


@pytest.mark.parametrize("signal", [9, 15])
@pytest.mark.parametrize(
    ("grace", "end"), [("lease", ("expired", "lease")), ("max", ("expired", "max")), ("idle", ("culled", "idle"))]
)
def test_one_that_ends_by_the_signal_of_its_grace_ends_for_its_reason(
    grace: str, end: tuple[str, str], signal: int
) -> None:
    assert ends(in_a_grace(grace), signal=signal) == (*end, 0)


@pytest.mark.parametrize("grace", ["lease", "max", "idle"])
@pytest.mark.parametrize(
    ("how", "end"),
    [
        ({"code": 0}, ("succeeded", "completed")),
        ({"code": 1}, ("failed", "failed")),
        ({"signal": 11}, ("failed", "failed")),
    ],
)
def test_its_own_end_within_the_grace_stands_and_is_not_tried_again(
    grace: str, how: dict[str, int], end: tuple[str, str]
) -> None:
    assert ends(in_a_grace(grace), **how) == (*end, 0)


@pytest.mark.parametrize("now", [False, True])
@pytest.mark.parametrize("how", [{"code": 1}, {"signal": 15}, {"signal": 9}, {"code": 0}])
def test_a_cancelled_one_is_not_tried_again_however_it_ends(how: dict[str, int], now: bool) -> None:
    play = in_a_grace("idle")
    cancel(play, now=now)
    assert ends(play, **how) == ("cancelled", "cancelled", 0)


def test_one_that_gave_way_waits_again_and_used_up_no_try() -> None:
    assert ends(in_a_grace("preempted"), signal=15) == ("admitted", None, 0), "it is next again"
    assert ends(in_a_grace("preempted"), code=0) == ("succeeded", "completed", 0)


def test_a_signal_that_was_not_ours_is_a_failure_to_be_tried_again() -> None:
    """Before its grace: whoever sent it, hubgov didn't."""
    play = Play(a_policy().team("A").node("box", devices=1).queue("train", retry=RetryRule(max=2)))
    play.run("w", lease_ms=HOUR_MS)
    assert ends(play, signal=9) == ("pending", None, 1)


def test_nothing_is_tried_again_without_lease_left() -> None:
    play = in_a_grace("lease")
    play.event("w", Event.NODE_SILENT)
    assert ends(play, code=1) == ("failed", "failed", 0)
    lost = in_a_grace("lease")
    lost.event("w", Event.UNKNOWN_TO_ENGINE)
    lost.gone("w")
    workload = lost.workload("w")
    assert (workload.state.value, workload.end_reason) == ("expired", "lease"), "a lease of nothing is no turn"


def test_what_is_lost_with_time_left_runs_again_for_the_rest() -> None:
    play = in_a_grace("preempted")
    play.event("w", Event.UNKNOWN_TO_ENGINE)
    play.gone("w")
    play.tick()
    assert play.bound("w").lease.length_ms == HOUR_MS - MINUTE_MS


def test_a_grace_after_it_ran_again_is_a_new_one_and_one_that_follows_on_another_is_not() -> None:
    play = in_a_grace("idle")
    first = play.bound("w").asked_at
    assert first == play.now
    cancel(play)
    assert (play.state_of("w"), play.bound("w").asked_at) == ("stopping", first), "it had its signal"
    play = in_a_grace("idle")
    play.event("w", Event.REVIVED, idle=Idleness(), stop_at=None)
    assert play.bound("w").asked_at is None
    play.tick(HOUR_MS)
    assert (play.state_of("w"), play.bound("w").asked_at) == ("expiring", play.bound("w").lease.expires_at)
    play = in_a_grace("preempted")
    play.event("w", Event.SPARED, stop_at=None)
    play.tick(MINUTE_MS)
    play.event("w", Event.PREEMPTED, stop_at=play.now)
    assert play.bound("w").asked_at == play.now
    play = Play(a_policy().team("A").node("box", devices=1).queue("train"))
    play.run("w", lease_ms=HOUR_MS)
    cancel(play)
    assert play.bound("w").asked_at == play.now, "a stop without a grace asks too"


def test_an_idle_grace_that_the_end_of_the_lease_takes_over_asks_no_second_time() -> None:
    policy = a_policy().team("A").node("box", devices=1).queue("train", idle=IDLE)
    play = Play(policy)
    play.run("w", lease_ms=HOUR_MS)
    play.tick(58 * MINUTE_MS)
    asked_at = play.now
    play.event("w", Event.IDLED, idle=Idleness(phase=IdlePhase.GRACE), stop_at=play.now + 5 * MINUTE_MS)
    play.tick(3 * MINUTE_MS)
    assert (play.state_of("w"), play.bound("w").idle.phase) == ("expiring", IdlePhase.ACTIVE)
    assert play.bound("w").asked_at == asked_at
