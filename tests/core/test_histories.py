"""Random histories of a small site: the invariants of semantics §12 after every step (see `Play.check` too)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import DAY_MS, HOUR_MS, MINUTE_MS, Play, PolicyBuilder, a_policy, rebuilt, snapshot
from core.oracle import fits, may_be_looked_at
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from hubgov.clock import Instant
from hubgov.core.decide import choose, decide, eligible
from hubgov.core.due import due
from hubgov.core.entitlement import walk
from hubgov.core.explain import blockers, explain
from hubgov.core.model import Change
from hubgov.core.past_use import PastUse
from hubgov.core.policy import Caps, Fairness, Order, Placement, PriorityClass, RetryRule
from hubgov.core.ranking import lines
from hubgov.core.state import State
from hubgov.core.states import AllocationState, Event, WorkloadState

OWNERS = ("ann", "bo", "cy")
GRACE_AND_STOP = 7 * MINUTE_MS


def site(variant: int, names: dict[str, str] | None = None) -> PolicyBuilder:
    """Teams and users by number; `names` calls them something else. Eight variants of quota and order."""
    called = names or {}
    a, b, c = (called.get(team, team) for team in ("A", "B", "C"))
    policy = a_policy().flavor("g", price_micro_per_hour=(10 + variant // 3) * 10**6)
    policy.team("top", guaranteed=1, borrow=2 if variant & 1 else None)
    policy.team(a, parent="top", guaranteed=2, lend=1 if variant & 2 else None)
    policy.team(b, parent="top", borrow=1 if variant & 4 else None)
    policy.team(c, guaranteed=1, weight=0 if variant & 2 else 2)
    policy.node("n1", devices=3, islands=(2, 1), cpus=8).node("n2", devices=2, labels={"net": "ib"})
    policy.node("n3", devices=1, flavor="h")
    order = (Order.FAIR, Order.FIFO, Order.PRIORITY)[variant % 3]
    policy.pool("p", placement=Placement.SPREAD if variant & 1 else Placement.PACK, max_shares_per_device=3)
    policy.queue(
        "train", order=order, priority_range=(0, 2), retry=RetryRule(max=1, backoff_ms=MINUTE_MS),
        max_wait_ms=9 * HOUR_MS, warn_ms=(10 * MINUTE_MS,), allow=("non_preemptible",),
    )  # fmt: skip
    policy.extension("train", self_serve_count=2, step_ms=2 * HOUR_MS, max_total_ms=6 * HOUR_MS)
    policy.but(fairness=Fairness(half_life_ms=(7 * DAY_MS, HOUR_MS)[variant & 1]))
    policy.caps("train", per_user=Caps(workloads=4, milli_gpus=4000))
    return policy.queue("online", class_=PriorityClass.PROTECTED, priority=80, warn_ms=())


def _told(state: State, now: Instant) -> dict[str, Any]:
    """Everything that is worked out from a picture and may be remembered."""
    keys = state.charge_keys()
    return {
        "decisions": {w.id: explain(state, w, now) for w in state.workloads.values()},
        "lines": dict(lines(state, now)),
        "entitled": {key: dict(walk(state, key, now)) for key in keys},
        "usage": {key: dict(state.usage(key, now)) for key in keys},
        "charges": {key: dict(state.charges(key)) for key in keys},
        "nodes": {name: state.used_on_node(name) for name in state.nodes},
    }


class History(RuleBasedStateMachine):
    """One random history. Everything that happens is written down, to be played again under other names."""

    def __init__(self) -> None:
        super().__init__()
        self.variant = 0
        self.play = Play(site(0))
        self.script: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.names: list[str] = []

    def do(self, what: str, *args: Any, **words: Any) -> None:
        self.script.append((what, args, words))
        getattr(self.play, what)(*args, **words)

    # --- people --------------------------------------------------------------------------------------

    @rule(
        team=st.sampled_from("ABC"),
        owner=st.sampled_from(OWNERS),
        gpus=st.sampled_from([0, 0.25, 0.5, 1, 2, 3, (1, 2, 4)]),
        queue=st.sampled_from(["train", "train", "train", "online"]),
        priority=st.integers(0, 2),
        extra=st.sampled_from(
            [{}, {}, {}, {"nodes": 2, "gpus": 2}, {"nodes": 0}, {"need": {"net": "ib"}}, {"cpus": 3},
             {"memory_mib": 60 * 1024}, {"flavors": ("h",)}, {"lease_ms": HOUR_MS}, {"preemptible": False}]
        ),
    )  # fmt: skip
    def submit(self, team: str, owner: str, gpus: Any, queue: str, priority: int, extra: dict[str, Any]) -> None:
        name = f"w{len(self.names)}"
        words = {"team": team, "owner": owner, "gpus": gpus, "queue": queue} | extra
        if queue == "online":
            words.pop("preemptible", None)
        else:
            words["priority"] = priority
        self.do("submit", name, **words)
        if name in self.play.state.workloads or name in self.play.ended:
            self.names.append(name)

    def one(self, pick: int) -> str | None:
        live = [n for n in self.names if n in self.play.state.workloads]
        return live[pick % len(live)] if live else None

    def on_one(self, pick: int, what: str, *args: Any, **words: Any) -> None:
        name = self.one(pick)
        if name is not None:
            self.do(what, name, *args, **words)

    @rule(pick=st.integers(0, 50), now=st.booleans())
    def cancel(self, pick: int, now: bool) -> None:
        self.on_one(pick, "cancel", now=now)

    @rule(pick=st.integers(0, 50), by=st.sampled_from([MINUTE_MS, HOUR_MS, 2 * HOUR_MS, 5 * HOUR_MS]))
    def extend(self, pick: int, by: int) -> None:
        """Extension and expiry: exactly one wins."""
        name = self.one(pick)
        if name is None:
            return
        before = self.play.allocation(name)
        self.do("extend", name, by)
        after = self.play.allocation(name)
        if before is None or after is None or before.lease == after.lease:
            return
        assert before.state in ("running", "expiring")
        assert after.state == "running"
        assert after.lease.version == before.lease.version + 1
        assert after.lease.expires_at is not None
        assert before.lease.expires_at is not None
        assert after.lease.expires_at == before.lease.expires_at + by
        assert after.lease.expires_at <= (after.lease.hard_end_at or after.lease.expires_at)

    # --- engines -------------------------------------------------------------------------------------

    @rule(pick=st.integers(0, 50))
    def start(self, pick: int) -> None:
        self.on_one(pick, "launch")
        self.on_one(pick, "ready")

    @rule(pick=st.integers(0, 50), code=st.sampled_from([0, 0, 1]))
    def exit(self, pick: int, code: int) -> None:
        self.on_one(pick, "exit", code)

    @rule(pick=st.integers(0, 50))
    def gone(self, pick: int) -> None:
        self.on_one(pick, "gone")

    @rule(pick=st.integers(0, 50))
    def finish(self, pick: int) -> None:
        name = self.one(pick)
        if name is not None:
            self.do("exit", name, 0)
            self.do("gone", name)

    @rule(
        pick=st.integers(0, 50),
        event=st.sampled_from(
            [
                Event.LAUNCHED,
                Event.READY,
                Event.NODE_SILENT,
                Event.NODE_BACK,
                Event.NODE_LOST,
                Event.UNKNOWN_TO_ENGINE,
            ]
        ),
    )
    def report(self, pick: int, event: Event) -> None:
        self.on_one(pick, "event", event)

    # --- time and admins -----------------------------------------------------------------------------

    @rule(span=st.sampled_from([1, MINUTE_MS, 5 * MINUTE_MS, 16 * MINUTE_MS, HOUR_MS, 4 * HOUR_MS]))
    def tick(self, span: int) -> None:
        self.do("tick", span)

    @precondition(lambda self: not self.play.state.holds)
    @rule(queue=st.sampled_from(["train", "online"]), closed=st.booleans())
    def hold(self, queue: str, closed: bool) -> None:
        self.do("hold", queue, closed=closed)

    @precondition(lambda self: bool(self.play.state.holds))
    @rule()
    def release(self) -> None:
        for queue in list(self.play.state.holds):
            self.do("release", queue)

    @rule(node=st.sampled_from(["n1", "n2"]), drained=st.booleans(), sick=st.sampled_from([(), (), (0,), (0, 1)]))
    def node(self, node: str, drained: bool, sick: tuple[int, ...]) -> None:
        self.do("node_is", node, drained=drained, sick=sick)

    @rule(variant=st.integers(0, 7))
    def edit(self, variant: int) -> None:
        self.script.append(("edit", (variant,), {}))
        self.play.edit(site(variant))

    # --- after every step ----------------------------------------------------------------------------

    @invariant()
    def nothing_that_waits_fits(self) -> None:
        """Work conservation, by the oracle's own search."""
        play = self.play
        for workload in play.state.pending():
            assert eligible(play.state, workload, play.now) == may_be_looked_at(play.state, workload, play.now)
            could = fits(play.state, workload, play.now)
            assert could == (choose(play.state, workload, play.now) is not None), workload.id
            assert not (could and eligible(play.state, workload, play.now)), f"{workload.id} fits and waits"

    @invariant()
    def a_gang_has_all_or_none(self) -> None:
        for allocation in self.play.state.allocations.values():
            workload = self.play.state.workload_of(allocation)
            assert allocation.milli_gpus in workload.request.milli_gpus
            nodes = {s.node for s in allocation.devices}
            if workload.request.nodes > 1:
                assert len(nodes) == workload.request.nodes
            elif workload.request.nodes == 1:
                assert len(nodes) <= 1

    @invariant()
    def looking_changes_nothing(self) -> None:
        """decide, due and explain are pure, and say the same when asked again."""
        play = self.play
        before = snapshot(play.state)
        assert decide(play.state, play.now) == ()
        assert due(play.state, play.now) == ()
        first = [explain(play.state, w, play.now) for w in play.state.workloads.values()]
        assert first == [explain(play.state, w, play.now) for w in play.state.workloads.values()]
        assert snapshot(play.state) == before

    @invariant()
    def what_is_remembered_is_what_is_so(self) -> None:
        """A picture asked before says what one says that was never asked; in a what-if and after it too."""
        play = self.play
        assert _told(play.state, play.now) == _told(rebuilt(play.state), play.now)
        for allocation in list(play.state.allocations.values())[:1]:
            gone = replace(allocation, state=AllocationState.RELEASED, ended_at=play.now)
            change = Change(event="what_if", before=allocation, after=gone, actor="test")
            workload = play.state.workload_of(allocation)
            waits = replace(workload, state=WorkloadState.PENDING, allocation=None, pending_since=play.now)
            again = Change(event="what_if", before=workload, after=waits, actor="test")
            with play.state.what_if() as applied:
                for step in (change, again):
                    play.state.apply(step)
                    applied.append(step)
                assert _told(play.state, play.now) == _told(rebuilt(play.state), play.now)
        assert _told(play.state, play.now) == _told(rebuilt(play.state), play.now)

    @invariant()
    def whoever_waits_is_told_why(self) -> None:
        play = self.play
        for workload in play.state.pending():
            found = blockers(play.state, workload, play.now)
            assert found, f"{workload.id} waits without a reason"
            assert all(b.have < b.need for b in found), found

    @invariant()
    def undoing_is_exact(self) -> None:
        """Take back everything that ever happened, and do it again."""
        play = self.play
        if len(play.entries) > 400:
            return
        after = snapshot(play.state)
        for entry in reversed(play.entries[-60:]):
            play.state.apply(entry.change.undone)
        for entry in play.entries[-60:]:
            play.state.apply(entry.change)
        assert snapshot(play.state) == after
        past = play.state.past
        assert past.sums == PastUse(past.half_life_ms, past.segments.values()).sums

    def teardown(self) -> None:
        self._other_names_same_outcome()
        self._everything_ends()

    def _other_names_same_outcome(self) -> None:
        """Invariant 17: names are labels. The order of the alphabet is kept, since ids break ties."""
        names = {"A": "Anemone", "B": "Borage", "C": "Clover"}
        owners = {"ann": "xan", "bo": "yve", "cy": "zoe"}
        again = Play(site(0, names))
        for what, args, words in self.script:
            if what == "edit":
                again.edit(site(args[0], names))
                continue
            words = dict(words)
            if what == "submit":
                words |= {"team": names[words["team"]], "owner": owners[words["owner"]]}
            getattr(again, what)(*args, **words)
        assert again.log == self.play.log

    def _everything_ends(self) -> None:
        """Whatever the history: once all are cancelled and gone, nothing is charged and nothing is held."""
        play = self.play
        for queue in list(play.state.holds):
            play.release(queue)
        for _ in range(3):
            for name in list(play.state.workloads):
                play.cancel(name)
                play.gone(name)
            play.tick(GRACE_AND_STOP)
        assert (play.state.workloads, play.state.allocations, play.state.on_device) == ({}, {}, {})
        assert all(sum(deltas) == 0 for deltas in play.charges.values())
        play.state.tidy(play.now)
        assert (play.state.notices, play.state.extensions) == ({}, {})


def test_random_histories() -> None:
    run_state_machine_as_test(History, settings=settings(max_examples=25, stateful_step_count=30, deadline=None))


@pytest.mark.slow
def test_many_random_histories() -> None:
    run_state_machine_as_test(History, settings=settings(max_examples=400, stateful_step_count=60, deadline=None))
