"""Two things at one instant: exactly one wins, and the record says which. Many rounds, in every order, on both
databases.

Each round is a session of its own at the very end of its grace. The rivals are sent together or a turn of the
loop apart, so that they meet in one commit or in two.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from control.house import POLICY, House, a_house, person
from idle.test_house import IDLE, in_grace, keep, pass_idle, see

from hubgov.control import approvals, steer
from hubgov.control.actor import APPROVE, Actor
from hubgov.control.governor import Key
from hubgov.core.model import ExtensionRequest, ExtensionState
from hubgov.errors import HubgovError, Refusal

MINUTE, HOUR = 60_000, 3_600_000
LENA = Actor(name="lena", groups=frozenset({"vision"}), scopes=frozenset({APPROVE}))
LAST = 15 * MINUTE
"""From ready to the stop: a lease of ten minutes, a grace of five."""
Move = Callable[[], Coroutine[Any, Any, Any]]


@pytest.fixture(params=[25, pytest.param(1000, marks=pytest.mark.slow)])
def rounds(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@dataclass
class Race:
    """One house; `meet` sends rivals, `over` ends the round."""

    house: House
    dice: random.Random
    number: int = 0

    async def session(self) -> str:
        self.number += 1
        workload = await self.house.ask("amy", server=f"s{self.number}", lease_ms=10 * MINUTE)
        await self.house.run(workload)
        return workload

    async def meet(self, *moves: Move) -> list[Any]:
        """What each answered, or raised, in the order of `moves`; sent in any order."""
        order = list(range(len(moves)))
        self.dice.shuffle(order)
        sent: dict[int, asyncio.Task[Any]] = {}
        for index in order:
            sent[index] = asyncio.create_task(moves[index]())
            if self.dice.random() < 0.5:  # a writer's whole turn later, half of the time
                await self.house.governor.tick()
        answers = await asyncio.gather(*(sent[i] for i in range(len(moves))), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, HubgovError | Refusal):
                raise answer
        return answers

    async def over(self, workload: str) -> None:
        self.house.check()
        if self.house.show(workload).live:
            await self.house.do(lambda unit: steer.cancel(unit, workload, person("amy"), reason="", now=True))
        while self.house.show(workload).live:
            await self.house.tick(1000)

    def close_to_the_stop(self) -> None:
        self.house.clock.advance(LAST + self.dice.choice((-1, 0, 1)))


def races(url: str, rounds: int, one: Callable[[Race], Awaitable[str]], policy: str = POLICY) -> Counter[str]:
    """How often each outcome came."""

    async def story() -> Counter[str]:
        seen: Counter[str] = Counter()
        async with a_house(url, policy=policy) as house:
            race = Race(house, random.Random(7))
            for _ in range(rounds):
                seen[await one(race)] += 1
        return seen

    return asyncio.run(story())


def _won(answer: Any) -> bool:
    return not isinstance(answer, BaseException)


def test_an_extension_and_the_stop(url: str, rounds: int) -> None:
    async def one(race: Race) -> str:
        house, workload = race.house, await race.session()
        race.close_to_the_stop()
        answer, _ = await race.meet(lambda: house.extend(workload, HOUR), house.governor.tick)
        state = house.state(workload)
        granted = _won(answer) and answer[0].state is ExtensionState.GRANTED
        assert state == ("running" if granted else "stopping")
        events = house.journal(workload)
        assert events.count("allocation_extended") == granted
        assert events.count("allocation_grace_ended") == (not granted)
        await race.over(workload)
        return state

    assert set(races(url, rounds, one)) == {"running", "stopping"}


def test_an_approval_a_denial_a_withdrawal_and_the_stop(url: str, rounds: int) -> None:
    async def one(race: Race) -> str:
        house, workload = race.house, await race.session()
        request: ExtensionRequest
        request, _ = await house.extend(workload, 2 * HOUR, reason="evaluation")
        race.close_to_the_stop()
        answers = await race.meet(
            lambda: house.do(lambda unit: approvals.approve(unit, request.id, LENA, by_ms=None, reason="")),
            lambda: house.do(lambda unit: approvals.deny(unit, request.id, LENA, reason="no")),
            lambda: house.do(lambda unit: approvals.withdraw(unit, request.id, person("amy"))),
            house.governor.tick,
        )
        ends = ("extension_granted", "extension_denied", "extension_withdrawn", "extension_lapsed")
        (decided,) = [event for event in house.journal(workload) if event in ends]
        assert [_won(answer) for answer in answers[:3]] == [decided == end for end in ends[:3]]
        assert (house.state(workload) == "running") is (decided == "extension_granted")
        await race.over(workload)
        return decided

    seen = races(url, rounds, one)
    assert {"extension_granted", "extension_denied", "extension_withdrawn"} <= set(seen)


def test_a_double_click_is_one_extension(url: str, rounds: int) -> None:
    async def one(race: Race) -> str:
        house, workload = race.house, await race.session()
        key = Key(principal="user:amy", route=workload, key="k", digest="d")

        async def click() -> str:
            def intent(unit: Any) -> str:
                request, _ = steer.extend(unit, workload, person("amy"), by_ms=HOUR, reason="", lease_version=None)
                return request.id

            return (await house.governor.do_once(key, intent)).text

        before = house.allocation(workload).lease.expires_at or 0
        answers = await race.meet(click, click, click)
        assert set(answers) == {f"{workload}-x1"}
        assert house.allocation(workload).lease.expires_at == before + HOUR
        assert house.show(workload).extensions_used == 1
        await race.over(workload)
        return "once"

    assert races(url, rounds, one) == {"once": rounds}


def test_two_tabs_that_saw_the_same_end_move_it_once(url: str, rounds: int) -> None:
    async def one(race: Race) -> str:
        house, workload = race.house, await race.session()
        seen = house.allocation(workload).lease.version

        def click(by_ms: int) -> Move:
            return lambda: house.do(
                lambda unit: steer.extend(unit, workload, person("amy"), by_ms=by_ms, reason="", lease_version=seen)
            )

        answers = await race.meet(click(HOUR), click(HOUR // 2))
        winners = [answer for answer in answers if _won(answer)]
        assert len(winners) == 1
        assert house.show(workload).extensions_used == 1
        assert house.allocation(workload).lease.version == seen + 1
        await race.over(workload)
        return f"{winners[0][0].by_ms}"

    assert set(races(url, rounds, one)) == {f"{HOUR}", f"{HOUR // 2}"}


def test_a_cancel_and_an_extension(url: str, rounds: int) -> None:
    """Both may be granted in this order only: extended, then cancelled. What is being stopped isn't extended."""

    async def one(race: Race) -> str:
        house, workload = race.house, await race.session()
        _, extended = await race.meet(lambda: house.cancel(workload), lambda: house.extend(workload, HOUR))
        assert house.state(workload) == "stopping"
        events = house.journal(workload)
        assert ("allocation_extended" in events) is _won(extended)
        if _won(extended):
            assert events.index("allocation_extended") < events.index("allocation_cancelled")
        await race.over(workload)
        return f"{_won(extended)}"

    assert set(races(url, rounds, one)) == {"True", "False"}


def test_who_cancels_a_request_as_it_is_granted_is_left_with_nothing(url: str, rounds: int) -> None:
    async def one(race: Race) -> str:
        house = race.house
        first = [await race.session() for _ in range(2)]  # both cards
        race.number += 1
        waiting = await house.ask("amy", server=f"s{race.number}")
        assert house.state(waiting) == "pending"

        async def freed() -> None:
            await house.cancel(first[0], now=True)
            while house.show(first[0]).live:
                await house.tick(1000)

        await race.meet(freed, lambda: house.cancel(waiting))
        while house.show(waiting).live:
            await house.tick(1000)
        ended = house.show(waiting)
        assert ended.state.value == "cancelled"
        for workload in first:
            await race.over(workload)
        assert not house.governor.state.allocations
        return "granted first" if ended.attempt else "cancelled first"

    assert "cancelled first" in races(url, rounds, one)


def test_a_keep_in_two_tabs_and_an_idle_stop(url: str, rounds: int) -> None:
    async def one(race: Race) -> str:
        house = race.house
        workload = await in_grace(house)
        stop_at = house.allocation(workload).stop_at
        assert stop_at is not None
        await pass_idle(house, workload, stop_at - 1 - house.clock.now())
        house.clock.advance(race.dice.choice((0, 1, 2)))
        first, second, _ = await race.meet(
            lambda: keep(house, workload), lambda: keep(house, workload), lambda: see(house, workload)
        )
        kept = _won(first) or _won(second)
        state, events = house.state(workload), house.journal(workload)
        assert state == ("running" if kept else "stopping")
        assert events.count("allocation_grace_ended") == (not kept)
        if kept:
            assert house.allocation(workload).idle.keeps_used == 1, "two tabs, one Keep"
        await race.over(workload)
        return state

    quick = IDLE.replace("after: 30m, confirm: 15m, grace: 10m", "after: 1m, confirm: 1m, grace: 1m")
    assert set(races(url, rounds, one, quick)) == {"running", "stopping"}
