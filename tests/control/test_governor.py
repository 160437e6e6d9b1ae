"""The one writer: batches, failures, keys, and the right to write."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from builders import snapshot
from control.house import SPAWNER, House, a_house, person
from ledger.written import extensions_of

from hubgov.app import read_policy
from hubgov.control import session, steer, submit
from hubgov.control.governor import Key
from hubgov.control.unit import Unit
from hubgov.core.model import Request
from hubgov.core.policy import Kind
from hubgov.errors import Conflict, Ended, HubgovError, KeyReused, NotAllowed, NotFound, Unavailable
from hubgov.ledger import reading
from hubgov.ledger.leadership import StaleLeader
from hubgov.ledger.ledger import Ledger

HOUR = 3_600_000


def _key(key: str = "k1", digest: str = "d1") -> Key:
    return Key(principal="amy", route="/extensions", key=key, digest=digest)


def _extend(workload: str) -> Any:
    def intent(unit: Unit) -> str:
        request, _ = steer.extend(unit, workload, person("amy"), by_ms=HOUR, reason="eval", lease_version=None)
        return json.dumps({"id": request.id, "state": request.state.value})

    return intent


def _ticket(user: str, server: str) -> Any:
    draft = submit.Draft(queue="experiment", request=Request(milli_gpus=(1000,), server=server))
    return lambda unit: submit.ensure_server(unit, draft, person(user), SPAWNER, frozenset({Kind.NOTEBOOK}))


def test_intents_that_wait_together_share_one_commit(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            before = house.commits
            tickets = await asyncio.gather(*(house.do(_ticket("amy", f"s{n}")) for n in range(25)))
            assert house.commits == before + 1
            assert [w.seq for w in tickets] == list(range(1, 26)), "in the order of asking"
            assert [house.state(w.id) for w in tickets].count("reserved") == 2, "the two cards, once each"
            house.check()

    asyncio.run(story())


def test_an_intent_that_raises_undoes_its_own_changes_and_nobody_elses(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:

            def breaks(unit: Unit) -> None:
                _ticket("bo", "broken")(unit)
                raise RuntimeError("a fault of ours")

            results = await asyncio.gather(
                house.do(_ticket("amy", "one")),
                house.do(breaks),
                house.do(lambda unit: unit.workload("nb-99")),
                house.do(_ticket("bo", "two")),
                return_exceptions=True,
            )
            assert isinstance(results[1], RuntimeError)
            assert isinstance(results[2], Ended)
            names = [w.name for w in house.governor.state.workloads.values()]
            assert names == ["one", "two"]
            assert [w.seq for w in house.governor.state.workloads.values()] == [1, 2], "no number is lost"
            house.check()

    asyncio.run(story())


@pytest.mark.parametrize("fault", ["locked", "full", "unexpected"])
def test_a_commit_that_fails_changes_nothing_and_everybody_hears_it(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            running = await house.ask("amy")
            await house.run(running)
            before = snapshot(house.governor.state)
            other = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
            with house.ledger.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA busy_timeout=50")
                connection.rollback()
                if fault == "locked":
                    other.execute("BEGIN IMMEDIATE")
                elif fault == "full":
                    pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
                    connection.rollback()
                    connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
                    connection.rollback()
            if fault == "unexpected":
                monkeypatch.setattr("hubgov.ledger.ledger.write", _broken)
            many = [_ticket("bo", f"s{n}" + "x" * 40) for n in range(60)]
            results = await asyncio.gather(
                *(house.do(intent) for intent in many),
                house.governor.do_once(_key(), _extend(running)),
                house.governor.do_once(_key(), _extend(running)),
                return_exceptions=True,
            )
            assert all(isinstance(result, Unavailable) for result in results), results[:3]
            assert snapshot(house.governor.state) == before
            house.check()

            other.close()
            monkeypatch.undo()
            house.ledger.engine.dispose()
            answer = await house.governor.do_once(_key(), _extend(running))
            assert not answer.replayed, "the failed try left no answer behind"
            house.check()
            assert house.governor.fallen is not None
            assert not house.governor.fallen.done(), "what can't be written is no loss of the lead"

    asyncio.run(story())


def _broken(*_: Any, **__: Any) -> None:
    raise ValueError("not even SQL's fault")


def test_one_key_is_one_extension_however_often_it_is_clicked(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            before = (await house.run(workload)).lease
            assert before.expires_at is not None
            clicks = await asyncio.gather(*(house.governor.do_once(_key(), _extend(workload)) for _ in range(10)))
            late = await house.governor.do_once(_key(), _extend(workload))
            assert {answer.text for answer in (*clicks, late)} == {clicks[0].text}
            assert sorted(answer.replayed for answer in clicks) == [False] + [True] * 9
            assert late.replayed
            lease = house.allocation(workload).lease
            assert (lease.expires_at, lease.version) == (before.expires_at + HOUR, before.version + 1)
            assert house.show(workload).extensions_used == 1
            house.check()
        async with a_house(tmp_path, clock=house.clock, engine=house.engine) as again:
            answer = await again.governor.do_once(_key(), _extend(workload))
            assert (answer.text, answer.replayed) == (clicks[0].text, True), "a restart forgets no key"
            assert again.show(workload).extensions_used == 1

    asyncio.run(story())


def test_a_key_with_another_body_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            first, other = await asyncio.gather(
                house.governor.do_once(_key(), _extend(workload)),
                house.governor.do_once(_key(digest="d2"), _extend(workload)),
                return_exceptions=True,
            )
            assert not isinstance(first, BaseException)
            assert isinstance(other, KeyReused)
            with pytest.raises(KeyReused):
                await house.governor.do_once(_key(digest="d3"), _extend(workload))
            assert house.show(workload).extensions_used == 1
            another = await house.governor.do_once(
                Key(principal="bo", route="/extensions", key="k1", digest="d9"), _extend(workload)
            )
            assert not another.replayed, "a key is its principal's own"

    asyncio.run(story())


def test_a_refused_try_keeps_no_answer_under_its_key(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            with pytest.raises(Conflict):
                await house.governor.do_once(_key(), _extend(workload))
            await house.run(workload)
            assert not (await house.governor.do_once(_key(), _extend(workload))).replayed

    asyncio.run(story())


def test_two_leaders_on_one_ledger_are_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            second = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", read_policy)
            with pytest.raises(Unavailable, match="another hubgov service"):
                second.lead()
            second.engine.dispose()
            await house.ask("amy")
        async with a_house(tmp_path) as after:
            assert after.ledger.epoch == 2, "a new leader, a new epoch"

    asyncio.run(story())


def test_who_was_passed_over_writes_nothing_and_falls(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await house.ask("amy")
            before = snapshot(house.governor.state)
            with sqlite3.connect(tmp_path / "ledger.sqlite") as other:
                other.execute("UPDATE leader SET epoch = epoch + 1")
            other.close()
            with pytest.raises(StaleLeader):
                await house.ask("bo")
            assert house.governor.fallen is not None
            assert "another leader" in await house.governor.fallen
            assert snapshot(house.governor.state) == before
            with house.ledger.reading() as connection:
                assert reading.find_workload(connection, "nb-2") is None

    asyncio.run(story())


def test_what_is_over_is_forgotten_in_memory_and_kept_in_the_ledger(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            await house.extend(workload, HOUR)
            await house.cancel(workload, now=True)
            await house.pass_time(3000)
            state = house.governor.state
            assert (state.workloads, state.allocations, state.extensions, state.notices) == ({}, {}, {}, {})
            with house.ledger.reading() as connection:
                assert len(extensions_of(connection, workload)) == 1
            house.check()

    asyncio.run(story())


def test_a_watcher_wakes_at_the_next_version_and_not_before(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            version = house.show(workload).version
            waiting = asyncio.create_task(house.governor.until_changed(workload, version, 30))
            await house.ask("bo")
            assert not waiting.done(), "another's change is none of its business"
            await house.launch(workload)
            await asyncio.wait_for(waiting, 1)
            await asyncio.wait_for(house.governor.until_changed(workload, version, 30), 1)
            now = house.show(workload).version
            await house.governor.until_changed(workload, now, 0.01)  # the time is over: it returns
            await house.governor.until_changed("nb-99", 0, 30)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("intent", "error"),
    [
        pytest.param(
            lambda unit: session.launch(unit, "nb-1", 1, person("amy")), NotAllowed, id="a person reports a launch"
        ),
        pytest.param(lambda unit: session.launch(unit, "nb-1", 7, SPAWNER), NotFound, id="of an attempt to come"),
        pytest.param(lambda unit: session.launch(unit, "nb-9", 1, SPAWNER), Ended, id="of no workload"),
        pytest.param(
            lambda unit: steer.cancel(unit, "nb-1", person("bo"), reason="", now=True), NotFound,
            id="another team's owner cancels: he isn't told that it exists",
        ),
        pytest.param(
            lambda unit: steer.cancel(unit, "nb-1", person("ava"), reason="", now=True), NotAllowed,
            id="a team-mate cancels: seen, and not his to end",
        ),
    ],
)  # fmt: skip
def test_who_may_not_is_refused(tmp_path: Path, intent: Any, error: type[HubgovError]) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            await house.ask("amy")
            with pytest.raises(error):
                await house.do(intent)
            assert house.state("nb-1") == "reserved"
            house.check()

    asyncio.run(story())


def test_the_spawner_starts_notebooks_only(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        with pytest.raises(NotAllowed):
            await house.ask("amy", kind="training")
        assert house.governor.state.workloads == {}

    async def inside() -> None:
        async with a_house(tmp_path) as house:
            await story(house)

    asyncio.run(inside())
