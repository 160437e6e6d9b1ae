"""What probes found, brought into the record: a node's devices and their health, when they change."""

from __future__ import annotations

from dataclasses import replace

from hubgov.control.actor import Actor, check_admin
from hubgov.control.unit import Unit
from hubgov.core.devices import Health, SeenDevice, SeenNode
from hubgov.core.model import Change
from hubgov.errors import NotFound
from hubgov.telemetry.probe import Reading


def node_seen(unit: Unit, reading: Reading, hostname: str, cpus: int, ram_mib: int) -> None:
    """Record a node's inventory if it isn't what is known already; a device that vanished turns unknown.

    Readings come every few seconds; only a change of what there is, or of its health, is worth a commit.
    """
    before = unit.state.seen.get(reading.node)
    held = {uuid for node, uuid in unit.state.on_device if node == reading.node}
    after = SeenNode(
        name=reading.node,
        hostname=hostname,
        cpus=cpus,
        ram_mib=ram_mib,
        devices=_devices(before, reading, held),
        drained=before.drained if before else False,
    )
    if after != before:
        unit.write([Change(event="node_seen", before=before, after=after, actor="probe")])


def _devices(before: SeenNode | None, reading: Reading, held: set[str]) -> tuple[SeenDevice, ...]:
    found = {
        d.uuid: SeenDevice(
            index=d.index,
            uuid=d.uuid,
            model=d.model,
            memory_mib=d.memory_mib,
            minor=d.minor,
            health=Health(d.health.value),
            simulated=d.simulated,
        )
        for d in reading.devices
    }
    indexes = {d.index for d in found.values()}
    for known in before.devices if before else ():
        # A silent driver takes nothing away: the device stays on the books, and gets nothing new. One whose index
        # another has now was replaced or numbered anew: it goes once nobody holds it.
        if known.uuid not in found and (known.index not in indexes or known.uuid in held):
            found[known.uuid] = replace(known, health=Health.UNKNOWN)
    return tuple(sorted(found.values(), key=lambda d: d.index))


def drain(unit: Unit, node: str, actor: Actor, *, drained: bool, reason: str) -> SeenNode:
    """Let a node take no new work, or take it again."""
    check_admin(actor)
    before = unit.state.seen.get(node)
    if before is None:
        raise NotFound(f"no node {node}", hint="hubgov devices")
    after = replace(before, drained=drained)
    event = "node_drained" if drained else "node_undrained"
    unit.write([Change(event=event, before=before, after=after, actor=actor.principal, reason=reason)])
    return after
