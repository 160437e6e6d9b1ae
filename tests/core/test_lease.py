"""The term of an allocation: its end, the warnings before it, and what may move it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import HOUR_MS, MINUTE_MS, START, Play, PolicyBuilder, a_policy, a_workload

from hubgov.clock import Instant
from hubgov.core.lease import extensions_left, grace_until, granted_lease, started_lease
from hubgov.core.policy import Kind, LeaseRule
from hubgov.core.states import Event

WARNINGS = (30 * MINUTE_MS, 10 * MINUTE_MS, 2 * MINUTE_MS)


def site(**extension: Any) -> PolicyBuilder:
    """Leases of 4h, grace 5m, warned at 30, 10 and 2 minutes."""
    policy = a_policy().team("A").node("box", devices=4).queue("train", warn_ms=WARNINGS)
    rules = {"self_serve_count": 2, "step_ms": 2 * HOUR_MS, "max_total_ms": 12 * HOUR_MS}
    return policy.extension(**rules | extension)


def running(policy: PolicyBuilder | None = None, **words: Any) -> Play:
    play = Play(policy or site())
    play.run("w", **words)
    return play


@pytest.mark.parametrize(
    ("asked", "ran", "length"),
    [
        pytest.param(None, 0, 4 * HOUR_MS, id="the queue's default"),
        pytest.param(HOUR_MS, 0, HOUR_MS, id="what was asked beats it"),
        pytest.param(None, HOUR_MS, 3 * HOUR_MS, id="running time adds up across evictions"),
        pytest.param(HOUR_MS, 2 * HOUR_MS, 0, id="never less than nothing"),
    ],
)
def test_the_granted_lease(asked: int | None, ran: int, length: int) -> None:
    queue = site().build().queues["train"]
    workload = replace(a_workload(lease_ms=asked), ran_ms=ran)
    lease = granted_lease(queue, workload)
    assert (lease.length_ms, lease.expires_at, lease.version) == (length, None, 1)


@pytest.mark.parametrize(
    ("policy", "ends", "hard_end"),
    [
        pytest.param(site(), 4 * HOUR_MS, 12 * HOUR_MS, id="up to max_total"),
        pytest.param(site(max_total_ms=None), 4 * HOUR_MS, None, id="no max_total: no hard end"),
        pytest.param(site(max_total_ms=HOUR_MS), 4 * HOUR_MS, 4 * HOUR_MS, id="the lease itself is granted whole"),
        pytest.param(site().queue("train", extension=None), 4 * HOUR_MS, 4 * HOUR_MS, id="no extensions"),
        pytest.param(site().lease(default_ms=None), None, None, id="endless"),
    ],
)
def test_the_clock_starts_when_it_is_ready(policy: PolicyBuilder, ends: int | None, hard_end: int | None) -> None:
    play = Play(policy)
    play.hold()
    play.submit("w")
    play.tick(3 * HOUR_MS)
    play.release()
    play.tick(10 * MINUTE_MS)
    play.launch("w")
    play.tick(MINUTE_MS)
    play.ready("w")
    lease, ready = play.bound("w").lease, play.now
    assert lease.granted_at == ready
    assert lease.expires_at == (ready + ends if ends is not None else None)
    assert lease.hard_end_at == (ready + hard_end if hard_end is not None else None)


def test_the_charge_counts_from_reserving_and_the_lease_from_running() -> None:
    play = Play(site())
    play.submit("w")
    assert (play.usage("A"), play.bound("w").lease.expires_at) == (1000, None)


def test_a_later_attempt_has_what_is_left_of_max_total() -> None:
    queue = site().build().queues["train"]
    workload = replace(a_workload(), ran_ms=3 * HOUR_MS)
    lease = started_lease(queue, workload, granted_lease(queue, workload), START)
    assert (lease.expires_at, lease.hard_end_at) == (START + HOUR_MS, START + 9 * HOUR_MS)


# --- extensions ---------------------------------------------------------------------------------------


def test_a_granted_extension_moves_the_end_and_the_version() -> None:
    play = running()
    verdict = play.extend("w", HOUR_MS)
    assert verdict is not None
    assert (verdict.decision.outcome, verdict.decision.code) == ("granted", "extended")
    assert verdict.decision.facts["left"] == 1
    lease = play.bound("w").lease
    assert (lease.expires_at, lease.version, lease.rule) == (START + 5 * HOUR_MS, 2, "extension")
    assert play.workload("w").extensions_used == 1


@pytest.mark.parametrize(
    ("policy", "before", "by", "outcome", "code", "numbers"),
    [
        pytest.param(site().queue("train", extension=None), [], 1, "refused", "no_extension", None, id="none"),
        pytest.param(site().lease(default_ms=None), [], HOUR_MS, "refused", "no_end", None, id="an endless lease"),
        pytest.param(
            site(), [], 3 * HOUR_MS, "needs_approval", "beyond_self_serve",
            (3 * HOUR_MS, 2 * HOUR_MS, 2 * HOUR_MS, "ms"), id="a step too long",
        ),
        pytest.param(
            site(), [HOUR_MS, HOUR_MS], HOUR_MS, "needs_approval", "beyond_self_serve", (1, 0, 2, "times"),
            id="once too often",
        ),
        pytest.param(
            site(max_total_ms=5 * HOUR_MS), [], 2 * HOUR_MS, "refused", "max_total",
            (2 * HOUR_MS, HOUR_MS, 5 * HOUR_MS, "ms"), id="beyond max_total: no approver can",
        ),
        pytest.param(
            site(max_total_ms=5 * HOUR_MS), [HOUR_MS], HOUR_MS, "refused", "max_total",
            (HOUR_MS, 0, 5 * HOUR_MS, "ms"), id="max_total used up",
        ),
    ],
)  # fmt: skip
def test_each_denial_with_its_numbers(
    policy: PolicyBuilder,
    before: list[int],
    by: int,
    outcome: str,
    code: str,
    numbers: tuple[int, int, int, str] | None,
) -> None:
    play = running(policy)
    for earlier in before:
        play.extend("w", earlier)
    lease = play.bound("w").lease
    verdict = play.extend("w", by)
    assert verdict is not None
    assert (verdict.decision.outcome, verdict.decision.code, verdict.lease) == (outcome, code, None)
    assert [(b.need, b.have, b.limit, b.unit) for b in verdict.decision.blockers] == ([numbers] if numbers else [])
    assert play.bound("w").lease == lease


def test_exactly_max_total_is_granted() -> None:
    play = running(site(max_total_ms=5 * HOUR_MS))
    play.extend("w", HOUR_MS)
    lease = play.bound("w").lease
    assert lease.expires_at == lease.hard_end_at == START + 5 * HOUR_MS


def test_max_total_counts_earlier_attempts() -> None:
    play = running(
        site(max_total_ms=5 * HOUR_MS).queue("train", lease=LeaseRule(default_ms=2 * HOUR_MS, max_ms=None))
    )
    play.tick(HOUR_MS)
    play.event("w", Event.UNKNOWN_TO_ENGINE)
    play.gone("w")
    assert play.workload("w").ran_ms == HOUR_MS
    play.start("w")
    verdict = play.extend("w", 2 * HOUR_MS)
    assert play.bound("w").lease.expires_at == play.now + 3 * HOUR_MS
    verdict = play.extend("w", 2 * HOUR_MS)
    assert verdict is not None
    assert (verdict.decision.code, verdict.decision.blockers[0].have) == ("max_total", HOUR_MS)


@pytest.mark.parametrize(
    ("late", "state"),
    [
        pytest.param(-1, "running", id="a millisecond before its end"),
        pytest.param(0, "expiring", id="its end begins the grace"),
        pytest.param(5 * MINUTE_MS - 1, "expiring", id="the last millisecond of the grace"),
        pytest.param(5 * MINUTE_MS, "stopping", id="the stop is sent"),
    ],
)
def test_an_extension_wins_until_the_stop_is_sent(late: int, state: str) -> None:
    play = running()
    play.tick(4 * HOUR_MS + late)
    assert play.state_of("w") == state
    verdict = play.extend("w", HOUR_MS)
    won = state != "stopping"
    assert (verdict is not None) == won
    assert play.state_of("w") == ("running" if won else "stopping")
    if won:
        assert (play.bound("w").lease.expires_at, play.bound("w").stop_at) == (START + 5 * HOUR_MS, None)


def test_an_extension_that_would_end_in_the_past_is_refused() -> None:
    play = running()
    play.tick(4 * HOUR_MS + 2 * MINUTE_MS)
    verdict = play.extend("w", MINUTE_MS)
    assert verdict is not None
    [blocker] = verdict.decision.blockers
    assert (verdict.decision.code, blocker.need, blocker.have) == ("expired_meanwhile", 2 * MINUTE_MS, MINUTE_MS)
    assert play.state_of("w") == "expiring"


def test_the_grace_is_seen_before_and_in_it() -> None:
    play = running()
    wanted = START + 4 * HOUR_MS + 5 * MINUTE_MS
    assert grace_until(play.bound("w")) == wanted
    play.tick(4 * HOUR_MS + MINUTE_MS)
    assert grace_until(play.bound("w")) == wanted


def test_without_an_end_there_is_no_grace() -> None:
    play = running(site().lease(default_ms=None))
    assert grace_until(play.bound("w")) is None


def test_extensions_left() -> None:
    policy = site().build()
    workload = replace(a_workload(), extensions_used=1)
    assert extensions_left(policy.queues["train"], workload) == 1
    assert extensions_left(policy.queues["train"], replace(workload, extensions_used=5)) == 0
    assert extensions_left(replace(policy.queues["train"], extension=None), workload) == 0


# --- warnings -----------------------------------------------------------------------------------------


def warned(play: Play) -> list[tuple[int, int]]:
    """(version of the lease, minutes) of every warning, in order."""
    notices = sorted(play.state.notices.values(), key=lambda n: n.issued_at)
    return [(n.lease_version, n.threshold_ms // MINUTE_MS) for n in notices]


def test_each_threshold_warns_once() -> None:
    play = running()
    for _ in range(4 * 60 * 2 - 1):
        play.tick(MINUTE_MS // 2)
    assert warned(play) == [(1, 30), (1, 10), (1, 2)]


def test_the_last_warning_asks_lab_to_save_and_so_does_the_end() -> None:
    play = running(kind=Kind.NOTEBOOK)
    play.tick(4 * HOUR_MS - 10 * MINUTE_MS)
    assert play.bound("w").save is None
    play.tick(8 * MINUTE_MS)
    first = play.bound("w").save
    play.tick(2 * MINUTE_MS)
    second = play.bound("w").save
    assert first is not None
    assert second is not None
    assert first != second


def test_a_warning_is_a_new_version_of_the_workload() -> None:
    play = running()
    before = play.workload("w").version
    play.tick(4 * HOUR_MS - 30 * MINUTE_MS)
    assert play.workload("w").version == before + 1


def test_after_a_pause_only_the_nearest_is_given() -> None:
    play = running()
    play.tick(4 * HOUR_MS - 9 * MINUTE_MS)
    assert warned(play) == [(1, 10)]


def test_a_threshold_before_the_lease_began_is_skipped() -> None:
    play = running(lease_ms=15 * MINUTE_MS)
    assert warned(play) == []
    play.tick(5 * MINUTE_MS)
    play.tick(8 * MINUTE_MS)
    assert warned(play) == [(1, 10), (1, 2)]


def test_an_extension_arms_the_warnings_anew() -> None:
    play = running()
    play.tick(4 * HOUR_MS - 30 * MINUTE_MS)
    play.extend("w", HOUR_MS)
    play.tick(MINUTE_MS)
    assert warned(play) == [(1, 30)]
    play.tick(59 * MINUTE_MS)
    assert warned(play) == [(1, 30), (2, 30)]


def test_a_short_extension_gives_no_warning_that_was_due_before_it() -> None:
    play = running()
    play.tick(4 * HOUR_MS - 5 * MINUTE_MS)
    play.extend("w", 10 * MINUTE_MS)
    play.tick(MINUTE_MS)
    assert warned(play) == [(1, 10)], "10 and 30 minutes before the new end were over when it was granted"
    play.tick(4 * MINUTE_MS)
    assert warned(play) == [(1, 10), (2, 10)]


def test_nothing_is_warned_in_the_grace() -> None:
    play = running(site().queue("train", warn_ms=(MINUTE_MS,)))
    play.tick(4 * HOUR_MS)
    play.tick(MINUTE_MS)
    assert warned(play) == []


def test_an_end_in_the_future_is_no_instant_too_late() -> None:
    play = running()
    play.now = Instant(START + 4 * HOUR_MS - 1)
    play.tick(0)
    assert play.state_of("w") == "running"
    play.tick(1)
    assert play.state_of("w") == "expiring"
