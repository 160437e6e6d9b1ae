"""Real cards where there are any, made-up ones else; and it says why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from telemetry.fake_prober import fake_prober, script

from hubgov.clock import FakeClock
from hubgov.telemetry.detect import choose_probe
from hubgov.telemetry.nvml import NvmlProbe, Patience
from hubgov.telemetry.probe import Probe, Reading

DYING = script("raise SystemExit('driver/library version mismatch')")
MUTE = script("import time; time.sleep(600)")


def at_once(_failures: int) -> float:
    return 0.0


def chosen(
    command: tuple[str, ...],
    *,
    simulated: bool | None,
    deadline: float = 60.0,
    look: Callable[[Probe], Reading] = lambda probe: probe.latest(),
) -> tuple[Probe, Reading]:
    """The probe that is chosen where this is the prober, and what it says at first. It is closed."""

    async def choose() -> tuple[Probe, Reading]:
        clock = FakeClock()
        nvml = NvmlProbe("box", clock=clock, command=command, backoff=at_once, patience=Patience(to_stop=0.3))
        probe = await choose_probe("box", simulated=simulated, clock=clock, deadline=deadline, nvml=nvml)
        try:
            return probe, look(probe)
        finally:
            await probe.close()
            assert nvml._child is None or nvml._child.exited.is_set()

    return asyncio.run(choose())


def test_cards_that_are_there_are_taken() -> None:
    probe, reading = chosen(fake_prober(cards=3), simulated=None)
    assert (probe.simulated, probe.why) == (False, "NVML lists 3 devices")
    assert [device.uuid for device in reading.devices] == ["GPU-0", "GPU-1", "GPU-2"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (fake_prober(library=False), "no NVIDIA driver library"),
        (fake_prober(cards=0), "the NVIDIA driver lists no device"),
        (fake_prober(errors={"nvmlInitWithFlags": 9}), "the NVIDIA driver does not start: Driver Not Loaded"),
        (DYING, "the prober ended (status 1) driver/library version mismatch"),
    ],
    ids=["no library", "no card", "no driver", "mismatch"],
)
def test_without_cards_devices_are_made_up_and_the_reason_is_told(command: tuple[str, ...], why: str) -> None:
    probe, reading = chosen(command, simulated=None)
    assert (probe.simulated, probe.why) == (True, why)
    assert len(reading.devices) == 6
    assert all(device.simulated for device in reading.devices)


def test_a_driver_that_does_not_answer_is_not_waited_for() -> None:
    probe, _ = chosen(MUTE, simulated=None, deadline=0.5)
    assert (probe.simulated, probe.why) == (True, "the NVIDIA driver gives no reading within 0.5 s")


def test_devices_are_made_up_on_demand_without_asking_any_driver() -> None:
    probe, reading = chosen(("/no-such-program",), simulated=True)
    assert (probe.simulated, probe.why) == (True, "asked for")
    assert reading.unavailable is None


def test_nothing_is_made_up_where_it_is_not_wanted() -> None:
    probe, reading = chosen(fake_prober(library=False), simulated=False)
    assert (probe.simulated, reading.devices) == (False, ())
