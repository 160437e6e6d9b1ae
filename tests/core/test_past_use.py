"""The decayed sums of past use: a weighted average, in whatever order, with no trace of what is taken back."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from builders import DAY_MS, HOUR_MS, START, Play, a_policy, snapshot
from hypothesis import given
from hypothesis import strategies as st

from hubgov.clock import Instant
from hubgov.core.amounts import FINE_BITS
from hubgov.core.model import AllocationId
from hubgov.core.past_use import PastUse, Segment
from hubgov.core.policy import Fairness
from hubgov.core.quota import Place, project_place
from hubgov.core.ranking import Ranking

A, B = project_place("A"), project_place("B")
CARD = Decimal(1000 << (2 * FINE_BITS))
WEEK = 7 * DAY_MS
Span = tuple[int, int | None, int]


def kept(half_life: int, spans: list[Span], place: Place = A) -> PastUse:
    """Times are before START, or after it."""
    return PastUse(half_life, (segment(n, *span, place) for n, span in enumerate(spans)))


def segment(number: int, start: int, end: int | None, milli: int, place: Place = A) -> Segment:
    until = None if end is None else Instant(START + end)
    return Segment(AllocationId(f"w{number}.1"), place, milli, Instant(START + start), until)


@pytest.mark.parametrize(
    ("spans", "cards"),
    [
        pytest.param([(-400 * DAY_MS, None, 4000)], 4, id="who held four for ever has four"),
        pytest.param([(-WEEK, None, 4000)], 2, id="who held four for the last half-life alone has two"),
        pytest.param([(-400 * DAY_MS, -WEEK, 4000)], 2, id="who gave them back a half-life ago has two"),
        pytest.param([(-2 * WEEK, -WEEK, 4000)], 1, id="one half-life of four, a half-life ago, is one"),
        pytest.param([(0, None, 4000)], 0, id="what begins now weighs nothing yet"),
        pytest.param([(-DAY_MS, -DAY_MS, 4000)], 0, id="what took no time weighs nothing"),
        pytest.param([(-500 * WEEK, -41 * WEEK, 4000)], 0, id="what ended forty half-lives ago weighs nothing"),
        pytest.param([(-WEEK, None, 1000), (-WEEK, None, 3000)], 2, id="parts add up"),
        pytest.param([(-WEEK, -WEEK // 2, 4000), (-WEEK // 2, None, 4000)], 2, id="one after the other too"),
    ],
)
def test_what_it_comes_to(spans: list[Span], cards: int) -> None:
    found = kept(WEEK, spans).at(START).get(A, 0)
    assert found == pytest.approx(cards * 1000 << (2 * FINE_BITS), rel=1e-15)


SPANS = st.lists(
    st.tuples(st.integers(0, 10**11), st.integers(0, 10**10), st.integers(1, 8000), st.booleans()), max_size=8
)


def spans_of(parts: list[tuple[int, int, int, bool]]) -> list[Span]:
    """Some ended, some go on; none lies ahead of START."""
    return [(-a, None if goes_on else min(0, -a + length), milli) for a, length, milli, goes_on in parts]


@given(SPANS, st.integers(HOUR_MS, 400 * DAY_MS), st.integers(0, 10**10))
def test_it_is_the_weighted_average(parts: list[tuple[int, int, int, bool]], half_life: int, later: int) -> None:
    """Against the closed form in decimal numbers, now and later."""
    spans = spans_of(parts)
    found = Decimal(kept(half_life, spans).at(Instant(START + later)).get(A, 0)) / CARD
    with localcontext() as context:
        context.prec = 60

        def left(since: int) -> Decimal:
            return (-(Decimal(later - since) / half_life) * Decimal(2).ln()).exp()

        wanted = sum(
            (milli * (left(later if end is None else end) - left(start)) / 1000 for start, end, milli in spans),
            Decimal(0),
        )
        assert abs(found - wanted) <= Decimal(len(spans) * 8) / 2**39


@given(SPANS, st.integers(HOUR_MS, 400 * DAY_MS), st.randoms(use_true_random=False))
def test_order_leaves_no_trace_and_neither_does_what_is_taken_back(
    parts: list[tuple[int, int, int, bool]], half_life: int, random: object
) -> None:
    segments = [segment(n, *span, A if n % 2 else B) for n, span in enumerate(spans_of(parts))]
    straight = PastUse(half_life, segments)
    shuffled = list(segments)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = PastUse(half_life)
    for one in shuffled:
        other.put(Segment(one.allocation, one.place, one.milli_gpus, one.start, None))
        other.put(one)
        other.put(one)
    assert (other.sums, other.segments) == (straight.sums, straight.segments)
    later = Instant(START + DAY_MS)
    assert other.at(later) == straight.at(later)
    for one in shuffled:
        other.drop(one.allocation)
        other.drop(one.allocation)
    assert (other.sums, other.segments, other.at(later)) == ({}, {}, {})


def test_what_is_forgotten_is_gone_from_the_sums() -> None:
    past = kept(WEEK, [(-50 * WEEK, -41 * WEEK, 1000), (-50 * WEEK, -WEEK, 1000), (-50 * WEEK, None, 1000)])
    past.forget_until(Instant(START - 40 * WEEK))
    assert set(past.segments) == {"w1.1", "w2.1"}
    assert past.sums == kept(WEEK, [(-50 * WEEK, -WEEK, 1000)]).sums


def test_the_numbers_kept_do_not_grow_with_what_has_been() -> None:
    past = kept(WEEK, [(-n * HOUR_MS, -n * HOUR_MS + 60_000, 1000) for n in range(1, 1000)])
    assert len(past.segments) == 999
    assert len(past.sums) <= 1000 * HOUR_MS // WEEK + 2


def test_a_clock_that_was_set_back_harms_nothing() -> None:
    past = kept(WEEK, [(-DAY_MS, None, 1000), (0, DAY_MS, 1000)])
    found = past.at(Instant(START - 30 * DAY_MS))[A]
    assert 0 <= found <= 3000 << (2 * FINE_BITS)
    past.put(segment(7, DAY_MS, 0, 1000))
    past.drop(AllocationId("w7.1"))
    assert past.sums == kept(WEEK, [(0, DAY_MS, 1000)]).sums


def test_equal_use_is_an_equal_share_however_it_is_divided() -> None:
    """A team with two projects of one card each stands as one with a project of two."""
    policy = a_policy().node("box", devices=8).team("A").team("B").project("A2", team="A")
    play = Play(policy)
    for name, words in (
        ("a", {"team": "A"}), ("a2", {"team": "A", "project": "A2"}), ("b", {"team": "B", "gpus": 2}),
    ):  # fmt: skip
        play.run(name, **words)
    play.tick(7 * HOUR_MS // 3)
    for name in ("a", "a2", "b"):
        play.finish(name)
    play.tick(DAY_MS // 7)
    play.hold()
    play.submit("a-waits", team="A")
    play.submit("b-waits", team="B")
    first, second = Ranking(play.state, play.now).in_order(play.state.pending())
    assert first.shares[0] == second.shares[0] > (0, 0)


def test_another_half_life_is_counted_anew_and_taken_back_exactly() -> None:
    policy = a_policy().node("box", devices=2).team("A")
    play = Play(policy)
    play.run("a")
    play.tick(HOUR_MS)
    play.finish("a")
    play.run("b")
    before, mark = snapshot(play.state), len(play.entries)
    play.edit(policy.but(fairness=Fairness(half_life_ms=DAY_MS)))
    assert play.state.past.half_life_ms == DAY_MS
    assert play.state.past.sums == PastUse(DAY_MS, play.state.past.segments.values()).sums
    assert play.state.past.sums != before["past_use"]
    for made in reversed(play.entries[mark:]):
        play.state.apply(made.change.undone)
    assert snapshot(play.state) == before
    assert play.state.past.half_life_ms == WEEK
