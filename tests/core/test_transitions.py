"""The table of states: every (state, event) pair moves as it says or not at all, however late or often told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from builders import HOUR_MS, MINUTE_MS, START, Play, PolicyBuilder, a_policy, snapshot
from hypothesis import given
from hypothesis import strategies as st

from hubgov import wire
from hubgov.clock import Instant
from hubgov.core.model import Allocation
from hubgov.core.policy import RetryRule
from hubgov.core.states import CHARGED, MOVES, AllocationState, Event, WorkloadState, advance, public_state
from hubgov.core.transitions import exited, moved

S, E = AllocationState, Event

TABLE = {
    S.RESERVED: {
        E.LAUNCHED: S.STARTING, E.CANCELLED: S.RELEASED, E.START_OVERDUE: S.RELEASED, E.EXITED: S.RELEASED,
        E.NODE_LOST: S.LOST, E.UNKNOWN_TO_ENGINE: S.RELEASED,
    },
    S.STARTING: {
        E.READY: S.RUNNING, E.EXITED: S.RELEASING, E.CANCELLED: S.STOPPING, E.START_OVERDUE: S.STOPPING,
        E.NODE_LOST: S.LOST, E.UNKNOWN_TO_ENGINE: S.LOST,
    },
    S.RUNNING: {
        E.EXITED: S.RELEASING, E.LEASE_ENDED: S.EXPIRING, E.EXTENDED: S.RUNNING, E.PREEMPTED: S.PREEMPTING,
        E.CANCELLED: S.STOPPING, E.NODE_SILENT: S.SUSPECT, E.UNKNOWN_TO_ENGINE: S.LOST, E.IDLED: S.EXPIRING,
    },
    S.EXPIRING: {
        E.EXTENDED: S.RUNNING, E.EXITED: S.RELEASING, E.GRACE_ENDED: S.STOPPING, E.CANCELLED: S.STOPPING,
        E.REVIVED: S.RUNNING, E.PREEMPTED: S.PREEMPTING, E.NODE_SILENT: S.SUSPECT, E.UNKNOWN_TO_ENGINE: S.LOST,
    },
    S.PREEMPTING: {
        E.SPARED: S.RUNNING, E.EXITED: S.RELEASING, E.GRACE_ENDED: S.STOPPING, E.CANCELLED: S.STOPPING,
        E.NODE_SILENT: S.SUSPECT, E.UNKNOWN_TO_ENGINE: S.LOST,
    },
    S.STOPPING: {E.EXITED: S.RELEASING, E.GONE: S.RELEASED, E.STOP_OVERDUE: S.QUARANTINED, E.NODE_LOST: S.LOST},
    S.RELEASING: {E.GONE: S.RELEASED, E.STOP_OVERDUE: S.QUARANTINED, E.NODE_LOST: S.LOST},
    S.QUARANTINED: {E.GONE: S.RELEASED},
    S.SUSPECT: {E.NODE_BACK: S.RUNNING, E.EXITED: S.RELEASING, E.CANCELLED: S.STOPPING, E.NODE_LOST: S.LOST},
    S.LOST: {E.GONE: S.RELEASED},
    S.RELEASED: {},
}  # fmt: skip
"""Written down a second time, from semantics §7."""

ROADS: dict[AllocationState, tuple[Event, ...]] = {
    S.RESERVED: (),
    S.STARTING: (E.LAUNCHED,),
    S.RUNNING: (E.LAUNCHED, E.READY),
    S.EXPIRING: (E.LAUNCHED, E.READY, E.LEASE_ENDED),
    S.PREEMPTING: (E.LAUNCHED, E.READY, E.PREEMPTED),
    S.STOPPING: (E.LAUNCHED, E.READY, E.CANCELLED),
    S.RELEASING: (E.LAUNCHED, E.READY, E.EXITED),
    S.QUARANTINED: (E.LAUNCHED, E.READY, E.CANCELLED, E.STOP_OVERDUE),
    S.SUSPECT: (E.LAUNCHED, E.READY, E.NODE_SILENT),
    S.LOST: (E.LAUNCHED, E.READY, E.UNKNOWN_TO_ENGINE),
}


def site(**rules: Any) -> PolicyBuilder:
    return a_policy().team("A").node("box", devices=4).queue("train", **rules)


def brought_to(state: AllocationState) -> Play:
    play = Play(site())
    play.submit("w", gpus=2)
    for event in ROADS[state]:
        play.event("w", event)
    assert play.state_of("w") == state
    return play


def test_the_table_is_as_written_down() -> None:
    assert {(s, e): t for s, row in TABLE.items() for e, t in row.items()} == dict(MOVES)


@pytest.mark.parametrize("event", list(Event))
@pytest.mark.parametrize("state", list(ROADS))
def test_every_pair_moves_as_written_or_not_at_all(state: AllocationState, event: Event) -> None:
    play = brought_to(state)
    target = TABLE[state].get(event)
    assert advance(state, event) is target
    changes = moved(play.state, play.bound("w"), event, play.now)
    if target is None:
        assert changes == ()
        return
    after = changes[0].after
    assert isinstance(after, Allocation)
    assert after.state is target
    assert (after.milli_gpus if after.charged else 0) == (2000 if target in CHARGED else 0)
    assert (after.ended_at is not None) == (target is S.RELEASED)


@pytest.mark.parametrize("event", list(Event))
@pytest.mark.parametrize("state", list(ROADS))
def test_a_second_report_of_the_same_changes_nothing(state: AllocationState, event: Event) -> None:
    if event is E.EXTENDED:
        return  # a word of its owner, with a version and a key of its own
    play = brought_to(state)
    old = play.bound("w")
    play.event("w", event)
    current = play.allocation("w")
    if current is None or current.id != old.id:
        return  # over: the next attempt has another id, and late reports name the old one
    assert (current.state, event) not in MOVES or current.state is state


def test_a_late_report_never_lies_before_the_state_it_ends() -> None:
    play = brought_to(S.RUNNING)
    play.tick(HOUR_MS)
    play.extend("w", 1)
    play.event("w", E.NODE_SILENT)
    allocation = play.bound("w")
    [change, *_] = exited(play.state, allocation, Instant(START + 1), code=0)
    assert isinstance(change.after, Allocation)
    assert change.after.since == allocation.since == play.now


@pytest.mark.parametrize(
    ("road", "code", "state", "reason"),
    [
        pytest.param((E.LAUNCHED, E.READY), 0, "succeeded", "completed", id="it did its work"),
        pytest.param((E.LAUNCHED, E.READY), 2, "failed", "failed", id="it failed"),
        pytest.param((E.LAUNCHED, E.READY), None, "failed", "failed", id="nobody knows how it ended"),
        pytest.param((E.LAUNCHED,), 1, "failed", "start_failed", id="it never was ready"),
        pytest.param((), 1, "failed", "start_failed", id="it was never launched"),
        pytest.param(
            (E.LAUNCHED, E.READY, E.LEASE_ENDED), 0, "succeeded", "completed", id="by itself in its grace"
        ),
        pytest.param(
            (E.LAUNCHED, E.READY, E.PREEMPTED), 0, "succeeded", "completed", id="by itself, about to be evicted"
        ),
        pytest.param(
            (E.LAUNCHED, E.READY, E.NODE_SILENT), 0, "succeeded", "completed", id="while its node was silent"
        ),
    ],
)
def test_how_it_ended(road: tuple[Event, ...], code: int | None, state: str, reason: str) -> None:
    play = Play(site())
    play.submit("w")
    for event in road:
        play.event("w", event)
    allocation = play.bound("w")
    play.unit(lambda: exited(play.state, allocation, play.now, code=code))
    play.gone("w")
    assert (play.state_of("w"), play.workload("w").end_reason) == (state, reason)
    assert play.state.allocations == {}


def test_a_late_exit_does_not_rewrite_how_it_ended() -> None:
    play = Play(site())
    play.run("w", lease_ms=MINUTE_MS)
    play.tick(6 * MINUTE_MS)
    play.exit("w", code=0)
    assert play.state_of("w") == "releasing"
    play.gone("w")
    assert (play.state_of("w"), play.workload("w").exit_code) == ("expired", 0)


@pytest.mark.parametrize("state", list(ROADS))
def test_cancel_frees_the_cards_whatever_the_state(state: AllocationState) -> None:
    play = brought_to(state)
    play.cancel("w")
    play.event("w", E.EXITED)
    play.gone("w")
    assert play.workload("w").state.final
    assert state is S.RELEASING or play.state_of("w") == "cancelled", "what ended before keeps its own end"
    assert (play.usage("A"), play.state.allocations, play.state.on_device) == (0, {}, {})


def test_a_waiting_one_is_cancelled_at_once() -> None:
    play = Play(site())
    play.hold()
    play.submit("w")
    play.tick(MINUTE_MS)
    play.cancel("w")
    workload = play.workload("w")
    assert (workload.state, workload.end_reason, workload.waited_ms) == ("cancelled", "cancelled", MINUTE_MS)


def test_a_cancel_while_a_failed_attempt_is_cleared_away_is_kept() -> None:
    """It would be tried again: whoever cancelled it meant it."""
    play = Play(site(retry=RetryRule(max=3, backoff_ms=1)))
    play.run("w")
    play.exit("w", code=1)
    play.cancel("w")
    play.gone("w")
    play.tick(MINUTE_MS)
    assert play.state_of("w") == "cancelled"


def test_a_cancel_of_lost_work_is_kept() -> None:
    play = brought_to(S.LOST)
    play.cancel("w")
    play.cancel("w")
    play.gone("w")
    play.tick(MINUTE_MS)
    assert play.state_of("w") == "cancelled"


def test_a_cancel_after_its_own_end_changes_nothing() -> None:
    play = Play(site())
    play.run("w")
    play.exit("w", code=0)
    before = snapshot(play.state)
    play.cancel("w")
    assert snapshot(play.state) == before


def test_running_time_adds_up_and_waiting_and_starting_cost_none() -> None:
    play = Play(site())
    play.submit("w")
    play.tick(MINUTE_MS)
    play.start("w")
    play.tick(HOUR_MS)
    play.event("w", E.UNKNOWN_TO_ENGINE)
    play.hold()
    play.gone("w")
    play.tick(HOUR_MS)
    play.release()
    play.tick(MINUTE_MS)
    play.start("w")
    assert play.bound("w").lease.expires_at == play.now + 3 * HOUR_MS
    play.tick(HOUR_MS)
    play.finish("w")
    workload = play.workload("w")
    assert (workload.ran_ms, workload.waited_ms, workload.attempt) == (2 * HOUR_MS, HOUR_MS, 2)


def test_every_move_is_a_new_version_for_those_who_poll() -> None:
    play = Play(site())
    seen = []
    steps: tuple[Callable[[str], object], ...] = (play.submit, play.launch, play.ready, play.exit)
    for step in steps:
        step("w")
        seen.append(play.workload("w").version)
    play.gone("w")
    seen.append(play.ended["w"].version)
    assert seen == sorted(set(seen))


@given(st.lists(st.sampled_from([e for e in Event if e not in (E.EXTENDED, E.SPARED)]), max_size=12))
def test_any_order_of_reports_is_harmless(events: list[Event]) -> None:
    """Whatever arrives in whatever order: the books stay right (the Play checks them), and it ends clean."""
    play = Play(site())
    play.submit("w", gpus=2)
    for event in events:
        play.event("w", event)
        play.tick()
    for _ in range(3):
        play.cancel("w")
        play.gone("w")
    play.tick(HOUR_MS)
    play.gone("w")
    assert (play.state.workloads, play.state.allocations, play.state.on_device) == ({}, {}, {})


@pytest.mark.parametrize(
    ("workload", "allocation", "held", "word"),
    [
        (WorkloadState.PENDING, None, False, "pending"),
        (WorkloadState.PENDING, None, True, "held"),
        (WorkloadState.PENDING, S.RELEASED, False, "pending"),
        (WorkloadState.ADMITTED, S.RESERVED, False, "admitted"),
        (WorkloadState.RUNNING, S.RELEASING, True, "stopping"),
        (WorkloadState.RUNNING, S.QUARANTINED, False, "quarantined"),
        (WorkloadState.SUCCEEDED, None, False, "succeeded"),
    ],
)
def test_the_one_word_for_everybody(
    workload: WorkloadState, allocation: AllocationState | None, held: bool, word: str
) -> None:
    assert public_state(workload, allocation, held) == word


def test_clients_tell_the_states_apart_as_the_core_does() -> None:
    final = {state.value for state in WorkloadState if state.final}
    assert final | {"refused"} == wire.FINAL_STATES
    waiting = {public_state(WorkloadState.PENDING, None, held) for held in (False, True)}
    assert waiting | {public_state(WorkloadState.RUNNING, S.LOST, False)} == wire.WAITING_STATES
    starting = {public_state(WorkloadState.ADMITTED, state, False) for state in (S.RESERVED, S.STARTING)}
    assert starting == wire.STARTING_STATES
