"""What GPUs cost: exact, rounded once, the same total whatever it is grouped by."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from builders import HOUR_MS
from hypothesis import given
from hypothesis import strategies as st

from hubgov.core.amounts import rounded
from hubgov.core.metering import Account
from hubgov.core.policy import MICRO
from hubgov.insight.costs import CostRow, Usage, cost_rows

AN_HOUR = Usage(
    place=("vision", "seg"),
    account=Account.TEAM,
    failed=False,
    borrowed=False,
    milli_gpu_ms=1000 * HOUR_MS,
    price_micro_per_hour=18_500_000,
    queue_factor_micro=MICRO,
    class_factor_micro=MICRO,
    borrowed_factor_micro=MICRO,
)


def usages() -> st.SearchStrategy[list[Usage]]:
    factors = st.sampled_from([MICRO, 700_000, 333_333])
    one = st.builds(
        Usage,
        place=st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from(["p", "q", "r"])),
        account=st.sampled_from(Account),
        failed=st.booleans(),
        borrowed=st.booleans(),
        milli_gpu_ms=st.integers(1, 10**13),
        price_micro_per_hour=st.integers(0, 10**9),
        queue_factor_micro=factors,
        class_factor_micro=factors,
        borrowed_factor_micro=factors,
    )
    return st.lists(one, max_size=20)


def columns(row: CostRow) -> tuple[int, ...]:
    return (
        row.gpu_seconds, row.list_cost_micro, row.cost_micro, row.borrowed_gpu_seconds, row.failed_gpu_seconds,
        row.overhead_gpu_seconds, row.credited_micro, row.discount_micro,
    )  # fmt: skip


def test_an_hour_of_a_card_costs_its_price() -> None:
    (row,), total = cost_rows([AN_HOUR])
    assert (row.place, row.gpu_seconds, row.list_cost_micro, row.cost_micro) == (
        ("vision", "seg"), 3600, 18_500_000, 18_500_000,
    )  # fmt: skip
    assert (total.gpu_seconds, total.cost_micro) == (3600, 18_500_000)


def test_factors_change_the_cost_and_not_the_list_price() -> None:
    lent = replace(AN_HOUR, borrowed=True, borrowed_factor_micro=700_000, class_factor_micro=500_000)
    (row,), _ = cost_rows([lent])
    assert (row.list_cost_micro, row.cost_micro, row.borrowed_gpu_seconds) == (18_500_000, 6_475_000, 3600)
    assert row.discount_micro == 12_025_000


def test_a_factor_above_one_is_a_negative_discount() -> None:
    (row,), total = cost_rows([replace(AN_HOUR, queue_factor_micro=1_500_000)])
    assert (row.cost_micro, row.discount_micro, total.discount_micro) == (27_750_000, -9_250_000, -9_250_000)


def test_what_the_pool_carries_costs_no_team() -> None:
    failed = replace(AN_HOUR, account=Account.OVERHEAD, failed=True)
    late = replace(AN_HOUR, account=Account.OVERHEAD)
    fenced = replace(AN_HOUR, account=Account.FENCED)
    (row,), _ = cost_rows([failed, late, fenced])
    assert columns(row) == (0, 0, 0, 0, 3600, 3600, 18_500_000, 0)


def test_nothing_used_is_an_empty_table_with_a_total_of_nothing() -> None:
    rows, total = cost_rows([])
    assert (rows, columns(total)) == ((), (0,) * 8)


@given(usages())
def test_every_grouping_has_the_same_total_and_its_rows_sum_to_it(used: list[Usage]) -> None:
    groupings = [used]
    groupings += [[replace(usage, place=usage.place[cut]) for usage in used] for cut in (slice(1), slice(1, 2))]
    tables = [cost_rows(grouping) for grouping in groupings]
    for rows, total in tables:
        assert columns(total) == columns(tables[0][1])
        assert [sum(column) for column in zip(*map(columns, rows), strict=True)] == list(
            columns(total) if rows else []
        )
    total = tables[0][1]
    assert total.cost_micro == rounded(sum((usage.cost for usage in used), start=Fraction(0)))
    assert total.credited_micro == rounded(sum((usage.credited for usage in used), start=Fraction(0)))
    for rows, _ in tables:
        assert all(row.list_cost_micro - row.discount_micro == row.cost_micro for row in rows)


@given(usages(), st.data())
def test_cutting_a_span_changes_no_figure(used: list[Usage], data: st.DataObject) -> None:
    cut: list[Usage] = []
    for usage in used:
        first = data.draw(st.integers(0, usage.milli_gpu_ms))
        cut += [replace(usage, milli_gpu_ms=first), replace(usage, milli_gpu_ms=usage.milli_gpu_ms - first)]
    assert cost_rows(cut) == cost_rows(used)
