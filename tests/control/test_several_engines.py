"""Each engine has kinds of its own: one that is away, or reports late, holds nobody else's work up."""

from __future__ import annotations

import asyncio
from pathlib import Path

from control.house import LOG, POLICY, House, a_house, person
from waiting import until_async

from hubgov.clock import FakeClock
from hubgov.control import submit
from hubgov.control.reconcile import PROBES_TO_LOSE, REPEAT_MS, Reconciler
from hubgov.core.model import Allocation, AllocationId, ProcessId, Request, Workload
from hubgov.core.policy import Kind
from hubgov.engines.base import CannotStart, Ended, Report, Seen
from hubgov.engines.scripted import ScriptedEngine

BOTH = POLICY.replace("kinds: [notebook]", "kinds: [notebook, evaluation]")
MAIN = ProcessId(pid=7, start_ticks=1, boot_id="b")


class Reporting(ScriptedEngine):
    """Runs evaluations: launches by itself and says of each what the test says."""

    kinds = frozenset({Kind.EVALUATION})
    reports = True

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.known: dict[AllocationId, Report] = {}
        self.cannot = False
        self.attended: list[str] = []

    async def prepare(self, workload: Workload) -> None:
        if self.cannot:
            raise CannotStart("no home here", code="no_home")

    async def start(self, workload: Workload, allocation: Allocation) -> None:
        await super().start(workload, allocation)
        assert allocation.state.value == "starting", "on record before it is done"
        self.launch(allocation)
        self.known[allocation.id] = Report(begun=True, main=MAIN)

    def report(self, allocation: Allocation) -> Report:
        return self.known.get(allocation.id, Report())

    def attend(self, allocation: Allocation) -> None:
        self.attended.append(allocation.state.value)


def with_two_engines(house: House) -> Reporting:
    """The house's own engine keeps the notebooks."""
    reporting = Reporting(house.clock)
    house.engine.kinds = frozenset({Kind.NOTEBOOK})
    house.reconciler = Reconciler(house.governor, (house.engine, reporting), house.attachments, LOG)
    return reporting


async def evaluate(house: House) -> str:
    asked = Request(milli_gpus=(1000,), command=("true",))
    draft = submit.Draft(queue="experiment", request=asked, kind="evaluation")
    kinds = frozenset({Kind.NOTEBOOK, Kind.EVALUATION})
    made: Workload = await house.do(lambda unit: submit.submit(unit, draft, person("amy"), person("amy"), kinds))
    return made.id


def test_a_job_is_started_at_once_and_followed_to_its_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path, policy=BOTH) as house:
            engine = with_two_engines(house)
            job = await evaluate(house)
            await house.tick()
            assert (house.state(job), engine.asked("start", job)) == ("starting", 1), "nobody is waited for"
            await house.tick()
            assert house.allocation(job).main == MAIN
            allocation = house.allocation(job)
            engine.known[allocation.id] = Report(begun=True, main=MAIN, running_at=house.clock.now())
            await house.tick()
            await house.tick(1000)
            assert (house.state(job), engine.attended[-1]) == ("running", "running")
            assert house.allocation(job).claim_by is None, "nobody needs to open a job"
            ended = Ended(at=house.clock.now(), code=0)
            engine.known[allocation.id] = Report(begun=True, main=MAIN, running_at=allocation.since, ended=ended)
            engine.end(allocation)
            await house.tick(1000)
            await house.tick(1000)
            assert house.state(job) == "succeeded"
            house.check()

    asyncio.run(story())


def test_one_that_is_away_keeps_its_own_work_only(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path, policy=BOTH) as house:
            engine = with_two_engines(house)
            house.engine.script.down = True
            notebook = await house.ask("bo")
            for _ in range(PROBES_TO_LOSE + 1):
                await house.tick(REPEAT_MS)
            job = await evaluate(house)
            await house.tick()
            assert (house.state(notebook), house.state(job)) == ("pending", "starting")
            assert house.governor.state.away == {Kind.NOTEBOOK}
            assert engine.asked("start") == 1
            house.engine.script.down = False
            await house.tick(REPEAT_MS)
            await house.tick(REPEAT_MS)
            assert house.governor.state.away == frozenset()

    asyncio.run(story())


def test_what_it_does_not_know_in_three_probes_waits_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path, policy=BOTH) as house:
            engine = with_two_engines(house)
            job = await evaluate(house)
            await house.tick()
            allocation = house.allocation(job)
            engine.known[allocation.id] = Report(begun=True, main=MAIN, running_at=house.clock.now())
            await house.tick()
            engine.known[allocation.id] = Report(begun=True, main=MAIN, lost=True)
            engine.end(allocation)
            for _ in range(PROBES_TO_LOSE - 1):
                await house.tick(1000)
            assert house.state(job) == "running"
            await house.tick(1000)
            await house.tick(1000)
            assert (house.show(job).attempt, house.show(job).retries) == (2, 0), "no retry is used up"
            assert engine.look(house.allocation(job)) in (Seen.UNSEEN, Seen.ALIVE)

    asyncio.run(story())


def test_what_can_never_start_fails_with_what_was_said(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path, policy=BOTH) as house:
            engine = with_two_engines(house)
            engine.cannot = True
            job = await evaluate(house)
            await house.tick()

            async def over() -> bool:
                await house.tick(REPEAT_MS)
                return house.state(job) == "failed"

            await until_async(over, 10, "it fails")
            shown = house.show(job)
            assert (shown.end_reason, shown.failure_class) == ("start_failed", "no_home")
            assert engine.asked("start") == 0
            house.check()

    asyncio.run(story())


def test_one_that_can_not_be_looked_at_keeps_no_service_from_starting(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path, policy=BOTH) as house:
            engine = with_two_engines(house)
            broken, fine = await evaluate(house), await evaluate(house)
            await house.tick()
            await house.tick()
            ended = Ended(at=house.clock.now(), code=0)
            engine.known[house.allocation(fine).id] = Report(begun=True, main=MAIN, running_at=1, ended=ended)
            spoiled = house.allocation(broken).id
            report = engine.report

            def reported(allocation: Allocation) -> Report:
                if allocation.id == spoiled:
                    raise ValueError("half a file")
                return report(allocation)

            engine.report = reported  # type: ignore[method-assign]
            house.reconciler = Reconciler(house.governor, (house.engine, engine), house.attachments, LOG)
            await house.reconciler.take_stock()
            assert (house.state(broken), house.state(fine)) == ("starting", "releasing")

    asyncio.run(story())
