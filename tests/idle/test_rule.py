"""The idle rule step by step: deadlines, ways back, what is not known, and that exactly one of two acts wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from builders import HOUR_MS, MINUTE_MS, Play, a_policy, rebuilt
from hypothesis import given
from hypothesis import strategies as st

from hubgov.clock import Instant
from hubgov.core import idle
from hubgov.core.idleness import IdlePhase
from hubgov.core.kernels import ended, to_end
from hubgov.core.metering import Account
from hubgov.core.model import Allocation
from hubgov.core.policy import ExtensionRule, IdleRule, Kind, Mode
from hubgov.core.signals import KernelSample, Level, Signal, SignalKind, sample
from hubgov.core.watching import Standing, judge, observed

PERIOD_MS = 10_000
AFTER, CONFIRM, GRACE = 30 * MINUTE_MS, 15 * MINUTE_MS, 10 * MINUTE_MS
RULE = IdleRule(
    kernel_after_ms=None, after_ms=AFTER, confirm_ms=CONFIRM, grace_ms=GRACE, keep_count=2, keep_for_ms=HOUR_MS,
    max_unverified_ms=4 * HOUR_MS,
)  # fmt: skip


class Watching(Play):
    """A notebook `w` that is sampled every period while time passes."""

    def __init__(self, rule: IdleRule = RULE, mode: Mode = Mode.ENFORCE, **queue: Any) -> None:
        more = {"extension": ExtensionRule(self_serve_count=5, step_ms=2 * HOUR_MS), **queue}
        policy = a_policy().team("A").node("box", devices=2).queue("train", idle=rule, **more).but(mode=mode)
        super().__init__(policy)
        self.run("w", kind=Kind.TRAINING, lease_ms=12 * HOUR_MS)
        self.state.began = Instant(self.now - 1)

    def see(self, kernels: tuple[KernelSample, ...] = (), **levels: str) -> None:
        allocation = self.bound("w")
        signals = [Signal(kind=kind, level=Level(levels.get(kind.value, "idle"))) for kind in SignalKind]
        before = self.state.watched.get(allocation.id)
        self.state.watch(allocation.id, observed(before, sample(self.now, signals, kernels), PERIOD_MS))
        self.unit(lambda: ())

    def pass_time(self, ms: int, kernels: tuple[KernelSample, ...] = (), **levels: str) -> None:
        end = self.now + ms
        while self.now < end:
            self.now = Instant(min(end, self.now + PERIOD_MS))
            if self.allocation("w") is not None:
                self.see(kernels, **levels)

    @property
    def phase(self) -> IdlePhase:
        return self.bound("w").idle.phase

    def keep(self) -> None:
        self.unit(lambda: idle.kept(self.state, self.bound("w"), RULE, self.now, actor="ann"))

    def restart(self) -> None:
        self.state = rebuilt(self.state)
        self.state.began = self.now

    def idle_events(self) -> list[str]:
        return [line.split(" ")[0] for line in self.log if line.startswith(("idle", "allocation", "alive"))][3:]


def at_phase(phase: IdlePhase, **more: Any) -> Watching:
    """A session that has come so far by being idle."""
    play = Watching(**more)
    play.pass_time(AFTER + PERIOD_MS)
    if phase is IdlePhase.GRACE:
        play.pass_time(CONFIRM)
    assert play.phase is phase
    return play


def test_asked_after_a_window_stopped_after_confirm_and_grace() -> None:
    play = Watching()
    play.pass_time(AFTER)
    assert play.phase is IdlePhase.ACTIVE
    play.pass_time(PERIOD_MS)
    asked_at = play.now
    assert play.phase is IdlePhase.ASKED
    assert idle.returned_at(RULE, play.bound("w")) == asked_at + CONFIRM + GRACE
    notice = play.state.notices["w.1-idle-1"]
    assert (notice.kind, notice.deadline, notice.quiet_ms) == ("idle", asked_at + CONFIRM + GRACE, AFTER)
    play.pass_time(CONFIRM - PERIOD_MS)
    assert play.state_of("w") == "running"
    play.pass_time(PERIOD_MS)
    assert (play.state_of("w"), play.bound("w").save) == ("expiring", "w.1-idle-1-end")
    play.pass_time(GRACE - PERIOD_MS)
    assert play.state_of("w") == "expiring"
    play.pass_time(PERIOD_MS)
    assert play.state_of("w") == "stopping"
    assert (play.bound("w").outcome, play.bound("w").end_reason) == ("culled", "idle")
    assert play.bound("w").kill_at == play.now, "a job had its signal when the grace began"
    assert {s.kind for s in play.bound("w").idle.evidence} == set(SignalKind)


@pytest.mark.parametrize("phase", [IdlePhase.ASKED, IdlePhase.GRACE])
@pytest.mark.parametrize("kind", [kind.value for kind in SignalKind])
def test_any_sign_of_life_leads_back_and_a_whole_window_follows(phase: IdlePhase, kind: str) -> None:
    play = at_phase(phase)
    play.pass_time(PERIOD_MS, **{kind: "busy"})
    assert (play.state_of("w"), play.phase, play.bound("w").stop_at) == ("running", IdlePhase.ACTIVE, None)
    play.pass_time(AFTER - PERIOD_MS)
    assert play.phase is IdlePhase.ACTIVE
    play.pass_time(2 * PERIOD_MS)
    assert play.phase is IdlePhase.ASKED


@pytest.mark.parametrize("phase", [IdlePhase.ASKED, IdlePhase.GRACE])
@pytest.mark.parametrize("kind", [kind.value for kind in SignalKind])
def test_what_is_no_longer_known_leads_back_too(phase: IdlePhase, kind: str) -> None:
    play = at_phase(phase)
    play.pass_time(PERIOD_MS, **{kind: "unknown"})
    assert (play.state_of("w"), play.phase) == ("running", IdlePhase.ACTIVE)


def test_no_sample_no_stop() -> None:
    """Sampled again right before the stop: while nobody looks, the deadline alone ends nothing."""
    play = at_phase(IdlePhase.GRACE)
    play.tick(GRACE)
    assert play.state_of("w") == "running"  # the silence is a gap: nothing is known any more
    assert play.phase is IdlePhase.ACTIVE


def test_a_sample_that_is_older_than_the_deadline_ends_nothing() -> None:
    play = at_phase(IdlePhase.GRACE)
    play.pass_time(GRACE - PERIOD_MS)
    play.tick(PERIOD_MS)
    assert play.state_of("w") == "expiring"
    play.see()
    assert play.state_of("w") == "stopping"


@pytest.mark.parametrize("phase", [IdlePhase.ASKED, IdlePhase.GRACE])
def test_keep_holds_for_its_time_and_is_counted(phase: IdlePhase) -> None:
    play = at_phase(phase)
    play.keep()
    assert (play.state_of("w"), play.phase) == ("running", IdlePhase.KEPT)
    assert idle.keeps_left(RULE, play.bound("w")) == 1
    play.pass_time(HOUR_MS - PERIOD_MS)
    assert play.phase is IdlePhase.KEPT
    play.pass_time(PERIOD_MS)
    assert play.phase is IdlePhase.ASKED


def test_real_activity_gives_the_keeps_back() -> None:
    play = at_phase(IdlePhase.ASKED)
    play.keep()
    play.pass_time(PERIOD_MS, cpu="busy")
    assert (play.phase, idle.keeps_left(RULE, play.bound("w"))) == (IdlePhase.ACTIVE, 2)


@pytest.mark.parametrize("phase", [IdlePhase.ASKED, IdlePhase.GRACE])
def test_an_extension_leads_back_and_the_window_begins_there(phase: IdlePhase) -> None:
    play = at_phase(phase)
    allocation = play.bound("w")
    play.unit(
        lambda: (
            idle.revived(play.state, allocation, play.now, idle.back(allocation.idle, play.now))
            if phase is IdlePhase.GRACE
            else idle.written(play.state, allocation, "allocation_extended", _extended(play, allocation))
        )
    )
    assert play.phase is IdlePhase.ACTIVE
    play.pass_time(AFTER - PERIOD_MS)
    assert play.phase is IdlePhase.ACTIVE
    play.pass_time(2 * PERIOD_MS)
    assert play.phase is IdlePhase.ASKED


def _extended(play: Watching, allocation: Allocation) -> Allocation:
    return replace(allocation, idle=idle.back(allocation.idle, play.now))


def test_the_lease_wins_over_an_idle_grace() -> None:
    play = at_phase(IdlePhase.GRACE)
    allocation = play.bound("w")
    lease = replace(allocation.lease, expires_at=Instant(play.now + MINUTE_MS))
    play.unit(lambda: idle.written(play.state, allocation, "allocation_extended", replace(allocation, lease=lease)))
    play.pass_time(2 * MINUTE_MS)
    bound = play.bound("w")
    assert (play.state_of("w"), bound.idle.phase) == ("expiring", IdlePhase.ACTIVE)
    assert bound.stop_at == lease.expires_at + lease.grace_ms


def test_the_grace_of_an_idle_stop_is_the_teams_own_time() -> None:
    play = at_phase(IdlePhase.GRACE)
    play.pass_time(GRACE)
    grace = [s for s in play.segments["w.1"] if s.state == "expiring"]
    assert [(s.account, s.ended - s.began) for s in grace] == [(Account.TEAM, GRACE)]


# --- claims -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", ["kernel", "human", "terminal", "child"])
def test_claims_alone_keep_it_for_max_unverified_and_a_window_more(claim: str) -> None:
    play = Watching()
    play.pass_time(4 * HOUR_MS + AFTER, **{claim: "busy"})
    assert play.phase is IdlePhase.ACTIVE
    play.pass_time(2 * PERIOD_MS, **{claim: "busy"})
    assert play.phase is IdlePhase.ASKED
    assert play.idle_events().count("alive_only_by_claim") == 1
    play.pass_time(CONFIRM + GRACE + 2 * PERIOD_MS, **{claim: "busy"})
    assert play.state_of("w") == "stopping"


@pytest.mark.parametrize("use", ["gpu", "cpu", "io"])
def test_use_of_the_machine_is_believed_for_ever_and_makes_claims_count_again(use: str) -> None:
    play = Watching()
    play.pass_time(6 * HOUR_MS, **{use: "busy"})
    assert play.phase is IdlePhase.ACTIVE
    play.pass_time(4 * HOUR_MS - PERIOD_MS, kernel="busy")
    assert play.phase is IdlePhase.ACTIVE


# --- silence, restarts, clocks ------------------------------------------------------------------------


@pytest.mark.parametrize(("gap", "asked"), [(3 * PERIOD_MS, True), (4 * PERIOD_MS, False)])
def test_a_gap_of_more_than_three_periods_starts_the_window_anew(gap: int, asked: bool) -> None:
    play = Watching()
    play.pass_time(AFTER // 2)
    play.now = Instant(play.now + gap)
    play.see()
    play.pass_time(AFTER // 2)
    assert (play.phase is IdlePhase.ASKED) is asked


def test_a_clock_that_jumps_ahead_is_a_gap_and_one_that_stands_adds_nothing() -> None:
    play = Watching()
    play.pass_time(AFTER // 2)
    play.now = Instant(play.now + 5 * HOUR_MS)
    play.see()
    assert play.phase is IdlePhase.ACTIVE
    for _ in range(1000):
        play.see()
    assert play.phase is IdlePhase.ACTIVE
    before = play.state.watched[play.bound("w").id]
    late = sample(Instant(play.now - HOUR_MS), [Signal(kind=SignalKind.GPU, level=Level.BUSY)])
    assert observed(before, late, PERIOD_MS) is before


def test_a_restart_in_the_grace_gives_a_whole_grace_and_keeps_the_phase() -> None:
    play = at_phase(IdlePhase.GRACE)
    play.pass_time(GRACE - 2 * PERIOD_MS)
    play.restart()
    play.pass_time(PERIOD_MS)
    assert play.bound("w").stop_at == play.state.began + GRACE
    play.pass_time(GRACE - 2 * PERIOD_MS)
    assert play.state_of("w") == "expiring"
    play.pass_time(2 * PERIOD_MS)
    assert play.state_of("w") == "stopping"


def test_a_restart_while_asked_keeps_the_question_and_its_deadline() -> None:
    play = at_phase(IdlePhase.ASKED)
    until = play.bound("w").idle.until
    play.restart()
    play.pass_time(2 * PERIOD_MS, kernel="unknown", human="unknown")  # the session hasn't said anything yet
    play.pass_time(PERIOD_MS)
    assert (play.phase, play.bound("w").idle.until) == (IdlePhase.ASKED, until)
    play.pass_time(PERIOD_MS, kernel="busy")
    assert play.phase is IdlePhase.ACTIVE


# --- observe, and rules that go ------------------------------------------------------------------------


def test_a_policy_that_only_observes_notes_all_and_stops_nothing() -> None:
    play = Watching(mode=Mode.OBSERVE)
    play.pass_time(AFTER + CONFIRM + GRACE + 5 * MINUTE_MS)
    assert (play.state_of("w"), play.phase) == ("running", IdlePhase.SUSPECT)
    assert play.state.notices == {}
    events = play.idle_events()
    assert (events.count("idle_suspected"), events.count("idle_stop_observed")) == (1, 1)


def test_a_rule_that_is_taken_away_takes_the_question_with_it() -> None:
    play = at_phase(IdlePhase.GRACE)
    policy = a_policy().team("A").node("box", devices=2).queue("train", idle=None)
    play.edit(policy)
    assert (play.state_of("w"), play.phase) == ("running", IdlePhase.ACTIVE)


# --- kernels ------------------------------------------------------------------------------------------


def kernel(name: str, level: Level) -> KernelSample:
    return KernelSample(id=name, level=level, path=f"{name}.ipynb")


def test_a_kernel_that_is_idle_beside_a_busy_one_is_to_be_shut_down_once() -> None:
    play = Watching(replace(RULE, kernel_after_ms=10 * MINUTE_MS))
    both = (kernel("k1", Level.IDLE), kernel("k2", Level.BUSY), kernel("k3", Level.UNKNOWN))
    play.pass_time(10 * MINUTE_MS, both, kernel="busy")
    assert list(to_end(play.bound("w"))) == []
    play.pass_time(2 * PERIOD_MS, both, kernel="busy")
    assert [e.id for e in to_end(play.bound("w"))] == ["k1"]
    changes = ended(play.state, play.bound("w"), "k1", play.now, actor="ann", failed="")
    play.state.unwatch_kernel(play.bound("w").id, "k1")
    play.unit(lambda: changes)
    assert list(to_end(play.bound("w"))) == []
    (notice,) = play.state.notices.values()
    assert (notice.kind, notice.subject) == ("kernel_idle", "k1.ipynb")
    assert play.state_of("w") == "running"


def test_a_kernel_that_works_again_is_not_shut_down_and_one_that_could_not_be_saved_is_left() -> None:
    play = Watching(replace(RULE, kernel_after_ms=10 * MINUTE_MS))
    play.pass_time(11 * MINUTE_MS, (kernel("k1", Level.IDLE), kernel("k2", Level.IDLE)), kernel="busy")
    assert [e.id for e in to_end(play.bound("w"))] == ["k1", "k2"]
    play.unit(lambda: ended(play.state, play.bound("w"), "k2", play.now, actor="ann", failed="disk quota exceeded"))
    play.pass_time(PERIOD_MS, (kernel("k1", Level.BUSY), kernel("k2", Level.IDLE)), kernel="busy")
    assert list(to_end(play.bound("w"))) == []
    assert [e.failed for e in play.bound("w").kernels_ending] == ["disk quota exceeded"]


def test_kernels_are_left_alone_while_the_whole_session_is_in_question() -> None:
    play = Watching(replace(RULE, kernel_after_ms=AFTER + 5 * MINUTE_MS))
    play.pass_time(AFTER + 10 * MINUTE_MS, (kernel("k1", Level.IDLE),))
    assert play.phase is IdlePhase.ASKED
    assert list(to_end(play.bound("w"))) == []


# --- properties ---------------------------------------------------------------------------------------

LEVELS = st.sampled_from(["idle", "idle", "idle", "busy", "unknown"])
MOMENTS = st.fixed_dictionaries(
    {"minutes": st.integers(1, 40), "kind": st.sampled_from([k.value for k in SignalKind]), "level": LEVELS,
     "act": st.sampled_from(["", "", "", "keep", "restart", "silence"])}
)  # fmt: skip


@given(st.lists(MOMENTS, min_size=1, max_size=12))
def test_nothing_is_stopped_without_a_window_a_question_and_a_grace(moments: list[Mapping[str, Any]]) -> None:
    """Whatever is seen in whatever order: at the stop every sample of the grace was idle and none unknown; the
    question stood for its time before, the grace for its own; deadlines on record never move back."""
    play = Watching()
    bad_at = asked_at = grace_at = 0
    stop_at: int | None = None
    for moment in moments:
        if moment["act"] == "keep" and play.phase in (IdlePhase.ASKED, IdlePhase.GRACE):
            if idle.keeps_left(RULE, play.bound("w")):
                play.keep()
        elif moment["act"] == "restart":
            play.restart()
        elif moment["act"] == "silence":
            play.now = Instant(play.now + 10 * PERIOD_MS)
            bad_at = play.now
        end = play.now + moment["minutes"] * MINUTE_MS
        while play.now < end:
            before = play.bound("w")
            play.now = Instant(play.now + 3 * PERIOD_MS)
            play.see(**{moment["kind"]: moment["level"]})
            if moment["level"] != "idle":
                bad_at = play.now
            after = play.bound("w")
            if after.idle.phase is IdlePhase.ASKED and before.idle.phase is not IdlePhase.ASKED:
                asked_at = play.now
                assert asked_at - bad_at >= AFTER or bad_at == 0
            if idle.in_grace(after) and not idle.in_grace(before):
                grace_at, stop_at = play.now, after.stop_at
                assert grace_at - asked_at >= CONFIRM
            if idle.in_grace(after) and idle.in_grace(before):
                assert after.stop_at is not None
                assert stop_at is not None
                assert after.stop_at >= stop_at
                stop_at = after.stop_at
            if after.state.value == "stopping":
                assert play.now - grace_at >= GRACE
                assert bad_at < grace_at
                assert play.now - play.state.began >= GRACE
                return


@given(st.lists(st.tuples(st.integers(1, 60), st.sampled_from(list(SignalKind))), min_size=1, max_size=20))
def test_a_missing_signal_never_culls(missing: list[tuple[int, SignalKind]]) -> None:
    """Each window has an unknown in it somewhere: it is never judged idle."""
    watched, now = None, Instant(0)
    for minutes, kind in missing:
        signals = [Signal(kind=k, level=Level.UNKNOWN if k is kind else Level.IDLE) for k in SignalKind]
        watched = observed(watched, sample(now, signals), PERIOD_MS)
        assert judge(watched, RULE, now, Instant(0)).standing is not Standing.IDLE
        for _ in range(min(minutes, 29) * 6):
            now = Instant(now + PERIOD_MS)
            idle_all = [Signal(kind=k, level=Level.IDLE) for k in SignalKind]
            watched = observed(watched, sample(now, idle_all), PERIOD_MS)
            assert judge(watched, RULE, now, Instant(0)).standing is not Standing.IDLE
        now = Instant(now + PERIOD_MS)
