"""Made-up devices: always the same ones, and their load is that of the processes that hold them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from telemetry.patience import ticking, until

from hubgov.clock import FakeClock
from hubgov.core.devices import Health
from hubgov.telemetry.probe import DeviceProcess, Reading
from hubgov.telemetry.simulated import CpuMeter, Load, SimulatedModel, SimulatedProbe, simulated_uuid

BUSY_BELOW = "import subprocess,sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
SHORT_LIVED_BELOW = (
    "import subprocess,sys\nwhile True: subprocess.run([sys.executable, '-S', '-c', 'sum(range(10**6))'])"
)
IDLE = "import time; time.sleep(600)"


@contextmanager
def running(code: str) -> Iterator[int]:
    """A tree of processes; its root's pid. Ended with all that it started."""
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as root:
        try:
            yield root.pid
        finally:
            os.killpg(root.pid, signal.SIGKILL)


def only_the_second_is_busy(reading: Reading) -> bool:
    _, busy, resting, *_ = reading.devices
    return (busy.utilisation_percent or 0) >= 20 and resting.utilisation_percent == 0


def test_the_same_node_has_the_same_devices_always() -> None:
    def devices(node: str) -> list[str]:
        return [device.uuid for device in SimulatedProbe(node, clock=FakeClock()).latest().devices]

    assert devices("box") == devices("box")
    assert len(set(devices("box") + devices("other"))) == 12
    assert simulated_uuid("box", 0) == "SIM-0702603f-dcb0-5c12-b889-d0eb1f3ec7b6"


def test_devices_nobody_holds_are_idle_from_the_first_moment() -> None:
    reading = SimulatedProbe("box", clock=FakeClock()).latest()
    assert (reading.node, reading.unavailable, len(reading.devices)) == ("box", None, 6)
    for index, device in enumerate(reading.devices):
        assert (device.index, device.model, device.memory_mib) == (index, "A100-80GB", 81920)
        assert (device.utilisation_percent, device.processes, device.health) == (0, (), Health.OK)
        assert device.used_mib is not None
        assert device.used_mib < 100
        assert device.simulated
        assert device.uuid.startswith("SIM-")


@pytest.mark.parametrize("code", [BUSY_BELOW, SHORT_LIVED_BELOW], ids=["one busy child", "many short ones"])
def test_work_in_a_process_tree_raises_its_device_and_no_other(code: str) -> None:
    async def scene(pid: int) -> None:
        held, other = simulated_uuid("box", 1), simulated_uuid("box", 2)
        holders: dict[str, tuple[int, ...]] = {held: (pid,), other: (sleeper,)}
        probe = SimulatedProbe("box", clock=FakeClock(), holders=lambda: holders, period=0.2)
        await probe.start()
        try:
            await until(lambda: only_the_second_is_busy(probe.latest()), "one busy device beside one at rest")
            idle, busy, resting, *_ = probe.latest().devices
            assert (idle.utilisation_percent, idle.processes) == (0, ())
            assert [process.pid for process in resting.processes or ()] == [sleeper]
            assert [process.pid for process in busy.processes or ()] == [pid]
            assert busy.used_mib is not None
            assert resting.used_mib is not None
            assert busy.used_mib > 5 * resting.used_mib > 0
            assert (busy.power_mw or 0) > (resting.power_mw or 0) > 0
            holders[held] = ()
            await until(lambda: probe.latest().devices[1].processes == (), "a device given back")
            assert probe.latest().devices[1].utilisation_percent == 0
        finally:
            await probe.close()

    with running(code) as pid, running(IDLE) as sleeper:
        asyncio.run(scene(pid))


def test_the_load_falls_when_the_work_ends() -> None:
    async def scene(pid: int) -> None:
        holders = {simulated_uuid("box", 0): (pid,)}
        probe = SimulatedProbe("box", clock=FakeClock(), holders=lambda: holders, period=0.2)
        await probe.start()
        try:
            await until(lambda: (probe.latest().devices[0].utilisation_percent or 0) >= 20, "a busy device")
            os.kill(pid, signal.SIGSTOP)
            await until(lambda: probe.latest().devices[0].utilisation_percent == 0, "an idle device")
        finally:
            await probe.close()

    with running("while True: pass") as pid:
        asyncio.run(scene(pid))


@pytest.mark.parametrize("device", ["its own", "a stranger's"])
def test_holders_that_are_gone_and_devices_of_others_count_for_nothing(device: str) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    held = simulated_uuid("box" if device == "its own" else "elsewhere", 0)
    probe = SimulatedProbe("box", clock=FakeClock(), holders=lambda: {held: (gone.pid,)})
    reading = asyncio.run(probe.sample())
    assert [(d.utilisation_percent, d.processes) for d in reading.devices] == [(0, ())] * 6


def test_a_dead_holder_that_is_not_yet_reaped_holds_nothing() -> None:
    async def scene(process: subprocess.Popen[bytes]) -> None:
        holders = {simulated_uuid("box", 0): (process.pid,)}
        probe = SimulatedProbe("box", clock=FakeClock(), holders=lambda: holders, period=0.05)
        await probe.start()
        await until(lambda: probe.latest().devices[0].processes == (), "a device nobody alive holds")
        await probe.close()

    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        asyncio.run(scene(process))


class ScriptedMeter(CpuMeter):
    """Says what it is told to, once it may."""

    def __init__(self, load: Load | Exception) -> None:
        super().__init__()
        self.load = load
        self.go_on = threading.Event()

    def measure(self, held: Mapping[str, tuple[int, ...]], at: float) -> dict[str, Load]:
        assert self.go_on.wait(60)
        if isinstance(self.load, Exception):
            raise self.load
        return dict.fromkeys(held, self.load)


def a_probe(meter: ScriptedMeter, **options: float) -> SimulatedProbe:
    model = SimulatedModel(count=2, name="L40S-48GB", memory_mib=48 * 1024)
    holders = {simulated_uuid("box", 1): (41, 42)}
    probe = SimulatedProbe("box", clock=FakeClock(), model=model, holders=lambda: holders, **options)
    probe._meter = meter
    return probe


def test_memory_follows_the_load_and_is_shared_among_the_holders() -> None:
    meter = ScriptedMeter(Load(100, (41, 42)))
    meter.go_on.set()
    idle, busy = asyncio.run(a_probe(meter).sample()).devices
    used = 16 + 448 + 48 * 1024 * 6 // 10
    assert (idle.used_mib, busy.used_mib, busy.utilisation_percent) == (16, used, 100)
    assert busy.processes == (DeviceProcess(41, (used - 16) // 2), DeviceProcess(42, (used - 16) // 2))


def test_a_small_card_never_holds_more_than_it_has() -> None:
    probe = SimulatedProbe("box", clock=FakeClock(), model=SimulatedModel(1, "tiny", 8))
    assert probe.latest().devices[0].used_mib == 8


def test_a_slow_look_at_the_processes_blocks_nothing_and_makes_devices_unknown() -> None:
    meter = ScriptedMeter(Load(50, (41,)))

    async def scene() -> None:
        probe = a_probe(meter, period=0.05, deadline=0.3)
        await probe.start()
        try:
            async with ticking() as loop:
                await until(lambda: probe.latest().unavailable, "a reading that is too old")
            assert loop.ticks > 10
            assert loop.longest < 2.0
            device = probe.latest().devices[1]
            assert (device.health, device.utilisation_percent) == (Health.UNKNOWN, None)
            meter.go_on.set()
            await until(lambda: probe.latest().devices[1].utilisation_percent == 50, "a current reading")
        finally:
            meter.go_on.set()
            await probe.close()

    asyncio.run(scene())


def test_a_failure_is_told_logged_once_and_over_when_it_is(caplog: pytest.LogCaptureFixture) -> None:
    meter = ScriptedMeter(OSError("no /proc"))
    meter.go_on.set()

    async def scene() -> None:
        probe = a_probe(meter, period=0.01)
        await probe.start()
        try:
            await until(lambda: "no /proc" in (probe.latest().unavailable or ""), "the reason")
            meter.load = Load(1, (41,))
            await until(lambda: probe.latest().unavailable is None, "a current reading")
        finally:
            await probe.close()

    asyncio.run(scene())
    assert caplog.text.count("could not be sampled") == 1


def test_another_pace_holds_from_now_on() -> None:
    meter = ScriptedMeter(Load(1, (41,)))
    meter.go_on.set()

    async def scene() -> None:
        probe = a_probe(meter, period=600)
        clock = probe._clock
        assert isinstance(clock, FakeClock)
        await probe.start()
        try:
            await until(lambda: probe.latest().devices[1].utilisation_percent == 1, "the first sample")
            at = clock.advance(1000)
            probe.pace(600)
            probe.pace(0.05)
            await until(lambda: probe.latest().at == at, "a sample at the new pace")
            later = clock.advance(1000)
            await until(lambda: probe.latest().at == later, "and another")
            probe.pace(600)
            last = clock.advance(1000)
            await until(lambda: probe.latest().at == last, "one at once")
            clock.advance(1000)
            async with ticking() as loop:
                await until(lambda: loop.ticks > 30, "thirty turns of the loop")
            assert probe.latest().at == last, "and then none for ten minutes"
        finally:
            await probe.close()

    asyncio.run(scene())


def test_the_time_of_a_sample_is_the_clocks() -> None:
    clock = FakeClock()
    probe = SimulatedProbe("box", clock=clock)
    at = clock.advance(1000)
    assert asyncio.run(probe.sample()).at == at


def test_the_meter_counts_what_was_used_between_two_looks_only() -> None:
    meter = CpuMeter()
    me = {"device": (os.getpid(),)}
    first = meter.measure(me, 0.0)["device"]
    assert first == Load(0, (os.getpid(),))
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    busy = meter.measure(me, 1.0)["device"].percent
    assert 15 <= busy < 60
    assert meter.measure(me, 1000.0)["device"].percent == 0
    assert meter.measure({}, 1001.0) == {}
