"""Which probe fits this machine? The real one where a card is found, else made-up devices."""

from __future__ import annotations

import asyncio
import logging

from hubgov.clock import Clock
from hubgov.telemetry.nvml import NvmlProbe
from hubgov.telemetry.probe import Probe
from hubgov.telemetry.simulated import Holders, SimulatedModel, SimulatedProbe, nobody

log = logging.getLogger(__name__)


async def choose_probe(
    node: str,
    *,
    simulated: bool | None,
    clock: Clock,
    model: SimulatedModel | None = None,
    holders: Holders = nobody,
    deadline: float = 60.0,
    nvml: NvmlProbe | None = None,
) -> Probe:
    """A probe that is started, with its `why` filled in.

    `simulated`: True asks no driver, False never makes devices up, None takes what is there: NVML if it lists
    any card within `deadline` seconds. `nvml` is the real probe to try, one for this machine when left out.
    """
    if simulated is True:
        return await _started(SimulatedProbe(node, clock=clock, model=model, holders=holders), "asked for")
    real = nvml or NvmlProbe(node, clock=clock)
    if simulated is False:
        return await _started(real, "simulated devices are not wanted")
    await real.start()
    try:
        async with asyncio.timeout(deadline):
            reading = await real.first_word()
        why = reading.unavailable or "the NVIDIA driver lists no device"
        if reading.devices:
            return await _started(real, f"NVML lists {len(reading.devices)} devices")
    except TimeoutError:
        why = f"the NVIDIA driver gives no reading within {deadline:g} s"
    except BaseException:
        await real.close()
        raise
    await real.close()
    return await _started(SimulatedProbe(node, clock=clock, model=model, holders=holders), why)


async def _started(probe: Probe, why: str) -> Probe:
    probe.why = why
    await probe.start()
    log.info("devices are %s: %s", "simulated" if probe.simulated else "read through NVML", why)
    return probe
