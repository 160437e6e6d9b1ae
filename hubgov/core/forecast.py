"""By when who waits will start, if the line and the leases stay as they are: `latest_start`, basis `bound`.

No promise: what ends early may let somebody behind start, and keep who is ahead waiting for longer than was told.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

from hubgov.clock import Instant
from hubgov.core import caps, quota
from hubgov.core.decide import choose
from hubgov.core.model import Allocation, AllocationId, Change, Workload, WorkloadId
from hubgov.core.placement import offers
from hubgov.core.ranking import Ranking
from hubgov.core.release import free_by, released
from hubgov.core.state import State
from hubgov.core.transitions import admitted


def latest_starts(state: State, now: Instant) -> Mapping[WorkloadId, Instant]:
    """The time by which each waiting workload starts; those without a bound are left out.

    Leases end one after another and windows open and close; at each such moment whoever is next by today's order
    and fits takes what is free, for its own lease and grace. So nobody is promised what somebody ahead of him will
    take. Who waits behind an endless lease, a held queue or other work has no bound.
    """
    return future(state, now).found


def future(state: State, now: Instant) -> Future:
    """The line played on from now; kept with the picture while nothing was to happen meanwhile."""
    known: Future | None = state.memo().get(Future)
    if known is not None and known.holds_at(now):
        return known
    with state.what_if() as applied:
        played = Future(state, applied, now)
        played.play()
    state.memo()[Future] = played
    return played


@dataclass(slots=True)
class Future:
    """A trial run of the line, on a picture that is put back afterwards."""

    state: State
    applied: list[Change]
    now: Instant
    found: dict[WorkloadId, Instant] = field(default_factory=dict)
    first: Instant | None = None
    """The first moment after now at which anything happens."""
    _moments: list[tuple[Instant, str]] = field(default_factory=list)
    _line: list[Workload] = field(default_factory=list)

    def holds_at(self, instant: Instant) -> bool:
        """Whether it is as good as a new one at that instant: nothing was to happen in the meantime."""
        return self.now <= instant and (self.first is None or instant < self.first)

    def play(self) -> None:
        """Let everything happen that is due, in order, until nobody waits who has a bound."""
        now = self.now
        waiting = [w for w in self.state.pending() if self._has_a_bound(w)]
        self._line = [standing.workload for standing in Ranking(self.state, now).in_order(waiting)]
        for allocation in list(self.state.allocations.values()):
            self._expect_end(allocation)
        self._expect_edges(now)
        self._admit(now)
        while self._line and self._moments:
            # One by one also where several fall on the same instant: what is free first may go to somebody small.
            moment, allocation_id = heapq.heappop(self._moments)
            at = max(now, moment)
            self._release(allocation_id, at)
            self.first = self.first if self.first is not None else at
            self._admit(at)

    def _has_a_bound(self, workload: Workload) -> bool:
        awaits = any(other in self.state.workloads for other in workload.request.after)
        return workload.queue not in self.state.holds and workload.kind not in self.state.away and not awaits

    def _expect_end(self, allocation: Allocation) -> None:
        end = free_by(self.state, allocation)
        if end is not None:
            heapq.heappush(self._moments, (end, allocation.id))

    def _expect_edges(self, now: Instant) -> None:
        """Window edges, and the ends of back-offs: moments at which nothing is released."""
        keys = {o.key for w in self._line for o in offers(self.state.policy, w) if o.key is not None}
        edges = {at for key in keys for at in quota.moments(self.state.policy, key, now) if at > now}
        edges |= {w.not_before for w in self._line if w.not_before is not None and w.not_before > now}
        for at in edges:
            heapq.heappush(self._moments, (at, ""))

    def _release(self, allocation_id: str, at: Instant) -> None:
        allocation = self.state.allocations.get(AllocationId(allocation_id))
        if allocation is not None:
            self._apply(released(allocation, at))

    def _admit(self, at: Instant) -> None:
        """Everybody who fits at that moment, best first. Requests of one shape fail alike, so one is tried."""
        failed: set[tuple[object, ...]] = set()
        left = []
        for workload in self._line:
            shape = _shape(workload)
            if shape in failed or (workload.not_before is not None and at < workload.not_before):
                left.append(workload)
                continue
            chosen = choose(self.state, workload, at)
            if chosen is None:
                if not caps.blocking(self.state, workload, workload.request.smallest):
                    failed.add(shape)
                left.append(workload)
                continue
            for change in admitted(self.state, workload, chosen.offer, chosen.fit, chosen.milli, at):
                self._apply(change)
            self.found[workload.id] = at
            held = self.state.allocation_of(self.state.workloads[workload.id])
            assert held is not None
            self._expect_end(held)
        self._line = left

    def _apply(self, change: Change) -> None:
        self.state.apply(change)
        self.applied.append(change)


def _shape(workload: Workload) -> tuple[object, ...]:
    """All that quota and placement read of a request."""
    r = workload.request
    need = tuple(sorted(r.need.items()))
    return (
        workload.project, workload.queue, workload.priority, r.milli_gpus, r.flavors, r.memory_mib, r.cpus,
        r.ram_mib, need, r.nodes, r.preemptible, r.override is not None,
    )  # fmt: skip
