"""From where allocations are to where they should be, whatever engine and hub do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from control.house import LOG, SPAWNER, House, a_house
from waiting import until_async

from hubgov.app import Service, Surroundings
from hubgov.clock import FakeClock
from hubgov.config import HubGov
from hubgov.control import session
from hubgov.control.reconcile import ATTACH_PATIENCE_MS, REPEAT_MS, REPORT_PATIENCE_MS
from hubgov.core.model import Allocation, Workload
from hubgov.core.states import AllocationState, WorkloadState
from hubgov.engines.base import Seen
from hubgov.engines.hub import HubEngine
from hubgov.engines.scripted import FOR_EVER, Behaviour, ScriptedEngine

SECOND = 1000
MINUTE = 60 * SECOND
SETTLE = ATTACH_PATIENCE_MS
"""After a start of the service spawners get half of this to come back."""


async def _stops(house: House, workload: str) -> None:
    await house.cancel(workload)
    await house.saves(workload)
    await house.tick()


def test_a_grant_with_nobody_attached_is_started_by_the_service_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await house.tick(SETTLE)
            workload = await house.ask("amy")
            for _ in range(4):
                await house.tick()
            assert house.engine.asked("start", workload) == 1
            assert house.allocation(workload).unattended
            assert house.allocation(workload).claim_by is None, "the time to open it begins when it is ready"
            await house.launch(workload)
            await house.pass_time(MINUTE, step=SECOND)
            assert house.engine.asked("start", workload) == 1
            house.check()

    asyncio.run(story())


def test_a_start_that_nobody_takes_up_is_asked_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await house.tick(SETTLE)
            workload = await house.ask("amy")
            house.engine.script.down = True
            await house.tick()
            await house.tick(REPEAT_MS - 1)
            assert house.engine.asked("start", workload) == 1
            await house.tick(1)
            assert house.engine.asked("start", workload) == 2
            house.engine.script.down = False
            await house.tick(REPEAT_MS)
            assert house.engine.asked("start", workload) == 3
            await house.pass_time(10 * MINUTE, step=5 * SECOND)
            shown = house.show(workload)
            assert (shown.state.value, shown.end_reason) == ("failed", "start_deadline")
            house.check()

    asyncio.run(story())


def test_an_attached_spawner_gets_its_patience(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await house.tick(SETTLE)
            with house.attachments.attach("nb-1"):
                workload = await house.ask("amy")
                await house.tick(ATTACH_PATIENCE_MS - 1)
                assert house.engine.asked("start") == 0
                await house.tick(1)
                assert house.engine.asked("start", workload) == 1

    asyncio.run(story())


def test_after_a_restart_spawners_get_time_to_come_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
        house.clock.advance(MINUTE)
        async with a_house(tmp_path, clock=house.clock, engine=house.engine) as again:
            await again.tick()
            assert again.engine.asked("start") == 0
            await again.tick(ATTACH_PATIENCE_MS // 2)
            assert again.engine.asked("start", workload) == 1

    asyncio.run(story())


def test_a_spawner_that_takes_the_grant_in_time_is_not_made_unattended(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await house.tick(SETTLE)
            workload = await house.ask("amy")
            launching = asyncio.create_task(house.launch(workload))
            await asyncio.sleep(0)
            house.reconciler.look()
            await launching
            await house.reconciler.settled()
            assert not house.allocation(workload).unattended
            assert house.engine.asked("start") == 0

    asyncio.run(story())


def test_a_process_that_dies_ends_its_session_without_anybodys_report(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            allocation = await house.run(workload)
            house.engine.end(allocation)
            died = house.clock.now()
            await house.pass_time(REPORT_PATIENCE_MS - SECOND)
            assert house.state(workload) == "running", "the spawner's report knows the exit code: it comes first"
            await house.pass_time(3 * SECOND)
            shown = house.show(workload)
            assert (shown.state.value, shown.end_reason) == ("failed", "failed")
            assert shown.ran_ms <= SECOND, "the wait for the report is nobody's running time"
            assert died <= (shown.ended_at or 0)
            house.check()

    asyncio.run(story())


def test_the_spawners_report_decides_how_it_ended(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            house.engine.end(await house.run(workload))
            await house.pass_time(3 * SECOND)
            await house.do(
                lambda unit: session.ended(unit, workload, 1, SPAWNER, code=0, signal=None, by_owner=False)
            )
            await house.pass_time(2 * SECOND)
            shown = house.show(workload)
            assert (shown.state.value, shown.end_reason, shown.exit_code) == ("succeeded", "completed", 0)

    asyncio.run(story())


def test_a_straggler_keeps_the_devices_until_it_is_gone(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            house.engine.script.behaviours["nb-1"] = Behaviour(straggles_ms=FOR_EVER, kill_takes_ms=5 * SECOND)
            workload = await house.ask("amy", gpus=2)
            allocation = await house.run(workload)
            waiting = await house.ask("bo")
            house.engine.end(allocation)
            await house.do(
                lambda unit: session.ended(unit, workload, 1, SPAWNER, code=0, signal=None, by_owner=False)
            )
            await house.tick()
            assert house.state(workload) == "releasing"
            assert house.engine.asked("kill", workload) == 1, "what outlives its main process is ended"
            await house.tick(4 * SECOND)
            assert house.state(waiting) == "pending"
            await house.tick(SECOND)
            assert (house.state(workload), house.state(waiting)) == ("succeeded", "reserved")
            house.check()

    asyncio.run(story())


def test_a_stop_that_is_ignored_is_followed_by_the_kill(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            house.engine.script.behaviours["nb-1"] = Behaviour(stop_takes_ms=FOR_EVER)
            workload = await house.ask("amy")
            await house.run(workload)
            await _stops(house, workload)
            await house.pass_time(15 * SECOND)
            assert house.engine.asked("kill") == 0, "15 s between the stop and the kill"
            await house.pass_time(3 * SECOND)
            assert house.engine.asked("kill", workload) >= 1
            assert house.state(workload) == "cancelled"
            house.check()

    asyncio.run(story())


def test_a_process_that_survives_the_kill_fences_its_device_until_it_is_gone(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            house.engine.script.behaviours["nb-1"] = Behaviour(stop_takes_ms=FOR_EVER, kill_takes_ms=10 * MINUTE)
            workload = await house.ask("amy", gpus=2)
            await house.run(workload)
            waiting = await house.ask("bo")
            await _stops(house, workload)
            await house.pass_time(74 * SECOND)
            assert house.state(workload) == "stopping"
            await house.pass_time(2 * SECOND)
            assert house.state(workload) == "quarantined"
            assert not house.allocation(workload).charged, "the team's charge ends, the pool carries the device"
            assert house.state(waiting) == "pending", "it is never handed on before"
            house.check()
            await house.pass_time(10 * MINUTE, step=5 * SECOND)
            assert (house.state(workload), house.state(waiting)) == ("cancelled", "reserved")
            house.check()

    asyncio.run(story())


def test_a_hub_that_is_down_does_not_keep_a_server_alive(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            house.engine.script.down = True
            await _stops(house, workload)
            await house.pass_time(20 * SECOND)
            assert house.engine.asked("stop", workload) >= 3, "asked again and again"
            assert house.state(workload) == "cancelled", "killed directly"
            house.check()

    asyncio.run(story())


def test_a_start_whose_hub_was_killed_goes_back_to_its_place(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await house.tick(SETTLE)
            workload = await house.ask("amy", gpus=2)
            since = house.show(workload).eligible_since
            house.clock.advance(SECOND)
            later = await house.ask("ava", gpus=2)
            await house.do(lambda unit: session.launch(unit, workload, 1, SPAWNER))
            house.engine.script.unknown.add(workload)
            await house.pass_time(ATTACH_PATIENCE_MS + 2 * REPEAT_MS, step=SECOND)
            assert house.state(workload) == "starting", "three probes in a row, not one"
            await house.pass_time(4 * SECOND)
            shown = house.show(workload)
            assert (shown.attempt, shown.eligible_since, shown.retries) == (2, since, 0)
            assert house.state(workload) == "reserved", "first in line again, before who came later"
            assert house.state(later) == "pending"
            await house.tick(REPEAT_MS)
            assert house.engine.asked("start", workload) >= 1, "started again"
            house.engine.script.unknown.clear()
            await house.run(workload)
            assert house.state(workload) == "running"
            house.check()

    asyncio.run(story())


def test_processes_that_nobody_reported_are_ended_and_started_anew(tmp_path: Path) -> None:
    """Its hub was killed between making them and telling: they live, and no hub will ever speak for them."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.do(lambda unit: session.launch(unit, workload, 1, SPAWNER))
            orphan = house.allocation(workload)
            house.engine.launch(orphan)
            house.engine.script.unknown.add(workload)
            await house.pass_time(ATTACH_PATIENCE_MS + 4 * REPEAT_MS, step=SECOND)
            assert house.engine.asked("kill", workload) >= 1
            assert house.show(workload).attempt == 2
            assert house.state(workload) in ("reserved", "starting")
            house.check()

    asyncio.run(story())


def test_a_hub_that_does_not_answer_is_no_reason_to_give_a_start_up(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.do(lambda unit: session.launch(unit, workload, 1, SPAWNER))
            house.engine.script.unknown.add(workload)
            await house.pass_time(ATTACH_PATIENCE_MS + REPEAT_MS + SECOND)
            house.engine.script.down = True
            await house.pass_time(5 * MINUTE, step=SECOND)
            assert house.state(workload) == "starting"
            house.engine.script.down = False
            await house.pass_time(REPEAT_MS)
            assert house.state(workload) == "starting", "the count begins anew"
            await house.pass_time(3 * REPEAT_MS)
            assert house.show(workload).attempt == 2

    asyncio.run(story())


def test_a_device_that_a_probe_sees_in_use_is_not_handed_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy", gpus=2)
            await house.run(workload)
            waiting = await house.ask("bo")
            house.held.add(workload)
            await _stops(house, workload)
            await house.pass_time(10 * SECOND)
            assert (house.state(workload), house.state(waiting)) == ("stopping", "pending")
            house.held.clear()
            await house.tick(SECOND)
            assert (house.state(workload), house.state(waiting)) == ("cancelled", "reserved")

    asyncio.run(story())


@pytest.mark.parametrize("where", ["reserved", "starting", "running", "expiring", "stopping"])
def test_a_restart_between_any_two_steps_ends_alike(tmp_path: Path, where: str) -> None:
    """The service dies with the allocation in that state; what is left to do is done by the next one."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy", gpus=2)
            waiting = await house.ask("bo")
            if where != "reserved":
                await house.launch(workload)
            if where in ("running", "expiring", "stopping"):
                await house.run(workload)
            if where in ("expiring", "stopping"):
                await house.tick(61 * MINUTE)
            if where == "stopping":
                await house.do(lambda unit: None)
                house.clock.advance(5 * MINUTE)
                await house.governor.tick()
            assert house.state(workload) == where
            before = house.allocation(workload)
        async with a_house(tmp_path, clock=house.clock, engine=house.engine) as again:
            assert again.allocation(workload) == before
            again.check()
            if where in ("reserved", "starting"):
                await again.launch(workload)
                await again.run(workload)
            await again.pass_time(70 * MINUTE, step=20 * SECOND)
            assert (again.state(workload), again.show(workload).end_reason) == ("expired", "lease")
            assert again.state(waiting) != "pending", "the devices were handed on, once"
            again.check()

    asyncio.run(story())


def test_the_hubs_engine_awaits_nothing_of_what_was_given_up(tmp_path: Path) -> None:
    """A start that died before anything was reported: unseen while it may still come, gone once it is lost."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            attempt = await house.do(lambda unit: session.launch(unit, workload, 1, SPAWNER))
            engine = HubEngine("http://127.0.0.1:1", "t", "site", LOG)
            assert engine.look(attempt) is Seen.UNSEEN
            assert engine.look(replace(attempt, state=AllocationState.LOST)) is Seen.GONE
            assert engine.look(replace(attempt, outcome=WorkloadState.CANCELLED)) is Seen.GONE
            await engine.close()

    asyncio.run(story())


class _Slow(ScriptedEngine):
    """Its controller takes a start up when the test lets it."""

    opened: asyncio.Event

    async def start(self, workload: Workload, allocation: Allocation) -> None:
        await self.opened.wait()
        await super().start(workload, allocation)


@pytest.mark.parametrize("in_time", [True, False])
def test_an_orderly_end_lets_what_is_under_way_arrive_but_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_time: bool
) -> None:
    monkeypatch.setattr("hubgov.app.SETTLE_SECONDS", 5.0 if in_time else 0.05)

    async def story() -> None:
        clock = FakeClock()
        engine = _Slow(clock)
        engine.opened = asyncio.Event()
        async with a_house(tmp_path, clock=clock, engine=engine) as house:
            nowhere = Surroundings(api_url="", api_token="", service_url="", prefix="", hub_base_url="/")
            service = Service(HubGov(), nowhere, LOG)
            service.governor, service.reconciler = house.governor, house.reconciler
            service._looking = asyncio.create_task(house.reconciler.run(period=0.01))
            workload = await house.ask("amy")
            clock.advance(SETTLE)

            async def _asked() -> bool:
                return "server_start_asked" in house.journal(workload)

            await until_async(_asked, 5, "the start is under way")
            ending = asyncio.create_task(service._end_effects())

            async def _no_more_looks() -> bool:
                return service._looking.done()

            await until_async(_no_more_looks, 5, "the end has begun")
            if in_time:
                assert not ending.done(), "it waits for what is under way"
                engine.opened.set()
            async with asyncio.timeout(4):
                await ending
            assert engine.asked("start") == int(in_time)
            assert service._looking.cancelled(), (
                "who begins effects has ended before those under way were waited for"
            )

    asyncio.run(story())


class Elsewhere(ScriptedEngine):
    """Its processes are none of this machine."""

    def look(self, allocation: Allocation) -> Seen:
        return Seen.UNSEEN if allocation.halted_at is None and allocation.outcome is None else Seen.GONE

    def sees(self, allocation: Allocation) -> bool:
        return False


def test_devices_of_a_server_elsewhere_are_free_only_when_its_controller_knows_it_no_more(tmp_path: Path) -> None:
    async def story() -> None:
        clock = FakeClock()
        async with a_house(tmp_path, clock=clock, engine=Elsewhere(clock)) as house:
            await house.tick(SETTLE)
            workload = await house.ask("amy")
            await house.run(workload)
            await house.cancel(workload)
            await house.saves(workload)
            for _ in range(4):
                await house.tick(REPEAT_MS)
            assert house.engine.asked("stop", workload) >= 1
            assert house.state(workload) != "cancelled", "nothing is seen of it here, and that proves nothing"
            house.engine.script.unknown.add(workload)
            await house.tick(REPEAT_MS)
            assert house.state(workload) == "cancelled"
            house.check()

    asyncio.run(story())
