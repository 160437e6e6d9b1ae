"""Entitled or borrowed: derived by walking the live charges, never stored."""

from __future__ import annotations

import pytest
from builders import HOUR_MS, Play, PolicyBuilder, a_policy, a_workload

from hubgov.core.entitlement import walk, would_be_entitled
from hubgov.core.policy import Kind, PriorityClass

KEY = ("p", "g")


def verdicts(play: Play) -> dict[str, bool]:
    found = walk(play.state, KEY, play.now)
    return {str(play.state.allocations[a].workload): entitled for a, entitled in found.items()}


def would(play: Play, gpus: float, **words: object) -> bool:
    newcomer = a_workload("new", **words)  # type: ignore[arg-type]
    return would_be_entitled(play.state, KEY, newcomer, round(gpus * 1000), play.now)


def lanes() -> PolicyBuilder:
    policy = a_policy().node("box", devices=12).team("A", guaranteed=4).team("B", guaranteed=2)
    policy.queue("train", priority_range=(0, 100)).queue("urgent", priority=90)
    return policy.queue("online", class_=PriorityClass.PROTECTED, priority=10)


@pytest.mark.parametrize(
    ("charges", "entitled"),
    [
        pytest.param([{"gpus": 2}, {"gpus": 2}], [True, True], id="within the guarantee"),
        pytest.param([{"gpus": 3}, {"gpus": 2}], [True, False], id="the second doesn't fit any more"),
        pytest.param(
            [{"gpus": 5}, {"gpus": 4}], [False, True], id="too large: borrowed whole, and uses up nothing"
        ),
        pytest.param([{"gpus": 3}, {"gpus": 2}, {"gpus": 1}], [True, False, True], id="a smaller one still fits"),
        pytest.param(
            [{"gpus": 3}, {"gpus": 2, "priority": 5}], [False, True], id="higher priority is walked first"
        ),
        pytest.param(
            [{"gpus": 3, "priority": 100}, {"gpus": 2, "queue": "urgent"}],
            [False, True],
            id="the queue's goes before",
        ),
        pytest.param(
            [{"gpus": 2, "queue": "online"}, {"gpus": 3, "queue": "urgent"}],
            [True, False],
            id="protected before all",
        ),
        pytest.param(
            [{"gpus": 3}, {"gpus": 2, "team": "B"}], [True, True], id="another team has its own guarantee"
        ),
        pytest.param([{"gpus": 1}, {"gpus": 3, "team": "B"}], [True, False], id="idle guarantee is nobody else's"),
        pytest.param([{"gpus": 0.5}, {"gpus": 4}, {"gpus": 3}], [True, False, True], id="shares count too"),
    ],
)
def test_the_walk(charges: list[dict[str, object]], entitled: list[bool]) -> None:
    play = Play(lanes())
    names = [f"w{n}" for n in range(len(charges))]
    for name, words in zip(names, charges, strict=True):
        play.submit(name, **words)
        play.tick()
    assert verdicts(play) == dict(zip(names, entitled, strict=True))


def test_a_newcomer_is_walked_after_its_teams_others_whatever_its_priority() -> None:
    play = Play(lanes())
    play.submit("a", gpus=3)
    assert would(play, 1)
    assert not would(play, 2, queue="urgent"), "taking never pushes its own team's work out of the guarantee"
    assert would(play, 2, team="B")


def test_borrowed_work_leaves_the_guarantee_to_a_newcomer() -> None:
    play = Play(lanes())
    play.submit("big", gpus=5)
    assert would(play, 4)


def test_a_project_with_a_row_is_judged_there_and_one_without_at_its_team() -> None:
    policy = lanes().project("seg", team="A").quota(project="seg", guaranteed=1)
    play = Play(policy)
    play.submit("own", gpus=1, project="seg")
    play.tick()
    play.submit("more", gpus=1, project="seg")
    assert verdicts(play) == {"own": True, "more": False}
    assert would(play, 4), "the team's own guarantee is untouched"


def test_a_lowered_guarantee_makes_borrowed_what_no_longer_fits() -> None:
    play = Play(lanes())
    play.submit("a", gpus=2)
    play.tick()
    play.submit("b", gpus=2)
    lower = lanes()
    lower.rows.clear()
    play.edit(lower.quota("A", guaranteed=3))
    assert verdicts(play) == {"a": True, "b": False}
    assert play.states("a", "b") == {"a": "reserved", "b": "reserved"}, "nobody is evicted by it"


def test_a_guarantee_by_the_hour() -> None:
    policy = a_policy().node("box", devices=8).window("night", opens=1320, closes=480).team("A")
    play = Play(policy.quota("A", guaranteed=2, window="night").lease(default_ms=24 * HOUR_MS))
    play.run("a", gpus=2)
    assert verdicts(play) == {"a": False}
    play.tick(14 * HOUR_MS)
    assert verdicts(play) == {"a": True}


def test_what_is_fenced_is_no_charge() -> None:
    play = Play(lanes())
    play.run("a", gpus=4, kind=Kind.NOTEBOOK)
    play.cancel("a")
    play.tick(76_000)
    assert play.state_of("a") == "quarantined"
    assert verdicts(play) == {}
    assert would(play, 4)
