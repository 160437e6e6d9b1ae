"""Which devices there are and what each is for: the policy's nodes joined with what probes found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hubgov.core.devices import Device, Node, SeenDevice, SeenNode
from hubgov.core.policy import NodeRule, Policy


def inventory(policy: Policy, seen: Iterable[SeenNode]) -> dict[str, Node]:
    """All nodes by name: declared ones as the policy says, matched ones as found, sorted by name.

    A discovered node joins the rule whose `match` names its host. One that no rule matches has no pool: its
    devices are shown and never allocated.
    """
    by_host = {rule.match_hostname: rule for rule in policy.nodes.values() if rule.match_hostname}
    nodes: dict[str, Node] = {}
    found = {node.name: node for node in seen}
    for rule in policy.nodes.values():
        if rule.match_hostname is None:
            for name in rule.names:
                nodes[name] = _declared(policy, rule, name, found.get(name))
    for node in found.values():
        if node.name not in nodes:
            matched = by_host.get(node.hostname)
            nodes[node.name] = _matched(policy, matched, node)
    return dict(sorted(nodes.items()))


def capacity(nodes: Mapping[str, Node], pool: str, flavor: str) -> int:
    """Milli-GPUs of all devices of a flavor in a pool, also of nodes that are down, drained or sick."""
    return 1000 * sum(
        1 for node in nodes.values() for device in node.devices if device.pool == pool and device.flavor == flavor
    )


def _declared(policy: Policy, rule: NodeRule, name: str, found: SeenNode | None) -> Node:
    """A node that the policy declares. A probe's word on health, UUIDs and reach counts where there is one."""
    flavor = policy.flavors[rule.flavor] if rule.flavor else None
    islands = [island for island, size in enumerate(rule.islands) for _ in range(size)]
    by_index = {d.index: d for d in found.devices} if found else {}
    devices = []
    for index in range(rule.devices):
        device = by_index.get(index)
        devices.append(
            Device(
                node=name,
                index=index,
                uuid=device.uuid if device else f"{name}/{index}",
                flavor=rule.flavor,
                pool=rule.pool,
                memory_mib=flavor.memory_mib if flavor else 0,
                island=islands[index] if index < len(islands) else 0,
                simulated=device.simulated if device else False,
                minor=device.minor if device else None,
                **({"health": device.health} if device else {}),
            )
        )
    return Node(
        name=name,
        pools=(rule.pool,) if rule.pool else (),
        devices=tuple(devices),
        cpus=rule.cpus if rule.cpus is not None else (found.cpus if found else None),
        ram_mib=rule.ram_mib if rule.ram_mib is not None else (found.ram_mib if found else None),
        labels=rule.labels,
        retired=rule.retired,
        accepts=not rule.retired and (found is None or (found.reachable and not found.drained)),
    )


def _matched(policy: Policy, rule: NodeRule | None, node: SeenNode) -> Node:
    pool_of: dict[int | str, str] = {}
    if rule is not None:
        pool_of = {ref: pool for pool, refs in rule.pools.items() for ref in refs}
    devices = tuple(
        Device(
            node=node.name,
            index=device.index,
            uuid=device.uuid,
            flavor=(rule.flavor if rule and rule.flavor else flavor_of(policy, device)),
            pool=pool_of.get(device.index, pool_of.get(device.uuid)),
            memory_mib=device.memory_mib,
            health=device.health,
            simulated=device.simulated,
            minor=device.minor,
        )
        for device in node.devices
    )
    return Node(
        name=node.name,
        pools=tuple(rule.pools) if rule else (),
        devices=devices,
        cpus=rule.cpus if rule and rule.cpus is not None else node.cpus,
        ram_mib=rule.ram_mib if rule and rule.ram_mib is not None else node.ram_mib,
        labels=rule.labels if rule else {},
        retired=rule is not None and rule.retired,
        accepts=node.reachable and not node.drained and not (rule and rule.retired),
    )


def flavor_of(policy: Policy, device: SeenDevice) -> str | None:
    """The flavor whose card model this device is; None for a card that the policy doesn't know."""
    return next((f.name for f in policy.flavors.values() if f.model == device.model), None)
