"""What the clock alone brings about; run it never, once or twice, the same things happen."""

from __future__ import annotations

from typing import Any

import pytest
from builders import HOUR_MS, MINUTE_MS, START, Play, PolicyBuilder, a_policy

from hubgov.core.due import due
from hubgov.core.policy import Kind, Mode, Reclaim, RetryRule
from hubgov.core.states import Event

SAVE_MS = Reclaim().save_ms
TERM_MS = Reclaim().term_ms


def site(**rules: Any) -> PolicyBuilder:
    return a_policy().team("A").node("box", devices=4).queue("train", **rules)


def test_from_its_end_to_free_devices() -> None:
    play = Play(site())
    play.run("w", lease_ms=2 * MINUTE_MS, kind=Kind.NOTEBOOK)
    seen = []
    for span in (2 * MINUTE_MS - 1, 1, 5 * MINUTE_MS - 1, 1, SAVE_MS + TERM_MS + MINUTE_MS - 1, 1):
        play.tick(span)
        seen.append(play.state_of("w"))
    assert seen == ["running", "expiring", "expiring", "stopping", "stopping", "quarantined"]
    play.gone("w")
    assert (play.state_of("w"), play.workload("w").end_reason, play.usage("A")) == ("expired", "lease", 0)


def test_asking_twice_changes_nothing_and_late_is_as_good_as_in_time() -> None:
    prompt, late = Play(site()), Play(site())
    for play in (prompt, late):
        play.run("w", lease_ms=HOUR_MS, kind=Kind.NOTEBOOK)
    for _ in range(66):
        prompt.tick(MINUTE_MS)
        prompt.tick(0)
    late.tick(66 * MINUTE_MS)
    for play in (prompt, late):
        assert due(play.state, play.now) == ()
        stopping = play.bound("w")
        assert (stopping.state, stopping.end_reason) == ("stopping", "lease")
    spans = [[(s.state, s.began, s.ended) for s in p.segments["w.1"]] for p in (prompt, late)]
    assert spans[0][:2] == spans[1][:2], "the end lies where people were shown it, however late it was seen"


def test_max_and_lease_are_told_apart() -> None:
    for most, reason in ((5 * HOUR_MS, "max"), (9 * HOUR_MS, "lease")):
        play = Play(site().extension(self_serve_count=1, step_ms=HOUR_MS, max_total_ms=most))
        play.run("w")
        play.extend("w", HOUR_MS)
        play.tick(5 * HOUR_MS + 5 * MINUTE_MS)
        assert play.bound("w").end_reason == reason


@pytest.mark.parametrize("launched", [False, True])
def test_a_start_that_misses_its_deadline_gives_everything_back(launched: bool) -> None:
    play = Play(site())
    play.submit("w", gpus=4, start_deadline_ms=10 * MINUTE_MS)
    play.submit("x", gpus=4)
    if launched:
        play.launch("w")
    play.tick(10 * MINUTE_MS - 1)
    assert play.state_of("x") == "pending"
    play.tick(1)
    if launched:
        assert play.state_of("w") == "stopping"
        play.gone("w")
    assert play.states("w", "x") == {"w": "failed", "x": "reserved"}
    assert play.workload("w").end_reason == "start_deadline"


def test_a_queues_own_deadline_counts_where_the_request_has_none() -> None:
    play = Play(site(start_deadline_ms=MINUTE_MS))
    play.submit("w")
    play.tick(MINUTE_MS)
    assert play.state_of("w") == "failed"


def test_a_failed_start_is_credited_before_it_is_tried_again() -> None:
    play = Play(site(retry=RetryRule(max=5, backoff_ms=MINUTE_MS)))
    play.submit("w", gpus=4, retry_max=1)
    play.launch("w")
    play.tick(2 * MINUTE_MS)
    play.finish("w", code=1)
    assert (play.state_of("w"), play.usage("A")) == ("pending", 0)
    assert play.why("w").code == "backoff"
    play.tick(MINUTE_MS - 1)
    assert play.state_of("w") == "pending"
    play.tick(1)
    assert (play.state_of("w"), play.workload("w").attempt) == ("reserved", 2)
    play.launch("w")
    play.finish("w", code=1)
    assert (play.state_of("w"), play.workload("w").end_reason) == ("failed", "start_failed")


@pytest.mark.parametrize(
    ("asked", "allowed", "tries"), [(None, 2, 3), (1, 2, 2), (9, 2, 3), (0, 2, 1), (None, 0, 1)]
)
def test_how_often_it_is_tried(asked: int | None, allowed: int, tries: int) -> None:
    play = Play(site(retry=RetryRule(max=allowed, backoff_ms=1)))
    play.submit("w", retry_max=asked)
    for _ in range(tries):
        assert play.state_of("w") == "reserved"
        play.start("w")
        play.finish("w", code=3)
        play.tick(1)
    assert (play.state_of("w"), play.workload("w").exit_code) == ("failed", 3)


def test_waiting_beyond_max_wait_is_cancelled_with_that_reason() -> None:
    play = Play(site(max_wait_ms=HOUR_MS))
    play.run("first", gpus=4)
    play.submit("w")
    play.tick(HOUR_MS - 1)
    assert play.state_of("w") == "pending"
    play.tick(1)
    assert (play.state_of("w"), play.workload("w").end_reason) == ("cancelled", "max_wait")
    assert play.state_of("first") == "running"


def test_the_wait_of_all_attempts_counts() -> None:
    play = Play(site(max_wait_ms=HOUR_MS))
    play.hold()
    play.submit("w")
    play.tick(40 * MINUTE_MS)
    play.release()
    play.start("w")
    play.hold()
    play.event("w", Event.UNKNOWN_TO_ENGINE)
    play.gone("w")
    play.tick(20 * MINUTE_MS - 1)
    assert play.state_of("w") == "pending"
    play.tick(1)
    assert play.state_of("w") == "cancelled"


def test_a_stop_at_once_is_fenced_without_the_term() -> None:
    play = Play(site().but(reclaim=Reclaim(stop_timeout_ms=MINUTE_MS)))
    play.run("w")
    play.cancel("w", now=True)
    play.tick(MINUTE_MS)
    assert play.state_of("w") == "quarantined"


def test_an_unclaimed_notebook_is_given_back() -> None:
    play = Play(site(claim_ms=15 * MINUTE_MS))
    play.submit("w")
    play.event("w", Event.LAUNCHED, unattended=True)
    play.ready("w")
    play.tick(15 * MINUTE_MS - 1)
    assert play.state_of("w") == "running"
    play.tick(1)
    assert (play.state_of("w"), play.bound("w").end_reason) == ("stopping", "unclaimed")
    play.gone("w")
    assert play.state_of("w") == "culled"


# --- observing ----------------------------------------------------------------------------------------


def test_observing_stops_nothing_that_runs() -> None:
    play = Play(site(warn_ms=(MINUTE_MS,)).but(mode=Mode.OBSERVE))
    play.run("w", lease_ms=HOUR_MS)
    play.submit("nb", lease_ms=HOUR_MS)
    play.event("nb", Event.LAUNCHED, unattended=True)
    play.ready("nb")
    play.tick(HOUR_MS - MINUTE_MS)
    play.tick(24 * HOUR_MS)
    assert play.states("w", "nb") == {"w": "running", "nb": "running"}
    assert {n.workload for n in play.state.notices.values()} == {"w", "nb"}, "they are told all the same"


def test_whoever_begins_to_enforce_gives_the_grace_first() -> None:
    play = Play(site().but(mode=Mode.OBSERVE))
    play.run("w", lease_ms=HOUR_MS)
    play.tick(24 * HOUR_MS)
    play.edit(site())
    assert (play.state_of("w"), play.bound("w").stop_at) == ("expiring", play.now + 5 * MINUTE_MS)


def test_whoever_begins_to_observe_ends_no_grace() -> None:
    play = Play(site())
    play.run("w", lease_ms=HOUR_MS)
    play.tick(HOUR_MS)
    play.edit(site().but(mode=Mode.OBSERVE))
    play.tick(HOUR_MS)
    assert play.state_of("w") == "expiring"


# --- silent nodes -------------------------------------------------------------------------------------


def test_an_end_that_passed_on_a_silent_node_gives_its_grace_when_it_is_seen() -> None:
    play = Play(site())
    play.run("w", lease_ms=HOUR_MS)
    play.tick(30 * MINUTE_MS)
    play.event("w", Event.NODE_SILENT)
    play.tick(3 * HOUR_MS)
    assert (play.state_of("w"), play.usage("A")) == ("suspect", 1000)
    play.event("w", Event.NODE_BACK)
    assert (play.state_of("w"), play.bound("w").stop_at) == ("expiring", play.now + 5 * MINUTE_MS)
    play.tick(5 * MINUTE_MS)
    assert play.state_of("w") == "stopping"


def test_a_start_on_a_silent_node_keeps_its_deadline() -> None:
    play = Play(site())
    play.submit("w")
    play.launch("w")
    play.event("w", Event.NODE_SILENT)
    play.event("w", Event.NODE_BACK)
    assert play.state_of("w") == "starting", "it never ran: it may not come back as running, without an end"
    play.tick(15 * MINUTE_MS)
    assert play.state_of("w") == "stopping"


def test_lost_work_waits_again_at_its_place_without_using_up_a_retry() -> None:
    play = Play(site())
    play.run("w")
    play.tick(HOUR_MS)
    play.event("w", Event.NODE_SILENT)
    play.event("w", Event.NODE_LOST)
    assert (play.state_of("w"), play.usage("A")) == ("lost", 0)
    play.hold()
    play.gone("w")
    workload = play.workload("w")
    assert (workload.state, workload.retries, workload.eligible_since) == ("pending", 0, START)
    assert workload.ran_ms == HOUR_MS
