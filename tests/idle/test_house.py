"""The idle rule through the one writer and the ledger: Keep, extension and stop against each other, restarts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from control.house import ADMINISTRATOR, POLICY, House, a_house, person

from hubgov.control import keeping, policies
from hubgov.control.submit import Refused
from hubgov.core.policy import MINUTE_MS
from hubgov.core.signals import Level, Signal, SignalKind, sample
from hubgov.core.watching import observed
from hubgov.errors import Conflict, Ended, NotFound

LONG = POLICY.replace("lease: {default: 1h, max: 4h}", "lease: {default: 4h, max: 4h}")
IDLE = LONG + "    idle: {after: 30m, confirm: 15m, grace: 10m, keep: {count: 1, for: 1h}}\n"
PERIOD_MS = 10_000


async def see(house: House, workload: str, **levels: str) -> None:
    """One sample, as the service takes it."""
    allocation = house.allocation(workload)
    signals = [Signal(kind=kind, level=Level(levels.get(kind.value, "idle"))) for kind in SignalKind]

    def taken(unit: Any) -> None:
        before = unit.state.watched.get(allocation.id)
        unit.state.watch(allocation.id, observed(before, sample(unit.now, signals), PERIOD_MS))

    await house.do(taken)


async def pass_idle(house: House, workload: str, ms: int, **levels: str) -> None:
    end = house.clock.now() + ms
    while house.clock.now() < end:
        house.clock.advance(min(PERIOD_MS, end - house.clock.now()))
        await see(house, workload, **levels)


def in_a_house(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test with a house of its own, in a loop of its own."""

    def lived(tmp_path: Path, **given: Any) -> None:
        async def live() -> None:
            async with a_house(tmp_path, policy=IDLE) as house:
                await test(house, **given)

        asyncio.run(live())

    lived.__name__, lived.__doc__ = test.__name__, test.__doc__
    rest = [p for p in inspect.signature(test).parameters.values() if p.name != "house"]
    folder = inspect.Parameter("tmp_path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    lived.__signature__ = inspect.Signature([folder, *rest])  # type: ignore[attr-defined]
    return lived


async def asked(house: House) -> str:
    workload = await house.ask("amy")
    await house.run(workload)
    while house.allocation(workload).idle.phase != "asked":
        await pass_idle(house, workload, PERIOD_MS)
    return workload


async def in_grace(house: House) -> str:
    """Just in its grace."""
    workload = await asked(house)
    while house.state(workload) != "expiring":
        await pass_idle(house, workload, PERIOD_MS)
    return workload


async def keep(house: House, workload: str, by: str = "amy") -> Any:
    return await house.do(lambda unit: keeping.keep(unit, workload, person(by)))


@in_a_house
async def test_keep_in_the_grace_goes_back_and_is_on_record(house: House) -> None:
    workload = await in_grace(house)
    await keep(house, workload)
    allocation = house.allocation(workload)
    assert (house.state(workload), allocation.idle.phase, allocation.idle.keeps_used) == ("running", "kept", 1)
    assert house.journal(workload)[-2:] == ["allocation_revived", "workload_moved"]
    house.check()


@in_a_house
async def test_keep_twice_is_one_and_the_next_question_finds_it_used_up(house: House) -> None:
    workload = await asked(house)
    await keep(house, workload)
    await keep(house, workload)
    assert house.allocation(workload).idle.keeps_used == 1
    await pass_idle(house, workload, 60 * MINUTE_MS + PERIOD_MS)
    with pytest.raises(Refused) as refused:
        await keep(house, workload)
    assert (refused.value.decision.code, refused.value.decision.blockers[0].limit) == ("keep_used_up", 1)


@in_a_house
async def test_a_refused_keep_names_the_rules_count_and_not_how_often_it_was_kept(house: House) -> None:
    twice = IDLE.replace("keep: {count: 1", "keep: {count: 2")
    await house.do(lambda unit: policies.apply(unit, twice, 1, ADMINISTRATOR))
    workload = await asked(house)
    for _ in range(2):
        await keep(house, workload)
        await pass_idle(house, workload, 60 * MINUTE_MS + PERIOD_MS)
    await house.do(lambda unit: policies.apply(unit, IDLE, 2, ADMINISTRATOR))
    with pytest.raises(Refused) as refused:
        await keep(house, workload)
    [blocker] = refused.value.decision.blockers
    assert (house.allocation(workload).idle.keeps_used, blocker.limit) == (2, 1)
    assert refused.value.decision.facts["limit"] == 1


@in_a_house
async def test_nothing_is_kept_that_was_not_asked_about_or_is_not_ones_own(house: House) -> None:
    workload = await house.ask("amy")
    with pytest.raises(Conflict, match="isn't running"):
        await keep(house, workload)
    await house.run(workload)
    with pytest.raises(Conflict, match="wasn't asked"):
        await keep(house, workload)
    with pytest.raises(NotFound):
        await keep(house, workload, by="bo")


@pytest.mark.parametrize("first", ["keep", "stop"])
@in_a_house
async def test_of_keep_and_stop_exactly_one_wins(house: House, first: str) -> None:
    """Both come in one batch of the writer, in either order."""
    workload = await in_grace(house)
    await pass_idle(house, workload, 10 * MINUTE_MS - PERIOD_MS)
    house.clock.advance(PERIOD_MS)
    acts = [keep(house, workload), see(house, workload)]
    if first == "stop":
        await acts.pop()
        with pytest.raises(Ended):
            await acts.pop()
        assert house.state(workload) == "stopping"
        assert house.allocation(workload).outcome == "culled"
    else:
        await asyncio.gather(*acts)
        assert house.state(workload) == "running"
        assert house.allocation(workload).outcome is None
    house.check()


@pytest.mark.parametrize("first", ["extension", "stop"])
@in_a_house
async def test_of_extension_and_idle_stop_exactly_one_wins(house: House, first: str) -> None:
    workload = await in_grace(house)
    await pass_idle(house, workload, 10 * MINUTE_MS - PERIOD_MS)
    house.clock.advance(PERIOD_MS)
    if first == "stop":
        await see(house, workload)
        with pytest.raises(Ended):
            await house.extend(workload, 60 * MINUTE_MS)
        assert house.state(workload) == "stopping"
    else:
        await house.extend(workload, 60 * MINUTE_MS)
        await see(house, workload)
        assert house.state(workload) == "running"
        assert house.allocation(workload).idle.phase == "active"
        await pass_idle(house, workload, 30 * MINUTE_MS - 2 * PERIOD_MS)
        assert house.allocation(workload).idle.phase == "active"
    house.check()


@in_a_house
async def test_an_idle_stop_ends_culled_with_its_evidence_on_the_ledger(house: House) -> None:
    workload = await in_grace(house)
    await pass_idle(house, workload, 10 * MINUTE_MS)
    assert house.state(workload) == "stopping"
    house.engine.end(house.allocation(workload))
    await house.pass_time(MINUTE_MS)
    shown = house.show(workload)
    assert (shown.state, shown.end_reason) == ("culled", "idle")


def test_a_restart_in_the_grace_stops_nothing_for_a_whole_grace(tmp_path: Path) -> None:
    asyncio.run(restarted_in_the_grace(tmp_path))


async def restarted_in_the_grace(tmp_path: Path) -> None:
    async with a_house(tmp_path, policy=IDLE) as first:
        workload = await in_grace(first)
        await pass_idle(first, workload, 9 * MINUTE_MS)
        clock, engine = first.clock, first.engine
    clock.advance(5 * MINUTE_MS)
    async with a_house(tmp_path, policy=IDLE, clock=clock, engine=engine) as again:
        began = clock.now()
        assert again.allocation(workload).idle.phase == "grace"
        await pass_idle(again, workload, 10 * MINUTE_MS - PERIOD_MS)
        assert (again.state(workload), again.allocation(workload).stop_at) == ("expiring", began + 10 * MINUTE_MS)
        await pass_idle(again, workload, 2 * PERIOD_MS)
        assert again.state(workload) == "stopping"


@in_a_house
async def test_samples_write_nothing(house: House) -> None:
    workload = await house.ask("amy")
    await house.run(workload)
    commits = house.commits
    await pass_idle(house, workload, 20 * MINUTE_MS)
    assert house.commits == commits
