"""An engine that fails on one allocation: the others are looked after, and the loop goes on."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from pathlib import Path

import pytest
from control.house import House, a_house

from hubgov.clock import Clock, FakeClock
from hubgov.core.model import Allocation
from hubgov.engines.base import Seen
from hubgov.engines.scripted import FOR_EVER, Behaviour, ScriptedEngine

SECOND = 1000
FAULTS = {
    "no file descriptor is left": OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
    "not ours to see or to signal": PermissionError(errno.EPERM, os.strerror(errno.EPERM)),
    "a fault of ours": KeyError("nobody"),
}


class FailingEngine(ScriptedEngine):
    """Raises `fault` on whatever is asked of it by name in `on` for one workload."""

    def __init__(self, clock: Clock, fault: Exception) -> None:
        super().__init__(clock)
        self.fault, self.on, self.workload = fault, "", ""

    def look(self, allocation: Allocation) -> Seen:
        self._fail("look", allocation)
        return super().look(allocation)

    def kill(self, allocation: Allocation) -> None:
        self._fail("kill", allocation)
        super().kill(allocation)

    def _fail(self, what: str, allocation: Allocation) -> None:
        if what == self.on and allocation.workload == self.workload:
            raise self.fault


async def _two_that_end(house: House) -> tuple[str, str]:
    """Two sessions whose stops are sent and whose processes ignore them: only a kill ends them."""
    ids = []
    for user in ("amy", "bo"):
        workload = await house.ask(user)
        house.engine.script.behaviours[workload] = Behaviour(stop_takes_ms=FOR_EVER)
        await house.run(workload)
        await house.cancel(workload, now=True)
        ids.append(workload)
    return ids[0], ids[1]


@pytest.mark.parametrize("on", ["look", "kill"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_one_that_fails_holds_none_of_the_others_up(
    tmp_path: Path, on: str, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        clock = FakeClock()
        engine = FailingEngine(clock, fault)
        async with a_house(tmp_path, clock=clock, engine=engine) as house:
            bad, good = await _two_that_end(house)
            engine.on, engine.workload = on, bad
            await house.pass_time(180 * SECOND)
            assert house.state(good) == "cancelled"
            assert house.state(bad) in ("stopping", "quarantined"), "nothing is handed on unseen"
            assert caplog.text.count("event=look_failed") == 1, "said once, not with every pass"
            engine.on = ""
            await house.pass_time(10 * SECOND)
            assert house.state(bad) == "cancelled", "looked at again in every pass"
            house.check()

    with caplog.at_level(logging.ERROR, "hubgov"):
        asyncio.run(story())


def test_the_loop_goes_on(tmp_path: Path) -> None:
    """It runs as a task of the service, which ends with it."""

    async def story() -> None:
        clock = FakeClock()
        engine = FailingEngine(clock, FAULTS["a fault of ours"])
        async with a_house(tmp_path, clock=clock, engine=engine) as house:
            bad, good = await _two_that_end(house)
            engine.on, engine.workload = "look", bad
            loop = asyncio.create_task(house.reconciler.run(period=0.01))
            clock.advance(180 * SECOND)
            await house.governor.tick()
            async with asyncio.timeout(10):
                while house.state(good) != "cancelled":
                    await house.governor.until_changed(good, house.show(good).version, 0.05)
                    clock.advance(10 * SECOND)
            assert not loop.done()
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)

    asyncio.run(story())
