"""Who starts now, on which devices: the page to read first.

`decide(state, now)` looks at everybody who waits and answers with the changes that admit those who fit. It
changes nothing: the caller writes the changes to the ledger, commits, applies them, and only then acts.

One round:
 1. take those who are eligible: not held, not backing off, nothing they depend on is open
 2. put them in order (ranking.py): within the guarantee first, then by queue, project and fair share
 3. go down that order; for each, score every card type it may use (entitled before borrowed, then cheaper)
 4. the first that passes caps, quota and placement is admitted; its charge counts from that instant
 5. order the rest anew and go on, until nobody fits (work conservation)
"""

from __future__ import annotations

from dataclasses import dataclass

from hubgov.clock import Instant
from hubgov.core import caps, quota
from hubgov.core.entitlement import would_be_entitled
from hubgov.core.model import Change, Workload
from hubgov.core.placement import Fit, Offer, find, offers
from hubgov.core.ranking import Ranking
from hubgov.core.screening import must_be_entitled
from hubgov.core.state import State
from hubgov.core.transitions import admitted


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to start a request now: where, how much, and whether it would be within the guarantee."""

    offer: Offer
    fit: Fit
    milli: int
    entitled: bool


def decide(state: State, now: Instant) -> tuple[Change, ...]:
    """The changes that admit everybody who fits now, in the order in which they were decided."""
    with state.what_if() as applied:
        waiting = [w for w in state.pending() if eligible(state, w, now)]
        blocked: set[str] = set()
        while (admission := _first_that_fits(state, waiting, blocked, now)) is not None:
            workload, changes = admission
            for change in changes:
                state.apply(change)
                applied.append(change)
            waiting.remove(workload)
        return tuple(applied)


def eligible(state: State, workload: Workload, now: Instant) -> bool:
    """Whether a waiting workload may be looked at: queue and engine are there, back-off over, nothing awaited."""
    if workload.queue in state.holds or workload.kind in state.away:
        return False
    if workload.not_before is not None and now < workload.not_before:
        return False
    return not any(other in state.workloads for other in workload.request.after)


def _first_that_fits(
    state: State, waiting: list[Workload], blocked: set[str], now: Instant
) -> tuple[Workload, tuple[Change, ...]] | None:
    """The best-ranked workload that can start, with the changes that admit it.

    An admission only ever takes room away, so who didn't fit before doesn't fit after it: `blocked` remembers.
    Only the guarantee may grow by one: a newcomer walked earlier can make a large charge borrowed, and what that
    used of the guarantee is free for those who start within it or not at all.
    """
    left = [w for w in waiting if w.id not in blocked]
    for standing in Ranking(state, now).in_order(left):
        workload = standing.workload
        chosen = choose(state, workload, now)
        if chosen is not None:
            return workload, admitted(state, workload, chosen.offer, chosen.fit, chosen.milli, now)
        if not must_be_entitled(state, workload):
            blocked.add(workload.id)
    return None


def choose(state: State, workload: Workload, now: Instant) -> Candidate | None:
    """The best way to start this request now: the largest allowed count that fits, on the best card type."""
    for milli in reversed(workload.request.milli_gpus):
        if caps.blocking(state, workload, milli):
            continue
        candidates = [
            c for o in offers(state.policy, workload) if (c := _candidate(state, workload, o, milli, now))
        ]
        if candidates:
            return min(candidates, key=lambda c: _score(state, c))
    return None


def _candidate(state: State, workload: Workload, offer: Offer, milli: int, now: Instant) -> Candidate | None:
    """This offer, if quota and devices allow it now."""
    entitled = True
    if milli and offer.key is not None:
        if quota_room(state, workload, offer, now) < milli:
            return None
        entitled = would_be_entitled(state, offer.key, workload, milli, now)
        if not entitled and must_be_entitled(state, workload):
            return None
    fit = find(state, workload, offer, milli)
    return Candidate(offer, fit, milli, entitled) if isinstance(fit, Fit) else None


def quota_room(state: State, workload: Workload, offer: Offer, now: Instant) -> int:
    """Milli-GPUs that the workload's place in the quota tree may still take on this offer; may be negative."""
    assert offer.key is not None
    tree = state.tree(offer.key, now)
    return quota.available(tree, state.usage(offer.key, now), state.place_of(workload))


def _score(state: State, candidate: Candidate) -> tuple[bool, int, int]:
    """Entitled before borrowed, then the lower price, then the declared order."""
    flavor = state.policy.flavors.get(candidate.offer.flavor or "")
    price = flavor.price_micro_per_hour if flavor else 0
    return (not candidate.entitled, price, candidate.offer.rank)
