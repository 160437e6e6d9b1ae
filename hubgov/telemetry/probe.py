"""What is a reading of this node's devices, and what does every probe promise?

A number that isn't known is None, with the reason beside it. It is never 0: a failed reading that counted as
0 % is how busy sessions get reclaimed as idle.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass

from hubgov.clock import Instant
from hubgov.core.devices import Health


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    """A process with memory on the device; `used_mib` is None where the driver doesn't say (MIG)."""

    pid: int
    used_mib: int | None


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One device as it was read. The UUID is its identity: a driver may number its cards anew.

    `memory_mib` is 0 for a card that doesn't say how much it has, so that nothing that needs memory fits.
    `utilisation_percent` is the share of the last moment in which anything ran, 0 to 100: duty, not
    efficiency. `processes` is None when they aren't known, and empty when there are none. `unknown_because`
    names each missing number and why: `utilisation: not measurable on MIG; power: …`.
    """

    index: int
    uuid: str
    model: str
    memory_mib: int
    minor: int | None
    used_mib: int | None
    utilisation_percent: int | None
    power_mw: int | None
    health: Health
    unknown_because: str | None
    processes: tuple[DeviceProcess, ...] | None
    simulated: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """All devices of a node at one instant. `unavailable` says why there is nothing newer, if so."""

    node: str
    at: Instant
    devices: tuple[DeviceReading, ...]
    unavailable: str | None


class Probe(ABC):
    """Reads a node's devices in the background and always has an answer ready."""

    simulated: bool
    """Whether its devices are made up."""

    why: str = ""
    """Why this probe was chosen; empty when nobody had to choose."""

    @abstractmethod
    async def start(self) -> None:
        """Begin to read. Starting twice is starting once."""

    @abstractmethod
    def latest(self) -> Reading:
        """The last good reading, at once. Once it is too old its devices are unknown, with the reason."""

    @abstractmethod
    def pace(self, seconds: float) -> None:
        """Let so many real seconds pass between readings from now on; the next one comes at once. The pace that it
        has already changes nothing."""

    @abstractmethod
    async def close(self) -> None:
        """Stop reading and leave no process or task behind, as far as the system allows it."""


def turned_unknown(reading: Reading, because: str) -> Reading:
    """The reading when nothing newer came: same devices and time, no numbers. A sick device stays sick."""
    return dataclasses.replace(
        reading, devices=tuple(unread(device, because) for device in reading.devices), unavailable=because
    )


def unread(device: DeviceReading, because: str, health: Health = Health.UNKNOWN) -> DeviceReading:
    """The device without its numbers: what it is stays known. Silence heals no sick one."""
    return dataclasses.replace(
        device,
        used_mib=None,
        utilisation_percent=None,
        power_mw=None,
        processes=None,
        unknown_because=because,
        health=Health.SICK if device.health is Health.SICK else health,
    )
