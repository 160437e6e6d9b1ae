"""Usage: spans in which nothing changed, end to end, each on the right account."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from builders import HOUR_MS, MINUTE_MS, Play, PolicyBuilder, a_policy

from hubgov.core.metering import Account, cost_of, segments_until
from hubgov.core.policy import Costs, PriorityClass, Reclaim
from hubgov.core.states import Event

TERM_MS = Reclaim().term_ms


def site() -> PolicyBuilder:
    return a_policy().team("A", guaranteed=2).team("B").node("box", devices=4)


def spans(play: Play, attempt: str = "w.1") -> list[tuple[str, str, int]]:
    """(account, state, minutes) of each."""
    return [(s.account.value, s.state, (s.ended - s.began) // MINUTE_MS) for s in play.segments[attempt]]


def test_a_life_from_reservation_to_fenced_devices() -> None:
    play = Play(site())
    play.submit("w", lease_ms=HOUR_MS)
    play.tick(2 * MINUTE_MS)
    play.launch("w")
    play.tick(3 * MINUTE_MS)
    play.ready("w")
    play.tick(65 * MINUTE_MS)
    play.tick(TERM_MS + MINUTE_MS)
    play.tick(10 * MINUTE_MS)
    play.gone("w")
    assert spans(play) == [
        ("team", "starting", 5),
        ("team", "running", 60),
        ("overhead", "expiring", 5),
        ("overhead", "stopping", 1),
        ("fenced", "quarantined", 10),
    ]
    total = sum(s.ended - s.began for s in play.segments["w.1"])
    last = play.segments["w.1"][-1]
    assert total == last.ended - play.segments["w.1"][0].began


def test_a_failed_start_is_credited() -> None:
    """The pool carries it, from the reservation on: whoever's start failed pays nothing."""
    play = Play(site())
    play.submit("w", lease_ms=HOUR_MS)
    play.tick(2 * MINUTE_MS)
    play.launch("w")
    play.tick(3 * MINUTE_MS)
    play.exit("w", code=1)
    play.gone("w")
    assert play.workload("w").end_reason == "start_failed"
    assert [s for s in spans(play) if s[2]] == [("overhead", "starting", 5)]
    assert sum(cost_of(s) for s in play.segments["w.1"]) == 0


def test_a_start_that_its_owner_took_back_is_his() -> None:
    play = Play(site())
    play.submit("w", lease_ms=HOUR_MS)
    play.tick(2 * MINUTE_MS)
    play.cancel("w")
    assert [s for s in spans(play) if s[2]] == [("team", "reserved", 2)]


def test_time_past_the_end_is_overhead_also_when_the_sweep_is_late() -> None:
    play = Play(site())
    play.run("w", lease_ms=HOUR_MS)
    play.tick(3 * HOUR_MS)
    play.gone("w")
    assert [s for s in spans(play) if s[2]] == [
        ("team", "running", 60),
        ("overhead", "expiring", 120),
    ]


def test_an_extension_in_the_grace_leaves_no_hole() -> None:
    play = Play(site().extension(self_serve_count=1, step_ms=HOUR_MS))
    play.run("w", lease_ms=HOUR_MS)
    play.tick(62 * MINUTE_MS)
    play.extend("w", HOUR_MS)
    play.tick(8 * MINUTE_MS)
    play.finish("w")
    wanted = [("team", "running", 60), ("overhead", "expiring", 2), ("team", "running", 8)]
    assert [s for s in spans(play) if s[2]] == wanted


def test_a_silent_node_keeps_the_charge_with_the_team() -> None:
    play = Play(site())
    play.run("w")
    play.tick(MINUTE_MS)
    play.event("w", Event.NODE_SILENT)
    play.tick(MINUTE_MS)
    play.event("w", Event.NODE_LOST)
    play.tick(MINUTE_MS)
    play.gone("w")
    assert [s for s in spans(play) if s[2]] == [
        ("team", "running", 1),
        ("team", "suspect", 1),
        ("fenced", "lost", 1),
    ]


def test_a_span_says_whose_where_and_at_what_price() -> None:
    factors = Costs(class_factor_micro={PriorityClass.STANDARD: 1_500_000}, borrowed_factor_micro=500_000)
    play = Play(site().queue("train", cost_factor_micro=2_000_000).but(costs=factors))
    play.run("w", gpus=2)
    play.run("b", team="B", gpus=2, owner="bo")
    play.tick(HOUR_MS)
    for name in ("w", "b"):
        play.finish(name)
    mine, borrowed = (next(s for s in play.segments[f"{n}.1"] if s.state == "running") for n in ("w", "b"))
    assert (mine.owner, mine.team, mine.project, mine.queue, mine.pool, mine.flavor) == (
        "ann", "A", "A", "train", "p", "g",
    )  # fmt: skip
    assert (mine.milli_gpus, mine.price_micro_per_hour, mine.currency) == (2000, 10_000_000, "CNY")
    assert (mine.borrowed, borrowed.borrowed) == (False, True)
    assert cost_of(mine) == Fraction(2 * 10_000_000 * 3)
    assert cost_of(borrowed) == Fraction(2 * 10_000_000 * 3, 2)


@pytest.mark.parametrize(
    ("account", "micro"), [(Account.TEAM, 10_000_000), (Account.OVERHEAD, 0), (Account.FENCED, 0)]
)
def test_only_the_teams_account_costs_the_team(account: Account, micro: int) -> None:
    play = Play(site())
    play.run("w")
    play.tick(HOUR_MS)
    [open_span] = segments_until(play.state, play.workload("w"), play.bound("w"), play.now)
    assert cost_of(replace(open_span, account=account)) == micro


def test_work_without_a_device_costs_nothing_and_is_never_borrowed() -> None:
    play = Play(site())
    play.run("w", gpus=0, cpus=4)
    play.tick(HOUR_MS)
    play.finish("w")
    [running] = [s for s in play.segments["w.1"] if s.state == "running"]
    assert cost_of(running) == 0
    assert (running.flavor, running.borrowed, running.milli_gpus) == (None, False, 0)
