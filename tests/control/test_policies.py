"""Applying a policy: against the version it was made from, all or nothing, and never from under live work."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from control.house import ADMINISTRATOR, POLICY, House, a_house, person

from hubgov.control import policies, receipt, session
from hubgov.errors import Conflict, Invalid, NotAllowed, PolicyMoved
from hubgov.ledger import reading

HOUR = 3_600_000


async def _apply(house: House, text: str, based_on: int = 1, by: str | None = None) -> int:
    actor = person(by) if by else ADMINISTRATOR
    done = await house.do(lambda unit: policies.apply(unit, text, based_on, actor))
    return int(done.version)


def test_an_edit_made_from_an_old_version_is_not_applied(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            assert await _apply(house, POLICY.replace("grace: 5m", "grace: 6m")) == 2
            with pytest.raises(PolicyMoved) as error:
                await _apply(house, POLICY)
            assert error.value.details == {"version": 2}
            assert house.governor.state.policy.queues["experiment"].grace_ms == 360_000
            house.check()
        async with a_house(tmp_path) as again:
            assert again.governor.state.policy.version == 2

    asyncio.run(story())


def test_of_two_edits_at_once_one_wins(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            edits = (_apply(house, POLICY.replace("grace: 5m", f"grace: {n}m")) for n in (6, 7))
            results = await asyncio.gather(*edits, return_exceptions=True)
            assert results[0] == 2
            assert isinstance(results[1], PolicyMoved)
            house.check()

    asyncio.run(story())


def test_nothing_of_a_faulty_policy_is_applied_and_all_faults_are_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            faulty = POLICY.replace("grace: 5m", "grace: soon").replace("pools: [dev]", "pools: [dve]")
            with pytest.raises(Invalid) as error:
                await _apply(house, faulty)
            assert error.value.code == "policy_invalid"
            assert len(error.value.details["problems"]) == 2
            assert house.governor.state.policy.version == 1
            house.check()

    asyncio.run(story())


def test_only_an_admin_applies(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            with pytest.raises(NotAllowed):
                await _apply(house, POLICY, by="lena")

    asyncio.run(story())


def test_what_live_work_needs_cannot_be_removed(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("bo")
            without = POLICY.replace("  nlp: {groups: [nlp]}\n", "").replace("  chat: {team: nlp, owner: bo}\n", "")
            with pytest.raises(Conflict) as error:
                await _apply(house, without)
            assert error.value.code == "in_use"
            assert any(workload in item for item in error.value.details["in_use"])
            assert "chat" in house.governor.state.policy.projects
            await house.cancel(workload)
            assert await _apply(house, without) == 2
            house.check()

    asyncio.run(story())


def test_a_device_in_use_is_not_moved_to_another_pool(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            held = house.allocation(workload).devices[0].index
            other = POLICY.replace("pools:\n", "pools:\n  train: {engine: local, team: platform, owner: ops}\n", 1)
            pools = "{dev: [%d], train: [%d]}"
            moved = other.replace("{dev: [0, 1]}", pools % (1 - held, held))
            with pytest.raises(Conflict, match=f"held by {workload}") as error:
                await _apply(house, moved)
            assert error.value.code == "in_use"
            assert await _apply(house, other.replace("{dev: [0, 1]}", pools % (held, 1 - held))) == 2
            house.check()

    asyncio.run(story())


def test_a_kind_that_is_waited_for_stays_in_its_queue(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await house.ask("amy", gpus=2)
            waiting = await house.ask("bo")
            without = POLICY.replace("kinds: [notebook]", "kinds: [training]")
            with pytest.raises(Conflict, match=f"for which {waiting} waits") as error:
                await _apply(house, without)
            assert error.value.code == "in_use"
            await house.cancel(waiting)
            assert await _apply(house, without) == 2

    asyncio.run(story())


def test_the_currency_stays_once_anything_is_on_the_books(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            assert await _apply(house, POLICY.replace("currency: CNY", "currency: USD")) == 2
            workload = await house.ask("amy")
            await house.cancel(workload)
            with pytest.raises(Conflict, match="currency USD is what the books are kept in"):
                await _apply(house, POLICY, based_on=2)
            assert house.governor.state.policy.currency == "USD"

    asyncio.run(story())


def test_a_project_with_live_work_stays_in_its_team(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            moved = POLICY.replace("seg: {team: vision, owner: amy}", "seg: {team: nlp, owner: amy}")
            with pytest.raises(Conflict, match="move it from team vision") as error:
                await _apply(house, moved)
            assert any(workload in item for item in error.value.details["in_use"])
            await house.cancel(workload)
            assert await _apply(house, moved) == 2

    asyncio.run(story())


@pytest.mark.parametrize("when", ["reserved", "running", "extended"])
def test_no_edit_takes_the_promised_grace_or_warnings(when: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            if when != "reserved":
                await house.run(workload)
            if when == "extended":
                await house.extend(workload, HOUR)
            await _apply(house, POLICY.replace("grace: 5m", "grace: 0s").replace("warn: [10m, 2m]", "warn: []"))
            if when == "reserved":
                await house.run(workload)
            end = house.allocation(workload).lease.expires_at
            assert end is not None
            await house.pass_time(end - house.clock.now() + 4 * 60_000, step=30_000)
            assert house.state(workload) == "expiring"
            assert house.journal(workload).count("warning_issued") == 2
            await house.pass_time(2 * 60_000, step=30_000)
            assert house.state(workload) in ("stopping", "expired")

    asyncio.run(story())


def test_a_live_lease_keeps_its_terms_and_the_limits_follow_the_new_policy(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            before = (await house.run(workload)).lease
            shorter = POLICY.replace("lease: {default: 1h, max: 4h}", "lease: {default: 10m, max: 20m}")
            shorter = shorter.replace("max_total: 8h", "max_total: 90m")
            await _apply(house, shorter)
            assert house.allocation(workload).lease == before
            assert house.allocation(workload).policy_version == 1
            await house.pass_time(30 * 60_000, step=60_000)
            assert house.state(workload) == "running", "it runs to the end that it was given"
            _, decision = await house.extend(workload, HOUR)
            assert decision.code == "max_total", "how far it may be moved is today's rule"
            other = await house.ask("amy", server="b")
            assert (await house.run(other)).lease.length_ms == 600_000
            house.check()

    asyncio.run(story())


def test_a_receipt_has_each_price_for_its_own_time(tmp_path: Path) -> None:
    """Also when the service was started anew in between: the tariff that ended is on the record with its edit."""

    def dearer(price: str) -> str:
        return POLICY.replace("price_per_hour: 18.5", f"price_per_hour: {price}")

    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            await house.tick(HOUR // 4)
            commits = house.commits
            assert await _apply(house, dearer("37")) == 2
            assert house.commits == commits + 1
            [tariff] = house.allocation(workload).tariffs
            assert (tariff.price_micro_per_hour, tariff.until) == (18_500_000, house.clock.now())
            assert [e for e in house.journal(workload) if e == "tariff_ended"] == ["tariff_ended"]
            house.check()
        async with a_house(tmp_path, clock=house.clock, engine=house.engine) as again:
            again.check()
            await again.tick(HOUR // 4)
            assert await _apply(again, dearer("0"), based_on=2) == 3
            await again.tick(HOUR // 4)
            await again.cancel(workload, now=True)
            allocation = again.allocation(workload).id
            await again.do(lambda unit: session.gone(unit, allocation))
            with again.ledger.reading() as connection:
                segments = reading.segments_of(connection, workload)
                attempts = reading.allocations_of(connection, workload)
            facts = receipt.facts(attempts, (), segments)
            assert facts.cost_micro == (18_500_000 + 37_000_000) // 4
            assert facts.milli_gpu_ms == 3 * HOUR // 4 * 1000

    asyncio.run(story())
