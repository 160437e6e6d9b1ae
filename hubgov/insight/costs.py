"""What GPUs cost, by team, project, user and the like: exact sums of usage, rounded once (semantics §11).

The cost of a span is linear in its time, so that spans may be cut at any instant. Every table of one period has
the same total, whatever it is grouped by: it is the one exact sum, rounded once, and the rows share it out by
largest remainder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from hubgov.core.amounts import cost_micro, whole_shares
from hubgov.core.metering import Account

DIMENSIONS: Mapping[str, str] = MappingProxyType(
    {
        "team": "team",
        "project": "project",
        "user": "owner",
        "queue": "queue",
        "kind": "kind",
        "flavor": "flavor",
        "day": "day",
    }
)
"""What a table may be grouped by: the name that people use, and the attribute of usage it is."""

Place = tuple[str | None, ...]
"""The values of the dimensions asked for, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """GPU time that is alike in everything a cost depends on. `milli_gpu_ms` is Σ share × time."""

    place: Place
    account: Account
    failed: bool
    """Of an attempt that never got ready: the pool carries it."""
    borrowed: bool
    milli_gpu_ms: int
    price_micro_per_hour: int
    queue_factor_micro: int
    class_factor_micro: int
    borrowed_factor_micro: int

    @property
    def list_cost(self) -> Fraction:
        """At the price of the card alone, in millionths of the currency; nothing beyond the team's account."""
        return self._cost()

    @property
    def cost(self) -> Fraction:
        """With the factors of queue, class and borrowing."""
        return self._cost(self.queue_factor_micro, self.class_factor_micro, self.borrowed_factor_micro)

    @property
    def credited(self) -> Fraction:
        """What attempts that failed to start would have cost at list price; their team isn't charged for it."""
        return self._at_price() if self.failed and self.account is not Account.TEAM else Fraction(0)

    def _cost(self, *factors: int) -> Fraction:
        return self._at_price(*factors) if self.account is Account.TEAM else Fraction(0)

    def _at_price(self, *factors: int) -> Fraction:
        return cost_micro(self.milli_gpu_ms, 1, self.price_micro_per_hour, *factors)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """One row: GPU seconds on the team's account, at list price and as charged (micro-currency); of these, what
    was borrowed; and what the pool carried, of attempts that failed (their time, and what is credited for it at
    list price) and of time past the end."""

    place: Place
    gpu_seconds: int
    list_cost_micro: int
    cost_micro: int
    borrowed_gpu_seconds: int
    failed_gpu_seconds: int
    overhead_gpu_seconds: int
    credited_micro: int

    @property
    def discount_micro(self) -> int:
        """What the factors of queue, class and borrowing take off the list price; negative where they add to it.
        Of the figures as they are told, so that list price less discount is the cost in each row and in the total.
        """
        return self.list_cost_micro - self.cost_micro


def cost_rows(used: Iterable[Usage]) -> tuple[tuple[CostRow, ...], CostRow]:
    """(the rows by place, their total). Σ rows = total in every column."""
    sums: dict[Place, list[Fraction]] = {}
    for usage in used:
        columns = sums.setdefault(usage.place, [Fraction(0)] * 7)
        for index, value in enumerate(_columns(usage)):
            columns[index] += value
    places = sorted(sums, key=lambda place: tuple((value is None, value or "") for value in place))
    whole = [whole_shares([sums[place][index] for place in places]) for index in range(7)]
    rows = tuple(_row(place, [column[i] for column in whole]) for i, place in enumerate(places))
    return rows, _row((), [sum(column) for column in whole])


def _columns(usage: Usage) -> tuple[Fraction, ...]:
    seconds, none = Fraction(usage.milli_gpu_ms, 1_000_000), Fraction(0)
    team = usage.account is Account.TEAM
    return (
        seconds if team else none,
        usage.list_cost,
        usage.cost,
        seconds if team and usage.borrowed else none,
        seconds if usage.failed and not team else none,
        seconds if not usage.failed and usage.account is Account.OVERHEAD else none,
        usage.credited,
    )


def _row(place: Place, columns: list[int]) -> CostRow:
    gpu_seconds, list_cost, cost, borrowed, failed, overhead, credited = columns
    return CostRow(
        place=place,
        gpu_seconds=gpu_seconds,
        list_cost_micro=list_cost,
        cost_micro=cost,
        borrowed_gpu_seconds=borrowed,
        failed_gpu_seconds=failed,
        overhead_gpu_seconds=overhead,
        credited_micro=credited,
    )
