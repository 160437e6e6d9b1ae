"""A user whom the hub deleted leaves nothing alive to the next of his name: no place in line and no process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from control.house import SPAWNER, House, a_house
from control.test_several_engines import BOTH, evaluate, with_two_engines

from hubgov.control import jobs, session
from hubgov.core.model import Change, Departure, Workload
from hubgov.errors import Conflict

HOUR_MS, MINUTE_MS = 3_600_000, 60_000


async def depart(house: House, name: str, ago_ms: int = 0) -> None:
    await house.do(lambda unit: session.departed(unit, name, SPAWNER, ago_ms=ago_ms))


async def only_noted(house: House) -> None:
    """The departure alone is on record, whatever kept the end of the work from it."""
    gone = Departure(name="amy", at=house.clock.now())
    change = Change(event="user_departed", before=None, after=gone, actor="spawner")
    await house.do(lambda unit: unit.write([change]))


def end_of(workload: Workload) -> tuple[str, str | None, str]:
    return workload.state.value, workload.end_reason, workload.note


def test_all_that_is_live_ends_with_its_owner(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            running = await house.ask("amy", server="a")
            await house.run(running)
            expiring = await house.ask("amy", server="b")
            await house.run(expiring)
            waiting = await house.ask("amy", server="c")
            others = await house.ask("bo")
            await house.tick(HOUR_MS)
            assert [house.state(w) for w in (running, waiting)] == ["expiring", "pending"]
            await depart(house, "amy")
            assert end_of(house.show(waiting)) == ("cancelled", "admin", "user_departed")
            for workload in (running, expiring):
                allocation = house.allocation(workload)
                assert (allocation.state.value, allocation.stop_now) == ("stopping", True)
            house.check()
            await depart(house, "amy")  # told again
            await house.pass_time(2 * MINUTE_MS)
            assert not [w for w in house.governor.state.workloads.values() if w.owner == "amy"]
            assert end_of(house.show(running)) == ("cancelled", "admin", "user_departed")
            assert house.show(others).live
            house.check()

    asyncio.run(story())


def test_the_next_ones_own_work_stays_when_it_is_told_late(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            former = await house.ask("amy", server="a")
            await house.tick(HOUR_MS)
            latter = await house.ask("amy", server="b")
            await house.tick(MINUTE_MS)
            await depart(house, "amy", ago_ms=30 * MINUTE_MS)
            assert not house.show(former).live or house.allocation(former).outcome is not None
            assert house.show(latter).live
            assert house.allocation(latter).outcome is None
            since = house.governor.state.known_since("amy")
            await depart(house, "amy", ago_ms=HOUR_MS)
            assert house.governor.state.known_since("amy") == since, "an older word takes nothing back"

    asyncio.run(story())


@pytest.mark.parametrize("launched_before", [False, True])
def test_no_job_of_a_deleted_user_is_launched(tmp_path: Path, launched_before: bool) -> None:
    async def story() -> None:
        async with a_house(tmp_path, policy=BOTH) as house:
            engine = with_two_engines(house)
            job = await evaluate(house)
            allocation = house.allocation(job)
            if launched_before:
                assert await house.do(lambda unit: jobs.launched(unit, allocation.id))
            house.clock.advance(1000)
            await only_noted(house)
            await house.pass_time(10_000)
            assert engine.asked("start", job) == 0
            found = house.show(job)
            assert (found.state.value, found.end_reason, found.failure_class) == (
                "failed",
                "environment_unavailable",
                "owner_departed",
            )
            assert found.retries == 0

    asyncio.run(story())


def test_no_server_of_a_deleted_user_is_launched(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            notebook = await house.ask("amy")
            house.clock.advance(1000)
            await only_noted(house)
            with pytest.raises(Conflict) as refused:
                await house.launch(notebook)
            assert refused.value.code == "owner_departed"
            assert house.state(notebook) == "reserved"

    asyncio.run(story())
