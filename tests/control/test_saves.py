"""Reports of saves: taken when asked for, once each, and never anybody else's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import HOUR_MS, MINUTE_MS, Play, a_policy

from hubgov.control import session
from hubgov.control.actor import Actor
from hubgov.control.unit import Unit
from hubgov.core.model import Allocation, SaveRecord
from hubgov.core.policy import Kind
from hubgov.errors import Conflict
from hubgov.ledger.codec import difference


@pytest.fixture
def play() -> Play:
    """One session, a minute past its end: its documents have been asked for."""
    found = Play(a_policy().team("A").node("box", devices=1).queue("train"))
    found.run("w", lease_ms=HOUR_MS, kind=Kind.NOTEBOOK)
    found.tick(HOUR_MS + MINUTE_MS)
    return found


def report(allocation: Allocation, save: str | None = None) -> SaveRecord:
    return SaveRecord(
        id=save or str(allocation.save),
        allocation=allocation.id,
        workload=allocation.workload,
        at=allocation.since,
        asked_lab=True,
        documents=(),
        kernels=(),
        terminals=0,
        error="",
    )


def save(play: Play, record: SaveRecord) -> Unit:
    unit = Unit(play.state, play.now)
    owner = play.workload("w").owner
    session.saved(unit, record.workload, Actor(name=owner), record)
    return unit


def test_what_was_asked_for_is_taken_and_answered(play: Play) -> None:
    asked = play.bound("w")
    save(play, report(asked))
    assert play.state.saves[str(asked.save)].asked_lab
    assert play.bound("w").save_answered == asked.save


def test_a_second_report_of_one_save_changes_nothing(play: Play) -> None:
    first = report(play.bound("w"))
    save(play, first)
    again = save(play, replace(first, terminals=9))
    assert again.entries == []
    assert play.state.saves[first.id] == first


@pytest.mark.parametrize("name", ["w.1-f0", "w.1-1-99", "x.1-1-end", ".."])
def test_an_id_that_nobody_gave_out_is_refused(play: Play, name: str) -> None:
    with pytest.raises(Conflict, match="nobody asked"):
        save(play, report(play.bound("w"), name))
    assert play.state.saves == {}


def test_the_journal_counts_documents_and_does_not_repeat_them(play: Play) -> None:
    assert "documents" in difference(None, report(play.bound("w")))
    assert len(difference(None, report(play.bound("w")))) < 100
