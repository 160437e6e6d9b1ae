"""Why something waits: every blocker, by whom, until when; a promise that holds; and a dry run without a trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from builders import HOUR_MS, MINUTE_MS, START, Play, PolicyBuilder, a_policy, a_workload, snapshot

from hubgov.core.decide import choose, eligible
from hubgov.core.decision import Blocker
from hubgov.core.explain import blockers, plan
from hubgov.core.model import Change
from hubgov.core.policy import Caps, Costs, Mode, PriorityClass, Reclaim, RetryRule
from hubgov.core.release import free_by
from hubgov.core.states import AllocationState, Event

TERM_MS = Reclaim().term_ms

END = 5 * MINUTE_MS + TERM_MS
"""From the end that people are shown to free devices: the grace, and the time a stop may take."""


def site() -> PolicyBuilder:
    return a_policy().team("A", guaranteed=2).team("B").node("box", devices=4).queue("other")


def codes(play: Play, name: str) -> list[str]:
    return [b.code for b in play.why(name).blockers]


# --- one blocker each ---------------------------------------------------------------------------------


def full(policy: PolicyBuilder | None = None) -> Play:
    play = Play(policy or site())
    play.run("first", gpus=2)
    play.run("second", team="B", gpus=2, owner="bo", lease_ms=HOUR_MS)
    return play


def test_devices_say_how_many_whose_and_until_when() -> None:
    play = full(site().team("A", guaranteed=4))
    play.submit("w", gpus=3)
    [blocker] = [b for b in play.why("w").blockers if b.code == "waiting_devices"]
    assert (blocker.need, blocker.have, blocker.limit, blocker.unit) == (3000, 0, 4000, "milli_gpus")
    assert [(h.workload, h.owner, h.team, h.until) for h in blocker.held_by] == [
        ("second", "bo", "B", START + HOUR_MS + END),
        ("first", "ann", "A", START + 4 * HOUR_MS + END),
    ]
    assert blocker.frees_at == START + 4 * HOUR_MS + END, "the first to end has too few"
    assert [h.ends_at for h in blocker.held_by] == [START + HOUR_MS, START + 4 * HOUR_MS]


def test_an_own_limit_is_free_when_the_devices_are_not_when_the_lease_ends() -> None:
    play = Play(site().caps("train", per_user=Caps(workloads=1)))
    play.run("first", lease_ms=HOUR_MS)
    play.submit("w")
    why = play.why("w")
    [blocker] = why.blockers
    assert blocker.code == "over_own_limit"
    assert [(h.ends_at, h.until) for h in blocker.held_by] == [(START + HOUR_MS, START + HOUR_MS + END)]
    assert blocker.frees_at == why.latest_start == START + HOUR_MS + END


def test_what_does_not_run_yet_has_no_end_to_show() -> None:
    play = Play(site().caps("train", per_user=Caps(workloads=1)))
    play.submit("first")
    play.submit("w")
    [holder] = play.why("w").blockers[0].held_by
    assert holder.ends_at is None
    assert holder.until is not None


def test_quota_says_which_place_in_the_tree_is_full() -> None:
    policy = a_policy().team("top", guaranteed=3, borrow=0).team("A", parent="top").team("B", parent="top")
    play = Play(policy.node("box", devices=8))
    play.run("a", gpus=2)
    play.submit("w", team="B", gpus=2)
    [blocker] = play.why("w").blockers
    assert (blocker.code, blocker.scope, blocker.need, blocker.have, blocker.limit) == (
        "waiting_quota", "team top", 2000, 1000, 3000,
    )  # fmt: skip
    assert [h.workload for h in blocker.held_by] == ["a"]


def test_protected_work_waits_for_its_guarantee_though_cards_are_free() -> None:
    policy = site().queue("online", class_=PriorityClass.PROTECTED)
    play = Play(policy)
    play.run("a", gpus=1)
    play.submit("w", queue="online", gpus=2)
    [blocker] = play.why("w").blockers
    assert (blocker.code, blocker.need, blocker.have) == ("waiting_quota", 2000, 0)


def test_a_closed_window_says_when_it_opens() -> None:
    policy = a_policy().node("box", devices=4).window("night", opens=22 * 60, closes=8 * 60)
    policy.team("A", borrow=0).quota("A", guaranteed=4, window="night", unset=("borrow", "lend"))
    play = Play(policy)
    play.submit("w", gpus=2)
    why = play.why("w")
    [blocker] = why.blockers
    assert (why.code, blocker.need, blocker.have) == ("waiting_window", 2000, 0)
    assert blocker.frees_at == why.latest_start == START + 13 * HOUR_MS
    assert why.latest_start_basis == "bound"
    play.tick(13 * HOUR_MS)
    assert play.state_of("w") == "reserved"


def test_the_headline_is_the_first_that_applies_and_all_are_listed() -> None:
    play = full(site().caps("train", per_user=Caps(workloads=1)))
    play.hold()
    play.submit("w", gpus=4, after=("first",))
    assert codes(play, "w") == ["held", "waiting_dependency", "over_own_limit", "waiting_quota", "waiting_devices"]
    headlines = []
    steps: tuple[Callable[[], object], ...] = (
        play.release, lambda: play.finish("first"), lambda: play.finish("second"), lambda: None,
    )  # fmt: skip
    for undo in steps:
        headlines.append(play.why("w").code if play.state_of("w") == "pending" else play.state_of("w"))
        undo()
    assert headlines == ["held", "waiting_dependency", "waiting_quota", "reserved"]


def test_what_has_become_impossible_waits_so_marked() -> None:
    play = full()
    play.submit("w", gpus=4)
    play.edit(a_policy().team("A", guaranteed=2).team("B").node("box", devices=3).queue("other"))
    why = play.why("w")
    assert (why.code, why.blockers[0].need, why.blockers[0].have) == ("impossible", 4000, 3000)
    assert why.latest_start_basis == "none"


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda p: p.flavor("g", retired=True).flavor("h", retired=True), id="its card types retired"),
        pytest.param(lambda p: p.pool("p", retired=True), id="its pool retired"),
        pytest.param(
            lambda p: p.project("A", team="A", data_access="x").pool("p", data_access=("y",)), id="access closed"
        ),
    ],
)
def test_what_the_policy_closed_is_said_too(edit: Callable[[PolicyBuilder], PolicyBuilder]) -> None:
    play = full()
    play.submit("w", gpus=2)
    play.edit(edit(site()))
    why = play.why("w")
    assert (why.code, [b.code for b in why.blockers]) == ("impossible", ["impossible"])


def test_impossible_is_seen_also_where_the_line_is_full() -> None:
    play = full(site().caps("train", total=Caps(pending=1)))
    play.submit("w", gpus=4)
    play.edit(
        a_policy().team("A").team("B").node("box", devices=3).caps("train", total=Caps(pending=1)).queue("other")
    )
    assert play.why("w").code == "impossible"


def test_a_card_type_that_never_has_enough_is_no_reason_to_wait() -> None:
    play = full(site().node("small", devices=1, flavor="h"))
    play.submit("w", gpus=2)
    assert {b.flavor for b in play.why("w").blockers} == {"g"}


# --- place in line, cost ------------------------------------------------------------------------------


def test_the_place_in_line_and_what_it_comes_from() -> None:
    play = full()
    play.submit("x", team="B")
    play.tick()
    play.submit("y", team="A")
    why = play.why("y")
    assert (why.position, play.why("x").position) == (1, 2)
    assert list(why.rank) == [
        "within_guarantee", "queue_priority", "project_priority", "shares_milli_gpus", "eligible_since",
        "submitted",
    ]  # fmt: skip
    assert not any(isinstance(value, float) for value in why.rank.values())


def test_the_cost_is_of_the_whole_lease_on_the_dearest_card() -> None:
    play = full(site().node("n2", devices=2, flavor="h"))
    play.submit("fill", flavors=("h",), gpus=2)
    play.submit("w", gpus=2, lease_ms=2 * HOUR_MS)
    assert play.why("w").cost_micro == 2 * 2 * 10_000_000
    play.submit("free", gpus=0)
    assert play.why("free").cost_micro == 0


def test_what_is_granted_costs_by_what_it_gets_and_on_which_terms() -> None:
    play = Play(site().but(costs=Costs(borrowed_factor_micro=500_000)))
    elastic = a_workload("w", gpus=(1, 3), lease_ms=2 * HOUR_MS)
    asked = plan(play.state, elastic, play.now)
    assert (asked.code, asked.cost_micro) == ("fits_now", 2 * 3 * 5_000_000)
    play.run("w", gpus=(1, 3), lease_ms=2 * HOUR_MS)
    assert play.why("w").cost_micro == asked.cost_micro


# --- latest start -------------------------------------------------------------------------------------


def test_the_bound_is_the_end_of_the_lease_that_makes_room() -> None:
    play = full()
    play.submit("w", gpus=2)
    why = play.why("w")
    assert (why.latest_start_basis, why.latest_start) == ("bound", START + HOUR_MS + END)


@pytest.mark.parametrize(
    "in_the_way",
    [
        pytest.param(lambda p: p.hold("other"), id="a hold"),
        pytest.param(
            lambda p: p.edit(site().lease("other", default_ms=None).but(mode=Mode.OBSERVE)), id="observing"
        ),
    ],
)
def test_no_bound_where_nothing_is_sure(in_the_way: Callable[[Play], None]) -> None:
    play = full()
    play.submit("w", gpus=2, queue="other")
    in_the_way(play)
    assert (play.why("w").latest_start_basis, play.why("w").latest_start) == ("none", None)


def test_an_endless_lease_gives_no_bound() -> None:
    play = Play(site().lease(default_ms=None))
    play.run("a", gpus=4)
    play.submit("w", gpus=1)
    assert play.why("w").latest_start_basis == "none"
    assert free_by(play.state, play.bound("a")) is None


def test_a_back_off_is_part_of_the_bound() -> None:
    play = Play(site().queue("train", retry=RetryRule(max=1, backoff_ms=MINUTE_MS)))
    play.run("w")
    play.finish("w", code=1)
    assert play.why("w").latest_start == START + MINUTE_MS


@pytest.mark.parametrize("state", ["reserved", "starting", "running", "expiring", "stopping"])
def test_the_bound_is_kept_when_nothing_is_extended(state: str) -> None:
    """Everybody uses all the time he may: launched late, runs to the end, obeys at the last moment."""
    play = Play(a_policy().team("A").node("box", devices=2))
    play.submit("old", gpus=2, lease_ms=HOUR_MS)
    roads: dict[str, list[Callable[[], None]]] = {
        "reserved": [],
        "starting": [lambda: play.launch("old")],
        "running": [lambda: play.start("old")],
        "expiring": [lambda: play.start("old"), lambda: play.tick(HOUR_MS + 1)],
        "stopping": [lambda: play.start("old"), lambda: play.tick(HOUR_MS + 5 * MINUTE_MS)],
    }
    for step in roads[state]:
        step()
    assert play.state_of("old") == state
    play.submit("w", gpus=2)
    bound = play.why("w").latest_start
    assert bound is not None
    while play.state_of("w") == "pending":
        if play.state_of("old") == "starting" and play.now >= START + 14 * MINUTE_MS:
            play.ready("old")
        if play.state_of("old") == "stopping" and play.now >= play.bound("old").since + TERM_MS:
            play.gone("old")
        if play.state_of("w") == "pending":
            play.tick(MINUTE_MS // 4)
        assert play.now <= bound + MINUTE_MS // 4


# --- all removed in simulation ------------------------------------------------------------------------


def remedy(play: Play, blocker: Blocker) -> Callable[[], None]:
    """What makes this one blocker go away, in simulation: its holders leave, its hold, cap or wait is lifted."""
    if blocker.code == "held":
        return lambda: play.state.holds.clear()
    if blocker.code == "backoff":
        return lambda: _apply(play, "w", not_before=None)

    def all_leave() -> None:
        for holder in blocker.held_by:
            _leave(play, str(holder.workload))

    return all_leave


def _leave(play: Play, name: str) -> None:
    allocation = play.allocation(name)
    if allocation is not None:
        after = replace(allocation, state=AllocationState.RELEASED)
        play.state.apply(Change(event="what_if", before=allocation, after=after, actor="test"))


def _apply(play: Play, name: str, **fields: Any) -> None:
    before = play.workload(name)
    play.state.apply(Change(event="what_if", before=before, after=replace(before, **fields), actor="test"))


CASES: dict[str, tuple[PolicyBuilder, list[dict[str, Any]], dict[str, Any]]] = {
    "devices": (site(), [{"gpus": 2}, {"team": "B", "gpus": 2}], {"gpus": 2}),
    "quota": (
        a_policy().team("A", borrow=0, guaranteed=2).team("B").node("box", devices=8),
        [{"gpus": 2}],
        {"gpus": 2},
    ),
    "topology": (a_policy().team("A").node("a", devices=2).node("b", devices=2).spread(), [{}, {}], {"gpus": 2}),
    "own limit": (site().caps("train", per_user=Caps(workloads=1)), [{}], {}),
    "cpus": (a_policy().team("A").node("box", devices=4, cpus=8), [{"cpus": 6}], {"cpus": 4}),
    "everything": (
        site().caps("train", per_user=Caps(milli_gpus=4000), total=Caps(workloads=2)),
        [{"gpus": 2}, {"team": "B", "gpus": 2, "owner": "bo"}],
        {"gpus": 4},
    ),
}


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("case", list(CASES))
def test_all_blockers_removed_admit_it_and_each_removed_shrinks_the_set(case: str, held: bool) -> None:
    policy, runners, asked = CASES[case]
    play = Play(policy)
    for n, words in enumerate(runners):
        play.run(f"r{n}", **words)
    if held:
        play.hold()
    play.submit("w", **asked)
    workload = play.workload("w")
    left = blockers(play.state, workload, play.now)
    assert left
    while left:
        remedy(play, left[0])()
        fewer = blockers(play.state, workload, play.now)
        assert {(b.code, b.scope, b.unit) for b in fewer} < {(b.code, b.scope, b.unit) for b in left}
        left = fewer
    assert eligible(play.state, workload, play.now)
    assert choose(play.state, workload, play.now) is not None


# --- a dry run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "outcome", "code"),
    [
        pytest.param({"gpus": 9}, "refused", "impossible", id="refused"),
        pytest.param({"gpus": 3}, "waiting", "waiting_quota", id="waits"),
        pytest.param({"gpus": 2}, "granted", "fits_now", id="fits"),
        pytest.param({"gpus": 1, "queue": "other"}, "waiting", "held", id="its queue is held"),
    ],
)
def test_a_dry_run_leaves_no_trace(words: dict[str, Any], outcome: str, code: str) -> None:
    play = Play(site())
    play.run("first", gpus=2)
    play.hold("other")
    before = snapshot(play.state)
    decision = plan(play.state, a_workload("w", seq=play.state.last_seq + 1, **words), play.now)
    assert (decision.outcome, decision.code) == (outcome, code)
    assert snapshot(play.state) == before


def test_a_granted_one_says_what_it_runs_on() -> None:
    play = Play(site())
    play.submit("w", gpus=2)
    assert (play.why("w").outcome, play.why("w").code) == ("granted", "starting")
    play.start("w")
    why = play.why("w")
    assert (why.code, why.facts["pool"], why.facts["flavor"], why.cost_micro) == ("running", "p", "g", 80_000_000)
    play.event("w", Event.NODE_SILENT)
    assert play.why("w").outcome == "granted"
