"""The quota tree of one (pool, flavor): how much a team or project may still take (semantics §2).

The arithmetic is Kueue's resource node: a node's own share, what it keeps from its parent, what bubbles up.
Amounts are milli-GPUs. `available` may be negative when quota was lowered or a node was lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hubgov.clock import Instant
from hubgov.core.model import ChargeKey
from hubgov.core.policy import HOUR_MS, Policy, QuotaRow
from hubgov.core.windows import next_edge, open_span

WEEK_AND_A_DAY_MS = 8 * 24 * HOUR_MS
"""How far ahead every window has been open and closed."""


class Place(NamedTuple):
    """A place in the quota tree. Teams and projects may share a name, so the level is part of it."""

    level: str
    name: str


ROOT = Place("root", "")
"""Where teams without a parent meet; its own share is the devices that nobody was guaranteed."""


def team_place(team: str) -> Place:
    return Place("team", team)


def project_place(project: str) -> Place:
    return Place("project", project)


@dataclass(frozen=True, slots=True)
class Share:
    """What the policy says of one place: guaranteed there, most above it, most of the unused part lent."""

    guaranteed: int = 0
    borrow: int | None = None
    lend: int | None = None
    window: str | None = None


@dataclass(frozen=True, slots=True)
class QuotaTree:
    """The shares of one (pool, flavor) at one instant. `parent` leads to the root; `order` is leaves first."""

    shares: Mapping[Place, Share]
    parent: Mapping[Place, Place]
    order: tuple[Place, ...]
    subtree: Mapping[Place, int]
    kept: Mapping[Place, int]

    def path(self, place: Place) -> tuple[Place, ...]:
        """The place and all above it up to the root."""
        path = [place]
        while path[-1] != ROOT:
            path.append(self.parent[path[-1]])
        return tuple(path)


def effective_rows(policy: Policy, key: ChargeKey, now: Instant) -> dict[Place, Share]:
    """The shares that hold at `now`: an open window's row replaces the base row, unset keys stay the base's.

    Of two open windows the one that began last wins (the long night makes adjacent ones overlap).
    """
    base: dict[Place, QuotaRow] = {}
    windowed: dict[Place, tuple[Instant, QuotaRow]] = {}
    for row in policy.quotas:
        if (row.pool, row.flavor) != key:
            continue
        place = project_place(row.project) if row.project else team_place(row.team or "")
        if row.window is None:
            base[place] = row
            continue
        span = open_span(policy.windows[row.window], now, policy.timezone)
        if span and (place not in windowed or span[0] > windowed[place][0]):
            windowed[place] = (span[0], row)
    shares = {place: Share(r.guaranteed, r.borrow, r.lend) for place, r in base.items()}
    for place, (_, row) in windowed.items():
        under = shares.get(place, Share())
        shares[place] = Share(
            under.guaranteed if "guaranteed" in row.unset else row.guaranteed,
            under.borrow if "borrow" in row.unset else row.borrow,
            under.lend if "lend" in row.unset else row.lend,
            row.window,
        )
    return shares


def windowed(policy: Policy) -> frozenset[ChargeKey]:
    """The (pool, flavor)s whose quota depends on the hour."""
    return frozenset((row.pool, row.flavor) for row in policy.quotas if row.window is not None)


def build_tree(policy: Policy, key: ChargeKey, capacity: int, now: Instant) -> QuotaTree:
    """The quota tree of `key` at `now`. `capacity` is the milli-GPUs of all its devices, healthy or not.

    A place without a row has guarantee 0 and borrows and lends without limit, so it is transparent.
    """
    shares = effective_rows(policy, key, now)
    parent: dict[Place, Place] = {}
    for team in policy.teams.values():
        parent[team_place(team.name)] = team_place(team.parent) if team.parent else ROOT
    for project in policy.projects.values():
        parent[project_place(project.name)] = team_place(project.team)
    spare = capacity - sum(share.guaranteed for share in shares.values())
    shares = {place: shares.get(place, Share()) for place in parent}
    shares[ROOT] = Share(guaranteed=max(0, spare))
    order = _leaves_first(parent)
    subtree: dict[Place, int] = dict.fromkeys(order, 0)
    kept: dict[Place, int] = {}
    for place in order:
        subtree[place] += shares[place].guaranteed
        lend = shares[place].lend
        kept[place] = max(0, subtree[place] - lend) if lend is not None else 0
        if place != ROOT:
            subtree[parent[place]] += subtree[place] - kept[place]
    return QuotaTree(shares, parent, order, subtree, kept)


def _leaves_first(parent: Mapping[Place, Place]) -> tuple[Place, ...]:
    depth: dict[Place, int] = {ROOT: 0}
    for place in parent:
        trail = []
        while place not in depth:
            trail.append(place)
            place = parent[place]
        for steps, below in enumerate(reversed(trail), start=1):
            depth[below] = depth[place] + steps
    return tuple(sorted(depth, key=lambda p: (-depth[p], p)))


def usage(tree: QuotaTree, charges: Mapping[Place, int]) -> dict[Place, int]:
    """The use of each place: its own charges and what its children use beyond the part they keep."""
    used = {place: charges.get(place, 0) for place in tree.order}
    for place in tree.order:
        if place != ROOT:
            used[tree.parent[place]] += max(0, used[place] - tree.kept[place])
    return used


def available(tree: QuotaTree, used: Mapping[Place, int], place: Place) -> int:
    """How much more this place may take, its own share and what it may borrow. Negative when over-committed."""
    if place == ROOT:
        return tree.subtree[ROOT] - used[ROOT]
    kept, borrow = tree.kept[place], tree.shares[place].borrow
    from_above = available(tree, used, tree.parent[place])
    if borrow is not None:
        from_above = min(from_above, tree.subtree[place] - kept - max(0, used[place] - kept) + borrow)
    return max(0, kept - used[place]) + from_above


def tightest(tree: QuotaTree, used: Mapping[Place, int], place: Place) -> Place:
    """Which place on the way up sets the limit of `available`: the highest one with the same room left."""
    room = available(tree, used, place)
    for above in reversed(tree.path(place)):
        if available(tree, used, above) <= room:
            return above
    return place


def most_ever(policy: Policy, key: ChargeKey, capacity: int, place: Place, now: Instant) -> int:
    """The most this place could ever take with nothing running, in any window, from `now` on.

    Windows come back every week, so every combination of open ones there is comes within eight days.
    """
    return max(idle_available(policy, key, capacity, place, moment) for moment in moments(policy, key, now))


def moments(policy: Policy, key: ChargeKey, now: Instant) -> Iterator[Instant]:
    """`now`, and each instant of the next eight days at which a window opens or closes on `key`."""
    at: Instant | None = now
    while at is not None and at <= now + WEEK_AND_A_DAY_MS:
        yield at
        at = next_change(policy, key, at)


def idle_available(policy: Policy, key: ChargeKey, capacity: int, place: Place, at: Instant) -> int:
    """What the place could take at that instant if nothing ran."""
    tree = build_tree(policy, key, capacity, at)
    return available(tree, usage(tree, {}), place)


def next_change(policy: Policy, key: ChargeKey, now: Instant) -> Instant | None:
    """When a window next opens or closes on `key`; None when its quota doesn't depend on the time."""
    edges = [
        next_edge(policy.windows[row.window], now, policy.timezone)
        for row in policy.quotas
        if row.window is not None and (row.pool, row.flavor) == key
    ]
    return min((edge for edge in edges if edge is not None), default=None)
