"""The end of a lease: warnings, extension against expiry, cancel in every state, waits that are over."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from control.house import POLICY, House, a_house, person

from hubgov.control import steer
from hubgov.control.governor import Key
from hubgov.control.session import claim
from hubgov.control.unit import Unit
from hubgov.core.decision import Outcome
from hubgov.core.model import ExtensionState
from hubgov.engines.scripted import FOR_EVER, Behaviour
from hubgov.errors import Ended, HubgovError, Invalid

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


async def _running(house: House) -> str:
    workload = await house.ask("amy")
    await house.run(workload)
    return workload


def test_an_extension_within_the_grace_returns_it_to_running(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            end = house.allocation(workload).lease.expires_at
            await house.tick(HOUR + MINUTE)
            assert house.state(workload) == "expiring"
            request, decision = await house.extend(workload, HOUR)
            assert (request.state, decision.outcome) == (ExtensionState.GRANTED, Outcome.GRANTED)
            assert house.state(workload) == "running"
            assert house.allocation(workload).lease.expires_at == (end or 0) + HOUR
            assert house.allocation(workload).stop_at is None
            await house.pass_time(30 * MINUTE, step=MINUTE)
            assert house.state(workload) == "running", "the old end is forgotten"
            assert house.engine.asked("stop") == 0
            house.check()

    asyncio.run(story())


@pytest.mark.parametrize("answers", [True, False])
def test_what_was_done_in_the_grace_is_saved_before_the_stop(answers: bool, tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            await house.tick(HOUR)
            await house.saves(workload)
            first = house.allocation(workload).save
            await house.tick(5 * MINUTE)
            asked = house.allocation(workload)
            assert (asked.state.value, asked.save_answered, asked.end_reason) == ("stopping", first, "lease")
            assert asked.save not in (first, None), "another save, which Lab answers anew"
            assert house.engine.asked("stop") == 0, "it still runs while it saves"
            if answers:
                await house.saves(workload)
            else:
                await house.tick(14 * SECOND)
                assert house.engine.asked("stop") == 0
                house.clock.advance(SECOND)
            await house.tick()
            assert house.engine.asked("stop") == 1
            await house.tick(SECOND)
            await house.tick(SECOND)
            assert house.show(workload).end_reason == "lease"
            house.check()

    asyncio.run(story())


def test_an_extension_after_the_grace_is_too_late(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            await house.tick(HOUR)
            await house.tick(5 * MINUTE)
            assert house.state(workload) == "stopping"
            with pytest.raises(Ended):
                await house.extend(workload, HOUR)
            await house.saves(workload)
            await house.tick()
            await house.tick(SECOND)
            assert (house.state(workload), house.show(workload).end_reason) == ("expired", "lease")
            with pytest.raises(Ended):
                await house.extend(workload, HOUR)
            house.check()

    asyncio.run(story())


async def _a_hundred_at_their_end(house: House, dice: random.Random) -> set[str]:
    """Leases at the end of their grace; requests and sweeps in random order, in batches of random size."""
    names = await asyncio.gather(*(house.ask("amy", gpus=0, server=f"s{n}") for n in range(100)))
    end = (await asyncio.gather(*(house.run(name) for name in names)))[0].lease.expires_at
    assert end is not None
    house.clock.at = end
    await house.governor.tick()
    house.clock.advance(5 * MINUTE - dice.choice((3, 2, 1, 0)))
    steps: list[str | None] = [*names, None, None, None]
    dice.shuffle(steps)
    results: dict[str | None, object] = {}
    while steps:
        batch = [steps.pop() for _ in range(min(len(steps), dice.randint(1, 40)))]
        calls = [house.extend(name, HOUR) if name else house.governor.tick() for name in batch]
        results |= zip(batch, await asyncio.gather(*calls, return_exceptions=True), strict=True)
        house.clock.advance(dice.choice((0, 0, 1)))
    await house.governor.tick()
    house.clock.advance(5)
    await house.governor.tick()
    for name in names:
        granted = isinstance(results[name], tuple)
        assert granted or isinstance(results[name], Ended), results[name]
        now = house.allocation(name)
        assert now.state.value == ("running" if granted else "stopping")
        assert now.lease.expires_at == (end + HOUR if granted else end)
        assert ("allocation_grace_ended" in house.journal(name)) != granted
    house.check()
    await asyncio.gather(*(house.cancel(name, now=True) for name in names))
    await house.tick()
    await house.tick(SECOND)
    assert not house.governor.state.workloads
    return {"extended" if isinstance(results[name], tuple) else "ended" for name in names}


def test_extension_and_expiry_never_both_win(tmp_path: Path) -> None:
    """A thousand random interleavings around the end of the grace: each lease is moved or ended, never both."""

    async def story() -> None:
        dice = random.Random(7)
        async with a_house(tmp_path) as house:
            outcomes = [await _a_hundred_at_their_end(house, dice) for _ in range(10)]
            assert set.union(*outcomes) == {"extended", "ended"}

    asyncio.run(story())


def test_clicks_at_the_very_end_with_one_key(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            await house.tick(HOUR + 5 * MINUTE - 1)
            key = Key(principal="amy", route="x", key="k", digest="d")

            def intent(unit: Unit) -> str:
                steer.extend(unit, workload, person("amy"), by_ms=HOUR, reason="", lease_version=None)
                return "granted"

            first = house.governor.do_once(key, intent)
            ticks = [house.governor.tick() for _ in range(3)]
            more = [house.governor.do_once(key, intent) for _ in range(3)]
            results = await asyncio.gather(first, *ticks, *more)
            assert [a.text for a in (results[0], *results[4:])] == ["granted"] * 4  # type: ignore[union-attr]
            assert house.show(workload).extensions_used == 1

    asyncio.run(story())


def test_each_warning_is_given_once_and_anew_after_an_extension(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            await house.pass_time(49 * MINUTE, step=MINUTE)
            assert house.governor.state.notices == {}
            await house.pass_time(10 * MINUTE, step=10 * SECOND)
            given = sorted(house.governor.state.notices)
            assert given == [f"{workload}.1-1-120", f"{workload}.1-1-600"]
            assert house.allocation(workload).save == f"{workload}.1-1-120", "the last one asks Lab to save"
            commits = house.commits
            await house.pass_time(30 * SECOND)
            assert house.commits == commits, "idle ticks write nothing"
            await house.extend(workload, HOUR)
            await house.pass_time(HOUR, step=10 * SECOND)
            assert sorted(set(house.governor.state.notices) - set(given)) == [
                f"{workload}.1-2-120",
                f"{workload}.1-2-600",
            ]
            house.check()

    asyncio.run(story())


def test_after_a_pause_only_the_nearest_warning_is_given(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
        house.clock.advance(59 * MINUTE)
        async with a_house(tmp_path, clock=house.clock, engine=house.engine) as again:
            await again.tick()
            await again.tick()
            assert list(again.governor.state.notices) == [f"{workload}.1-1-120"]

    asyncio.run(story())


@pytest.mark.parametrize("reason", ["", "  "])
def test_more_than_one_may_alone_needs_a_reason_and_then_an_approval(tmp_path: Path, reason: str) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            with pytest.raises(Invalid) as error:
                await house.extend(workload, 2 * HOUR, reason)
            assert error.value.code == "reason_required"
            request, decision = await house.extend(workload, 2 * HOUR, "paper due")
            assert (request.state, decision.code) == (ExtensionState.NEEDS_APPROVAL, "beyond_self_serve")
            await house.pass_time(HOUR + 6 * MINUTE, step=30 * SECOND)
            assert house.show(workload).end_reason == "lease"
            assert "extension_lapsed" in house.journal(workload)

    asyncio.run(story())


def test_beyond_the_most_it_is_denied_with_the_numbers(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _running(house)
            request, decision = await house.extend(workload, 7 * HOUR + 1)
            assert (request.state, decision.code) == (ExtensionState.DENIED, "max_total")
            assert decision.blockers[0].have == 7 * HOUR
            assert decision.blockers[0].limit == 8 * HOUR

    asyncio.run(story())


# --- cancel ----------------------------------------------------------------------------------------------


async def _in_state(house: House, state: str) -> str:
    """A workload of amy's in that state."""
    if state == "pending":
        for server in ("a", "b"):
            await house.ask("bo", server=server)
        return await house.ask("amy")
    if state in ("stopping", "quarantined"):
        stubborn = Behaviour(stop_takes_ms=FOR_EVER, kill_takes_ms=10 * MINUTE)
        house.engine.script.behaviours["nb-1"] = stubborn
    workload = await house.ask("amy")
    if state == "reserved":
        return workload
    await house.launch(workload)
    if state == "starting":
        return workload
    await house.run(workload)
    if state == "expiring":
        await house.tick(HOUR + SECOND)
    if state in ("stopping", "quarantined"):
        await house.cancel(workload)
        if state == "quarantined":
            await house.pass_time(2 * MINUTE, step=5 * SECOND)
    return workload


@pytest.mark.parametrize(
    ("state", "at_once"),
    [
        ("pending", "cancelled"),
        ("reserved", "cancelled"),
        ("starting", "stopping"),
        ("running", "stopping"),
        ("expiring", "stopping"),
        ("stopping", "stopping"),
        ("quarantined", "quarantined"),
    ],
)
def test_cancel_in_every_state(tmp_path: Path, state: str, at_once: str) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _in_state(house, state)
            assert house.state(workload) == state
            await house.cancel(workload)
            assert house.state(workload) == at_once
            await house.cancel(workload) if house.show(workload).live else None
            await house.pass_time(12 * MINUTE, step=15 * SECOND)
            shown = house.show(workload)
            assert (shown.state.value, shown.end_reason) == ("cancelled", "cancelled")
            with pytest.raises(Ended):
                await house.cancel(workload)
            house.check()

    asyncio.run(story())


def test_a_cancelled_grant_is_not_started_any_more(tmp_path: Path) -> None:
    """Between the reconciler's look and its effect the owner cancels: no server comes of it."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            house.clock.advance(6 * SECOND)
            cancelling = asyncio.create_task(house.cancel(workload))
            await asyncio.sleep(0)
            house.reconciler.look()
            await cancelling
            await house.reconciler.settled()
            assert house.engine.asked("start") == 0
            assert house.state(workload) == "cancelled"

    asyncio.run(story())


# --- waits -----------------------------------------------------------------------------------------------


def test_a_wait_beyond_the_queues_longest_ends_with_that_reason(tmp_path: Path) -> None:
    async def story() -> None:
        policy = POLICY.replace("    grace: 5m", "    grace: 5m\n    max_wait: 30m")
        async with a_house(tmp_path, policy=policy) as house:
            for server in ("a", "b"):
                await house.run(await house.ask("bo", server=server))
            waiting = await house.ask("amy")
            await house.tick(30 * MINUTE - 1)
            assert house.state(waiting) == "pending"
            await house.tick(1)
            assert (house.state(waiting), house.show(waiting).end_reason) == ("cancelled", "max_wait")
            house.check()

    asyncio.run(story())


@pytest.mark.parametrize("opened", [False, True])
def test_a_server_that_nobody_opens_is_given_back(tmp_path: Path, opened: bool) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.tick(6 * SECOND)
            assert house.engine.asked("start", workload) == 1
            allocation = await house.run(workload)
            assert allocation.claim_by == house.clock.now() + 15 * MINUTE
            if opened:
                await house.do(lambda unit: claim(unit, workload, person("amy")))
            await house.pass_time(16 * MINUTE, step=20 * SECOND)
            expected = ("running", None) if opened else ("culled", "unclaimed")
            assert (house.state(workload), house.show(workload).end_reason) == expected
            house.check()

    asyncio.run(story())


def test_extending_what_does_not_run_yet(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            with pytest.raises(HubgovError) as error:
                await house.extend(workload, HOUR)
            assert error.value.code == "not_running"

    asyncio.run(story())


# --- a stop saves first ----------------------------------------------------------------------------------


def test_a_stop_is_sent_when_its_documents_are_saved(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            await house.cancel(workload)
            await house.pass_time(5 * SECOND)
            assert house.engine.asked("stop") == 0
            version = house.show(workload).version
            await house.saves(workload)
            assert house.show(workload).version > version, "who polls the document hears of the answered save"
            await house.tick()
            assert house.engine.asked("stop", workload) == 1
            house.check()

    asyncio.run(story())


def test_a_session_that_does_not_answer_is_stopped_all_the_same(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            await house.cancel(workload)
            await house.pass_time(14 * SECOND)
            assert house.engine.asked("stop") == 0
            await house.pass_time(2 * SECOND)
            assert house.engine.asked("stop", workload) == 1

    asyncio.run(story())


@pytest.mark.parametrize("first", [True, False])
def test_a_stop_without_time_to_save_waits_for_nothing(first: bool, tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            if not first:
                await house.cancel(workload)
            await house.cancel(workload, now=True)
            await house.tick()
            assert house.engine.asked("stop", workload) == 1
            assert house.allocation(workload).stop_now
            house.check()

    asyncio.run(story())


@pytest.mark.parametrize("state", ["pending", "reserved", "starting", "quarantined"])
def test_what_holds_no_open_documents_is_not_asked_to_save(state: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await _in_state(house, state)
            before = house.journal(workload)
            await house.cancel(workload)
            await house.tick()
            assert house.state(workload) in ("cancelled", "stopping", "quarantined")
            assert house.engine.asked("stop", workload) >= (state == "starting")
            assert not any("save" in event for event in house.journal(workload)[len(before) :])

    asyncio.run(story())
