"""A second opinion on whether something fits: plain search over nodes and cards, sharing nothing with placement.

Only quota's arithmetic is taken from the core; it has tables and properties of its own.
"""

from __future__ import annotations

from itertools import combinations

from hubgov.clock import Instant
from hubgov.core import quota
from hubgov.core.devices import Device, Health, Node
from hubgov.core.entitlement import walk
from hubgov.core.model import ANY_NODES, Workload
from hubgov.core.policy import CapSet, Mode, PriorityClass
from hubgov.core.state import State

__all__ = ["Mode", "fits", "may_be_looked_at"]


def may_be_looked_at(state: State, workload: Workload, now: Instant) -> bool:
    held = workload.queue in state.holds
    backing_off = workload.not_before is not None and now < workload.not_before
    return not held and not backing_off and not any(w in state.workloads for w in workload.request.after)


def fits(state: State, workload: Workload, now: Instant) -> bool:
    """Whether any allowed count of it could start now on any pool and card type."""
    queue = state.policy.queues[workload.queue]
    for milli in workload.request.milli_gpus:
        if not _caps_allow(state, workload, milli):
            continue
        for pool in queue.pools:
            if milli == 0 and any(_node_takes(state, n, workload, pool) for n in state.nodes.values()):
                return True
            for flavor in workload.request.flavors or queue.flavors or tuple(state.policy.flavors):
                if milli and _quota_allows(state, workload, pool, flavor, milli, now) \
                        and _devices_allow(state, workload, pool, flavor, milli):  # fmt: skip
                    return True
    return False


def _caps_allow(state: State, workload: Workload, milli: int) -> bool:
    live = [(a, state.workload_of(a)) for a in state.allocations.values()]
    sets: list[tuple[CapSet, bool]] = [(state.policy.queues[workload.queue].caps, True), (state.policy.caps, False)]
    for caps, own in sets:
        counted = [(a, w) for a, w in live if not own or w.queue == workload.queue]
        for cap, mine in (
            (caps.per_user, [a for a, w in counted if w.owner == workload.owner]),
            (caps.per_project, [a for a, w in counted if w.project == workload.project]),
            (caps.total, [a for a, _ in counted]),
        ):
            if cap.workloads is not None and len(mine) + 1 > cap.workloads:
                return False
            if cap.milli_gpus is not None and sum(a.milli_gpus for a in mine) + milli > cap.milli_gpus:
                return False
            if cap.cpus is not None and sum(a.cpus for a in mine) + (workload.request.cpus or 0) > cap.cpus:
                return False
    return True


def _quota_allows(state: State, workload: Workload, pool: str, flavor: str, milli: int, now: Instant) -> bool:
    key = (pool, flavor)
    tree = state.tree(key, now)
    place = quota.project_place(workload.project)
    if quota.available(tree, quota.usage(tree, state.charges(key)), place) < milli:
        return False
    protected = state.policy.queues[workload.queue].class_ is PriorityClass.PROTECTED
    if not protected and workload.request.preemptible:
        return True
    has_row = any(r.project == workload.project and (r.pool, r.flavor) == key for r in state.policy.quotas)
    judged = place if has_row else quota.team_place(workload.team)
    held = 0
    for allocation_id, entitled in walk(state, key, now).items():
        other = state.workload_of(state.allocations[allocation_id])
        same = other.project == workload.project if has_row else other.team == workload.team
        held += state.allocations[allocation_id].milli_gpus if entitled and same else 0
    return held + milli <= tree.shares[judged].guaranteed


def _node_takes(state: State, node: Node, workload: Workload, pool: str) -> bool:
    request = workload.request
    if not node.accepts or not (pool in node.pools or any(d.pool == pool for d in node.devices)):
        return False
    if any(node.labels.get(k) != v for k, v in request.need.items()):
        return False
    there = [a for a in state.allocations.values() if a.state != "lost" and node.name in _nodes(a)]
    if node.cpus is not None and request.cpus and sum(a.cpus for a in there) + request.cpus > node.cpus:
        return False
    asked = request.ram_mib
    return node.ram_mib is None or not asked or sum(a.ram_mib for a in there) + asked <= node.ram_mib


def _nodes(allocation: object) -> set[str]:
    return {s.node for s in allocation.devices} or {allocation.node}  # type: ignore[attr-defined]


def _devices_allow(state: State, workload: Workload, pool: str, flavor: str, milli: int) -> bool:
    nodes = [n for n in state.nodes.values() if _node_takes(state, n, workload, pool)]
    if milli < 1000:
        return any(_share_fits(state, d, workload, pool, flavor, milli) for n in nodes for d in n.devices)
    free = [sum(_whole_free(state, d, workload, pool, flavor) for d in n.devices) for n in nodes]
    cards, wanted = milli // 1000, workload.request.nodes
    if wanted == ANY_NODES:
        return sum(free) >= cards
    return any(min(chosen) >= cards // wanted for chosen in combinations(free, wanted))


def _tenants(state: State, device: Device) -> list[tuple[int, int]]:
    return [
        (s.milli, s.memory_mib)
        for a in state.allocations.values()
        for s in a.devices
        if (s.node, s.index) == (device.node, device.index)
    ]


def _suits(device: Device, pool: str, flavor: str) -> bool:
    return (device.pool, device.flavor, device.health) == (pool, flavor, Health.OK)


def _whole_free(state: State, device: Device, workload: Workload, pool: str, flavor: str) -> bool:
    enough = (workload.request.memory_mib or 0) <= device.memory_mib
    return _suits(device, pool, flavor) and enough and not _tenants(state, device)


def _share_fits(state: State, device: Device, workload: Workload, pool: str, flavor: str, milli: int) -> bool:
    tenants, most = _tenants(state, device), state.policy.pools[pool].max_shares_per_device
    memory = workload.request.memory_mib or device.memory_mib * milli // 1000
    return (
        _suits(device, pool, flavor)
        and (most is None or len(tenants) < most)
        and sum(m for m, _ in tenants) + milli <= 1000
        and sum(m for _, m in tenants) + memory <= device.memory_mib
    )
