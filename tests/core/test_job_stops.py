"""How a job is stopped (semantics §7): SIGTERM at the start of its grace, SIGKILL at its end, and nothing else."""

from __future__ import annotations

from builders import HOUR_MS, MINUTE_MS, Play, a_policy

from hubgov.core.due import stop_overdue_at
from hubgov.core.policy import Kind, RetryRule
from hubgov.core.release import free_by
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
