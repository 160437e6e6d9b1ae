"""Who is next: within the guarantee first, then the queue's order, then fair shares from the root down."""

from __future__ import annotations

from typing import Any

import pytest
from builders import DAY_MS, HOUR_MS, MINUTE_MS, Play, PolicyBuilder, a_policy

from hubgov.core.policy import Fairness, Kind, Order, PriorityClass
from hubgov.core.ranking import Ranking


def line(play: Play) -> list[str]:
    """Everybody who waits, best first."""
    return [str(s.workload.id) for s in Ranking(play.state, play.now).in_order(play.state.pending())]


def full(policy: PolicyBuilder, *, devices: int = 4) -> Play:
    """All cards taken by team Z, so that whoever comes waits."""
    play = Play(policy.node("box", devices=devices).team("Z"))
    play.run("filler", team="Z", gpus=devices, owner="zed")
    return play


def waiting(play: Play, *requests: tuple[str, dict[str, Any]], every: int = MINUTE_MS) -> Play:
    for name, words in requests:
        play.submit(name, **words)
        play.tick(every)
    return play


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        (Order.FIFO, ["late-low", "high", "low"]),
        (Order.PRIORITY, ["high", "late-low", "low"]),
        (Order.FAIR, ["high", "late-low", "low"]),
    ],
)
def test_the_order_of_a_queue(order: Order, wanted: list[str]) -> None:
    """The names lie: `late-low` was the first to come."""
    play = full(a_policy().team("A").queue("train", order=order, priority_range=(0, 9)))
    waiting(play, ("late-low", {}), ("high", {"priority": 5}), ("low", {}))
    assert line(play) == wanted


def test_in_a_fair_queue_the_smaller_share_comes_before_priority() -> None:
    play = Play(a_policy().queue("train", priority_range=(0, 9)).node("box", devices=2).team("A").team("B"))
    play.run("a", team="A", gpus=2)
    waiting(play, ("more", {"team": "A", "priority": 9}), ("b", {"team": "B"}))
    assert line(play) == ["b", "more"]


@pytest.mark.parametrize("order", list(Order))
def test_within_the_guarantee_comes_before_everything(order: Order) -> None:
    policy = a_policy().queue("train", order=order, priority_range=(0, 9)).queue("urgent", priority=99)
    play = full(policy.team("A").team("B", guaranteed=1))
    waiting(play, ("old", {"team": "A", "priority": 9}), ("urgent", {"team": "A", "queue": "urgent"}))
    waiting(play, ("entitled", {"team": "B"}))
    assert line(play) == ["entitled", "urgent", "old"]


def test_between_queues_the_higher_then_the_project_then_the_share_then_the_older() -> None:
    policy = a_policy().queue("low", priority=10).queue("train", priority=50)
    policy.team("A").project("key", team="A", priority=5).team("B")
    play = full(policy)
    waiting(
        play,
        ("l", {"queue": "low", "project": "key"}),
        ("plain", {}),
        ("k", {"project": "key"}),
        ("b", {"team": "B"}),
    )
    assert line(play) == ["plain", "k", "b", "l"], "inside one fair queue project priority doesn't count"
    policy.queue("other", priority=50)
    play = full(policy)
    waiting(play, ("plain", {}), ("k", {"project": "key", "queue": "other"}))
    assert line(play) == ["k", "plain"]


def test_shares_are_compared_level_by_level_from_the_root() -> None:
    """In `small` a2 holds more than b1 holds in `big`; but at the top `big` holds the most."""
    policy = a_policy().team("small").team("big")
    for name in ("a1", "a2"):
        policy.team(name, parent="small")
    for name in ("b1", "b2"):
        policy.team(name, parent="big")
    play = Play(policy.node("box", devices=5))
    play.run("b2-runs", team="b2", gpus=3)
    play.run("a2-runs", team="a2", gpus=2)
    waiting(play, ("b1", {"team": "b1"}), ("b2", {"team": "b2"}), ("a2", {"team": "a2"}), ("a1", {"team": "a1"}))
    assert line(play) == ["a1", "a2", "b1", "b2"]


def test_a_weight_divides_the_share() -> None:
    play = Play(a_policy().node("box", devices=5).team("A", weight=3).team("B"))
    play.run("a", team="A", gpus=3)
    play.run("b", team="B", gpus=2)
    waiting(play, ("b2", {"team": "B"}), ("a2", {"team": "A"}))
    assert line(play) == ["a2", "b2"]


def test_weight_nothing_comes_last_and_still_gets_its_guarantee() -> None:
    play = full(a_policy().team("A", weight=0, guaranteed=1).team("B"))
    waiting(
        play, ("zero-borrows", {"team": "A", "gpus": 2}), ("b", {"team": "B"}), ("zero-entitled", {"team": "A"})
    )
    assert line(play) == ["zero-entitled", "b", "zero-borrows"]


def test_only_what_is_held_above_the_guarantee_counts() -> None:
    policy = a_policy().node("box", devices=6).team("A", guaranteed=4).team("B")
    play = Play(policy.but(fairness=Fairness(half_life_ms=1)))
    play.run("a", team="A", gpus=4)
    play.run("b", team="B", gpus=2)
    play.tick(HOUR_MS)
    waiting(play, ("b2", {"team": "B", "gpus": 2}), ("a2", {"team": "A", "gpus": 2}))
    vectors = {str(s.workload.id): s.shares for s in Ranking(play.state, play.now).in_order(play.state.pending())}
    half_life_of_a_millisecond_counts_what_runs_in_full = 4000 << 40
    assert vectors["a2"][0][1] == half_life_of_a_millisecond_counts_what_runs_in_full
    assert vectors["b2"][0][1] == (2000 + 2000) << 40


def test_past_use_fades_with_the_half_life() -> None:
    policy = a_policy().node("box", devices=4).team("A").team("B").lease(default_ms=90 * DAY_MS)
    play = Play(policy.but(fairness=Fairness(half_life_ms=DAY_MS)))
    play.run("a", team="A", gpus=4)
    play.tick(DAY_MS)
    play.finish("a")
    play.run("b", team="B", gpus=4)
    waiting(play, ("b2", {"team": "B"}), ("a2", {"team": "A"}), every=1)
    assert line(play) == ["a2", "b2"], "B holds four now, A held four for a day"


def test_a_fenced_device_is_no_use_of_its_team() -> None:
    """The team's use ended with its charge; a process that hangs for days is the pool's."""
    policy = a_policy().node("box", devices=2).team("A").but(fairness=Fairness(half_life_ms=DAY_MS))
    play = Play(policy)
    play.run("a", gpus=1, kind=Kind.NOTEBOOK)
    play.cancel("a")
    play.tick(76_000)
    assert play.state_of("a") == "quarantined"
    [before] = play.state.past.segments.values()
    play.tick(5 * DAY_MS)
    play.gone("a")
    assert play.state.past.segments == {before.allocation: before}


def test_equal_teams_are_served_in_turn() -> None:
    play = full(a_policy().team("A").team("B"), devices=4)
    for n in range(4):
        waiting(play, (f"a{n}", {"team": "A"}), every=1)
    for n in range(4):
        waiting(play, (f"b{n}", {"team": "B"}), every=1)
    play.finish("filler")
    assert play.admitted()[1:] == ["a0", "b0", "a1", "b1"]


# --- told by public faults of schedulers (shared scenarios) --------------------------------------------


def lab(policy: PolicyBuilder, *, guaranteed: float = 0, **cards: int) -> PolicyBuilder:
    """One root team `lab`, with A, B and C below it that have nothing of their own."""
    policy.team("lab").quota("lab", guaranteed=guaranteed)
    for name in ("A", "B", "C"):
        policy.team(name, parent="lab").quota(name).quota(name, flavor="h")
    for flavor, count in cards.items():
        policy.node(f"n{flavor}", devices=count, flavor=flavor)
    return policy.lease(default_ms=12 * HOUR_MS)


def test_the_rank_is_taken_anew_after_every_admission() -> None:
    play = Play(lab(a_policy(), guaranteed=4, g=4))
    for name, words in (("a0", {"team": "A"}), ("a1", {"team": "A"}), ("c", {"team": "C", "gpus": 2})):
        play.run(name, **words)
    play.tick(10 * MINUTE_MS)
    waiting(play, ("a2", {"team": "A"}), ("b0", {"team": "B"}), ("b1", {"team": "B"}))
    play.tick(17 * MINUTE_MS)
    play.finish("c")
    assert play.states("a2", "b0", "b1") == {"a2": "pending", "b0": "reserved", "b1": "reserved"}


def test_whatever_fits_starts_even_as_fourth_in_line() -> None:
    play = Play(a_policy().node("box", devices=8).team("A", guaranteed=8))
    play.run("filler", gpus=4)
    waiting(play, ("w8", {"gpus": 8}), ("w6", {"gpus": 6}), ("w5", {"gpus": 5}), ("w4", {"gpus": 4}))
    assert play.holding() == {"filler", "w4"}
    play.start("w4")
    play.finish("w4")
    play.finish("filler")
    assert play.holding() == {"w8"}


def test_first_in_first_out_is_strict_only_for_what_the_head_needs() -> None:
    play = Play(lab(a_policy().queue("train", order=Order.FIFO), g=2, h=2))
    play.run("filler", gpus=2, flavors=("g",))
    waiting(play, ("head", {"gpus": 2, "flavors": ("g",)}), ("next", {"gpus": 2, "flavors": ("h",)}))
    assert play.holding() == {"filler", "next"}


def test_a_crowd_waiting_for_one_card_type_does_not_hide_another() -> None:
    play = Play(lab(a_policy(), g=2, h=2))
    play.run("filler", gpus=2, flavors=("g",))
    waiting(play, *((f"s{n}", {"gpus": 2, "flavors": ("g",)}) for n in range(30)), every=0)
    play.submit("last", gpus=2, flavors=("h",))
    assert play.holding() == {"filler", "last"}


def test_a_request_nobody_can_serve_holds_up_only_itself() -> None:
    play = Play(a_policy().node("box", devices=4).team("A", guaranteed=4))
    play.node_is("box", sick=(0,))
    waiting(play, ("four", {"gpus": 4}), ("three", {"gpus": 3}))
    assert play.holding() == {"three"}
    assert "waiting_devices" in {b.code for b in play.why("four").blockers}


def test_a_released_queue_drains_at_once_and_not_one_a_cycle() -> None:
    play = Play(a_policy().node("box", devices=8).team("A"))
    play.hold()
    waiting(play, *((f"w{n}", {}) for n in range(8)))
    assert play.holding() == set()
    play.release()
    assert len(play.holding()) == 8


def test_a_newcomer_that_makes_another_borrowed_lets_a_protected_one_in_within_the_same_cycle() -> None:
    """Guarantee 4, three entitled. Two urgent ones make the three borrowed: the two left are free for protected."""
    policy = a_policy().node("box", devices=7).team("A", guaranteed=4).queue("urgent", priority=90)
    policy.queue("online", class_=PriorityClass.PROTECTED, priority=95, warn_ms=())
    play = Play(policy)
    play.run("three", gpus=3)
    for queue in ("urgent", "online"):
        play.hold(queue)
    play.submit("online", gpus=2, queue="online")
    play.submit("urgent", gpus=2, queue="urgent")
    play.release("online")
    assert play.why("online").code == "waiting_quota"
    play.release("urgent")
    assert play.holding() == {"three", "urgent", "online"}
