"""Readable builders of core values, and a `Play`: the core folded over a fake clock as the governor does it.

    play = Play(a_policy().node("box", devices=4).team("A", guaranteed=2).team("B"))
    play.submit("a", team="A", gpus=2)
    assert play.state_of("a") == "admitted"

GPUs are given in cards (0.5 = half of one), the rest in the core's own units. A project of the same name comes
with each team. `Play` checks the invariants after every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

from hubgov.clock import FakeClock, Instant
from hubgov.core import quota
from hubgov.core.decide import choose, decide, eligible
from hubgov.core.decision import Decision, Outcome
from hubgov.core.devices import Health, SeenDevice, SeenNode
from hubgov.core.due import due
from hubgov.core.entitlement import walk
from hubgov.core.explain import explain
from hubgov.core.lease import ExtensionVerdict, judge_extension
from hubgov.core.metering import Entry, UsageSegment, entry, tariffs_ended
from hubgov.core.model import (
    Allocation,
    AllocationId,
    Change,
    ExtensionId,
    ExtensionRequest,
    ExtensionState,
    PolicyText,
    QueueHold,
    Request,
    Workload,
    WorkloadId,
)
from hubgov.core.past_use import PastUse
from hubgov.core.policy import (
    HOUR_MS,
    MINUTE_MS,
    Caps,
    CapSet,
    ExtensionRule,
    Fairness,
    Flavor,
    Kind,
    LeaseRule,
    Mode,
    NodeRule,
    Ownership,
    Placement,
    Policy,
    Pool,
    Project,
    Queue,
    QuotaRow,
    Team,
    Window,
)
from hubgov.core.screening import must_be_entitled, refusal
from hubgov.core.state import State
from hubgov.core.states import Event
from hubgov.core.transitions import cancelled, exited, moved, submitted

START = FakeClock().now()
"""2026-03-02 09:00 UTC, a Monday."""
SECOND_MS = 1000
DAY_MS = 24 * HOUR_MS
GIB = 1024

__all__ = [
    "DAY_MS",
    "GIB",
    "HOUR_MS",
    "MINUTE_MS",
    "SECOND_MS",
    "START",
    "Play",
    "a_policy",
    "a_state",
    "a_workload",
    "milli",
    "rebuilt",
    "snapshot",
]


def milli(cards: float | None) -> int | None:
    """Cards as milli-GPUs; None stays None (no limit)."""
    return None if cards is None else round(cards * 1000)


class PolicyBuilder:
    """A policy in the making; each call answers with the builder, `build()` with the policy."""

    def __init__(self) -> None:
        self.flavors = {
            "g": Flavor(name="g", vendor="nvidia", model="Card G", memory_mib=80 * GIB, price_micro_per_hour=10**7),
            "h": Flavor(
                name="h", vendor="nvidia", model="Card H", memory_mib=48 * GIB, price_micro_per_hour=6 * 10**6
            ),
        }
        self.pools: dict[str, Pool] = {}
        self.nodes: dict[str, NodeRule] = {}
        self.teams: dict[str, Team] = {}
        self.projects: dict[str, Project] = {}
        self.queues: dict[str, Queue] = {}
        self.windows: dict[str, Window] = {}
        self.rows: list[QuotaRow] = []
        self.rest: dict[str, Any] = {
            "fairness": Fairness(),
            "mode": Mode.ENFORCE,
            "timezone": "UTC",
            "currency": "CNY",
        }
        self.pool("p").queue("train")

    def flavor(self, name: str, **rules: Any) -> Self:
        known = self.flavors.get(
            name, Flavor(name=name, vendor="nvidia", model=f"Card {name}", memory_mib=80 * GIB)
        )
        self.flavors[name] = replace(known, **rules)
        return self

    def pool(self, name: str, **rules: Any) -> Self:
        owner = Ownership(team="lab", project=None, environment="experiment", owner="ops")
        self.pools[name] = replace(self.pools.get(name, Pool(name=name, engine="local", ownership=owner)), **rules)
        return self

    def node(self, name: str, *, devices: int = 0, flavor: str = "g", pool: str = "p", **rules: Any) -> Self:
        self.nodes[name] = NodeRule(name=name, pool=pool, flavor=flavor, devices=devices, **rules)
        return self

    def team(
        self,
        name: str,
        *,
        parent: str | None = None,
        weight: int = 1,
        guaranteed: float | None = None,
        borrow: float | None = None,
        lend: float | None = None,
        **rules: Any,
    ) -> Self:
        """A team with a project of the same name, and its quota on (p, g) where any of the three is given."""
        self.teams[name] = Team(name=name, parent=parent, weight=weight)
        self.project(name, team=name, **rules)
        if (guaranteed, borrow, lend) != (None, None, None):
            self.quota(name, guaranteed=guaranteed or 0, borrow=borrow, lend=lend)
        return self

    def project(self, name: str, *, team: str, **rules: Any) -> Self:
        self.projects[name] = Project(name=name, team=team, environment="experiment", owner="ops", **rules)
        return self

    def quota(
        self,
        team: str | None = None,
        *,
        project: str | None = None,
        guaranteed: float = 0,
        borrow: float | None = None,
        lend: float | None = None,
        flavor: str = "g",
        pool: str = "p",
        window: str | None = None,
        unset: tuple[str, ...] = (),
    ) -> Self:
        self.rows.append(
            QuotaRow(
                team=team, project=project, pool=pool, flavor=flavor, guaranteed=round(guaranteed * 1000),
                borrow=milli(borrow), lend=milli(lend), window=window, unset=unset,
            )
        )  # fmt: skip
        return self

    def window(self, name: str, *, opens: int, closes: int, days: Sequence[int] = tuple(range(7))) -> Self:
        """`opens` and `closes` in minutes after midnight."""
        self.windows[name] = Window(name=name, days=tuple(days), opens=opens, closes=closes)
        return self

    def queue(self, name: str, **rules: Any) -> Self:
        known = self.queues.get(
            name,
            Queue(
                name=name, kinds=(Kind.TRAINING, Kind.NOTEBOOK), pools=tuple(self.pools), priority=50, warn_ms=()
            ),
        )
        self.queues[name] = replace(known, **rules)
        return self

    def extension(self, queue: str = "train", **rules: Any) -> Self:
        return self.queue(queue, extension=ExtensionRule(**rules))

    def lease(self, queue: str = "train", *, default_ms: int | None, max_ms: int | None = None) -> Self:
        return self.queue(queue, lease=LeaseRule(default_ms=default_ms, max_ms=max_ms))

    def caps(self, queue: str | None = None, **per: Caps) -> Self:
        """`per_user`, `per_project`, `total`: of a queue, or over all."""
        if queue is None:
            self.rest["caps"] = CapSet(**per)
            return self
        return self.queue(queue, caps=CapSet(**per))

    def but(self, **rules: Any) -> Self:
        """Any other field of the policy."""
        self.rest |= rules
        return self

    def spread(self) -> Self:
        return self.pool("p", placement=Placement.SPREAD)

    def build(self, version: int = 1) -> Policy:
        return Policy(
            version=version,
            defaults=Ownership(team="lab", project=None, environment="experiment", owner="ops"),
            flavors=dict(self.flavors),
            pools=dict(self.pools),
            nodes=dict(self.nodes),
            teams=dict(self.teams),
            projects=dict(self.projects),
            queues=dict(self.queues),
            quotas=tuple(self.rows),
            windows=dict(self.windows),
            **self.rest,
        )


def a_policy() -> PolicyBuilder:
    """Pool p with the cards g (80 GiB) and h (48 GiB), a queue `train` on it, no nodes and no teams yet."""
    return PolicyBuilder()


def a_state(policy: PolicyBuilder, *records: Any) -> State:
    """The live picture of a policy, with these records in it."""
    built = policy.build()
    state = State(built)
    text = PolicyText(version=1, text="", applied_at=Instant(0), applied_by="ops", policy=built)
    for record in (text, *records):
        state.apply(Change(event="loaded", before=None, after=record, actor="test"))
    return state


def a_workload(
    name: str = "w",
    *,
    team: str = "A",
    project: str | None = None,
    gpus: float | tuple[float, ...] = 1,
    queue: str = "train",
    owner: str = "ann",
    kind: Kind = Kind.TRAINING,
    priority: int = 0,
    seq: int = 1,
    at: Instant = START,
    **request: Any,
) -> Workload:
    """A waiting workload whose id is its name. Other words are fields of its request."""
    counts = gpus if isinstance(gpus, tuple) else (gpus,)
    return Workload(
        id=WorkloadId(name),
        seq=seq,
        name=name,
        kind=kind,
        owner=owner,
        team=team,
        project=project or team,
        environment="experiment",
        queue=queue,
        priority=priority,
        request=Request(milli_gpus=tuple(round(c * 1000) for c in counts), **request),
        submitted_at=at,
        eligible_since=at,
        pending_since=at,
    )


def rebuilt(state: State) -> State:
    """The same picture put together anew from its records: nothing was ever asked of it."""
    again = State(state.policy)
    again.policy_text = state.policy_text
    for kind in ("seen", "holds", "workloads", "allocations", "extensions", "notices", "saves"):
        for record in getattr(state, kind).values():
            again.apply(Change(event="loaded", before=None, after=record, actor="test"))
    again.past = PastUse(state.past.half_life_ms, state.past.segments.values())
    again.last_seq, again.away, again.back_at = state.last_seq, state.away, dict(state.back_at)
    return again


def snapshot(state: State) -> dict[str, Any]:
    """Everything that a State holds, for a comparison before and after; the records themselves never change."""
    names = ["seen", "nodes", "workloads", "allocations", "extensions", "notices", "saves", "holds", "departures"]
    names += ["on_device"]
    kept: dict[str, Any] = {name: dict(getattr(state, name)) for name in names}
    kept |= {"segments": dict(state.past.segments), "past_use": dict(state.past.sums)}
    return kept | {"policy": state.policy, "policy_text": state.policy_text, "last_seq": state.last_seq}


class Play:
    """One story in virtual time. `wrote` hears of every unit of changes, as the ledger would."""

    def __init__(
        self, policy: PolicyBuilder, *, wrote: Callable[[list[Entry], Instant], None] | None = None, at: int = START
    ) -> None:
        self.state = a_state(policy)
        self.now = Instant(at)
        self.entries: list[Entry] = []
        self.charges: dict[AllocationId, list[int]] = {}
        self.segments: dict[str, list[UsageSegment]] = {}
        self.ended: dict[str, Workload] = {}
        self.log: list[str] = []
        self._wrote = wrote
        self._texts = 1

    # --- what people and engines do ------------------------------------------------------------------

    def submit(self, name: str, **words: Any) -> Decision | None:
        """In line, or the Decision that refuses it."""
        workload = a_workload(name, seq=self.state.last_seq + 1, at=self.now, **words)
        refused = refusal(self.state, workload, self.now)
        if refused is None:
            self.unit(lambda: submitted(workload, workload.owner))
        return refused

    def launch(self, name: str) -> None:
        self.event(name, Event.LAUNCHED, launched_at=self.now)

    def ready(self, name: str) -> None:
        self.event(name, Event.READY)

    def start(self, *names: str) -> None:
        """Launched and ready, at once."""
        for name in names:
            self.launch(name)
            self.ready(name)

    def run(self, name: str, **words: Any) -> None:
        """Submitted, admitted and running."""
        assert self.submit(name, **words) is None
        self.start(name)
        assert self.state_of(name) == "running", (name, self.state_of(name))

    def exit(self, name: str, code: int = 0) -> None:
        allocation = self.allocation(name)
        if allocation is not None:
            self.unit(lambda: exited(self.state, allocation, self.now, code=code))

    def gone(self, name: str) -> None:
        self.event(name, Event.GONE)

    def finish(self, name: str, code: int = 0) -> None:
        """The process ended and its devices are free."""
        self.exit(name, code)
        self.gone(name)

    def cancel(self, name: str, *, now: bool = False) -> None:
        workload = self.state.workloads.get(WorkloadId(name))
        if workload is not None:
            self.unit(
                lambda: cancelled(
                    self.state, workload, self.now, actor=workload.owner, reason="", code="cancelled", now=now
                )
            )

    def extend(self, name: str, by_ms: int) -> ExtensionVerdict | None:
        """The verdict, carried out where it grants; None where nothing runs that could be extended."""
        workload = self.state.workloads.get(WorkloadId(name))
        allocation = self.allocation(name)
        if workload is None or allocation is None or allocation.outcome is not None or not allocation.started_at:
            return None
        verdict = judge_extension(self.state.policy, workload, allocation, by_ms, self.now)
        self.unit(lambda: self._extension(workload, allocation, verdict, by_ms))
        return verdict

    def _extension(
        self, workload: Workload, allocation: Allocation, verdict: ExtensionVerdict, by_ms: int
    ) -> list[Change]:
        number = 1 + sum(1 for e in self.state.extensions.values() if e.workload == workload.id)
        states = {Outcome.GRANTED: ExtensionState.GRANTED, Outcome.NEEDS_APPROVAL: ExtensionState.NEEDS_APPROVAL}
        request = ExtensionRequest(
            id=ExtensionId(f"{workload.id}-x{number}"), workload=workload.id, by_ms=by_ms, reason="more time",
            requested_by=workload.owner, requested_at=self.now,
            state=states.get(verdict.decision.outcome, ExtensionState.DENIED), code=verdict.decision.code,
            lease_version=allocation.lease.version,
        )  # fmt: skip
        changes = [Change(event="extension_needs_approval", before=None, after=request, actor=workload.owner)]
        if verdict.lease is not None:
            steps = moved(
                self.state, allocation, Event.EXTENDED, self.now, actor=workload.owner, lease=verdict.lease,
                stop_at=None, halted_at=None,
            )  # fmt: skip
            counted = [c.after for c in steps if isinstance(c.after, Workload)][-1] if steps else None
            changes += steps
            if counted is not None:
                after = replace(counted, extensions_used=counted.extensions_used + 1)
                changes.append(Change(event="extension_counted", before=counted, after=after, actor=workload.owner))
        return changes

    def event(self, name: str, event: Event, **updates: Any) -> None:
        """Any event of an engine, late and double ones too."""
        allocation = self.allocation(name)
        if allocation is not None:
            self.unit(lambda: moved(self.state, allocation, event, self.now, **updates))

    # --- what admins and time do ---------------------------------------------------------------------

    def tick(self, span_ms: int = SECOND_MS) -> None:
        self.now = Instant(self.now + span_ms)
        self.unit(lambda: ())

    def hold(self, queue: str = "train", *, closed: bool = False) -> None:
        self._hold(QueueHold(queue=queue, held=True, closed=closed, by="ops", reason="upkeep", at=self.now))

    def release(self, queue: str = "train") -> None:
        self._hold(QueueHold(queue=queue, held=False, closed=False, by="ops", reason="", at=self.now))

    def _hold(self, after: QueueHold) -> None:
        before = self.state.holds.get(after.queue)
        event = "queue_held" if after.held else "queue_released"
        self.unit(lambda: [Change(event=event, before=before, after=after, actor="ops")])

    def node_is(
        self, name: str, *, drained: bool = False, sick: Iterable[int] = (), reachable: bool = True
    ) -> None:
        """What a probe finds of a node from now on."""
        node = self.state.nodes[name]
        bad = frozenset(sick)
        devices = tuple(
            SeenDevice(
                index=d.index, uuid=d.uuid, model=self.state.policy.flavors[d.flavor or ""].model,
                memory_mib=d.memory_mib, health=Health.SICK if d.index in bad else Health.OK,
            )
            for d in node.devices
        )  # fmt: skip
        after = SeenNode(
            name=name, hostname=name, cpus=node.cpus or 0, ram_mib=node.ram_mib or 0, devices=devices,
            drained=drained, reachable=reachable,
        )  # fmt: skip
        before = self.state.seen.get(name)
        self.unit(lambda: [Change(event="node_seen", before=before, after=after, actor="probe")])

    def edit(self, policy: PolicyBuilder) -> None:
        """Apply another version of the policy."""
        self._texts += 1
        after = PolicyText(
            version=self._texts, text=f"version {self._texts}", applied_at=self.now, applied_by="ops",
            policy=policy.build(self._texts),
        )  # fmt: skip
        before = self.state.policy_text
        edit = Change(event="policy_applied", before=before, after=after, actor="ops")
        self.unit(lambda: [*tariffs_ended(self.state, edit, self.now), edit])

    # --- one unit of work ----------------------------------------------------------------------------

    def unit(self, intent: Callable[[], Iterable[Change]]) -> None:
        """The intent, what is due, who starts; then the invariants, then the ledger."""
        begin = len(self.entries)
        self._write(intent())
        while self._write(due(self.state, self.now)):
            pass
        self._write(decide(self.state, self.now))
        self.check()
        if self._wrote is not None and len(self.entries) > begin:
            self._wrote(self.entries[begin:], self.now)

    def _write(self, changes: Iterable[Change]) -> bool:
        wrote = False
        for change in changes:
            made = entry(self.state, change)
            before = self._room(change)
            self.state.apply(change)
            self._book(made)
            if before is not None:
                self._check_admission(change, before)
            wrote = True
        return wrote

    def _book(self, made: Entry) -> None:
        self.entries.append(made)
        change, after = made.change, made.change.after
        self.log.append(f"{change.event} {getattr(after, 'id', '')}")
        for segment in made.segments:
            self.segments.setdefault(segment.allocation, []).append(segment)
        if isinstance(after, Workload) and not after.live:
            self.ended[after.id] = after
        if isinstance(after, Allocation):
            held = sum(self.charges.get(after.id, ()))
            now = after.milli_gpus if after.charged else 0
            if now != held:
                self.charges.setdefault(after.id, []).append(now - held)

    def _room(self, change: Change) -> dict[quota.Place, int] | None:
        """What every place on the way up may still take, before an admission."""
        after = change.after
        if change.event != "allocation_reserved" or not isinstance(after, Allocation) or after.charge_key is None:
            return None
        return self._available(after)

    def _available(self, allocation: Allocation) -> dict[quota.Place, int]:
        assert allocation.charge_key is not None
        tree = self.state.tree(allocation.charge_key, self.now)
        used = quota.usage(tree, self.state.charges(allocation.charge_key))
        place = self.state.place_of(self.state.workload_of(allocation))
        return {above: quota.available(tree, used, above) for above in tree.path(place)}

    # --- the invariants of semantics §12 that hold after every step -----------------------------------

    def _check_admission(self, change: Change, before: dict[quota.Place, int]) -> None:
        allocation = change.after
        assert isinstance(allocation, Allocation)
        after = self._available(allocation)
        leaf = self.state.place_of(self.state.workload_of(allocation))
        assert after[leaf] >= 0, f"{allocation.id} was admitted beyond its quota: {after}"
        if must_be_entitled(self.state, self.state.workload_of(allocation)) and allocation.charge_key is not None:
            assert walk(self.state, allocation.charge_key, self.now)[allocation.id], f"{allocation.id} borrows"
        for place, room in after.items():
            assert room >= 0 or room == before[place], f"{allocation.id} overdraws {place}: {room}"
        for share in allocation.devices:
            node = self.state.nodes[share.node]
            device = next(d for d in node.devices if d.index == share.index)
            assert (node.accepts, device.health) == (True, Health.OK), f"{allocation.id} got {share}"
            assert (device.pool, device.flavor) == allocation.charge_key

    def check(self) -> None:
        self._check_charges()
        self._check_devices()
        self._check_segments()
        self._check_conservation()
        for allocation in self.state.allocations.values():
            expires_at = allocation.lease.expires_at
            if allocation.state == "running" and expires_at and self.state.policy.mode is Mode.ENFORCE:
                assert self.now < expires_at, f"{allocation.id} runs on after its end"

    def _check_charges(self) -> None:
        for allocation_id, deltas in self.charges.items():
            live = self.state.allocations.get(allocation_id)
            charge = live.milli_gpus if live is not None and live.charged else 0
            assert sum(deltas) == charge, (allocation_id, deltas)
            assert all(sum(deltas[:n]) >= 0 for n in range(len(deltas)))

    def _check_devices(self) -> None:
        used: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for allocation in self.state.allocations.values():
            assert sum(s.milli for s in allocation.devices) == allocation.milli_gpus, allocation.id
            for share in allocation.devices:
                used.setdefault(share.key, []).append((share.milli, share.memory_mib))
        sizes = {d.key: d.memory_mib for n in self.state.nodes.values() for d in n.devices}
        for key, shares in used.items():
            assert sum(m for m, _ in shares) <= 1000, (key, shares)
            assert sum(m for _, m in shares) <= sizes.get(key, 1 << 60), (key, shares)
        assert {k: len(v) for k, v in used.items()} == {k: len(v) for k, v in self.state.on_device.items()}

    def _check_segments(self) -> None:
        """The spans of an allocation lie end to end from its reservation on: their sum is wall time × share."""
        for allocation_id, spans in self.segments.items():
            for one, next_ in pairwise(spans):
                assert one.ended == next_.began, (allocation_id, one, next_)
            live = self.state.allocations.get(AllocationId(allocation_id))
            if live is not None:
                assert (spans[0].began, spans[-1].ended) == (live.reserved_at, live.since), allocation_id

    def _check_conservation(self) -> None:
        for workload in self.state.pending():
            if eligible(self.state, workload, self.now):
                assert choose(self.state, workload, self.now) is None, f"{workload.id} fits and waits"

    # --- reading -------------------------------------------------------------------------------------

    def workload(self, name: str) -> Workload:
        """The workload, live or ended."""
        found = self.state.workloads.get(WorkloadId(name)) or self.ended.get(name)
        assert found is not None, f"no workload {name}"
        return found

    def allocation(self, name: str) -> Allocation | None:
        workload = self.state.workloads.get(WorkloadId(name))
        return self.state.allocation_of(workload) if workload is not None else None

    def bound(self, name: str) -> Allocation:
        """The allocation, which must be there."""
        found = self.allocation(name)
        assert found is not None, f"{name} holds nothing"
        return found

    def state_of(self, name: str) -> str:
        """The state of its allocation while it has one, else its own."""
        allocation = self.allocation(name)
        return allocation.state.value if allocation is not None else self.workload(name).state.value

    def states(self, *names: str) -> dict[str, str]:
        return {name: self.state_of(name) for name in names}

    def holding(self) -> set[str]:
        """Who holds devices, or a place on a node."""
        return {str(a.workload) for a in self.state.allocations.values()}

    def admitted(self) -> list[str]:
        """Who was admitted, in that order."""
        return [str(e.change.after.workload) for e in self.entries
                if e.change.event == "allocation_reserved" and isinstance(e.change.after, Allocation)]  # fmt: skip

    def why(self, name: str) -> Decision:
        return explain(self.state, self.workload(name), self.now)

    def usage(self, team: str) -> int:
        """Milli-GPUs charged to a team's own workloads."""
        return sum(
            a.milli_gpus for a in self.state.allocations.values()
            if a.charged and self.state.workload_of(a).team == team
        )  # fmt: skip
