"""A ledger on each kind of database, and a play that is written to it unit by unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import PolicyBuilder
from ledger.written import Written

_numbers = count()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.sqlite"
    cluster: str = request.getfixturevalue("postgresql_url")
    name = f"ledger_{next(_numbers)}"
    engine = sa.create_engine(cluster, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return cluster.replace("/postgres?", f"/{name}?")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.sqlite"


@pytest.fixture
def written(url: str) -> Iterator[Callable[[PolicyBuilder], Written]]:
    """Begins a play on an empty ledger that this process leads."""
    plays: list[Written] = []

    def begin(policy: PolicyBuilder) -> Written:
        plays.append(Written(url, policy))
        return plays[-1]

    yield begin
    for play in plays:
        play.close()
