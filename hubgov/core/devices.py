"""Nodes and devices: as a probe finds them, and as the policy makes them fit for placement.

Units: memory in MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Health(StrEnum):
    """Whether a device may get new work: only one that is ok does. `sick`: the driver calls it lost or wants a
    reset; `unknown`: nobody can tell."""

    OK = "ok"
    SICK = "sick"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One physical card of a node, as far as placement cares. `island`: cards with the same number are linked."""

    node: str
    index: int
    uuid: str
    flavor: str | None
    pool: str | None
    memory_mib: int
    island: int = 0
    health: Health = Health.OK
    simulated: bool = False
    minor: int | None = None

    @property
    def key(self) -> DeviceKey:
        return (self.node, self.uuid)


DeviceKey = tuple[str, str]
"""(node, UUID): a driver may number its cards anew, so that an index names no device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine with its devices. `pools` it serves also count for work without a device."""

    name: str
    pools: tuple[str, ...]
    devices: tuple[Device, ...]
    cpus: int | None = None
    ram_mib: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    accepts: bool = True
    """False while drained, down or retired: what runs goes on, nothing new comes."""
    retired: bool = False
    """It never takes work again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDevice:
    """A device as a probe found it, before the policy says what it is for."""

    index: int
    uuid: str
    model: str
    memory_mib: int
    minor: int | None = None
    health: Health = Health.OK
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNode:
    """A machine as its probe found it; record of the ledger, keyed by name."""

    name: str
    hostname: str
    cpus: int
    ram_mib: int
    devices: tuple[SeenDevice, ...]
    drained: bool = False
    reachable: bool = True
