"""The latest start of everybody in line: nobody is promised what somebody ahead of him will take."""

from __future__ import annotations

import random

import pytest
from builders import HOUR_MS, MINUTE_MS, START, Play, a_policy, a_workload

from hubgov.core.explain import plan
from hubgov.core.forecast import latest_starts
from hubgov.core.policy import Order, Reclaim

TERM_MS = Reclaim().term_ms
START_DEADLINE_MS = 15 * MINUTE_MS
TURN_MS = START_DEADLINE_MS + HOUR_MS + 5 * MINUTE_MS + TERM_MS
"""What one lease of an hour takes at most: its start, itself, its grace, its stop."""


def one_card() -> Play:
    play = Play(a_policy().team("A").node("box", devices=1).queue("train"))
    play.run("holds", lease_ms=HOUR_MS)
    return play


def test_each_in_line_waits_for_those_ahead_of_him() -> None:
    play = one_card()
    for name in ("first", "second", "third"):
        play.submit(name, lease_ms=HOUR_MS, owner=name)
    free = START + HOUR_MS + 5 * MINUTE_MS + TERM_MS
    found = [play.why(name).latest_start for name in ("first", "second", "third")]
    assert found == [free, free + TURN_MS, free + 2 * TURN_MS]


def test_who_needs_none_of_what_they_wait_for_is_not_behind_them() -> None:
    play = one_card()
    play.submit("first", lease_ms=HOUR_MS)
    play.submit("cpu", gpus=0)
    assert play.state_of("cpu") == "reserved"
    assert set(latest_starts(play.state, play.now)) == {"first"}


def test_behind_an_endless_lease_there_is_no_bound() -> None:
    play = Play(a_policy().team("A").node("box", devices=1).lease(default_ms=None))
    play.run("holds", lease_ms=HOUR_MS)
    play.submit("endless", lease_ms=None, owner="bo")
    play.submit("after", lease_ms=HOUR_MS, owner="cy")
    assert play.why("endless").latest_start_basis == "bound"
    assert (play.why("after").latest_start_basis, play.why("after").latest_start) == ("none", None)


def test_a_dry_run_is_told_what_it_would_wait_for_and_changes_nobodys_bound() -> None:
    play = one_card()
    play.submit("first", lease_ms=HOUR_MS)
    before = play.why("first").latest_start
    new = a_workload("new", seq=play.state.last_seq + 1, lease_ms=HOUR_MS, owner="bo")
    planned = plan(play.state, new, play.now)
    assert planned.latest_start is not None
    assert before is not None
    assert planned.latest_start >= before + TURN_MS
    assert play.why("first").latest_start == before


@pytest.mark.parametrize("seed", range(6))
def test_played_on_everybody_starts_by_his_bound(seed: int) -> None:
    """Everybody takes all the time he may, nobody new comes, and use changes nobody's place (fifo)."""
    dice, step = random.Random(seed), TERM_MS
    play = Play(a_policy().team("A").node("box", devices=4).queue("train", order=Order.FIFO))
    names = [f"w{n}" for n in range(9)]
    for name in names:
        hours = dice.choice((HOUR_MS, 2 * HOUR_MS))
        play.submit(name, owner=name, gpus=dice.choice((1, 1, 2, 4)), lease_ms=hours)
    bounds = dict(latest_starts(play.state, play.now))
    assert set(bounds) == {n for n in names if play.state_of(n) == "pending"}
    while any(play.state_of(n) == "pending" for n in names):
        for name in names:
            since = play.now - play.bound(name).since if play.allocation(name) else 0
            if play.state_of(name) == "reserved" and since >= START_DEADLINE_MS - step:
                play.start(name)
            elif play.state_of(name) == "stopping" and since >= TERM_MS - step:
                play.gone(name)
        play.tick(step)
        for name, bound in bounds.items():
            assert play.state_of(name) != "pending" or play.now <= bound + step, name
