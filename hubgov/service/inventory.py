"""Devices, quotas, pools and queues as documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hubgov import texts, wire
from hubgov.clock import to_rfc3339
from hubgov.core import quota
from hubgov.core.devices import Device, Health
from hubgov.core.entitlement import walk
from hubgov.core.model import Allocation
from hubgov.core.quota import Place
from hubgov.core.state import State
from hubgov.core.states import AllocationState
from hubgov.service.documents import Desk
from hubgov.telemetry.probe import DeviceReading, Probe


def device_rows(desk: Desk, probes: Mapping[str, Probe], isolation: str) -> list[wire.Device]:
    """Every device with to whom it belongs, who holds it, and what its probe last saw."""
    readings: dict[str, tuple[DeviceReading, int]] = {}
    for probe in probes.values():
        reading = probe.latest()
        age = max(0, desk.now - reading.at) // 1000
        readings |= {d.uuid: (d, age) for d in reading.devices}
    return [
        _device_row(desk, device, readings.get(device.uuid), isolation)
        for node in desk.state.nodes.values()
        for device in node.devices
    ]


def _device_row(desk: Desk, device: Device, seen: tuple[DeviceReading, int] | None, isolation: str) -> wire.Device:
    """A device held takes its holder's team, project, environment and owner; a free one its pool's."""
    policy = desk.state.policy
    pool = policy.pools.get(device.pool or "")
    holders = [desk.state.allocations[a] for a in desk.state.on_device.get(device.key, ())]
    holder = holders[0] if holders else None
    owned = pool.ownership if pool else policy.defaults
    team, project, environment, owner = owned.team, owned.project, owned.environment, owned.owner
    shown: str | None = None
    if holder is not None:
        workload = desk.state.workload_of(holder)
        team, project, environment = workload.team, workload.project, workload.environment
        visible = desk.reader.sees(workload.owner, workload.team)
        owner = workload.owner if visible else desk.scope(f"team {workload.team}")
        shown = workload.id if visible else "-"
    reading, age = seen if seen else (None, None)
    unassigned = texts.word(texts.DEVICE_STATES, "unassigned", desk.lang)
    return wire.Device(
        node=device.node,
        index=device.index,
        uuid=device.uuid,
        pool=device.pool,
        team=team,
        project=project or (desk.scope(f"pool {device.pool}") if device.pool else unassigned),
        environment=environment,
        owner=owner,
        flavor=device.flavor,
        state=_device_state(desk, device, holders),
        health=device.health.value,
        workload=shown,
        used_mib=reading.used_mib if reading else None,
        utilisation=reading.utilisation_percent if reading else None,
        unknown_because=reading.unknown_because if reading else desk.word("no_probe"),
        age_seconds=age,
        isolation=isolation,
        simulated=device.simulated,
        holder=owner if holder else None,
        since=to_rfc3339(holder.reserved_at) if holder else None,
        until=to_rfc3339(holder.lease.expires_at) if holder and holder.lease.expires_at else None,
    )


def _device_state(desk: Desk, device: Device, holders: list[Allocation]) -> str:
    """free, partly, held, fenced, sick, drained, unassigned: the first that applies from the worst on."""
    if any(a.state in (AllocationState.QUARANTINED, AllocationState.LOST) for a in holders):
        return "fenced"
    if device.health is not Health.OK:
        return device.health.value
    if device.pool is None or device.flavor is None:
        return "unassigned"
    if holders:
        return "held" if desk.state.free(device.key) == 0 else "partly"
    return "free" if desk.state.nodes[device.node].accepts else "drained"


def free_cards(state: State, cards: Iterable[Device], milli: int = 1000) -> int:
    """On how many of these cards `milli` of one (a whole one at most) could start now: healthy, on a node that
    takes work, and with that much left."""
    ready = (d for d in cards if d.health is Health.OK and state.nodes[d.node].accepts)
    return sum(1 for d in ready if state.free(d.key) >= min(milli, 1000))


def quota_rows(desk: Desk) -> list[wire.Quota]:
    """Quota and use of every team and project that has a row or holds something, by (pool, flavor)."""
    rows: list[wire.Quota] = []
    state = desk.state
    for key in state.charge_keys():
        tree = state.tree(key, desk.judged_at)
        used = state.usage(key, desk.judged_at)
        entitled = walk(state, key, desk.judged_at)
        named = quota.effective_rows(state.policy, key, desk.judged_at)
        change = quota.next_change(state.policy, key, desk.judged_at)
        borrowed: dict[Place, int] = {}
        below: dict[Place, int] = {}
        for allocation_id, within in entitled.items():
            allocation = state.allocations[allocation_id]
            for place in tree.path(state.place_of(state.workload_of(allocation))):
                below[place] = below.get(place, 0) + allocation.milli_gpus
                if not within:
                    borrowed[place] = borrowed.get(place, 0) + allocation.milli_gpus
        for place in sorted(set(named) | {p for p in below if p.level == "team"}):
            share = tree.shares[place]
            team = place.name if place.level == "team" else state.policy.projects[place.name].team
            own = below.get(place, 0)
            unused = max(0, tree.subtree[place] - own)
            rows.append(
                wire.Quota(
                    team=team,
                    project=place.name if place.level == "project" else None,
                    pool=key[0],
                    flavor=key[1],
                    guaranteed=wire.gpus(share.guaranteed),
                    borrow=wire.gpus(share.borrow) if share.borrow is not None else None,
                    lend=wire.gpus(share.lend) if share.lend is not None else None,
                    used=wire.gpus(own),
                    borrowed=wire.gpus(borrowed.get(place, 0)),
                    lent=wire.gpus(max(0, unused - max(0, quota.available(tree, used, place)))),
                    available=wire.gpus(quota.available(tree, used, place)),
                    window=share.window,
                    next_change=to_rfc3339(change) if change is not None else None,
                    simulated=desk.simulated_pool(key[0]),
                )
            )
    return rows
