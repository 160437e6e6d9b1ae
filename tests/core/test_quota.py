"""The quota tree: Kueue's arithmetic, windows, and what could ever be had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from builders import DAY_MS, HOUR_MS, START, PolicyBuilder, a_policy
from hypothesis import given
from hypothesis import strategies as st

from hubgov.clock import Instant, from_rfc3339
from hubgov.core import quota
from hubgov.core.quota import ROOT, Place, project_place, team_place

KEY = ("p", "g")


def room(policy: PolicyBuilder, place: Place, used: Mapping[str, float], *, cards: float = 8) -> float:
    """Cards that a place may still take; `used` by project."""
    tree = quota.build_tree(policy.build(), KEY, round(cards * 1000), START)
    charges = {project_place(name): round(n * 1000) for name, n in used.items()}
    return quota.available(tree, quota.usage(tree, charges), place) / 1000


def two_teams(**a: Any) -> PolicyBuilder:
    """Eight cards: four for A (with these limits), four for B, nothing spare."""
    return a_policy().team("A", guaranteed=4, **a).team("B", guaranteed=4)


@pytest.mark.parametrize(
    ("policy", "team", "used", "cards"),
    [
        pytest.param(two_teams(), "A", {}, 8, id="nothing runs: its own four and the four of B"),
        pytest.param(two_teams(), "A", {"B": 3}, 5, id="what B uses is gone"),
        pytest.param(two_teams(), "B", {"A": 6}, 2, id="what A borrowed of B is missing until it is given back"),
        pytest.param(two_teams(borrow=0), "A", {}, 4, id="borrow 0: its own and no more"),
        pytest.param(two_teams(borrow=1), "A", {}, 5, id="borrow 1: one above its own"),
        pytest.param(two_teams(borrow=1), "A", {"A": 5}, 0, id="borrow 1 used up"),
        pytest.param(two_teams(borrow=1), "A", {"B": 8}, 0, id="may borrow, but nothing is left"),
        pytest.param(two_teams(borrow=1), "A", {"B": 6}, 2, id="less left than it may borrow"),
        pytest.param(two_teams(lend=0), "B", {}, 4, id="lend 0: A keeps its four"),
        pytest.param(two_teams(lend=0), "A", {"B": 4}, 4, id="lend 0: A's four are there whatever B does"),
        pytest.param(two_teams(lend=0), "A", {"A": 3}, 5, id="lend 0: one kept and four of B"),
        pytest.param(two_teams(lend=1), "B", {}, 5, id="lend 1: one of A's four"),
        pytest.param(two_teams(lend=1), "A", {"B": 5}, 3, id="lend 1: three kept"),
        pytest.param(two_teams(lend=1), "A", {"A": 3, "B": 5}, 0, id="lend 1: kept and lent are both used"),
        pytest.param(two_teams(lend=1, borrow=2), "A", {"A": 3}, 3, id="lent part and borrowing, both limited"),
        pytest.param(two_teams(), "A", {"A": 6, "B": 6}, -4, id="over-committed: negative"),
        pytest.param(two_teams(lend=0), "A", {"A": 1, "B": 9}, -2, id="kept three less what is overdrawn above"),
        pytest.param(two_teams(borrow=0), "A", {"A": 6}, -2, id="a lowered quota is negative at its own place"),
    ],
)
def test_available(policy: PolicyBuilder, team: str, used: dict[str, float], cards: float) -> None:
    assert room(policy, team_place(team), used) == cards
    assert room(policy, project_place(team), used) == cards, "a project without a row is transparent"


def test_spare_cards_are_the_roots_and_open_to_all() -> None:
    policy = a_policy().team("A", guaranteed=2).team("B")
    assert room(policy, team_place("A"), {}) == 8
    assert room(policy, team_place("B"), {"A": 2}) == 6
    assert room(policy, ROOT, {"B": 6}) == 2


def test_borrow_nothing_on_a_top_team_closes_its_tree() -> None:
    policy = a_policy().team("top", borrow=0).team("A", parent="top", guaranteed=3).team("B", parent="top")
    assert room(policy, team_place("B"), {}) == 3
    assert room(policy, team_place("B"), {"A": 1}) == 2
    policy.team("other")
    assert room(policy, team_place("other"), {}) == 8


def test_guarantees_beyond_the_devices_leave_nothing_spare_and_nothing_negative() -> None:
    policy = a_policy().team("A", guaranteed=6).team("B", guaranteed=6)
    tree = quota.build_tree(policy.build(), KEY, 8000, START)
    assert tree.shares[ROOT].guaranteed == 0


def test_a_parents_own_quota_is_a_pot_of_its_children_and_no_cap() -> None:
    policy = a_policy().team("top", guaranteed=2, borrow=0)
    policy.team("A", parent="top", guaranteed=1, borrow=1).team("B", parent="top", guaranteed=1)
    assert room(policy, team_place("A"), {}) == 2
    assert room(policy, team_place("B"), {}) == 4
    assert room(policy, team_place("B"), {"A": 2}) == 2


def test_depth_changes_nothing_where_the_teams_between_have_no_row() -> None:
    flat = a_policy().team("A", guaranteed=2).team("B", guaranteed=1)
    deep = a_policy().team("x").team("y", parent="x").team("A", parent="y", guaranteed=2).team("B", guaranteed=1)
    for used in ({}, {"A": 1}, {"A": 4, "B": 2}, {"B": 5}):
        assert room(flat, team_place("A"), used) == room(deep, team_place("A"), used)
        assert room(flat, team_place("B"), used) == room(deep, team_place("B"), used)


def test_a_project_with_a_row_of_its_own() -> None:
    policy = a_policy().team("A", guaranteed=2).quota(project="A", guaranteed=1, lend=0, borrow=0)
    policy.project("other", team="A")
    assert room(policy, project_place("A"), {}) == 1
    assert room(policy, project_place("other"), {}, cards=3) == 2
    assert room(policy, project_place("other"), {"A": 1}, cards=3) == 2


AMOUNTS = st.integers(0, 8)
LIMITS = st.one_of(st.none(), st.integers(0, 8))
ROWS = st.lists(st.tuples(AMOUNTS, LIMITS, LIMITS), min_size=5, max_size=5)
PARENT = {"top": None, "A": "top", "B": "top", "C": None, "D": "A"}


@given(ROWS, st.lists(AMOUNTS, min_size=5, max_size=5), st.integers(0, 40))
def test_taking_what_is_available_leaves_exactly_nothing(
    rows: list[tuple[int, int | None, int | None]], used: list[int], capacity: int
) -> None:
    """For any tree: one card more is worth one card less, and never more than the devices beyond what is used."""
    policy = a_policy()
    for (name, parent), (guaranteed, borrow, lend) in zip(PARENT.items(), rows, strict=True):
        policy.team(name, parent=parent, guaranteed=guaranteed, borrow=borrow, lend=lend)
    before = dict(zip(PARENT, used, strict=True))
    for name in PARENT:
        left = room(policy, project_place(name), before, cards=capacity)
        if left < 0:
            continue
        after = before | {name: before[name] + left}
        assert room(policy, project_place(name), after, cards=capacity) <= 0
        for other in PARENT:
            was, now = (room(policy, project_place(other), u, cards=capacity) for u in (before, after))
            assert was - left <= now <= was, "taking never gives to others, and takes no more than it took"


@given(ROWS, st.integers(0, 60))
def test_with_nothing_running_all_leaves_can_have_their_guarantee(
    rows: list[tuple[int, int | None, int | None]], spare: int
) -> None:
    policy = a_policy()
    for (name, parent), (guaranteed, borrow, lend) in zip(PARENT.items(), rows, strict=True):
        policy.team(name, parent=parent, guaranteed=guaranteed, borrow=borrow, lend=lend)
    capacity = sum(row[0] for row in rows) + spare
    used: dict[str, float] = {}
    for name, row in zip(PARENT, rows, strict=True):
        assert room(policy, project_place(name), used, cards=capacity) >= row[0], name
        used[name] = row[0]


def test_the_tightest_place_is_the_highest_with_that_room() -> None:
    policy = two_teams(borrow=1).build()
    tree = quota.build_tree(policy, KEY, 8000, START)
    for used, place in (({"A": 5000}, team_place("A")), ({"B": 8000}, ROOT), ({"A": 3000, "B": 5000}, ROOT)):
        charges = quota.usage(tree, {project_place(n): m for n, m in used.items()})
        assert quota.tightest(tree, charges, project_place("A")) == place


def nights() -> PolicyBuilder:
    """A has 2; at night (22 to 8) 6, lends nothing, and its limit of borrowing stays as by day."""
    policy = a_policy().window("night", opens=22 * 60, closes=8 * 60)
    policy.team("A", guaranteed=2, borrow=1)
    return policy.quota("A", guaranteed=6, lend=0, window="night", unset=("borrow",)).team("B")


def test_a_window_row_replaces_the_base_row_and_what_it_leaves_out_stays() -> None:
    policy = nights().build()
    day = quota.effective_rows(policy, KEY, START)[team_place("A")]
    night = quota.effective_rows(policy, KEY, Instant(START + 14 * HOUR_MS))[team_place("A")]
    assert (day.guaranteed, day.borrow, day.lend, day.window) == (2000, 1000, None, None)
    assert (night.guaranteed, night.borrow, night.lend, night.window) == (6000, 1000, 0, "night")


def test_a_window_row_without_a_base_row() -> None:
    policy = a_policy().window("night", opens=22 * 60, closes=8 * 60).team("A")
    policy.quota("A", guaranteed=3, window="night", unset=("borrow", "lend"))
    night = Instant(START + 14 * HOUR_MS)
    assert team_place("A") not in quota.effective_rows(policy.build(), KEY, START)
    assert quota.effective_rows(policy.build(), KEY, night)[team_place("A")].guaranteed == 3000


def test_of_two_open_windows_the_later_one_counts() -> None:
    """Adjacent by the clock, they overlap on the long night: two to three comes twice."""
    policy = a_policy().but(timezone="Europe/Berlin").team("A", guaranteed=1)
    policy.window("early", opens=0, closes=150).window("late", opens=150, closes=300)
    policy.quota("A", guaranteed=2, window="early").quota("A", guaranteed=3, window="late")
    both = from_rfc3339("2026-10-25T00:40:00Z")
    assert quota.effective_rows(policy.build(), KEY, both)[team_place("A")].guaranteed == 3000


def test_the_next_change_is_the_next_edge_of_any_window() -> None:
    policy = nights().build()
    assert quota.next_change(policy, KEY, START) == START + 13 * HOUR_MS
    assert quota.next_change(policy, KEY, Instant(START + 13 * HOUR_MS)) == START + 23 * HOUR_MS
    assert quota.next_change(policy, ("p", "h"), START) is None


@pytest.mark.parametrize(
    ("policy", "cards"),
    [
        pytest.param(two_teams(borrow=0), 4, id="without windows what it could take now"),
        pytest.param(nights(), 7, id="the best hour counts"),
    ],
)
def test_the_most_it_could_ever_take(policy: PolicyBuilder, cards: float) -> None:
    assert quota.most_ever(policy.build(), KEY, 8000, project_place("A"), START) == cards * 1000


def test_windows_that_only_together_make_room_are_found() -> None:
    """The team is open at night, the team above at weekends: only on weekend nights is there room."""
    policy = (
        a_policy().window("night", opens=22 * 60, closes=24 * 60).window("weekend", opens=0, closes=1440, days=(6,))
    )
    policy.team("top", borrow=0).team("A", parent="top", borrow=0)
    policy.quota("top", borrow=8, window="weekend").quota("A", borrow=8, window="night")
    assert quota.most_ever(policy.build(), KEY, 8000, project_place("A"), START) == 8000
    first = next(t for t in quota.moments(policy.build(), KEY, START)
                 if quota.idle_available(policy.build(), KEY, 8000, project_place("A"), t))  # fmt: skip
    assert first == START + 6 * DAY_MS + 13 * HOUR_MS
