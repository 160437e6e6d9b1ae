"""The prober and the probe over a real driver and a real card."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time

from hubgov.clock import SystemClock
from hubgov.core.devices import Health
from hubgov.telemetry.detect import choose_probe
from hubgov.telemetry.lines import decode
from hubgov.telemetry.nvml import NvmlProbe
from hubgov.telemetry.probe import DeviceReading

CUDA_CONTEXT = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 30)) == 0
print("held", flush=True)
sys.stdin.read()
"""


def read_once() -> tuple[DeviceReading, ...]:
    with subprocess.Popen(
        [sys.executable, "-m", "hubgov.telemetry.nvml_child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as prober:
        assert prober.stdin is not None
        assert prober.stdout is not None
        said = decode(prober.stdout.readline())
        prober.stdin.close()
        assert prober.wait(30) == 0
    assert isinstance(said, tuple), said
    return said


def test_every_card_tells_who_it_is_and_how_it_does() -> None:
    devices = read_once()
    assert devices
    assert len({device.uuid for device in devices}) == len(devices)
    for index, device in enumerate(devices):
        assert device.index == index
        assert re.fullmatch(r"GPU-[0-9a-f-]{36}", device.uuid)
        assert device.model
        assert device.memory_mib > 1024
        assert device.health is Health.OK
        assert not device.simulated
        assert device.used_mib is not None
        assert 0 <= device.used_mib < device.memory_mib
        assert device.processes is not None
        assert device.utilisation_percent is None or 0 <= device.utilisation_percent <= 100
        assert (device.utilisation_percent is not None) or "utilisation" in (device.unknown_because or "")


def test_the_figures_are_those_of_nvidia_smi() -> None:
    query = ["nvidia-smi", "--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits"]
    lines = subprocess.run(query, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    shown = [tuple(part.strip() for part in line.split(",")) for line in lines]
    read = [(str(d.index), d.uuid, d.model, str(d.memory_mib)) for d in read_once()]
    assert read == shown


def test_memory_that_a_process_takes_shows_and_goes_with_it() -> None:
    """Its pid may be hidden in a container, where the driver lists none of its processes or other numbers."""
    before = read_once()[0].used_mib or 0
    with subprocess.Popen(
        [sys.executable, "-c", CUDA_CONTEXT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        held = read_once()[0].used_mib or 0
        holder.stdin.close()
    assert held - before >= 1024
    end = time.monotonic() + 30
    while (read_once()[0].used_mib or 0) > before + 64:
        assert time.monotonic() < end, "the memory was not given back"


def test_the_probe_gives_readings_and_is_chosen() -> None:
    async def scene() -> None:
        clock = SystemClock()
        nvml = NvmlProbe("box", clock=clock, period=0.5)
        probe = await choose_probe("box", simulated=None, clock=clock, nvml=nvml)
        try:
            first = probe.latest()
            assert not probe.simulated
            assert first.devices
            end = time.monotonic() + 30
            while probe.latest().at == first.at:
                assert time.monotonic() < end, "no second reading"
                await asyncio.sleep(0.05)
            assert probe.latest().unavailable is None
        finally:
            await probe.close()

    asyncio.run(scene())
