"""The hub is away for longer than anybody waits: no ticket is lost or burnt, and all goes on when it is back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from control.house import House, a_house

from hubgov.errors import Unavailable

SECOND, MINUTE = 1000, 60_000


async def _away(house: House) -> None:
    house.engine.script.down = True
    await house.pass_time(20 * SECOND)


def test_what_was_granted_and_not_begun_waits_again_at_its_place(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await house.run(await house.ask("amy"))
            granted = await house.ask("bo")
            waiting = await house.ask("ava")
            before = house.show(granted).eligible_since
            await _away(house)
            assert (house.state(granted), house.state(waiting)) == ("pending", "pending")
            await house.pass_time(30 * MINUTE, step=10 * SECOND)
            assert (house.state(granted), house.state(waiting)) == ("pending", "pending"), "beyond start_deadline"
            assert house.show(granted).eligible_since == before
            house.engine.script.down = False
            await house.pass_time(20 * SECOND)
            assert (house.state(granted), house.state(waiting)) == ("reserved", "pending")
            assert house.engine.asked("start", granted) >= 1
            house.check()

    asyncio.run(story())


def test_what_was_starting_gets_its_time_again_when_the_hub_is_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.launch(workload)
            await _away(house)
            await house.pass_time(30 * MINUTE, step=10 * SECOND)
            assert house.state(workload) == "starting"
            house.engine.script.down = False
            await house.pass_time(9 * MINUTE, step=10 * SECOND)
            assert house.state(workload) == "starting"
            await house.pass_time(2 * MINUTE, step=10 * SECOND)
            assert house.state(workload) in ("stopping", "failed", "released")

    asyncio.run(story())


@pytest.mark.parametrize("silent", [2, 9])
def test_a_short_silence_is_none(silent: int, tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            house.engine.script.down = True
            await house.pass_time(silent * SECOND)
            house.engine.script.down = False
            await house.pass_time(20 * SECOND)
            assert house.show(workload).attempt == 1
            assert house.state(workload) == "reserved"

    asyncio.run(story())


def test_a_unit_that_could_not_be_written_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            granted = await house.ask("amy")
            commit = house.ledger.commit

            def full(*given: Any, **more: Any) -> None:
                raise Unavailable("no space left")

            house.engine.script.down = True
            await house.pass_time(9 * SECOND)
            monkeypatch.setattr(house.ledger, "commit", full)
            for _ in range(6):
                house.clock.advance(2 * SECOND)
                house.reconciler.look()
                await house.reconciler.settled(0)
            assert house.governor.state.away == frozenset()
            monkeypatch.setattr(house.ledger, "commit", commit)
            await house.pass_time(20 * SECOND)
            assert house.state(granted) == "pending"
            house.check()

    asyncio.run(story())
