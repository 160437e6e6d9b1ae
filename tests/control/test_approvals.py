"""More time than the queue gives: who decides, what follows, and that exactly one of two decisions counts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from control.house import ADMINISTRATOR, POLICY, House, a_house

from hubgov.control import approvals, policies
from hubgov.control.actor import APPROVE, Actor, approvers
from hubgov.control.submit import Refused
from hubgov.core.delays import delays
from hubgov.core.model import ExtensionRequest, ExtensionState
from hubgov.errors import Conflict, HubgovError, Invalid, NotAllowed, NotFound

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
LENA = Actor(name="lena", groups=frozenset({"vision"}), scopes=frozenset({APPROVE}))


async def _asked(house: House, user: str = "amy", by_ms: int = 3 * HOUR) -> tuple[str, ExtensionRequest]:
    """A session that runs, and an open request for more than its owner may take."""
    workload = await house.ask(user)
    await house.run(workload)
    request, _ = await house.extend(workload, by_ms)
    assert request.state is ExtensionState.NEEDS_APPROVAL
    return workload, request


async def _approve(
    house: House, request: ExtensionRequest, actor: Actor = LENA, by_ms: int | None = None
) -> ExtensionRequest:
    done: ExtensionRequest = await house.do(
        lambda unit: approvals.approve(unit, request.id, actor, by_ms=by_ms, reason="go on")
    )
    return done


async def _deny(
    house: House, request: ExtensionRequest, actor: Actor = LENA, reason: str = "no"
) -> ExtensionRequest:
    done: ExtensionRequest = await house.do(lambda unit: approvals.deny(unit, request.id, actor, reason=reason))
    return done


@pytest.mark.parametrize("by_ms", [None, HOUR])
def test_an_approval_moves_the_end_by_all_or_part_of_it(by_ms: int | None, tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload, request = await _asked(house)
            before = house.allocation(workload).lease
            version = house.show(workload).version
            done = await _approve(house, request, by_ms=by_ms)
            lease = house.allocation(workload).lease
            assert before.expires_at is not None
            assert lease.expires_at == before.expires_at + (by_ms or 3 * HOUR) == done.expires_at
            assert (done.state, done.decided_by, done.decision_reason) == ("granted", "lena", "go on")
            assert house.show(workload).version > version, "Lab's waiting request comes back"
            assert house.show(workload).extensions_used == 0, "his own extensions are not used up"
            told = [n for n in house.governor.state.notices.values() if n.kind == "extension_granted"]
            assert [(n.id, n.deadline) for n in told] == [(f"{request.id}-granted", lease.expires_at)]
            house.check()

    asyncio.run(story())


def test_a_denial_needs_a_reason_and_changes_nothing_else(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload, request = await _asked(house)
            lease = house.allocation(workload).lease
            with pytest.raises(Invalid, match="a denial needs a reason"):
                await _deny(house, request, reason=" ")
            done = await _deny(house, request, reason="the release comes first")
            assert (done.state, done.decision_reason) == ("denied", "the release comes first")
            assert house.allocation(workload).lease == lease
            assert "extension_denied" in house.journal(workload)
            house.check()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("actor", "error"),
    [
        pytest.param(
            Actor(name="amy", groups=frozenset({"vision"}), scopes=frozenset({APPROVE})), NotAllowed, id="his own"
        ),
        pytest.param(
            Actor(name="ava", groups=frozenset({"vision"}), scopes=frozenset({APPROVE})), NotAllowed, id="a mate"
        ),
        pytest.param(Actor(name="lena", groups=frozenset({"vision"})), NotAllowed, id="a lead without the scope"),
        pytest.param(
            Actor(name="lena", groups=frozenset({"vision"}), scopes=frozenset({APPROVE}), from_server=True),
            NotAllowed,
            id="a lead's notebook",
        ),
        pytest.param(
            Actor(name="lena", kind="service", groups=frozenset({"vision"}), scopes=frozenset({APPROVE})),
            NotAllowed,
            id="a service called so",
        ),
        pytest.param(
            Actor(name="bo", groups=frozenset({"nlp"}), scopes=frozenset({APPROVE})), NotFound, id="a stranger"
        ),
    ],
)
def test_who_may_not_decide(actor: Actor, error: type[HubgovError], tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            _, request = await _asked(house)
            for decide in (_approve, _deny):
                with pytest.raises(error):
                    await decide(house, request, actor)
            assert house.governor.state.extensions[request.id].state is ExtensionState.NEEDS_APPROVAL
            house.check()

    asyncio.run(story())


def test_what_delays_another_team_is_not_its_own_leads_to_grant(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload, request = await _asked(house)
            await house.run(await house.ask("ava", lease_ms=4 * HOUR))
            waiting = await house.ask("bo")
            allocation = house.allocation(workload)
            [delay] = delays(house.governor.state, allocation, 3 * HOUR, house.clock.now())
            assert (delay.workload, delay.team) == (waiting, "nlp")
            # Not by three hours: ava's card is free an hour before that.
            other = house.governor.state.allocations
            ends = sorted(a.lease.expires_at or 0 for a in other.values())
            assert delay.by_ms == min(3 * HOUR, ends[1] - ends[0])
            with pytest.raises(NotAllowed):
                await _approve(house, request)
            assert (await _approve(house, request, ADMINISTRATOR)).state is ExtensionState.GRANTED
            house.check()

    asyncio.run(story())


def test_beyond_the_longest_time_no_approver_can_grant(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload, request = await _asked(house, by_ms=6 * HOUR)
            await house.extend(workload, HOUR)
            shorter = POLICY.replace("max_total: 8h", "max_total: 3h")
            await house.do(lambda unit: policies.apply(unit, shorter, 1, ADMINISTRATOR))
            with pytest.raises(Refused) as refused:
                await _approve(house, request)
            assert refused.value.decision.code == "max_total"
            assert (await _approve(house, request, by_ms=HOUR)).by_ms == HOUR

    asyncio.run(story())


def test_more_than_was_asked_for_is_refused_and_what_came_meanwhile_counts(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload, request = await _asked(house)
            with pytest.raises(Invalid, match="more than the 10800 s"):
                await _approve(house, request, by_ms=4 * HOUR)
            asked_end = (house.allocation(workload).lease.expires_at or 0) + 3 * HOUR
            await house.extend(workload, HOUR)
            await _approve(house, request)
            assert house.allocation(workload).lease.expires_at == asked_end, "the end that was asked for, not more"

    asyncio.run(story())


def test_a_new_request_takes_the_place_of_the_open_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload, first = await _asked(house)
            again, _ = await house.extend(workload, 3 * HOUR)
            assert again.id == first.id
            second, _ = await house.extend(workload, 2 * HOUR)
            states = {e.id: e.state.value for e in house.governor.state.extensions.values()}
            assert states == {first.id: "withdrawn", second.id: "needs_approval"}
            with pytest.raises(Conflict, match="withdrawn"):
                await _approve(house, first)
            done = await house.do(lambda unit: approvals.withdraw(unit, second.id, Actor(name="amy")))
            assert done.state is ExtensionState.WITHDRAWN

    asyncio.run(story())


def test_every_request_of_a_lease_can_be_decided_on(tmp_path: Path) -> None:
    """A decision that is told has no threshold: two of one lease version stand beside each other."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload, first = await _asked(house)
            await _deny(house, first)
            second, _ = await house.extend(workload, 3 * HOUR, reason="once more")
            await _deny(house, second)
            third, _ = await house.extend(workload, 2 * HOUR, reason="and again")
            await _approve(house, third)
            fourth, _ = await house.extend(workload, 3 * HOUR, reason="more still")
            await _deny(house, fourth)
            told = [n.id for n in house.governor.state.notices.values() if n.threshold_ms == 0]
            assert len(told) == 4
            house.check()

    asyncio.run(story())


def test_in_the_grace_it_delays_the_same_people(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload, request = await _asked(house)
            await house.run(await house.ask("ava", lease_ms=4 * HOUR))
            waiting = await house.ask("bo")
            await house.tick(HOUR + SECOND)
            assert house.state(workload) == "expiring"
            found = approvals.delayed_by(house.governor.state, request, house.clock.now())
            assert [(d.workload, d.team) for d in found] == [(waiting, "nlp")]
            with pytest.raises(NotAllowed):
                await _approve(house, request)

    asyncio.run(story())


def test_who_is_named_may_decide_and_nobody_else(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload, request = await _asked(house)
            shown, state = house.show(workload), house.governor.state
            assert approvers(state.policy, shown, "amy") == ("lena",)
            await house.run(await house.ask("ava", lease_ms=4 * HOUR))
            await house.ask("bo")
            delayed = approvals.teams_delayed_by(state, request, house.clock.now())
            assert delayed == {"nlp"}
            assert approvers(state.policy, shown, "amy", delayed) == ("admin",)

    asyncio.run(story())
