"""Whole-number arithmetic: the decay of past use, and money."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from builders import DAY_MS, HOUR_MS
from hypothesis import given
from hypothesis import strategies as st

from hubgov.core.amounts import ONE, cost_micro, decayed_use, halving, money_text, rounded

HALF_LIVES = st.integers(1, 3650 * DAY_MS)
SPANS = st.integers(0, 3650 * DAY_MS)


def exact(elapsed: int, half_life: int) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return Decimal(ONE) * (-(Decimal(elapsed) / Decimal(half_life)) * Decimal(2).ln()).exp()


@given(SPANS, HALF_LIVES)
def test_what_is_left_is_a_half_to_the_power_of_the_half_lives(elapsed: int, half_life: int) -> None:
    assert abs(Decimal(halving(elapsed, half_life)) - exact(elapsed, half_life)) <= 2


@given(st.integers(0, 40 * 3650 * DAY_MS), HALF_LIVES)
def test_one_more_millisecond_never_leaves_more(elapsed: int, half_life: int) -> None:
    assert halving(elapsed + 1, half_life) <= halving(elapsed, half_life)


@pytest.mark.parametrize("half_life", [1, 1000, HOUR_MS, 7 * DAY_MS, 3650 * DAY_MS])
def test_the_powers_of_two_are_exact_and_forty_half_lives_leave_nothing(half_life: int) -> None:
    assert [halving(n * half_life, half_life) for n in (0, 1, 2, 39, 40)] == [ONE, ONE // 2, ONE // 4, 2, 0]


@pytest.mark.parametrize("half_life", [7 * DAY_MS, 3650 * DAY_MS])
def test_it_falls_also_where_a_digit_carries(half_life: int) -> None:
    at = [half_life * k >> 7 for k in range(1, 128)]
    assert all(halving(t, half_life) <= halving(t - 1, half_life) for t in at)


@pytest.mark.parametrize(("elapsed", "half_life"), [(-1, 1), (1, 0), (1, -5)])
def test_no_decay_backwards_or_without_a_half_life(elapsed: int, half_life: int) -> None:
    with pytest.raises(ValueError, match="no decay"):
        halving(elapsed, half_life)


@pytest.mark.parametrize(
    ("segments", "cards"),
    [
        pytest.param([(-400 * DAY_MS, None, 4000)], 4, id="who held four for ever has four"),
        pytest.param([(-7 * DAY_MS, None, 4000)], 2, id="who held four for the last half-life alone has two"),
        pytest.param([(-400 * DAY_MS, -7 * DAY_MS, 4000)], 2, id="who gave them back a half-life ago has two"),
        pytest.param([(-14 * DAY_MS, -7 * DAY_MS, 4000)], 1, id="one half-life of four, a half-life ago, is one"),
        pytest.param([(0, None, 4000)], 0, id="what begins now weighs nothing yet"),
        pytest.param([(5, 9, 4000)], 0, id="what lies ahead weighs nothing"),
        pytest.param([(-7 * DAY_MS, 9, 4000)], 2, id="an end that lies ahead counts up to now"),
        pytest.param([(-7 * DAY_MS, None, 1000), (-7 * DAY_MS, None, 3000)], 2, id="parts add up"),
    ],
)
def test_decayed_use(segments: list[tuple[int, int | None, int]], cards: int) -> None:
    assert decayed_use(segments, 0, 7 * DAY_MS) == pytest.approx(cards * 1000 * ONE, rel=1e-9)


@given(st.lists(st.tuples(st.integers(-(10**11), 0), st.integers(0, 10**10), st.integers(1, 8000)), max_size=6))
def test_the_closed_form_is_the_weighted_average(parts: list[tuple[int, int, int]]) -> None:
    half_life = 7 * DAY_MS
    segments: list[tuple[int, int | None, int]] = [(a, min(0, a + length), m) for a, length, m in parts]
    wanted = sum((m * (exact(-(b or 0), half_life) - exact(-a, half_life)) for a, b, m in segments), Decimal(0))
    got = decayed_use(segments, 0, half_life)
    assert got >= 0
    assert abs(Decimal(got) - wanted) <= 4 * sum(m for _, _, m in segments)


def test_cutting_a_segment_in_two_changes_nothing() -> None:
    whole = decayed_use([(-9 * DAY_MS, -DAY_MS, 3000)], 0, DAY_MS)
    assert decayed_use([(-9 * DAY_MS, -4 * DAY_MS, 3000), (-4 * DAY_MS, -DAY_MS, 3000)], 0, DAY_MS) == whole


def test_cost_is_exact_until_the_one_rounding() -> None:
    assert cost_micro(HOUR_MS, 500, 18_500_000) == 9_250_000
    assert cost_micro(1, 1000, 1) == Fraction(1, 3_600_000)
    assert cost_micro(HOUR_MS, 1000, 10_000_000, 500_000, 1_200_000) == 6_000_000


@pytest.mark.parametrize(
    ("amount", "whole"),
    [(Fraction(1, 2), 1), (Fraction(-1, 2), -1), (Fraction(1, 3), 0), (Fraction(-2, 3), -1), (Fraction(7), 7)],
)
def test_halves_are_rounded_away_from_zero(amount: Fraction, whole: int) -> None:
    assert rounded(amount) == whole


@pytest.mark.parametrize(
    ("micro", "text"), [(120_500_000, "120.500000"), (-1, "-0.000001"), (0, "0.000000"), (-2_000_000, "-2.000000")]
)
def test_money_as_text(micro: int, text: str) -> None:
    assert money_text(micro) == text
