"""A lead or an admin stops another's session: a reason, a grace, a word to its owner, and no way round it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from control.house import ADMINISTRATOR, POLICY, House, a_house, person

from hubgov.control import approvals, steer
from hubgov.control.actor import APPROVE, Actor
from hubgov.core.model import ExtensionState, Workload
from hubgov.errors import Ended, Invalid, NotAllowed

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
LENA = Actor(name="lena", groups=frozenset({"vision"}), scopes=frozenset({APPROVE}))


async def _stop(house: House, workload: str, actor: Actor = LENA, **how: Any) -> Workload:
    told = {"reason": "the cards are needed", "now": False, **how}
    done: Workload = await house.do(lambda unit: steer.cancel(unit, workload, actor, **told))
    return done


async def _running(house: House) -> str:
    workload = await house.ask("amy")
    await house.run(workload)
    return workload


def test_it_needs_a_reason_and_is_for_those_who_lead(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            for empty in ("", "  "):
                with pytest.raises(Invalid) as refused:
                    await _stop(house, workload, reason=empty)
                assert refused.value.code == "reason_required"
            with pytest.raises(NotAllowed):
                await _stop(house, workload, person("ava"))
            with pytest.raises(Invalid):
                await _stop(house, workload, now=True, grace_ms=MINUTE)
            assert house.state(workload) == "running"
            assert house.governor.state.notices == {}

    asyncio.run(story())


def test_the_owner_is_told_saves_and_stops_after_the_queues_grace(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            version = house.show(workload).version
            ordered = house.clock.now()
            await _stop(house, workload)
            allocation = house.allocation(workload)
            assert (house.state(workload), allocation.stop_at) == ("expiring", ordered + 5 * MINUTE)
            assert house.show(workload).version > version, "whoever polls gets it at once"
            (notice,) = house.governor.state.notices.values()
            assert (notice.kind, notice.deadline) == ("stop_ordered", ordered + 5 * MINUTE)
            assert (notice.by, notice.reason) == ("lena", "the cards are needed")
            assert allocation.save is not None
            assert allocation.save != allocation.save_answered
            await house.saves(workload)
            house.check()

            await house.pass_time(5 * MINUTE - SECOND, step=30 * SECOND)
            assert house.state(workload) == "expiring", "not before its grace is over, saved or not"
            await house.pass_time(MINUTE, step=5 * SECOND)
            shown = house.show(workload)
            assert (shown.state.value, shown.end_reason) == ("cancelled", "admin")
            assert (shown.ended_by, shown.note) == ("lena", "the cards are needed")
            house.check()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("grace_ms", "expected_ms"),
    [(MINUTE, MINUTE), (0, 15 * SECOND), (SECOND, 15 * SECOND), (10 * HOUR, HOUR + 5 * MINUTE)],
    ids=["as given", "time to save", "time to save too", "never beyond its lease"],
)
def test_another_grace(tmp_path: Path, grace_ms: int, expected_ms: int) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            await _stop(house, workload, grace_ms=grace_ms)
            assert house.allocation(workload).stop_at == house.clock.now() + expected_ms

    asyncio.run(story())


def test_now_is_now_and_hastens_what_was_ordered(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            await _stop(house, workload)
            await _stop(house, workload, ADMINISTRATOR, now=True, reason="at once")
            assert house.state(workload) == "stopping"
            await house.pass_time(MINUTE, step=5 * SECOND)
            shown = house.show(workload)
            assert (shown.end_reason, shown.ended_by, shown.note) == ("admin", "lena", "the cards are needed")

            other = await _running(house)
            await _stop(house, other, now=True, reason="fire")
            await house.pass_time(MINUTE, step=5 * SECOND)
            assert (house.show(other).ended_by, house.show(other).note) == ("lena", "fire")
            house.check()

    asyncio.run(story())


def test_a_shorter_grace_shortens_it_a_longer_one_changes_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            await _stop(house, workload)
            first = house.allocation(workload)
            await _stop(house, workload, grace_ms=30 * MINUTE)
            assert house.allocation(workload) == first
            await _stop(house, workload, grace_ms=MINUTE)
            assert house.allocation(workload).stop_at == house.clock.now() + MINUTE
            assert len(house.governor.state.notices) == 2, "the owner is told of the new time"
            house.check()

    asyncio.run(story())


def test_neither_an_extension_nor_an_approval_undoes_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            request, _ = await house.extend(workload, 3 * HOUR)
            assert request.state is ExtensionState.NEEDS_APPROVAL
            await _stop(house, workload)
            with pytest.raises(Ended):
                await house.extend(workload, HOUR)
            assert house.governor.state.extensions[request.id].state is ExtensionState.LAPSED
            with pytest.raises(Exception, match=r"lapsed|being stopped"):
                await house.do(
                    lambda unit: approvals.approve(unit, request.id, ADMINISTRATOR, by_ms=None, reason="")
                )
            assert house.state(workload) == "expiring"

    asyncio.run(story())


def test_its_owner_may_hasten_it_and_it_stays_anothers_word(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            await _stop(house, workload)
            await house.cancel(workload)
            assert house.state(workload) == "stopping"
            await house.saves(workload)
            await house.pass_time(MINUTE, step=5 * SECOND)
            shown = house.show(workload)
            assert (shown.end_reason, shown.ended_by) == ("admin", "lena")

    asyncio.run(story())


def test_it_holds_where_the_policy_only_observes(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path, policy=POLICY + "mode: observe\n") as house:
            workload = await _running(house)
            await _stop(house, workload, grace_ms=MINUTE)
            await house.pass_time(2 * MINUTE, step=5 * SECOND)
            assert house.show(workload).end_reason == "admin"

    asyncio.run(story())


def test_what_waits_or_starts_ends_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            first, second = await house.ask("bo", server="a"), await house.ask("bo", server="b")
            waiting = await house.ask("amy")
            await _stop(house, waiting)
            shown = house.show(waiting)
            assert (shown.state.value, shown.end_reason) == ("cancelled", "admin")
            assert (shown.ended_by, shown.note) == ("lena", "the cards are needed")
            await house.launch(first)
            await _stop(house, first, ADMINISTRATOR)
            assert house.state(first) == "stopping"
            await _stop(house, second, ADMINISTRATOR)
            assert house.show(second).state.value == "cancelled"

    asyncio.run(story())
