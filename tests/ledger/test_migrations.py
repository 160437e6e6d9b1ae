"""The tables as Alembic makes them are the tables that the code expects, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from ledger.story import site, story
from ledger.written import Written
from sqlalchemy.schema import CreateIndex, CreateTable

from hubgov.ledger import database, schema


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    made = database.connect(url)
    yield made
    made.dispose()


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


def alembic(engine: sa.Engine, do: Callable[..., Any], *args: str) -> None:
    config = Config()
    config.set_main_option("script_location", "hubgov.ledger:migrations")
    with writing(engine) as connection:
        config.attributes["connection"] = connection
        do(config, *args)


def tables(engine: sa.Engine) -> set[str]:
    return set(sa.inspect(engine).get_table_names())


def test_upgraded_from_nothing_it_is_what_the_code_expects(engine: sa.Engine) -> None:
    database.upgrade(engine)
    with engine.connect() as connection, connection.begin():
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
    assert tables(engine) == set(schema.metadata.tables) | {"alembic_version"}


def test_the_partial_indexes_and_checks_are_there(engine: sa.Engine) -> None:
    """What compare_metadata doesn't look at."""
    database.upgrade(engine)
    inspector = sa.inspect(engine)
    for table in schema.metadata.tables.values():
        wanted = {i.name: i.unique for i in table.indexes}
        found = {i["name"]: bool(i["unique"]) for i in inspector.get_indexes(table.name)}
        assert wanted.items() <= found.items()
        checks = {c.name for c in table.constraints if isinstance(c, sa.CheckConstraint)}
        assert {str(c) for c in checks} <= {str(c["name"]) for c in inspector.get_check_constraints(table.name)}


def everything(engine: sa.Engine) -> dict[str, tuple[str, list[str], list[str]]]:
    """Every table as it is: its definition, its indexes, its rows."""
    found = sa.MetaData()
    with engine.connect() as connection, connection.begin():
        found.reflect(connection)
        return {
            name: (
                str(CreateTable(table).compile(engine)),
                sorted(str(CreateIndex(index).compile(engine)) for index in table.indexes),
                sorted(map(repr, connection.execute(sa.select(table)))),
            )
            for name, table in found.tables.items()
        }


def test_a_second_upgrade_changes_nothing(url: str) -> None:
    play = Written(url, site())
    try:
        filled: set[str] = set()
        for _ in story(play):
            before = everything(play.ledger.engine)
            play.ledger.upgrade()
            assert everything(play.ledger.engine) == before
            filled |= {name for name, (_, _, rows) in before.items() if rows}
        assert filled == set(before) - {"idempotency"}, "the story has rows of every table that changes fill"
        play.same()
    finally:
        play.close()


def test_down_to_nothing_and_up_again(engine: sa.Engine) -> None:
    database.upgrade(engine)
    alembic(engine, command.downgrade, "base")
    assert tables(engine) == {"alembic_version"}
    database.upgrade(engine)
    assert tables(engine) == set(schema.metadata.tables) | {"alembic_version"}


def test_an_upgrade_that_fails_leaves_nothing(engine: sa.Engine) -> None:
    class Crash(Exception):
        pass

    def cut(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "CREATE TABLE notice" in statement:
            raise Crash

    sa.event.listen(engine, "before_cursor_execute", cut)
    with pytest.raises(Crash):
        database.upgrade(engine)
    sa.event.remove(engine, "before_cursor_execute", cut)
    assert tables(engine) == set()
    database.upgrade(engine)


def test_there_is_one_line_of_revisions() -> None:
    config = Config()
    config.set_main_option("script_location", "hubgov.ledger:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert len(scripts.get_heads()) == 1
    assert [s.down_revision for s in scripts.walk_revisions()][-1] is None
