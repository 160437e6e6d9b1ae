"""Whole-number arithmetic: the decay of past use, and money."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from builders import DAY_MS, HOUR_MS
from hypothesis import given
from hypothesis import strategies as st

from hubgov.core.amounts import FINE_BITS, cost_micro, halving, money_text, rounded, whole_shares

ONE = 1 << FINE_BITS
HALF_LIVES = st.integers(1, 3650 * DAY_MS)
SPANS = st.integers(0, 3650 * DAY_MS)


def exact(elapsed: int, half_life: int) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return Decimal(ONE) * (-(Decimal(elapsed) / Decimal(half_life)) * Decimal(2).ln()).exp()


@given(SPANS, HALF_LIVES)
def test_what_is_left_is_a_half_to_the_power_of_the_half_lives(elapsed: int, half_life: int) -> None:
    wanted = exact(elapsed, half_life) if elapsed < 40 * half_life else Decimal(0)
    assert abs(Decimal(halving(elapsed, half_life)) - wanted) <= 2


@given(st.integers(0, 40 * 3650 * DAY_MS), HALF_LIVES)
def test_one_more_millisecond_never_leaves_more(elapsed: int, half_life: int) -> None:
    assert halving(elapsed + 1, half_life) <= halving(elapsed, half_life)


@pytest.mark.parametrize("half_life", [1, 1000, HOUR_MS, 7 * DAY_MS, 3650 * DAY_MS])
def test_the_powers_of_two_are_exact_and_forty_half_lives_leave_nothing(half_life: int) -> None:
    wanted = [ONE, ONE // 2, ONE // 4, ONE >> 39, 0]
    assert [halving(n * half_life, half_life) for n in (0, 1, 2, 39, 40)] == wanted


@pytest.mark.parametrize("half_life", [7 * DAY_MS, 3650 * DAY_MS])
def test_it_falls_also_where_a_digit_carries(half_life: int) -> None:
    at = [half_life * k >> 7 for k in range(1, 128)]
    assert all(halving(t, half_life) <= halving(t - 1, half_life) for t in at)


@pytest.mark.parametrize(("elapsed", "half_life"), [(-1, 1), (1, 0), (1, -5)])
def test_no_decay_backwards_or_without_a_half_life(elapsed: int, half_life: int) -> None:
    with pytest.raises(ValueError, match="no decay"):
        halving(elapsed, half_life)


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


@given(st.lists(st.fractions(min_value=0, max_value=10**12, max_denominator=3600), max_size=30))
def test_whole_shares_sum_to_the_rounded_sum_and_each_is_less_than_one_off(parts: list[Fraction]) -> None:
    shares = whole_shares(parts)
    assert sum(shares) == rounded(sum(parts, start=Fraction(0)))
    assert all(abs(share - part) < 1 for share, part in zip(shares, parts, strict=True))


def test_the_rest_of_whole_shares_goes_to_the_largest_remainders() -> None:
    assert whole_shares([Fraction(1, 3), Fraction(2, 3), Fraction(1)]) == (0, 1, 1)
    assert whole_shares([Fraction(1, 2), Fraction(1, 2)]) == (1, 0), "the first of equals"
