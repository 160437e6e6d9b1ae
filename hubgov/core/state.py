"""The live picture: what runs, what waits, which devices and quota are taken.

Built from the ledger's records and changed only by `apply(change)`; undoing a change is applying it turned
round, which is how a what-if leaves no trace. Everything that can be derived is derived here, never stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from hubgov.clock import Instant
from hubgov.core import quota
from hubgov.core.amounts import HALF_LIVES
from hubgov.core.devices import DeviceKey, Node, SeenNode
from hubgov.core.inventory import capacity, inventory
from hubgov.core.model import (
    Allocation,
    AllocationId,
    Change,
    ChargeKey,
    Departure,
    ExtensionId,
    ExtensionRequest,
    Notice,
    PolicyText,
    QueueHold,
    Record,
    SaveRecord,
    Workload,
    WorkloadId,
)
from hubgov.core.past_use import PastUse, Segment
from hubgov.core.policy import Kind, Policy
from hubgov.core.quota import Place, QuotaTree
from hubgov.core.states import AllocationState, WorkloadState
from hubgov.core.watching import Watched

_K = TypeVar("_K")
_V = TypeVar("_V")


class State:
    """What is live now. `policy` and `nodes` come with it, so that a rule never needs a second source."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.policy_text: PolicyText | None = None
        self.seen: dict[str, SeenNode] = {}
        self.nodes: dict[str, Node] = inventory(policy, ())
        self.workloads: dict[WorkloadId, Workload] = {}
        self.allocations: dict[AllocationId, Allocation] = {}
        self.extensions: dict[ExtensionId, ExtensionRequest] = {}
        self.notices: dict[str, Notice] = {}
        self.saves: dict[str, SaveRecord] = {}
        self.holds: dict[str, QueueHold] = {}
        self.departures: dict[str, Departure] = {}
        self.on_device: dict[DeviceKey, tuple[AllocationId, ...]] = {}
        self.past = PastUse(policy.fairness.half_life_ms)
        self.last_seq = 0
        self.away: frozenset[Kind] = frozenset()
        """Kinds whose engine doesn't answer: nothing of them is admitted. Seen anew after a restart, not kept."""
        self.back_at: dict[Kind, Instant] = {}
        """When an engine that had been away answered again: start deadlines count from there."""
        self.watched: dict[AllocationId, Watched] = {}
        """What the samples of each running allocation add up to. Seen anew after a restart, not kept."""
        self.began = Instant(0)
        """When this process took over: nothing is stopped for idleness within the rule's grace of it."""
        self._trees: dict[tuple[ChargeKey, Instant | None], QuotaTree] = {}
        self._windowed: frozenset[ChargeKey] = quota.windowed(policy)
        self._memo: dict[Any, Any] = {}
        self._memo_at: tuple[Instant | None, dict[Any, Any]] = (None, {})

    # --- changing ------------------------------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Put the record after the change in the place of the one before. `change.undone` takes it back."""
        self._forget()
        if isinstance(change.before, Allocation):
            self._unbind(change.before)
        self._put(change)
        if isinstance(change.after, Allocation) and change.after.state.live:
            self._bind(change.after)

    @contextmanager
    def what_if(self) -> Iterator[list[Change]]:
        """A trial: append to the list what was applied inside; all of it is undone at the end."""
        applied: list[Change] = []
        known = self._memo, self._memo_at
        try:
            yield applied
        finally:
            for change in reversed(applied):
                self.apply(change.undone)
            self._memo, self._memo_at = known  # the picture is what it was

    def memo(self, now: Instant | None = None) -> dict[Any, Any]:
        """What was computed from the picture as it is, by whatever names it; gone with the next change. With `now`
        what holds at that instant only, of which the last one asked for is kept."""
        if now is None:
            return self._memo
        if self._memo_at[0] != now:
            self._memo_at = (now, {})
        return self._memo_at[1]

    def _forget(self) -> None:
        self._memo, self._memo_at = {}, (None, {})

    def _put(self, change: Change) -> None:
        record = change.after if change.after is not None else change.before
        gone = change.after is None
        match record:
            case Workload():
                _set(self.workloads, record.id, None if gone or not record.live else record)
                self._number(record, gone)
            case Allocation():
                _set(self.allocations, record.id, None if gone or not record.state.live else record)
                self._meter(record, gone)
            case ExtensionRequest():
                _set(self.extensions, record.id, None if gone else record)
            case Notice():
                _set(self.notices, record.id, None if gone else record)
            case SaveRecord():
                _set(self.saves, record.id, None if gone else record)
            case QueueHold():
                _set(self.holds, record.queue, None if gone or not record.held else record)
            case Departure():
                _set(self.departures, record.name, None if gone else record)
            case SeenNode():
                _set(self.seen, record.name, None if gone else record)
                self._rebuild_nodes()
            case PolicyText():
                self._use_policy(record)
            case None:
                raise ValueError("a change without a record")

    def _number(self, workload: Workload, gone: bool) -> None:
        """Numbers are given out one by one; a submission that is taken back gives its own back."""
        if gone and workload.seq == self.last_seq:
            self.last_seq -= 1
        elif not gone:
            self.last_seq = max(self.last_seq, workload.seq)

    def _use_policy(self, text: PolicyText) -> None:
        self.policy_text, self.policy = text, text.policy
        half_life = text.policy.fairness.half_life_ms
        if half_life != self.past.half_life_ms:
            self.past = PastUse(half_life, self.past.segments.values())
        self._rebuild_nodes()

    def _rebuild_nodes(self) -> None:
        self.nodes = inventory(self.policy, self.seen.values())
        self._windowed = quota.windowed(self.policy)
        self._trees.clear()

    def _bind(self, allocation: Allocation) -> None:
        for share in allocation.devices:
            self.on_device[share.key] = tuple(sorted((*self.on_device.get(share.key, ()), allocation.id)))

    def _unbind(self, allocation: Allocation) -> None:
        for share in allocation.devices:
            left = tuple(a for a in self.on_device.get(share.key, ()) if a != allocation.id)
            _set(self.on_device, share.key, left or None)

    def _meter(self, allocation: Allocation, gone: bool) -> None:
        """Keep the segment of past use that the ranking reads: open while charged, closed after."""
        if gone:
            self.past.drop(allocation.id)
            return
        if allocation.milli_gpus == 0:
            return
        workload = self.workloads.get(allocation.workload)
        known = self.past.segments.get(allocation.id)
        if known is None and workload is None:
            return
        place = known.place if known else quota.project_place(workload.project)  # type: ignore[union-attr]
        end = None if allocation.charged else allocation.since
        if known is not None and known.end is not None and not allocation.charged:
            end = known.end  # fenced first, free later: the team's use ended when the charge did
        self.past.put(Segment(allocation.id, place, allocation.milli_gpus, allocation.reserved_at, end))

    def tidy(self, now: Instant) -> None:
        """Forget what no rule asks for any more: notices, requests and saves of what is over, and use so long
        past that it weighs nothing. For the writer after a commit; never inside a what-if."""
        self.notices = {k: n for k, n in self.notices.items() if n.allocation in self.allocations}
        self.extensions = {k: e for k, e in self.extensions.items() if e.workload in self.workloads}
        self.saves = {k: s for k, s in self.saves.items() if s.workload in self.workloads}
        self.watched = {k: w for k, w in self.watched.items() if k in self.allocations}
        self._forget()
        self.past.forget_until(Instant(now - HALF_LIVES * self.policy.fairness.half_life_ms))

    def engine_away(self, kinds: frozenset[Kind]) -> None:
        """Nothing of these kinds is admitted until their engine is back."""
        self.away |= kinds
        self._forget()

    def engine_back(self, kinds: frozenset[Kind], now: Instant) -> None:
        """Their engine answers again."""
        self.away -= kinds
        self.back_at |= dict.fromkeys(kinds, now)
        self._forget()

    def watch(self, allocation: AllocationId, watched: Watched) -> None:
        """Take over what the samples of an allocation add up to. No memo depends on it but explanations, which are
        worked out anew every second."""
        self.watched[allocation] = watched

    def unwatch_kernel(self, allocation: AllocationId, kernel: str) -> None:
        """A kernel is gone, or was said not to be idle: what was seen of it counts no longer."""
        watched = self.watched.get(allocation)
        if watched is not None:
            rest = {name: seen for name, seen in watched.kernels.items() if name != kernel}
            self.watched[allocation] = replace(watched, kernels=rest)

    # --- reading -------------------------------------------------------------------------------------

    def pending(self) -> list[Workload]:
        """Who waits, in order of submission."""
        return sorted((w for w in self.workloads.values() if w.state is WorkloadState.PENDING), key=lambda w: w.seq)

    def allocation_of(self, workload: Workload) -> Allocation | None:
        """The live allocation of a workload, if it has one."""
        return self.allocations.get(workload.allocation) if workload.allocation else None

    def workload_of(self, allocation: Allocation) -> Workload:
        return self.workloads[allocation.workload]

    def known_since(self, name: str) -> Instant:
        """Since when whoever has this name has it: what was asked for before that was another's."""
        departure = self.departures.get(name)
        return departure.at if departure is not None else Instant(0)

    def place_of(self, workload: Workload) -> Place:
        """Where the workload's charge lies in the quota tree."""
        return quota.project_place(workload.project)

    def charge_keys(self) -> list[ChargeKey]:
        """Every (pool, flavor) that has devices or quota, sorted."""
        found = {(row.pool, row.flavor) for row in self.policy.quotas}
        for node in self.nodes.values():
            found |= {(d.pool, d.flavor) for d in node.devices if d.pool and d.flavor}
        return sorted(found)

    def charges(self, key: ChargeKey) -> Mapping[Place, int]:
        """Milli-GPUs charged on a (pool, flavor), by the place that carries the charge. To be read only."""
        if "charges" not in self._memo:
            totals: dict[ChargeKey, dict[Place, int]] = {}
            for allocation in self.allocations.values():
                if allocation.charged and allocation.charge_key is not None:
                    total = totals.setdefault(allocation.charge_key, {})
                    place = self.place_of(self.workload_of(allocation))
                    total[place] = total.get(place, 0) + allocation.milli_gpus
            self._memo["charges"] = totals
        found: dict[Place, int] = self._memo["charges"].get(key, {})
        return found

    def usage(self, key: ChargeKey, now: Instant) -> Mapping[Place, int]:
        """The use of each place of the quota tree of a (pool, flavor)."""
        known = self.memo(now)
        if ("usage", key) not in known:
            known["usage", key] = quota.usage(self.tree(key, now), self.charges(key))
        found: Mapping[Place, int] = known["usage", key]
        return found

    def tree(self, key: ChargeKey, now: Instant) -> QuotaTree:
        """The quota tree of a (pool, flavor) at `now`."""
        at = now if key in self._windowed else None
        if (key, at) not in self._trees:
            if len(self._trees) > 256:
                self._trees.clear()
            self._trees[key, at] = quota.build_tree(self.policy, key, capacity(self.nodes, *key), now)
        return self._trees[key, at]

    def free(self, key: DeviceKey) -> int:
        """Milli-GPUs of a device that no live allocation holds, fenced ones included in what is held."""
        return 1000 - sum(self._shares(key, "milli"))

    def free_memory(self, key: DeviceKey, memory_mib: int) -> int:
        """MiB of a device of that size that nobody was promised."""
        return memory_mib - sum(self._shares(key, "memory_mib"))

    def _shares(self, key: DeviceKey, field: str) -> Iterator[int]:
        for allocation_id in self.on_device.get(key, ()):
            for share in self.allocations[allocation_id].devices:
                if share.key == key:
                    yield getattr(share, field)

    def used_on_node(self, node: str) -> tuple[int, int]:
        """(cpus, MiB of RAM) that live allocations were given on a node; a gang has its CPUs on each of its own."""
        if "used" not in self._memo:
            used: dict[str, tuple[int, int]] = {}
            for allocation in self.allocations.values():
                if (allocation.cpus or allocation.ram_mib) and allocation.state is not AllocationState.LOST:
                    for name in nodes_of(allocation):
                        cpus, ram = used.get(name, (0, 0))
                        used[name] = (cpus + allocation.cpus, ram + allocation.ram_mib)
            self._memo["used"] = used
        found: tuple[int, int] = self._memo["used"].get(node, (0, 0))
        return found


def nodes_of(allocation: Allocation) -> frozenset[str]:
    """The nodes it is on: those of its devices, else the one it was placed on."""
    return frozenset(share.node for share in allocation.devices) or frozenset({allocation.node})


def _set(table: dict[_K, _V], key: _K, value: _V | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def record_id(record: Record) -> str:
    """What a record is known by within its kind."""
    match record:
        case QueueHold():
            return record.queue
        case SeenNode() | Departure():
            return record.name
        case PolicyText():
            return str(record.version)
        case _:
            return record.id
