"""Edits of prices while work runs: each span at the price that held in it, and the sum exact."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from builders import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Play, PolicyBuilder, a_policy
from hypothesis import given, settings
from hypothesis import strategies as st

from hubgov.clock import Instant
from hubgov.core.amounts import cost_micro
from hubgov.core.metering import cost_of, segments_until
from hubgov.core.policy import MICRO, Costs, PriorityClass
from hubgov.core.states import Event
from hubgov.core.transitions import exited

MONEY = 10**6


def site(price: int = 10, queue: int = MICRO, **costs: Any) -> PolicyBuilder:
    """`price` in whole money an hour, the queue's factor and those of `Costs` in millionths."""
    policy = a_policy().team("A", guaranteed=2).team("B").node("box", devices=4)
    policy.flavor("g", price_micro_per_hour=price * MONEY).queue("train", cost_factor_micro=queue)
    return policy.lease(default_ms=9 * DAY_MS, max_ms=9 * DAY_MS).but(costs=Costs(**costs))


def spans(play: Play, attempt: str = "w.1") -> list[tuple[str, str, int, int]]:
    """(account, state, minutes, money an hour) of each that lasted."""
    return [
        (s.account.value, s.state, (s.ended - s.began) // MINUTE_MS, s.price_micro_per_hour // MONEY)
        for s in play.segments[attempt]
        if s.ended > s.began
    ]


def cost(play: Play, attempt: str = "w.1") -> Fraction:
    return sum((cost_of(s) for s in play.segments[attempt]), start=Fraction(0))


def test_a_new_price_holds_from_its_edit_on() -> None:
    play = Play(site(10))
    play.run("w", gpus=2)
    play.tick(30 * MINUTE_MS)
    play.edit(site(40))
    play.tick(15 * MINUTE_MS)
    open_spans = segments_until(play.state, play.workload("w"), play.bound("w"), play.now)
    assert sum(cost_of(s) for s in open_spans) == (10 + 20) * MONEY, "so far, while it runs"
    play.finish("w")
    assert spans(play) == [("team", "running", 30, 10), ("team", "running", 15, 40)]
    assert cost(play) == (10 + 20) * MONEY


def test_an_edit_that_leaves_the_price_ends_no_tariff() -> None:
    play = Play(site(10))
    play.run("w")
    play.tick(30 * MINUTE_MS)
    play.edit(site(10).queue("train", grace_ms=7 * MINUTE_MS))
    assert play.bound("w").tariffs == ()
    play.finish("w")
    assert spans(play) == [("team", "running", 30, 10)]


def test_edits_at_one_moment_leave_the_last() -> None:
    play = Play(site(10))
    play.run("w")
    play.edit(site(20))
    play.tick(30 * MINUTE_MS)
    play.edit(site(30))
    play.edit(site(40))
    play.tick(30 * MINUTE_MS)
    play.finish("w")
    assert spans(play) == [("team", "running", 30, 20), ("team", "running", 30, 40)]


def test_the_tariff_of_the_state_before_is_not_that_of_the_state_after() -> None:
    play = Play(site(10))
    play.submit("w")
    play.tick(MINUTE_MS)
    play.edit(site(20))
    play.tick(MINUTE_MS)
    play.launch("w")
    play.tick(MINUTE_MS)
    play.ready("w")
    play.tick(MINUTE_MS)
    play.cancel("w")
    play.edit(site(30))
    play.tick(SECOND_MS)
    play.gone("w")
    assert spans(play)[:3] == [
        ("team", "starting", 1, 10),
        ("team", "starting", 2, 20),
        ("team", "running", 1, 20),
    ]
    assert [s.price_micro_per_hour // MONEY for s in play.segments["w.1"] if s.state == "stopping"] == [30]


def test_a_failed_start_is_credited_over_all_its_tariffs() -> None:
    play = Play(site(10))
    play.submit("w")
    play.tick(2 * MINUTE_MS)
    play.edit(site(20))
    play.launch("w")
    play.tick(3 * MINUTE_MS)
    play.exit("w", code=1)
    play.gone("w")
    assert spans(play) == [("overhead", "starting", 2, 10), ("overhead", "starting", 3, 20)]
    assert cost(play) == 0


def test_an_end_that_is_reported_late_leaves_each_price_its_own_time() -> None:
    """It ended before the edit and was seen after it: the time that follows goes to overhead, at both prices."""
    play = Play(site(10))
    play.run("w")
    play.tick(30 * MINUTE_MS)
    ended = play.now
    play.tick(2 * MINUTE_MS)
    play.edit(site(20))
    play.unit(lambda: exited(play.state, play.bound("w"), Instant(ended), code=0))
    play.gone("w")
    assert spans(play)[:2] == [("team", "running", 30, 10), ("overhead", "releasing", 2, 10)]
    assert cost(play) == 5 * MONEY


def test_class_factors_and_currency_are_part_of_it() -> None:
    play = Play(site(10))
    play.run("w")
    for policy in (
        site(10, class_factor_micro={PriorityClass.STANDARD: 2 * MICRO}),
        site(10).queue("train", class_=PriorityClass.OPPORTUNISTIC),
        site(10, queue=3 * MICRO),
        site(10).but(currency="EUR"),
    ):
        play.tick(HOUR_MS)
        play.edit(policy)
    play.tick(HOUR_MS)
    play.finish("w")
    running = [s for s in play.segments["w.1"] if s.ended > s.began]
    assert [cost_of(s) // MONEY for s in running] == [10, 20, 10, 30, 10]
    assert [s.class_ for s in running] == ["standard", "standard", "opportunistic", "standard", "standard"]
    assert [s.currency for s in running] == ["CNY"] * 4 + ["EUR"]


def test_a_cut_of_the_guarantee_makes_it_borrowed_from_then_on() -> None:
    play = Play(site(10, borrowed_factor_micro=MICRO // 2))
    play.run("w", gpus=2)
    play.tick(HOUR_MS)
    less = site(10, borrowed_factor_micro=MICRO // 2)
    less.rows.clear()
    play.edit(less.quota("A", guaranteed=1))
    play.tick(HOUR_MS)
    play.finish("w")
    assert [s.borrowed for s in play.segments["w.1"] if s.ended > s.began] == [False, True]
    assert cost(play) == (20 + 10) * MONEY


STEPS = st.lists(
    st.one_of(
        st.integers(1, 3 * HOUR_MS).map(lambda ms: ("tick", ms)),
        st.tuples(st.just("edit"), st.integers(0, 50), st.sampled_from([MICRO, MICRO // 3, 2 * MICRO])),
        st.sampled_from([("launch",), ("ready",), ("silent",), ("back",)]),
    ),
    max_size=25,
)


@settings(max_examples=100, deadline=None)
@given(STEPS, st.sampled_from([0.25, 1, 3]), st.booleans())
def test_the_sum_is_the_price_over_time(steps: list[tuple[str, int, int]], gpus: float, finishes: bool) -> None:
    """Against a bill that is kept by hand, step by step; Σ of the spans of all states is the time it was held."""
    price, factor, bill = 10, MICRO, Fraction(0)
    play = Play(site(price).queue("train", start_deadline_ms=DAY_MS * 10))
    play.submit("w", gpus=gpus)
    begin = play.now
    events = {"silent": Event.NODE_SILENT, "back": Event.NODE_BACK, "launch": Event.LAUNCHED, "ready": Event.READY}
    for what, *args in steps:
        if what == "tick":
            bill += cost_micro(args[0], round(gpus * 1000), price * MONEY, factor)
            play.tick(args[0])
        elif what == "edit":
            price, factor = args
            play.edit(site(price, queue=factor).queue("train", start_deadline_ms=DAY_MS * 10))
        else:
            play.event("w", events[what])
    started = play.bound("w").started_at is not None
    if finishes:
        play.finish("w", code=1)
    else:
        play.cancel("w", now=True)
        play.gone("w")
    assert play.state_of("w") in ("failed", "cancelled")
    assert cost(play) == (bill if started or not finishes else 0)
    assert sum(s.ended - s.began for s in play.segments["w.1"]) == play.now - begin


@pytest.mark.parametrize("attempts", [1, 3])
def test_undoing_takes_the_tariff_back(attempts: int) -> None:
    play = Play(site(10))
    play.run("w")
    play.tick(HOUR_MS)
    before = play.bound("w")
    mark = len(play.entries)
    for n in range(attempts):
        play.edit(site(20 + n))
    assert len(play.bound("w").tariffs) == attempts
    for made in reversed(play.entries[mark:]):
        play.state.apply(made.change.undone)
    assert play.bound("w") == before
    assert play.state.policy.flavors["g"].price_micro_per_hour == 10 * MONEY
