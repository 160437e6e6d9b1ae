"""Denials are recorded, and however often somebody asks, they fill neither the ledger nor the picture."""

from __future__ import annotations

import asyncio
from pathlib import Path

from control.house import House, a_house, person
from ledger.written import extensions_of

from hubgov.control import steer
from hubgov.control.actor import APPROVE, Actor
from hubgov.control.steer import REPEATED_MS
from hubgov.core.model import ExtensionState

HOUR = 3_600_000
BEYOND = 7 * HOUR + 1
"""More than `max_total` leaves."""


def _recorded(house: House, workload: str) -> list[tuple[str, str, int]]:
    with house.ledger.reading() as connection:
        return [(e.id, e.state.value, e.by_ms) for e in extensions_of(connection, workload)]


async def _running(house: House) -> str:
    workload = await house.ask("amy")
    await house.run(workload)
    return workload


def test_the_same_denial_again_within_a_minute_is_the_one_on_record(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            first, decision = await house.extend(workload, BEYOND)
            commits = house.commits
            for _ in range(20):
                again, told = await house.extend(workload, BEYOND)
                assert again == first
                assert (told.outcome, told.code, told.rule) == (decision.outcome, decision.code, decision.rule)
                house.clock.advance(1000)
            assert house.commits == commits
            assert len(_recorded(house, workload)) == 1
            house.clock.advance(REPEATED_MS)
            later, _ = await house.extend(workload, BEYOND)
            assert later.id == f"{workload}-x2"
            assert later.requested_at == house.clock.now()

    asyncio.run(story())


def test_another_request_is_recorded_for_itself(tmp_path: Path) -> None:
    """Another span, another reason, another person, another version of the lease."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            await house.extend(workload, BEYOND)
            await house.extend(workload, BEYOND + 1)
            await house.extend(workload, BEYOND + 1, reason="another")
            lead = Actor(name="lena", scopes=frozenset({APPROVE}))
            await house.do(
                lambda unit: steer.extend(
                    unit, workload, lead, by_ms=BEYOND + 1, reason="another", lease_version=None
                )
            )
            granted, _ = await house.extend(workload, HOUR)
            assert granted.state is ExtensionState.GRANTED, "who was denied may still have what is his"
            await house.extend(workload, BEYOND)
            states = [state for _, state, _ in _recorded(house, workload)]
            assert states == ["denied"] * 4 + ["granted", "denied"]
            house.check()

    asyncio.run(story())


def test_of_many_denials_the_picture_has_the_last_and_the_ledger_all(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            mine, other = await _running(house), await house.ask("bo")
            await house.run(other)
            await house.do(
                lambda unit: steer.extend(unit, other, person("bo"), by_ms=BEYOND, reason="", lease_version=None)
            )
            granted, _ = await house.extend(mine, HOUR)
            for more in range(30):
                await house.extend(mine, BEYOND + more)
            # Several at once are one unit.
            await asyncio.gather(*(house.extend(mine, BEYOND + more) for more in range(30, 40)))
            asked, _ = await house.extend(mine, HOUR + 1)
            assert asked.state is ExtensionState.NEEDS_APPROVAL
            kept = sorted(e for e in house.governor.state.extensions if e.startswith(f"{mine}-"))
            assert kept == sorted([granted.id, f"{mine}-x41", asked.id]), "the last denial, and what is no denial"
            assert f"{other}-x1" in house.governor.state.extensions, "each workload has its own last"
            recorded = [name for name, _, _ in _recorded(house, mine)]
            assert len(set(recorded)) == len(recorded) == 42, "every record has its own number"
            house.check()
            before = house.governor.state.extensions
        async with a_house(tmp_path, clock=house.clock, engine=house.engine) as again:
            assert again.governor.state.extensions == before
            later, _ = await again.extend(mine, BEYOND + 99)
            assert later.id == f"{mine}-x43"

    asyncio.run(story())
