"""Answers kept under idempotency keys, and how they are forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import PolicyBuilder
from control.house import a_house
from ledger.story import site
from ledger.written import Written

from hubgov.clock import Instant
from hubgov.control.governor import KEYS_KEPT_MS, Key
from hubgov.ledger import leadership, reading
from hubgov.ledger.leadership import StaleLeader
from hubgov.ledger.ledger import Ledger, Remembered
from hubgov.ledger.writing import FORGET_AT_ONCE

Begin = Callable[[PolicyBuilder], Written]


def _answer(key: str) -> Remembered:
    return Remembered(principal="ann", route="/x", key=key, digest="d", result="r")


def _known(ledger: Ledger, key: str) -> bool:
    with ledger.reading() as connection:
        return reading.remembered(connection, "ann", "/x", key) is not None


def test_old_answers_go_a_few_at_a_time_the_oldest_first(written: Begin) -> None:
    ledger = written(site()).ledger
    old = [f"old {n:04}" for n in range(FORGET_AT_ONCE + 10)]
    for n, keys in enumerate((old[:10], old[10:])):
        ledger.commit((), Instant(1000 + n), [_answer(key) for key in keys])
    ledger.commit((), Instant(2000), [_answer("young")])
    seq = ledger.seq
    assert ledger.forget_answers(Instant(1000)) == 0, "not yet"
    assert ledger.forget_answers(Instant(2000)) == FORGET_AT_ONCE
    assert not any(_known(ledger, key) for key in old[:10]), "these were the oldest"
    assert ledger.forget_answers(Instant(2000)) == 10
    assert ledger.forget_answers(Instant(2000)) == 0
    assert _known(ledger, "young")
    assert ledger.seq == seq, "no record was touched"


def test_nothing_to_forget_is_no_write(written: Begin) -> None:
    ledger = written(site()).ledger
    ledger.commit((), Instant(2000), [_answer("young")])
    writes: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        writes.extend([statement] if not statement.startswith("SELECT") else [])

    sa.event.listen(ledger.engine, "before_cursor_execute", note)
    assert ledger.forget_answers(Instant(2000)) == 0
    assert [w for w in writes if w.startswith(("UPDATE", "DELETE", "INSERT"))] == []


def test_who_was_passed_over_forgets_nothing(written: Begin) -> None:
    ledger = written(site()).ledger
    ledger.commit((), Instant(1000), [_answer("old")])
    with ledger.engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.execute(sa.text("UPDATE leader SET epoch = epoch + 1, until = 0"))
    with pytest.raises(StaleLeader):
        ledger.forget_answers(Instant(2000))
    assert _known(ledger, "old")
    with ledger.engine.connect().execution_options(writes=True) as connection, connection.begin():
        ledger.epoch = leadership.take_lead(connection, "another")
    assert ledger.forget_answers(Instant(2000)) == 1


def test_the_sweep_forgets_a_key_after_a_day_and_then_it_is_a_new_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            key = Key(principal="amy", route="/x", key="k", digest="d")
            first = await house.governor.do_once(key, lambda unit: "first")
            house.clock.advance(KEYS_KEPT_MS)
            await house.governor.sweep()
            again = await house.governor.do_once(key, lambda unit: "second")
            assert (first.replayed, again.replayed, again.text) == (False, True, "first")
            house.clock.advance(1)
            await house.governor.sweep()
            anew = await house.governor.do_once(key, lambda unit: "second")
            assert (anew.replayed, anew.text) == (False, "second")

    asyncio.run(story())
