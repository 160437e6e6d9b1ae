"""The scripted service, for the spawners' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spawner.standin import Standin


@pytest.fixture
def service() -> Iterator[Standin]:
    """The scripted service."""
    standin = Standin()
    try:
        yield standin
    finally:
        standin.close()
