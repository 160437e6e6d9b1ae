"""Why something waits, for what, until when: the Decision of semantics §10, computed from the picture as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hubgov.clock import Instant
from hubgov.core import caps, quota
from hubgov.core.amounts import cost_micro, rounded
from hubgov.core.decide import choose, eligible, quota_room
from hubgov.core.decision import Blocker, Decision, HeldBy, Outcome
from hubgov.core.entitlement import judged_at, walk, would_be_entitled
from hubgov.core.forecast import latest_starts
from hubgov.core.idle_told import idle_facts, idle_steps
from hubgov.core.lease import granted_lease
from hubgov.core.model import Allocation, Change, ChargeKey, Workload
from hubgov.core.placement import Fit, Offer, Room, find, offers
from hubgov.core.ranking import lines, shown
from hubgov.core.release import Ends, ends, enough_by, holders
from hubgov.core.screening import must_be_entitled, never, never_on, refusal
from hubgov.core.state import State, nodes_of
from hubgov.core.states import WorkloadState

WHY = (
    "impossible",
    "misconfigured",
    "held",
    "waiting_dependency",
    "over_own_limit",
    "over_budget",
    "waiting_window",
    "waiting_victims",
    "waiting_quota",
    "waiting_devices",
    "waiting_topology",
    "sheltered_behind",
    "backoff",
    "starting",
)
"""The reasons to wait, in the order in which the first that applies becomes the headline."""


ENGINE_AWAY = "engine"
"""The rule of a Decision on work whose engine doesn't answer."""


def explain(state: State, workload: Workload, now: Instant) -> Decision:
    """The current Decision on a live workload."""
    allocation = state.allocation_of(workload)
    if allocation is not None:
        return _granted(state, workload, allocation, now)
    basis, start = latest_start(state, workload, now)
    position, standing = lines(state, now).get(workload.id, (None, None))
    return replace(
        waiting(state, workload, now),
        latest_start=start,
        latest_start_basis=basis,
        position=position,
        rank=shown(state, standing),
        cost_micro=estimated_cost(state, workload, workload.request.smallest, None),
    )


def waiting(state: State, workload: Workload, now: Instant) -> Decision:
    """Why something waits and no more, for lists: to rank everybody and look ahead for each row would cost their
    product."""
    found = blockers(state, workload, now)
    code = min((b.code for b in found), key=WHY.index, default="starting")
    return Decision(
        outcome=Outcome.WAITING,
        code=code,
        rule=next((b.scope for b in found if b.code == code), ""),
        blockers=found,
        facts=_waiting_facts(state, workload),
        next_steps=_next_steps(code),
        evaluated_at=now,
        policy_version=state.policy.version,
    )


def _waiting_facts(state: State, workload: Workload) -> dict[str, int | str]:
    """What the sentence on waiting work tells besides its blockers: the queue, and why it is held if it is."""
    facts: dict[str, int | str] = {"queue": workload.queue, "team": workload.team, "owner": workload.owner}
    if hold := state.holds.get(workload.queue):
        facts["reason"] = hold.reason
    return facts


def plan(state: State, workload: Workload, now: Instant) -> Decision:
    """A dry run: what would happen to this request if it were submitted now. Leaves no trace."""
    refused = refusal(state, workload, now)
    if refused is not None:
        return refused
    with state.what_if() as applied:
        change = Change(event="workload_submitted", before=None, after=workload, actor="plan")
        state.apply(change)
        applied.append(change)
        waits = explain(state, workload, now)
        chosen = choose(state, workload, now) if eligible(state, workload, now) else None
        if chosen is None:
            return waits
        # Somebody better placed may want the same devices; that one is served by the same cycle.
        return replace(
            waits,
            outcome=Outcome.GRANTED,
            code="fits_now",
            blockers=(),
            latest_start=now,
            latest_start_basis="bound",
            next_steps=(),
            facts={**waits.facts, "pool": chosen.offer.pool, "flavor": chosen.offer.flavor or "-"},
            cost_micro=estimated_cost(state, workload, chosen.milli, chosen.offer.flavor, chosen.entitled),
        )


def blockers(state: State, workload: Workload, now: Instant) -> tuple[Blocker, ...]:
    """Everything in the way of a waiting workload, each with the numbers compared; () if it may start now."""
    found: list[Blocker] = []
    hold = state.holds.get(workload.queue)
    if hold is not None:
        found.append(Blocker(code="held", need=1, have=0, unit="queues", scope=f"queues.{hold.queue}"))
    elif workload.kind in state.away:
        found.append(Blocker(code="held", need=1, have=0, unit="engines", scope=ENGINE_AWAY))
    for other in workload.request.after:
        if other in state.workloads:
            found.append(
                Blocker(code="waiting_dependency", need=1, have=0, unit="workloads", scope=f"workload {other}")
            )
    if workload.not_before is not None and now < workload.not_before:
        left = workload.not_before - now
        found.append(
            Blocker(code="backoff", need=left, have=0, unit="ms", scope="retry", frees_at=workload.not_before)
        )
    found.extend(caps.blocking(state, workload, workload.request.smallest))
    if impossible := never(state, workload, now):
        return (*impossible, *found)
    possible = [o for o in offers(state.policy, workload) if never_on(state, workload, o, now) is None]
    ways = [_in_the_way(state, workload, offer, now) for offer in possible]
    if ways and all(ways):
        found.extend(b for way in ways for b in way)
    return tuple(found)


def _in_the_way(state: State, workload: Workload, offer: Offer, now: Instant) -> list[Blocker]:
    """What keeps the smallest allowed count off one offer; empty where it fits."""
    need = workload.request.smallest
    found = []
    if need and offer.key is not None:
        found.extend(_quota_blockers(state, workload, offer, need, now))
    fit = find(state, workload, offer, need)
    if isinstance(fit, Fit):
        return found
    bare = replace(workload, request=replace(workload.request, cpus=None, ram_mib=None))
    anywhere = find(state, bare, offer, need)
    if isinstance(anywhere, Fit):
        found.extend(_node_blockers(state, workload, offer, anywhere))
    else:
        found.append(_device_blocker(state, offer, need, fit))
    return found


def _node_blockers(state: State, workload: Workload, offer: Offer, fit: Fit) -> Iterator[Blocker]:
    """The CPUs and RAM that a node lacks whose devices would do."""
    request = workload.request
    for name in dict.fromkeys((fit.node, *(share.node for share in fit.devices))):
        node, (cpus, ram) = state.nodes[name], state.used_on_node(name)
        here = [a for a in state.allocations.values() if name in nodes_of(a)]
        for unit, need, size, used, amount in (
            ("cpus", request.cpus, node.cpus, cpus, _cpus),
            ("mib", request.ram_mib, node.ram_mib, ram, _ram),
        ):
            if need is not None and size is not None and used + need > size:
                yield Blocker(
                    code="waiting_devices", need=need, have=size - used, limit=size, unit=unit,
                    scope=f"node {name}", node=name, pool=offer.pool, flavor=offer.flavor,
                    held_by=holders(state, here), frees_at=enough_by(ends(state, here, amount), used + need - size),
                )  # fmt: skip


def _quota_blockers(state: State, workload: Workload, offer: Offer, need: int, now: Instant) -> list[Blocker]:
    assert offer.key is not None
    tree = state.tree(offer.key, now)
    used = state.usage(offer.key, now)
    have = quota_room(state, workload, offer, now)
    place = quota.tightest(tree, used, state.place_of(workload))
    limit = tree.subtree[place] + (tree.shares[place].borrow or 0)
    if have >= need and must_be_entitled(state, workload):
        if would_be_entitled(state, offer.key, workload, need, now):
            return []
        have = 0
    elif have >= need:
        return []
    if _closed_now(state, workload, offer, need, now):
        opens = quota.next_change(state.policy, offer.key, now)
        return [
            Blocker(
                code="waiting_window", need=need, have=max(0, have), limit=limit,
                scope=f"{place.level} {place.name}".strip(), pool=offer.pool, flavor=offer.flavor, frees_at=opens,
            )
        ]  # fmt: skip
    held_by, freed = _held_under(state, offer.key, place, tree)
    return [
        Blocker(
            code="waiting_quota",
            need=need,
            have=have,
            limit=limit,
            scope=f"{place.level} {place.name}".strip(),
            pool=offer.pool,
            flavor=offer.flavor,
            held_by=held_by,
            frees_at=enough_by(freed, need - have),
        )
    ]


def _held_under(
    state: State, key: ChargeKey, place: quota.Place, tree: quota.QuotaTree
) -> tuple[tuple[HeldBy, ...], Ends]:
    """Who is charged at a place of the quota tree or below it, and when that ends: the same for all who wait."""
    known = state.memo()
    if ("under", key, place) not in known:
        charged = [a for a in state.allocations.values() if a.charged and a.charge_key == key]
        under = [a for a in charged if place in tree.path(state.place_of(state.workload_of(a)))]
        known["under", key, place] = holders(state, under), ends(state, under, lambda a: a.milli_gpus)
    found: tuple[tuple[HeldBy, ...], Ends] = known["under", key, place]
    return found


def _closed_now(state: State, workload: Workload, offer: Offer, need: int, now: Instant) -> bool:
    """Whether the quota of this hour is too small even with nothing running: only another window helps."""
    assert offer.key is not None
    tree = state.tree(offer.key, now)
    if quota.available(tree, quota.usage(tree, {}), state.place_of(workload)) < need:
        return True
    judged = judged_at(state, offer.key, workload)
    return must_be_entitled(state, workload) and tree.shares[judged].guaranteed < need


def _device_blocker(state: State, offer: Offer, need: int, room: Room) -> Blocker:
    """No devices at all, or enough of them but not together; for work without a device, no node that is up."""
    if need == 0:
        scope = f"pool {offer.pool}"
        return Blocker(code="waiting_devices", need=1, have=0, unit="nodes", scope=scope, pool=offer.pool)
    count, held_by, freed = _held_cards(state, offer)
    too_few = room.total < need
    return Blocker(
        code="waiting_devices" if too_few else "waiting_topology",
        need=need,
        have=room.most,
        limit=1000 * count,
        scope=f"pool {offer.pool}",
        node=room.node,
        pool=offer.pool,
        flavor=offer.flavor,
        held_by=held_by,
        frees_at=enough_by(freed, need - room.total) if too_few else None,
    )


def _held_cards(state: State, offer: Offer) -> tuple[int, tuple[HeldBy, ...], Ends]:
    """(how many cards an offer has, who holds any of them, when that ends): the same for all who wait for them."""
    known = state.memo()
    if ("cards", offer.key) not in known:
        keys = {
            device.key
            for node in state.nodes.values()
            for device in node.devices
            if offer.flavor is not None and (device.pool, device.flavor) == (offer.pool, offer.flavor)
        }
        held = [state.allocations[a] for a in {a for key in keys for a in state.on_device.get(key, ())}]
        known["cards", offer.key] = len(keys), holders(state, held), ends(state, held, lambda a: a.milli_gpus)
    found: tuple[int, tuple[HeldBy, ...], Ends] = known["cards", offer.key]
    return found


def _cpus(allocation: Allocation) -> int:
    return allocation.cpus


def _ram(allocation: Allocation) -> int:
    return allocation.ram_mib


def latest_start(state: State, workload: Workload, now: Instant) -> tuple[str, Instant | None]:
    """(basis, time) by which the workload starts: ("bound", t), or ("none", None) where nothing bounds it."""
    start = latest_starts(state, now).get(workload.id)
    return ("bound", max(start, now)) if start is not None else ("none", None)


def _next_steps(code: str) -> tuple[str, ...]:
    steps = {
        "impossible": ("change_request", "cancel"),
        "held": ("other_queue", "wait"),
        "over_own_limit": ("cancel_another", "wait"),
    }
    return steps.get(code, ("wait", "smaller_request", "other_queue"))


def _granted(state: State, workload: Workload, allocation: Allocation, now: Instant) -> Decision:
    running = workload.state is WorkloadState.RUNNING
    key = allocation.charge_key
    entitled = key is None or walk(state, key, now).get(allocation.id, True)
    return Decision(
        outcome=Outcome.GRANTED,
        code="running" if running else "starting",
        rule=allocation.lease.rule,
        facts={
            "queue": workload.queue,
            "pool": allocation.pool,
            "flavor": allocation.flavor or "-",
            **idle_facts(state, allocation, now),
        },
        next_steps=idle_steps(state, allocation),
        cost_micro=estimated_cost(state, workload, allocation.milli_gpus, allocation.flavor, entitled),
        evaluated_at=now,
        policy_version=state.policy.version,
    )


def estimated_cost(
    state: State, workload: Workload, milli: int, flavor: str | None, entitled: bool = True
) -> int | None:
    """What the whole lease costs for `milli` on a flavor (the dearest it may get when none is known), in micro.

    None for an endless lease. Class, queue and borrowing factors count; nothing is charged for no device.
    """
    policy = state.policy
    queue = policy.queues[workload.queue]
    length = granted_lease(queue, workload).length_ms
    if length is None:
        return None
    names = [flavor] if flavor else [o.flavor for o in offers(policy, workload) if o.flavor]
    price = max((policy.flavors[name].price_micro_per_hour for name in names), default=0)
    factor = policy.costs.class_factor_micro.get(queue.class_, 1_000_000)
    borrowed = 1_000_000 if entitled else policy.costs.borrowed_factor_micro
    return rounded(cost_micro(length, milli, price, queue.cost_factor_micro, factor, borrowed))
