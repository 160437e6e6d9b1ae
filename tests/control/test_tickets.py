"""One server, one ticket: what a second spawn asks for, whose word a stop is, and what ends with a session."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from control.house import SPAWNER, House, a_house

from hubgov.control import session
from hubgov.control.submit import Refused
from hubgov.core.model import ExtensionState
from hubgov.core.states import Event
from hubgov.core.transitions import moved
from hubgov.errors import Ended

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000


async def _full(house: House) -> None:
    """Both cards taken."""
    for server in ("a", "b"):
        await house.run(await house.ask("bo", server=server))


@pytest.mark.parametrize(
    ("change", "keeps_place"),
    [({"gpus": 1, "lease_ms": HOUR // 2}, True), ({"gpus": 2}, False), ({"gpus": 1, "lease_ms": 3 * HOUR}, False)],
)
def test_another_request_takes_the_place_of_the_one_in_line(
    change: dict[str, Any], keeps_place: bool, tmp_path: Path
) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await _full(house)
            first = await house.ask("amy", gpus=1, lease_ms=2 * HOUR)
            since = house.show(first).eligible_since
            await house.tick(MINUTE)
            second = await house.ask("amy", **change)
            assert second != first
            assert (house.state(first), house.show(first).end_reason) == ("cancelled", "replaced")
            assert house.state(second) == "pending"
            assert (house.show(second).eligible_since == since) is keeps_place
            house.check()

    asyncio.run(story())


def test_the_cpu_starts_though_a_gpu_was_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await _full(house)
            waits = await house.ask("amy", gpus=1)
            starts = await house.ask("amy", gpus=0)
            assert (house.state(waits), house.state(starts)) == ("cancelled", "reserved")

    asyncio.run(story())


def test_the_same_request_is_the_same_ticket(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await _full(house)
            assert await house.ask("amy", gpus=1) == await house.ask("amy", gpus=1)

    asyncio.run(story())


def test_a_refused_change_leaves_the_ticket_in_line(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await _full(house)
            waits = await house.ask("amy", gpus=1)
            with pytest.raises(Refused):
                await house.ask("amy", gpus=99)
            assert house.state(waits) == "pending"
            house.check()

    asyncio.run(story())


def test_hubgovs_own_stop_is_not_its_owners_cancel(tmp_path: Path) -> None:
    """The spawner tells of every stop, also of one that hubgov asked the hub for."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy", retry_max=1)
            await house.launch(workload)
            await house.pass_time(10 * MINUTE + SECOND, step=10 * SECOND)
            before = house.journal(workload)
            attempt = house.show(workload).attempt
            if house.state(workload) == "stopping":
                await house.do(lambda unit: session.stopping(unit, workload, attempt, SPAWNER, now=False))
            assert house.journal(workload) == before
            assert house.show(workload).end_reason in (None, "start_deadline")

    asyncio.run(story())


@pytest.mark.parametrize("end", ["cancel", "exit"])
def test_an_open_request_for_more_time_lapses_with_the_session(end: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            request, _ = await house.extend(workload, 2 * HOUR)
            assert request.state is ExtensionState.NEEDS_APPROVAL
            if end == "cancel":
                await house.cancel(workload)
            else:
                house.engine.end(house.allocation(workload))
                await house.pass_time(20 * SECOND)
            assert "extension_lapsed" in house.journal(workload)

    asyncio.run(story())


def test_what_cannot_be_extended_is_not_said_to_be(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            lost = house.allocation(workload)
            await house.do(lambda unit: unit.write(moved(unit.state, lost, Event.UNKNOWN_TO_ENGINE, unit.now)))
            with pytest.raises(Ended, match="can't be extended"):
                await house.extend(workload, HOUR)
            assert house.show(workload).extensions_used == 0
            assert not any(event.startswith("extension") for event in house.journal(workload))

    asyncio.run(story())
