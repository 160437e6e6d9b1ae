"""A device is known by its UUID: cards that vanish or are numbered anew are never given to two."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from control.house import House, a_house

from hubgov.control import observe
from hubgov.core.devices import Health
from hubgov.telemetry.probe import DeviceReading, Reading

MINUTE = 60_000


async def _sees(house: House, *uuids: str) -> None:
    """The probe finds these cards, numbered in this order."""
    devices = tuple(
        DeviceReading(
            index=index, uuid=uuid, model="Card A", memory_mib=80 * 1024, minor=index, used_mib=0,
            utilisation_percent=0, power_mw=0, health=Health.OK, unknown_because=None, processes=(),
            simulated=False,
        )
        for index, uuid in enumerate(uuids)
    )  # fmt: skip
    reading = Reading(node="box", at=house.clock.now(), devices=devices, unavailable=None)
    await house.do(lambda unit: observe.node_seen(unit, reading, "box", 64, 512 * 1024))


def _held(house: House) -> list[str]:
    return [s.uuid for a in house.governor.state.allocations.values() for s in a.devices]


@pytest.mark.parametrize("found", [("GPU-1",), ("GPU-1", "GPU-0"), ("GPU-9", "GPU-1")])
def test_a_card_that_is_held_goes_to_nobody_else_whatever_its_number(
    found: tuple[str, ...], tmp_path: Path
) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            first = await house.ask("amy")
            await house.run(first)
            second = await house.ask("bo")
            await house.run(second)
            assert sorted(_held(house)) == ["GPU-0", "GPU-1"]
            await house.cancel(first, now=True)
            await house.tick()
            await house.tick()
            await _sees(house, *found)
            for server in ("x", "y", "z"):
                await house.ask("ava", server=server)
            held = _held(house)
            assert len(held) == len(set(held)), held
            assert "GPU-1" in held
            house.check()

    asyncio.run(story())


def test_a_held_card_that_vanished_stays_on_the_books_until_it_is_given_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            [held] = _held(house)
            other = {"GPU-0": "GPU-1", "GPU-1": "GPU-0"}[held]
            await _sees(house, "GPU-9", other)
            known = {d.uuid: d.health for d in house.governor.state.seen["box"].devices}
            assert known[held] is Health.UNKNOWN
            await house.cancel(workload, now=True)
            await house.tick()
            await house.tick()
            await _sees(house, "GPU-9", other)
            assert {d.uuid for d in house.governor.state.seen["box"].devices} == {"GPU-9", other}

    asyncio.run(story())
