"""A ledger on each kind of database, and a play that is written to it unit by unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import PolicyBuilder
from ledger.written import Written


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
