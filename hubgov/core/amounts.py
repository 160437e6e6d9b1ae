"""Whole-number arithmetic that the rest relies on: money, and the decay of past use.

Nothing here is a float. The decay is one fixed-point function (`halving`), so that SQLite, PostgreSQL and the
simulator rank alike to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import isqrt

HALF_LIVES = 40
"""After so many nothing is left."""
FINE_BITS = 64
_GUARD_BITS = 24
"""Carried along while multiplying, so that roundings down never show: one more ms is never worth more."""
_ROOT_BITS = FINE_BITS + _GUARD_BITS


@cache
def _roots() -> tuple[int, ...]:
    """2^(-1/2), 2^(-1/4), 2^(-1/8), …, each scaled 2^88: square roots of the one before, rounded down."""
    roots, value = [], 1 << (_ROOT_BITS - 1)
    for _ in range(FINE_BITS):
        value = isqrt(value << _ROOT_BITS)
        roots.append(value)
    return tuple(roots)


def halving(elapsed_ms: int, half_life_ms: int) -> int:
    """How much of something is left after `elapsed_ms`, scaled 2^64: one half after each half-life.

    `elapsed_ms` must not be negative. Falls monotonically and reaches 0 after forty half-lives.
    """
    if elapsed_ms < 0 or half_life_ms <= 0:
        raise ValueError(f"no decay over {elapsed_ms} ms with a half-life of {half_life_ms} ms")
    whole, rest = divmod(elapsed_ms, half_life_ms)
    if whole >= HALF_LIVES:
        return 0
    left = 1 << _ROOT_BITS
    for root in _roots():
        rest *= 2
        if rest >= half_life_ms:
            rest -= half_life_ms
            left = left * root >> _ROOT_BITS
        if not rest:
            break
    return left >> (_GUARD_BITS + whole)


def cost_micro(span_ms: int, milli_gpus: int, price_micro_per_hour: int, *factors_micro: int) -> Fraction:
    """What holding `milli_gpus` for `span_ms` costs, in millionths of the currency, exact and unrounded."""
    cost = Fraction(span_ms, 3_600_000) * Fraction(milli_gpus, 1000) * price_micro_per_hour
    for factor in factors_micro:
        cost *= Fraction(factor, 1_000_000)
    return cost


def rounded(amount: Fraction) -> int:
    """The nearest whole number, halves away from zero: the one rounding that a line of money gets."""
    sign = -1 if amount < 0 else 1
    return sign * ((2 * abs(amount.numerator) + amount.denominator) // (2 * amount.denominator))


def whole_shares(parts: Sequence[Fraction]) -> tuple[int, ...]:
    """Whole numbers for parts that are not negative, whose sum is their rounded sum: each rounded down, the rest
    to those with the largest remainders, the first of equals first."""
    whole = [part.numerator // part.denominator for part in parts]
    missing = rounded(sum(parts, start=Fraction(0))) - sum(whole)
    by_remainder = sorted(range(len(parts)), key=lambda i: (whole[i] - parts[i], i))
    for index in by_remainder[:missing]:
        whole[index] += 1
    return tuple(whole)


def money_text(micro: int) -> str:
    """Millionths as a decimal text with six places: 120500000 -> `120.500000`."""
    sign = "-" if micro < 0 else ""
    return f"{sign}{abs(micro) // 1_000_000}.{abs(micro) % 1_000_000:06d}"
