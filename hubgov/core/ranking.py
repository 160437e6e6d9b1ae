"""Who is next: entitlement first, then the queue's order, then fair shares from the root down (semantics §4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubgov.clock import Instant
from hubgov.core.amounts import FINE_BITS
from hubgov.core.entitlement import walk, would_be_entitled
from hubgov.core.model import Workload, WorkloadId
from hubgov.core.placement import offers
from hubgov.core.policy import Order
from hubgov.core.quota import ROOT, Place, project_place, team_place
from hubgov.core.state import State

SCALE_BITS = 40
ONE = 1 << SCALE_BITS
"""Shares are milli-GPUs scaled by this, over a weight."""
_ROUNDED_OFF = 2 * FINE_BITS - SCALE_BITS

ShareVector = tuple[tuple[int, Fraction], ...]
"""Shares from the root's child down to the project, each (1 if weight 0 else 0, share)."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a waiting workload is ranked by: shown to its owner as it is."""

    workload: Workload
    within_guarantee: bool
    shares: ShareVector


class Ranking:
    """The order of those who wait, on the picture as it is now. Made anew after every admission.

    Shares are computed once per place and picture: they are the same for all requests of a project.
    """

    def __init__(self, state: State, now: Instant) -> None:
        self._state = state
        self._now = now
        self._over = _held_over_guarantee(state, now)
        self._past = _past_use(state, now)
        self._vectors: dict[str, ShareVector] = {}
        self._within: dict[tuple[object, ...], bool] = {}

    def in_order(self, waiting: list[Workload]) -> Iterator[Standing]:
        """All of them, best first: the best head of any queue, then the next, a blocked head passed over."""
        lanes: dict[str, list[Standing]] = {}
        for workload in waiting:
            lanes.setdefault(workload.queue, []).append(self.standing(workload))
        for name, lane in lanes.items():
            lane.sort(key=self._order_in(self._state.policy.queues[name].order), reverse=True)
        while lanes:
            name = min(lanes, key=lambda n: self._between(lanes[n][-1]))
            yield lanes[name].pop()
            if not lanes[name]:
                del lanes[name]

    def standing(self, workload: Workload) -> Standing:
        return Standing(workload, self._stays_within(workload), self._shares(workload.project))

    def _order_in(self, order: Order) -> Callable[[Standing], Any]:
        def key(s: Standing) -> tuple[Any, ...]:
            w, within = s.workload, not s.within_guarantee
            place_in_line = (w.eligible_since, w.seq)
            match order:
                case Order.FAIR:
                    return (within, s.shares, -w.priority, *place_in_line)
                case Order.PRIORITY:
                    return (within, -w.priority, *place_in_line)
                case Order.FIFO:
                    return (within, *place_in_line)

        return key

    def _between(self, s: Standing) -> tuple[Any, ...]:
        policy, w = self._state.policy, s.workload
        return (
            not s.within_guarantee,
            -policy.queues[w.queue].priority,
            -policy.projects[w.project].priority,
            s.shares,
            w.eligible_since,
            w.seq,
        )

    def _stays_within(self, workload: Workload) -> bool:
        """Whether some count on some flavor it may use would stay within its guarantee. No device = always."""
        request = workload.request
        if request.smallest == 0:
            return True
        guarded = request.override is None
        shape = (workload.project, workload.queue, request.milli_gpus, request.flavors, request.memory_mib, guarded)
        if shape not in self._within:
            self._within[shape] = any(
                would_be_entitled(self._state, offer.key, workload, request.smallest, self._now)
                for offer in offers(self._state.policy, workload)
                if offer.key is not None
            )
        return self._within[shape]

    def _shares(self, project: str) -> ShareVector:
        if project not in self._vectors:
            policy = self._state.policy
            path = [project_place(project)]
            path += [team_place(team) for team in policy.ancestors(policy.projects[project].team)]
            self._vectors[project] = tuple(self._share(place) for place in reversed(path))
        return self._vectors[project]

    def _share(self, place: Place) -> tuple[int, Fraction]:
        policy = self._state.policy
        weight = policy.teams[place.name].weight if place.level == "team" else policy.projects[place.name].weight
        held = self._over.get(place, 0) * ONE + self._past.get(place, 0)
        return (0, Fraction(held, weight)) if weight > 0 else (1, Fraction(held))


def lines(state: State, now: Instant) -> Mapping[WorkloadId, tuple[int, Standing]]:
    """Everybody who waits: (1-based place among those who wait in the same queue, its standing)."""
    known = state.memo(now)
    if "lines" not in known:
        places: dict[WorkloadId, tuple[int, Standing]] = {}
        count: dict[str, int] = {}
        for standing in Ranking(state, now).in_order(state.pending()):
            queue = standing.workload.queue
            count[queue] = count.get(queue, 0) + 1
            places[standing.workload.id] = (count[queue], standing)
        known["lines"] = places
    found: Mapping[WorkloadId, tuple[int, Standing]] = known["lines"]
    return found


def shown(state: State, standing: Standing | None) -> dict[str, int | str | bool]:
    """What the place in line comes from, in the order in which it is compared."""
    if standing is None:
        return {}
    workload = standing.workload
    shares = [share / (1 << 40) for _, share in standing.shares]
    return {
        "within_guarantee": standing.within_guarantee,
        "queue_priority": state.policy.queues[workload.queue].priority,
        "project_priority": state.policy.projects[workload.project].priority,
        "shares_milli_gpus": " ".join(str(int(share)) for share in shares),
        "eligible_since": workload.eligible_since,
        "submitted": workload.seq,
    }


def _held_over_guarantee(state: State, now: Instant) -> dict[Place, int]:
    """Milli-GPUs of borrowed charges at each place and above it."""
    total: dict[Place, int] = {}
    for key in state.charge_keys():
        for allocation_id, entitled in walk(state, key, now).items():
            if not entitled:
                allocation = state.allocations[allocation_id]
                _add_up(state, total, state.place_of(state.workload_of(allocation)), allocation.milli_gpus)
    return total


def _past_use(state: State, now: Instant) -> dict[Place, int]:
    """Decayed past use at each place and above it, in milli-GPUs scaled 2^40; rounded once, at the end."""
    total: dict[Place, int] = {}
    for place, use in state.past.at(now).items():
        _add_up(state, total, place, use)
    half = 1 << (_ROUNDED_OFF - 1)
    return {place: (use + half) >> _ROUNDED_OFF for place, use in total.items()}


def _add_up(state: State, total: dict[Place, int], project: Place, amount: int) -> None:
    known = state.policy.projects.get(project.name)
    teams = state.policy.ancestors(known.team) if known else ()
    for place in (project, *(team_place(team) for team in teams)):
        if place != ROOT:
            total[place] = total.get(place, 0) + amount
