"""What do this machine's NVIDIA cards say? A process of its own, as a call into the driver may never return.

`python -m hubgov.telemetry.nvml_child --period 10` prints a line per reading (see `lines`) until its standard
input ends, which it does when the parent is gone; a line on it is another period, from then on. Nothing else in
hubgov imports pynvml.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

from pynvml import (
    NVML_DEVICE_MIG_ENABLE,
    NVMLError,
    NVMLError_ArgumentVersionMismatch,
    NVMLError_DriverNotLoaded,
    NVMLError_FunctionNotFound,
    NVMLError_GpuIsLost,
    NVMLError_GpuNotFound,
    NVMLError_LibraryNotFound,
    NVMLError_LibRmVersionMismatch,
    NVMLError_NotFound,
    NVMLError_NotSupported,
    NVMLError_ResetRequired,
    NVMLError_Uninitialized,
    NVMLError_Unknown,
    nvmlDeviceGetComputeRunningProcesses_v2,
    nvmlDeviceGetComputeRunningProcesses_v3,
    nvmlDeviceGetCount,
    nvmlDeviceGetGraphicsRunningProcesses_v2,
    nvmlDeviceGetGraphicsRunningProcesses_v3,
    nvmlDeviceGetHandleByIndex,
    nvmlDeviceGetMemoryInfo,
    nvmlDeviceGetMigMode,
    nvmlDeviceGetMinorNumber,
    nvmlDeviceGetName,
    nvmlDeviceGetPowerUsage,
    nvmlDeviceGetUtilizationRates,
    nvmlDeviceGetUUID,
    nvmlInit,
    nvmlMemory_v2,
    nvmlShutdown,
)

from hubgov.core.devices import Health
from hubgov.telemetry.lines import Unavailable, encode
from hubgov.telemetry.probe import DeviceProcess, DeviceReading, unread

EXIT_NO_LIBRARY = 3
EXIT_DRIVER = 4

_MIB = 1 << 20
_ALL_ONES = frozenset({2**32 - 1, 2**64 - 1})
_MAX_PID = 1 << 22
_LAST_CALL_SECONDS = 5.0

_CANNOT = (NVMLError_FunctionNotFound, NVMLError_NotSupported, NVMLError_ArgumentVersionMismatch)
_LOST = (NVMLError_GpuIsLost, NVMLError_ResetRequired, NVMLError_GpuNotFound)
_DRIVER = (NVMLError_Uninitialized, NVMLError_DriverNotLoaded, NVMLError_LibRmVersionMismatch)


class DriverTroubleError(Exception):
    """The driver answers for no card. A library once loaded never recovers, so this process must end."""


@dataclass(slots=True)
class _Asked:
    """One card while it is asked: which numbers are missing this time, and why."""

    uuid: str
    cannot: dict[tuple[str, str, int], str]
    missing: list[str] = field(default_factory=list)

    def ask(self, what: str, *ways: Callable[[], Any], needed: bool = True, vital: bool = False) -> Any:
        """The answer by the first way that driver and card know; None with a reason noted if `needed`.

        A way that they don't know isn't tried again. Raises what concerns the whole card or driver. An
        unknown error counts as that for a `vital` number only: some cards always answer one question so.
        """
        why = ""
        for number, way in enumerate(ways):
            key = (self.uuid, what, number)
            if key in self.cannot:
                why = self.cannot[key]
                continue
            try:
                return way()
            except _CANNOT as error:
                not_here = "card" if isinstance(error, NVMLError_NotSupported) else "driver"
                why = self.cannot[key] = f"not supported by this {not_here}"
            except (*_LOST, *_DRIVER):
                raise
            except NVMLError as error:
                if vital and isinstance(error, NVMLError_Unknown):
                    raise
                self.missing.append(f"{what}: {error}")
                return None
        if needed:
            self.missing.append(f"{what}: {why}")
        return None

    def plausible(self, what: str, value: int | None) -> int | None:
        """The value, or None with a reason for all ones, by which drivers say that they have none."""
        if value in _ALL_ONES:
            self.missing.append(f"{what}: the driver gives no value")
            return None
        return value


@dataclass(slots=True)
class Reader:
    """Reads all cards, and remembers what each is and what it can't tell."""

    _cannot: dict[tuple[str, str, int], str] = field(default_factory=dict)
    _known: dict[int, DeviceReading] = field(default_factory=dict)

    def read(self) -> tuple[DeviceReading, ...]:
        """Every card as it is now. DriverTroubleError when none of those listed answers.

        A card that fails alone is reported as sick or unknown, so that it doesn't blind the others. One that
        was never identified has an empty UUID.
        """
        unanswered: list[str] = []
        devices = []
        try:
            for index in range(nvmlDeviceGetCount()):
                try:
                    self._known[index] = self._card(index)
                    devices.append(self._known[index])
                except _LOST as error:
                    devices.append(self._failed(index, Health.SICK, str(error)))
                except NVMLError as error:
                    if isinstance(error, _DRIVER):
                        raise
                    unanswered.append(str(error))
                    devices.append(self._failed(index, Health.UNKNOWN, str(error)))
        except NVMLError as error:
            raise DriverTroubleError(str(error)) from error
        if unanswered and len(unanswered) == len(devices):
            raise DriverTroubleError(unanswered[0])
        return tuple(devices)

    def _failed(self, index: int, health: Health, why: str) -> DeviceReading:
        nobody = DeviceReading(
            index, "", "", 0, None, None, None, None, Health.UNKNOWN, None, None, simulated=False
        )
        return unread(self._known.get(index, nobody), why, health)

    def _card(self, index: int) -> DeviceReading:
        handle = nvmlDeviceGetHandleByIndex(index)
        card = _Asked(uuid=nvmlDeviceGetUUID(handle), cannot=self._cannot)
        model = card.ask("model", lambda: nvmlDeviceGetName(handle)) or ""
        minor = card.ask("minor number", lambda: nvmlDeviceGetMinorNumber(handle))
        memory_mib, used_mib = _memory(card, handle)
        return DeviceReading(
            index=index,
            uuid=card.uuid,
            model=model,
            memory_mib=memory_mib,
            minor=card.plausible("minor number", minor),
            used_mib=used_mib,
            utilisation_percent=_utilisation(card, handle),
            power_mw=card.plausible("power", card.ask("power", lambda: nvmlDeviceGetPowerUsage(handle))),
            processes=_processes(card, handle, memory_mib),
            health=Health.OK,
            unknown_because="; ".join(card.missing) or None,
            simulated=False,
        )


def _memory(card: _Asked, handle: Any) -> tuple[int, int | None]:
    """MiB that the card has and MiB in use. Version 2 of the call doesn't count the driver's own as used."""
    info = card.ask(
        "memory",
        lambda: nvmlDeviceGetMemoryInfo(handle, version=nvmlMemory_v2),
        lambda: nvmlDeviceGetMemoryInfo(handle),
        vital=True,
    )
    if info is None:
        return 0, None
    total = card.plausible("memory", int(info.total)) or 0
    used = card.plausible("memory in use", int(info.used))
    return total // _MIB, None if used is None else min(used, total) // _MIB


def _utilisation(card: _Asked, handle: Any) -> int | None:
    """Percent of the last moment in which anything ran. The driver measures none on a card cut up by MIG."""
    mig = card.ask("MIG mode", lambda: nvmlDeviceGetMigMode(handle), needed=False)
    if mig is not None and mig[0] == NVML_DEVICE_MIG_ENABLE:
        card.missing.append("utilisation: not measurable on MIG")
        return None
    rates = card.ask("utilisation", lambda: nvmlDeviceGetUtilizationRates(handle))
    percent = None if rates is None else card.plausible("utilisation", int(rates.gpu))
    return None if percent is None else min(percent, 100)


def _processes(card: _Asked, handle: Any, memory_mib: int) -> tuple[DeviceProcess, ...] | None:
    """The processes with memory on the card, by pid; None when any part of the list could not be had.

    Versions are named: pynvml's unversioned function raises something that is no NVMLError on an old driver.
    Structures that don't match the driver's have given absurd entries, so impossible pids are dropped and
    sizes beyond the card's memory are unknown.
    """
    before = len(card.missing)
    compute = card.ask(
        "processes",
        lambda: _or_none(nvmlDeviceGetComputeRunningProcesses_v3, handle),
        lambda: _or_none(nvmlDeviceGetComputeRunningProcesses_v2, handle),
    )
    graphics = card.ask(
        "graphics processes",
        lambda: _or_none(nvmlDeviceGetGraphicsRunningProcesses_v3, handle),
        lambda: _or_none(nvmlDeviceGetGraphicsRunningProcesses_v2, handle),
        needed=False,
    )
    if len(card.missing) > before:
        return None
    used: dict[int, int | None] = {}
    for process in (*compute, *(graphics or ())):
        if not 0 < process.pid <= _MAX_PID:
            continue
        size = None if process.usedGpuMemory is None else int(process.usedGpuMemory) // _MIB
        size = None if size is not None and memory_mib and size > memory_mib else size
        both = [known for known in (used.get(process.pid), size) if known is not None]
        used[process.pid] = max(both, default=None)
    return tuple(DeviceProcess(pid, used[pid]) for pid in sorted(used))


def _or_none(call: Callable[[Any], Any], handle: Any) -> Any:
    """The call's list; an empty one for NOT_FOUND, which is how some drivers say that there is no process."""
    try:
        return call(handle)
    except NVMLError_NotFound:
        return []


# --- the process -------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Print readings until the parent is gone; the exit status says what else ended it."""
    parser = argparse.ArgumentParser(prog="hubgov.telemetry.nvml_child")
    parser.add_argument("--period", type=float, default=10.0, help="seconds between readings")
    period: float = parser.parse_args(arguments).period
    periods: queue.SimpleQueue[float | None] = queue.SimpleQueue()
    threading.Thread(target=_hear_the_parent, args=(periods,), daemon=True).start()
    signal.signal(signal.SIGTERM, _leave)
    try:
        return _print_readings(period, periods)
    except BrokenPipeError:
        return 0


def _print_readings(period: float, periods: queue.SimpleQueue[float | None]) -> int:
    """Print a reading every `period` seconds, or every so many as `periods` says; None there ends it."""
    try:
        nvmlInit()
    except NVMLError_LibraryNotFound:
        _say(encode(Unavailable("no NVIDIA driver library", no_driver=True)))
        return EXIT_NO_LIBRARY
    except NVMLError as error:
        _say(encode(Unavailable(f"the NVIDIA driver does not start: {error}", no_driver=False)))
        return EXIT_DRIVER
    reader = Reader()
    try:
        while True:
            _say(encode(reader.read()))
            with contextlib.suppress(queue.Empty):
                said = periods.get(timeout=period)
                if said is None:
                    return 0
                period = said
    except DriverTroubleError as trouble:
        _say(encode(Unavailable(f"the NVIDIA driver does not answer: {trouble}", no_driver=False)))
        return EXIT_DRIVER
    finally:
        # A driver in trouble refuses this too; what was wrong has been said by then.
        with contextlib.suppress(NVMLError):
            nvmlShutdown()


def _say(line: bytes) -> None:
    while line:
        line = line[os.write(1, line) :]


def _hear_the_parent(periods: queue.SimpleQueue[float | None]) -> None:
    """Passes on the periods that come on standard input. Ends the process when that does; by force when the driver
    keeps the main thread."""
    part = b""
    while said := os.read(0, 4096):
        *lines, part = (part + said).split(b"\n")
        for line in lines:
            periods.put(float(line))
    periods.put(None)
    threading.Event().wait(_LAST_CALL_SECONDS)
    os._exit(EXIT_DRIVER)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """Ends in order: a client killed inside the driver has frozen cards until a reboot."""
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
