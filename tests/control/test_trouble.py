"""What people are told when the ledger can't be written, and when they are told that it can again."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from builders import snapshot
from control.house import House, a_house

from hubgov.control.governor import FAILED
from hubgov.errors import Unavailable
from hubgov.ledger.leadership import StaleLeader

SECRET = "secret-of-bo"
UNWRITTEN = "the ledger can't be written now"


@contextmanager
def _refusing(folder: Path, table: str, verb: str = "INSERT") -> Iterator[None]:
    """While inside, the database refuses these writes with a sentence that is nobody's business."""
    with sqlite3.connect(folder / "ledger.sqlite", isolation_level=None) as other:
        other.execute(f"CREATE TRIGGER no BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, '{SECRET}'); END")
        yield
        other.execute("DROP TRIGGER no")
    other.close()


def _broken(*_: Any, **__: Any) -> None:
    raise ValueError(SECRET)


@pytest.mark.parametrize("table", ["journal", "workload", "allocation", "charge", "nothing of the database's"])
def test_the_text_of_a_failure_goes_to_the_log_and_to_nobody_else(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def heard(house: House) -> Unavailable:
        with pytest.raises(Unavailable) as told:
            await house.ask("amy", name="private-name")
        return told.value

    async def story() -> None:
        async with a_house(tmp_path) as house:
            before = snapshot(house.governor.state)
            if table.startswith("nothing"):
                with monkeypatch.context() as patched:
                    patched.setattr("hubgov.ledger.ledger.write", _broken)
                    told, sentence = await heard(house), FAILED
            else:
                with _refusing(tmp_path, table):
                    told, sentence = await heard(house), UNWRITTEN
            assert (told.message, told.details) == (f"nothing was changed: {sentence}", {})
            assert house.governor.trouble == sentence
            assert snapshot(house.governor.state) == before
            # Formatted here: a handler that some program put at the root may have kept a shorter text of its own.
            logged = "".join(
                "".join(traceback.format_exception(record.exc_info[1]))
                for record in caplog.records
                if record.exc_info
            )
            assert SECRET in logged, "whoever mends it must learn what it was"
            assert "private-name" not in caplog.text + logged, "the values of a statement are no part of that"
            await house.ask("amy")
            assert house.governor.trouble is None
            house.check()

    with caplog.at_level(logging.INFO, "hubgov"):
        asyncio.run(story())


def test_reading_tells_no_more_than_that_it_failed(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            with sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None) as other:
                other.execute("ALTER TABLE save RENAME TO gone")
            other.close()
            with pytest.raises(Unavailable) as told, house.ledger.reading() as connection:
                connection.exec_driver_sql("SELECT 'secret-of-bo' FROM save")
            assert (told.value.message, told.value.hint) == ("the ledger can't be read now", "try again")
            assert SECRET in str(told.value.__cause__)

    asyncio.run(story())


def test_the_renewal_sees_and_says_whether_the_ledger_can_be_written(tmp_path: Path) -> None:
    """On an idle system nothing else writes."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            with _refusing(tmp_path, "leader", "UPDATE"):
                house.governor.renew()
                assert house.governor.trouble == UNWRITTEN
                with pytest.raises(Unavailable):
                    await house.ask("amy")
            assert house.governor.trouble == UNWRITTEN
            await house.tick()
            house.governor.renew()
            assert house.governor.trouble is None
            assert house.governor.fallen is not None
            assert not house.governor.fallen.done(), "a failed write is no loss of the lead"

    asyncio.run(story())


def test_one_failed_write_is_no_trouble_for_ever(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            with _refusing(tmp_path, "journal"), pytest.raises(Unavailable):
                await house.ask("amy")
            assert house.governor.trouble == UNWRITTEN
            before = house.commits
            await house.tick(1000)
            house.governor.renew()
            assert house.governor.trouble is None, "nothing is due, and the ledger can be written"
            assert house.commits == before

    asyncio.run(story())


def test_what_is_due_and_can_not_be_written_stays_a_trouble(tmp_path: Path) -> None:
    """The renewal alone writes no journal: that it passes is no proof."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            workload = await house.ask("amy")
            await house.run(workload)
            house.clock.advance(3_600_000)
            with _refusing(tmp_path, "journal"):
                for _ in range(2):
                    with pytest.raises(Unavailable):
                        await house.governor.tick()
                    house.governor.renew()
                    assert house.governor.trouble == UNWRITTEN
            await house.governor.tick()
            assert house.governor.trouble is None
            assert house.state(workload) == "expiring"

    asyncio.run(story())


def test_who_was_passed_over_hears_it_at_the_renewal(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            with sqlite3.connect(tmp_path / "ledger.sqlite") as other:
                other.execute("UPDATE leader SET epoch = epoch + 1")
            other.close()
            with pytest.raises(StaleLeader):
                house.governor.renew()

    asyncio.run(story())
