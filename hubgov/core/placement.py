"""Which devices: the flavors and nodes that fit a request, whole islands kept together (semantics §6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubgov.core.devices import Device, Health, Node
from hubgov.core.model import ANY_NODES, ChargeKey, DeviceShare, Workload
from hubgov.core.policy import Flavor, Placement, Policy, Pool
from hubgov.core.state import State

WHOLE = 1000


@dataclass(frozen=True, slots=True)
class Offer:
    """One (pool, flavor) that a request may run on; flavor None for work without a device."""

    pool: str
    flavor: str | None
    rank: int
    """Position in the queue's declared order."""

    @property
    def key(self) -> ChargeKey | None:
        return (self.pool, self.flavor) if self.flavor is not None else None


@dataclass(frozen=True, slots=True)
class Fit:
    """Devices that would do, on their node (the first of them when there are several)."""

    node: str
    devices: tuple[DeviceShare, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """Why nothing fits: the most milli-GPUs that one node (or, spread, all nodes; for a share, one card) could
    give now, and the total that is free; `node` gives the most."""

    most: int
    total: int
    node: str | None


def offers(policy: Policy, workload: Workload) -> tuple[Offer, ...]:
    """The (pool, flavor)s a request may use by its queue's and its own word, in the queue's declared order.

    The fit guard and the data access level are filters here; whether there is room is another question.
    """
    queue = policy.queues[workload.queue]
    request = workload.request
    pools = [policy.pools[name] for name in queue.pools if _may_enter(policy, workload, policy.pools[name])]
    if request.smallest == 0:
        return tuple(Offer(pool.name, None, rank) for rank, pool in enumerate(pools))
    names = _flavors_in_order(policy, queue.flavors, request.flavors)
    found = [
        (pool, name) for pool in pools for name in names if passes_guard(policy, workload, policy.flavors[name])
    ]
    return tuple(Offer(pool.name, name, rank) for rank, (pool, name) in enumerate(found))


def passes_guard(policy: Policy, workload: Workload, flavor: Flavor) -> bool:
    """Whether the request is big enough for this card: small ones are kept off big cards.

    A request without `memory` counts as its queue's `default_memory`; with neither, a whole card passes.
    """
    if flavor.guard_min_memory_mib is None or workload.request.override is not None:
        return True
    memory = workload.request.memory_mib
    if memory is None:
        memory = policy.queues[workload.queue].default_memory_mib
    if memory is None:
        whole = workload.request.smallest >= WHOLE
        memory = flavor.memory_mib if whole else flavor.memory_mib * workload.request.smallest // WHOLE
    return memory >= flavor.guard_min_memory_mib


def _flavors_in_order(policy: Policy, of_queue: tuple[str, ...] | None, asked: tuple[str, ...]) -> tuple[str, ...]:
    allowed = of_queue if of_queue is not None else tuple(policy.flavors)
    wanted = asked or allowed
    return tuple(name for name in wanted if name in allowed and not policy.flavors[name].retired)


def _may_enter(policy: Policy, workload: Workload, pool: Pool) -> bool:
    level = policy.projects[workload.project].data_access
    return not pool.retired and (not pool.data_access or level is None or level in pool.data_access)


def find(state: State, workload: Workload, offer: Offer, milli: int) -> Fit | Room:
    """The devices for `milli` on this offer, or how much room there is instead.

    One node unless the request says otherwise; `nodes` = a number takes equal parts of the total on that many;
    `any` takes whatever fits, fullest nodes first. Ties go by name, so the same picture gives the same place.
    """
    nodes = [node for node in state.nodes.values() if _node_takes(state, node, workload, offer)]
    if milli == 0:
        return Fit(nodes[0].name, ()) if nodes else Room(0, 0, None)
    usable = {node.name: _usable(state, node, workload, offer, milli) for node in nodes}
    free = {name: sum(room for _, room in devices) for name, devices in usable.items()}
    total = sum(free.values())
    count = workload.request.nodes
    ordered = _node_order(state.policy.pools[offer.pool].placement, free)
    if count == 1 or milli < WHOLE:
        for name in ordered:
            shares = _take(state, usable[name], workload, milli)
            if shares:
                return Fit(name, shares)
        if milli < WHOLE:  # a share never spans cards
            free = {name: max((room for _, room in devices), default=0) for name, devices in usable.items()}
        best = max(free, key=lambda n: (free[n], n), default=None)
        return Room(free[best] if best else 0, total, best)
    return _find_on_several(state, workload, usable, ordered, milli, total)


def _find_on_several(
    state: State,
    workload: Workload,
    usable: dict[str, list[tuple[Device, int]]],
    ordered: Sequence[str],
    milli: int,
    total: int,
) -> Fit | Room:
    count = workload.request.nodes
    parts: list[DeviceShare] = []
    first: str | None = None
    left = milli
    for name in ordered:
        capacity = sum(room for _, room in usable[name]) // WHOLE * WHOLE
        want = min(left, capacity) if count == ANY_NODES else milli // count
        shares = _take(state, usable[name], workload, want) if 0 < want <= capacity else ()
        if shares:
            parts.extend(shares)
            first, left = first or name, left - want
        if left == 0:
            return Fit(first or name, tuple(parts))
    return Room(milli - left, total, first)


def _node_takes(state: State, node: Node, workload: Workload, offer: Offer) -> bool:
    """Whether a node may get this work at all: it accepts work, serves the pool, has labels, CPUs and RAM."""
    request = workload.request
    if not node.accepts or not node_suits(node, workload, offer.pool):
        return False
    cpus, ram = state.used_on_node(node.name)
    fits_cpus = request.cpus is None or node.cpus is None or cpus + request.cpus <= node.cpus
    fits_ram = request.ram_mib is None or node.ram_mib is None or ram + request.ram_mib <= node.ram_mib
    return fits_cpus and fits_ram


def node_suits(node: Node, workload: Workload, pool: str) -> bool:
    """Whether a node serves the pool and has the labels asked for; whatever its load."""
    if pool not in node.pools and not any(device.pool == pool for device in node.devices):
        return False
    return all(node.labels.get(key) == value for key, value in workload.request.need.items())


def big_enough(node: Node, workload: Workload) -> bool:
    """Whether an empty node has the CPUs and RAM asked for; what isn't known of a node doesn't limit it."""
    request = workload.request
    cpus_do = node.cpus is None or (request.cpus or 0) <= node.cpus
    return cpus_do and (node.ram_mib is None or (request.ram_mib or 0) <= node.ram_mib)


def _usable(state: State, node: Node, workload: Workload, offer: Offer, milli: int) -> list[tuple[Device, int]]:
    """(device, milli-GPUs it could give to this request): all or nothing for whole cards."""
    limit = state.policy.pools[offer.pool].max_shares_per_device
    found = []
    for device in node.devices:
        if (device.pool, device.flavor, device.health) != (offer.pool, offer.flavor, Health.OK):
            continue
        tenants = len(state.on_device.get(device.key, ()))
        if milli >= WHOLE:
            room = WHOLE if tenants == 0 and _memory_fits(state, device, workload, WHOLE) else 0
        elif limit is not None and tenants >= limit:
            room = 0
        else:
            room = state.free(device.key) if _memory_fits(state, device, workload, milli) else 0
        if room > 0:
            found.append((device, room))
    return found


def memory_of(device: Device, workload: Workload, milli: int) -> int:
    """MiB of the device that a request takes: what it asks, else its fraction of the card."""
    if milli >= WHOLE:
        return device.memory_mib
    asked = workload.request.memory_mib
    return asked if asked is not None else device.memory_mib * milli // WHOLE


def _memory_fits(state: State, device: Device, workload: Workload, milli: int) -> bool:
    asked = workload.request.memory_mib or 0
    need = max(asked, memory_of(device, workload, milli) if milli < WHOLE else asked)
    return need <= state.free_memory(device.key, device.memory_mib)


def _node_order(placement: Placement, free: dict[str, int]) -> list[str]:
    """pack = the fullest node that fits first, spread = the emptiest first; ties by name."""
    sign = 1 if placement is Placement.PACK else -1
    return sorted(free, key=lambda name: (sign * free[name], name))


def _take(
    state: State, usable: Sequence[tuple[Device, int]], workload: Workload, milli: int
) -> tuple[DeviceShare, ...]:
    """The shares for `milli` out of these devices, () where they don't do."""
    if milli < WHOLE:
        fitting = [(device, room) for device, room in usable if room >= milli]
        if not fitting:
            return ()
        spread = state.policy.pools[fitting[0][0].pool or ""].placement is Placement.SPREAD
        device, _ = min(fitting, key=lambda d: (-d[1] if spread else d[1], d[0].index))
        return (_share(device, workload, milli),)
    chosen = _whole_islands_first([device for device, _ in usable], milli // WHOLE)
    return tuple(_share(device, workload, WHOLE) for device in chosen)


def _whole_islands_first(devices: Sequence[Device], count: int) -> list[Device]:
    """`count` devices in as few islands as possible, and in the smallest island that holds them all."""
    if len(devices) < count or count == 0:
        return []
    islands: dict[int, list[Device]] = {}
    for device in devices:
        islands.setdefault(device.island, []).append(device)
    chosen: list[Device] = []
    while len(chosen) < count:
        left = count - len(chosen)
        enough = [i for i, members in islands.items() if len(members) >= left]
        island = (
            min(enough, key=lambda i: (len(islands[i]), i))
            if enough
            else max(islands, key=lambda i: (len(islands[i]), -i))
        )
        chosen.extend(islands.pop(island)[:left])
    return sorted(chosen, key=lambda d: d.index)


def _share(device: Device, workload: Workload, milli: int) -> DeviceShare:
    return DeviceShare(
        node=device.node,
        index=device.index,
        uuid=device.uuid,
        milli=milli,
        memory_mib=memory_of(device, workload, milli),
        simulated=device.simulated,
    )


def largest_ever(state: State, workload: Workload, offer: Offer) -> int:
    """The most milli-GPUs this offer could give with nothing running, counting nodes that are down or drained.

    On one node unless the request spreads; memory per device, labels, CPUs and RAM count.
    """
    request = workload.request
    per_node = []
    for node in state.nodes.values():
        if node.retired or not node_suits(node, workload, offer.pool) or not big_enough(node, workload):
            continue
        devices = [
            d
            for d in node.devices
            if (d.pool, d.flavor) == (offer.pool, offer.flavor) and (request.memory_mib or 0) <= d.memory_mib
        ]
        per_node.append(WHOLE * len(devices))
    if request.nodes == 1 or request.smallest < WHOLE:
        return max(per_node, default=0)
    if request.nodes == ANY_NODES:
        return sum(per_node)
    best = sorted(per_node, reverse=True)[: request.nodes]
    return min(best) * request.nodes if len(best) == request.nodes else 0
