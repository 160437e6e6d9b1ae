"""What would cards say that aren't there? Made-up devices whose load follows their holders' CPU load."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import psutil

from hubgov.clock import Clock
from hubgov.core.devices import Health
from hubgov.telemetry.probe import DeviceProcess, DeviceReading, Probe, Reading, turned_unknown

log = logging.getLogger(__name__)

Holders = Callable[[], Mapping[str, tuple[int, ...]]]
"""Says which processes hold a device, by its UUID: the roots of their trees. Called in the event loop."""

_NAMESPACE = uuid.UUID("6f1f3c1e-0a53-5c55-9d0b-3f6f1a2d9b11")
_NOISE_PERCENT = 3
_RESERVED_MIB = 16
_CONTEXT_MIB = 448
_BUSY_MEMORY_SHARE = 0.6
_IDLE_MW, _BUSY_MW = 55_000, 400_000


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """Which cards to make up. Left out: six of 80 GiB, enough for every kind of pool of the sample policy."""

    count: int = 6
    name: str = "A100-80GB"
    memory_mib: int = 80 * 1024


def simulated_uuid(node: str, index: int) -> str:
    """The same UUID for the same node and number, always: `SIM-…`, which no real card has."""
    return f"SIM-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}"


def nobody() -> Mapping[str, tuple[int, ...]]:
    """The holders where nothing is allocated."""
    return {}


class SimulatedProbe(Probe):
    """Made-up devices. One core's worth of work in the tree that holds a device shows as 100 % on it."""

    simulated = True

    def __init__(
        self,
        node: str,
        *,
        clock: Clock,
        model: SimulatedModel | None = None,
        holders: Holders = nobody,
        period: float = 2.0,
        deadline: float = 30.0,
    ) -> None:
        self._clock = clock
        self._model = model or SimulatedModel()
        self._holders = holders
        self._period = period
        self._deadline = deadline
        self._meter = CpuMeter()
        self._uuids = tuple(simulated_uuid(node, index) for index in range(self._model.count))
        idle = tuple(self._device(index, None) for index in range(self._model.count))
        self._last = Reading(node, clock.now(), idle, None)
        self._sampled_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None
        self._paced = asyncio.Event()
        self._trouble: str | None = None

    async def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._sample_for_ever(), name="simulated probe")

    def latest(self) -> Reading:
        silent = time.monotonic() - self._sampled_at > self._period + self._deadline
        if silent or self._trouble:
            return turned_unknown(self._last, self._trouble or "the load of the processes could not be sampled")
        return self._last

    def pace(self, seconds: float) -> None:
        if seconds != self._period:
            self._period = seconds
            self._paced.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def sample(self) -> Reading:
        """Takes one sample now. Two are needed before a load shows: it is what was used between them."""
        held = {key: pids for key, pids in self._holders().items() if key in self._uuids and pids}
        loads = await asyncio.to_thread(self._meter.measure, held, time.monotonic())
        devices = tuple(self._device(index, loads.get(key)) for index, key in enumerate(self._uuids))
        self._last = dataclasses.replace(self._last, at=self._clock.now(), devices=devices)
        self._sampled_at = time.monotonic()
        self._trouble = None
        return self._last

    async def _sample_for_ever(self) -> None:
        while True:
            try:
                await self.sample()
            except Exception as error:
                if self._trouble is None:
                    log.exception("the simulated devices could not be sampled")
                self._trouble = f"the simulated devices could not be sampled: {error!r}"
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._period):
                    await self._paced.wait()
            self._paced.clear()

    def _device(self, index: int, load: Load | None) -> DeviceReading:
        """A device under a load; None is a device that nothing alive holds."""
        percent = load.percent if load else 0
        used = _RESERVED_MIB
        if load:
            used += _CONTEXT_MIB + int(self._model.memory_mib * _BUSY_MEMORY_SHARE * percent / 100)
        used = min(used, self._model.memory_mib)
        pids = load.pids if load else ()
        return DeviceReading(
            index=index,
            uuid=self._uuids[index],
            model=self._model.name,
            memory_mib=self._model.memory_mib,
            minor=None,
            used_mib=used,
            utilisation_percent=percent,
            power_mw=_IDLE_MW + (_BUSY_MW - _IDLE_MW) * percent // 100,
            health=Health.OK,
            unknown_because=None,
            processes=tuple(DeviceProcess(pid, (used - _RESERVED_MIB) // len(pids)) for pid in pids),
            simulated=True,
        )


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the trees under `pids` (those alive) were: 100 is one core, the most that is told."""

    percent: int
    pids: tuple[int, ...]


@dataclass(slots=True)
class CpuMeter:
    """Measures what CPU process trees use between two looks. Reads all of /proc: not for the event loop."""

    _before: dict[str, tuple[tuple[int, ...], float, float]] = field(default_factory=dict)

    def measure(self, held: Mapping[str, tuple[int, ...]], at: float) -> dict[str, Load]:
        """The load by device since the last look; devices without a living holder are left out.

        `at` is in seconds of a steady clock. A holder seen for the first time has no load yet.
        """
        processes, children = _all_processes()
        loads, seen = {}, {}
        for key, pids in held.items():
            roots = tuple(pid for pid in sorted(set(pids)) if pid in processes and _lives(processes[pid]))
            if not roots:
                continue
            used = sum(_cpu_seconds(processes[pid]) for pid in _tree(roots, children))
            seen[key] = (roots, used, at)
            loads[key] = Load(self._percent(key, roots, used, at), roots)
        self._before = seen
        return loads

    def _percent(self, key: str, roots: tuple[int, ...], used: float, at: float) -> int:
        # A pid used anew, or a process that left the tree, shows as less than before: as no load.
        before = self._before.get(key)
        if before is None or before[0] != roots or at <= before[2]:
            return 0
        percent = round(100 * (used - before[1]) / (at - before[2]))
        return 0 if percent < _NOISE_PERCENT else min(percent, 100)


def _all_processes() -> tuple[dict[int, psutil.Process], dict[int, list[int]]]:
    """Every process by pid, and the pids of each one's children."""
    processes: dict[int, psutil.Process] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for process in psutil.process_iter(["ppid"]):
        processes[process.pid] = process
        children[process.info["ppid"]].append(process.pid)
    return processes, children


def _tree(roots: Iterable[int], children: Mapping[int, list[int]]) -> Iterable[int]:
    """The pids of the roots and of all that descend from them, each once."""
    todo = list(roots)
    seen: set[int] = set()
    while todo:
        pid = todo.pop()
        if pid not in seen:
            seen.add(pid)
            todo.extend(children.get(pid, ()))
            yield pid


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _cpu_seconds(process: psutil.Process) -> float:
    """What the process and its ended children used: so a tree's sum stays true when one of it ends."""
    try:
        times = process.cpu_times()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
