"""What many ask of one picture is worked out once; what changed is told at once."""

from __future__ import annotations

from typing import Any

import pytest
from builders import HOUR_MS, Play, a_policy

from hubgov.clock import Instant
from hubgov.control.actor import ADMIN, Actor
from hubgov.core import explain, ranking
from hubgov.service.documents import SHARED_MS, Desk

ADMINISTRATOR = Actor(name="root", scopes=frozenset({ADMIN}))
WAITING = 12


@pytest.fixture
def play() -> Play:
    """Two cards are taken, twelve requests wait for one."""
    play = Play(a_policy().node("n", devices=2).team("A", guaranteed=1).team("B").lease(default_ms=HOUR_MS))
    for n in range(2):
        play.run(f"r{n}", team="A")
    for n in range(WAITING):
        play.submit(f"w{n:02}", team="AB"[n % 2])
    return play


class Counted:
    """How often something was worked out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> None:
        self.times = 0
        real = getattr(where, name)

        def counting(*args: Any) -> Any:
            self.times += 1
            return real(*args)

        monkeypatch.setattr(where, name, counting)


def _desk(play: Play, after_ms: int = 0) -> Desk:
    return Desk(play.state, Instant(play.now + after_ms), ADMINISTRATOR, "en")


def test_a_crowd_that_looks_after_a_commit_is_ranked_once(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    rankings = Counted(monkeypatch, ranking, "Ranking")
    starts = Counted(monkeypatch, explain, "latest_start")
    places = {}
    for n, workload in enumerate(play.state.pending()):
        document = _desk(play, 10 * n).workload(workload)
        places[workload.id] = document.position
        assert document.latest_start is not None
    assert sorted(p for p in places.values() if p) == list(range(1, WAITING + 1))
    assert (rankings.times, starts.times) == (1, WAITING)
    play.cancel("w11", now=True)
    _desk(play).workload(play.workload("w00"))
    assert rankings.times > 1, "another picture"


def test_a_document_and_its_decision_are_one_piece_of_work(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the waiting page shows both."""
    starts = Counted(monkeypatch, explain, "latest_start")
    desk, workload = _desk(play), play.workload("w05")
    document, decision = desk.workload(workload), desk.decision(desk.explained(workload), workload)
    assert (document.latest_start, document.position) == (decision.latest_start, decision.position)
    assert document.headline == decision.headline
    assert starts.times == 1
    _desk(play, 100).workload(workload)
    assert starts.times == 1, "nor for the next who looks"


def test_a_list_looks_ahead_for_nobody(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Counted(monkeypatch, explain, "latest_start")
    rankings = Counted(monkeypatch, ranking, "Ranking")
    desk = _desk(play)
    rows = [desk.workload(w, full=False) for w in play.state.workloads.values()]
    assert len(rows) == WAITING + 2
    assert (starts.times, rankings.times) == (0, 1)


def test_a_judgement_is_no_older_than_a_moment(play: Play) -> None:
    first = _desk(play).explained(play.workload("w03"))
    assert _desk(play, SHARED_MS - 1).explained(play.workload("w03")) is first
    later = _desk(play, SHARED_MS).explained(play.workload("w03"))
    assert later.evaluated_at == play.now + SHARED_MS
    fast = Desk(play.state, Instant(play.now + 3 * SHARED_MS), ADMINISTRATOR, "en", clock_rate=60)
    assert fast.judged_at == play.now + SHARED_MS, "in real time, however fast the policy's clock runs"
    back = Desk(play.state, Instant(play.now), ADMINISTRATOR, "en")
    assert back.judged_at == play.now, "never from later than now"


def test_what_changed_is_told_at_once(play: Play) -> None:
    def place(name: str) -> int | None:
        return _desk(play).workload(play.workload(name)).position

    first, second = sorted((w.id for w in play.state.pending()), key=lambda name: place(name) or 0)[:2]
    assert (place(first), place(second)) == (1, 2)
    play.cancel(first, now=True)
    assert place(second) == 1
    play.hold()
    document = _desk(play).workload(play.workload(second))
    assert (document.state, document.why, document.latest_start) == ("held", "held", None)
    play.release()
    play.finish("r0")
    (started,) = play.state.allocations.keys() - {"r1.1"}
    document = _desk(play).workload(play.state.workload_of(play.state.allocations[started]))
    assert (document.state, document.position, document.why) == ("admitted", None, None)
