"""A stand-in for NVIDIA's library under the real pynvml: what a driver would write into pynvml's structures.

`install()` puts it where pynvml keeps the library it loaded, in this process only.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pynvml

MIB = 1 << 20
ALL_ONES = 2**64 - 1


@dataclass
class FakeCard:
    uuid: str
    name: str = "NVIDIA A100-SXM4-80GB"
    total: int = 81920 * MIB
    used: int = 1024 * MIB
    reserved: int = 600 * MIB
    utilisation: int = 37
    power: int = 71_000
    minor: int = 0
    mig: int | None = None
    """None: a card that knows no MIG."""
    compute: list[tuple[int, int]] = field(default_factory=list)
    graphics: list[tuple[int, int]] = field(default_factory=list)


class FakeLibrary:
    """Functions as attributes, as ctypes has them. `errors` maps a symbol, or (symbol, card), to a code."""

    def __init__(self, cards: list[FakeCard]) -> None:
        self.cards = cards
        self.errors: dict[str | tuple[str, int], int] = {}
        self.asked: list[str] = []
        self.hang_after: int | None = None
        """Number of memory calls that return; the next never does."""
        for symbol, function in _functions(self).items():
            setattr(self, symbol, self._plain(symbol, function))

    def without(self, *symbols: str) -> FakeLibrary:
        """As an older driver: it lacks these symbols."""
        for symbol in symbols:
            delattr(self, symbol)
        return self

    def _plain(self, symbol: str, function: Callable[..., int]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.asked.append(symbol)
            card = self.card_number(arguments[0]) if arguments else 0
            code = self.errors.get((symbol, card), self.errors.get(symbol))
            return code if code is not None else function(*arguments)

        return call

    @staticmethod
    def card_number(handle: Any) -> int:
        if isinstance(handle, ctypes.c_uint):
            return int(handle.value)
        if isinstance(handle, pynvml.c_nvmlDevice_t):
            return (ctypes.cast(handle, ctypes.c_void_p).value or 1) - 1
        return 0

    def card(self, handle: Any) -> FakeCard:
        return self.cards[self.card_number(handle)]


def install(library: FakeLibrary | None) -> None:
    """Make pynvml use the library; None takes it away again. pynvml keeps pointers, which must go as well."""
    pynvml.nvmlLib = library
    pynvml._nvmlGetFunctionPointer_cache.clear()


def hang_for_ever() -> None:
    """As a call into a stuck driver: never returns, lets other threads run, heeds no signal but SIGKILL."""
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)
    signal.pause()


def _functions(library: FakeLibrary) -> dict[str, Callable[..., int]]:
    ok = pynvml.NVML_SUCCESS

    def initialise(_flags: int) -> int:
        return ok

    def shutdown() -> int:
        return ok

    def error_string(code: int) -> Any:
        return b"code %d" % code

    def count(out: Any) -> int:
        out._obj.value = len(library.cards)
        return ok

    def by_index(index: Any, out: Any) -> int:
        handle = ctypes.c_void_p(index.value + 1)
        ctypes.memmove(ctypes.addressof(out._obj), ctypes.byref(handle), ctypes.sizeof(handle))
        return ok

    def uuid(handle: Any, buffer: Any, _size: Any) -> int:
        buffer.value = library.card(handle).uuid.encode()
        return ok

    def name(handle: Any, buffer: Any, _size: Any) -> int:
        buffer.value = library.card(handle).name.encode()
        return ok

    def minor(handle: Any, out: Any) -> int:
        out._obj.value = library.card(handle).minor
        return ok

    def memory(handle: Any, out: Any) -> int:
        if library.hang_after is not None:
            library.hang_after -= 1
            if library.hang_after < 0:
                hang_for_ever()
        card = library.card(handle)
        version2 = isinstance(out._obj, pynvml.c_nvmlMemory_v2_t)
        out._obj.total = card.total
        # Version 1 counts as used what the driver keeps for itself.
        out._obj.used = card.used if version2 or card.used == ALL_ONES else card.used + card.reserved
        return ok

    def utilisation(handle: Any, out: Any) -> int:
        out._obj.gpu = library.card(handle).utilisation
        return ok

    def power(handle: Any, out: Any) -> int:
        out._obj.value = library.card(handle).power
        return ok

    def mig_mode(handle: Any, current: Any, pending: Any) -> int:
        mode = library.card(handle).mig
        if mode is None:
            return int(pynvml.NVML_ERROR_NOT_SUPPORTED)
        current._obj.value = pending._obj.value = mode
        return ok

    def listed(which: str) -> Callable[..., int]:
        def processes(handle: Any, number: Any, array: Any) -> int:
            found = getattr(library.card(handle), which)
            room, number._obj.value = number._obj.value, len(found)
            if array is None:
                return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE) if found else ok
            assert room >= len(found)
            for slot, (pid, used) in zip(array, found, strict=False):
                slot.pid, slot.usedGpuMemory = pid, used
            return ok

        return processes

    return {
        "nvmlInitWithFlags": initialise,
        "nvmlShutdown": shutdown,
        "nvmlErrorString": error_string,
        "nvmlDeviceGetCount_v2": count,
        "nvmlDeviceGetHandleByIndex_v2": by_index,
        "nvmlDeviceGetUUID": uuid,
        "nvmlDeviceGetName": name,
        "nvmlDeviceGetMinorNumber": minor,
        "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetMemoryInfo_v2": memory,
        "nvmlDeviceGetUtilizationRates": utilisation,
        "nvmlDeviceGetPowerUsage": power,
        "nvmlDeviceGetMigMode": mig_mode,
        "nvmlDeviceGetComputeRunningProcesses_v2": listed("compute"),
        "nvmlDeviceGetComputeRunningProcesses_v3": listed("compute"),
        "nvmlDeviceGetGraphicsRunningProcesses_v2": listed("graphics"),
        "nvmlDeviceGetGraphicsRunningProcesses_v3": listed("graphics"),
    }
