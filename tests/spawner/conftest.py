"""The scripted service, for the spawners' tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from spawner.boxing import USER
from spawner.standin import Standin


@pytest.fixture
def service() -> Iterator[Standin]:
    """The scripted service."""
    standin = Standin()
    try:
        yield standin
    finally:
        standin.close()


@pytest.fixture(scope="module", autouse=True)
def no_account_is_left() -> Iterator[None]:
    """Take away the system account that the servers of `boxing` have as root."""
    yield
    subprocess.run(["userdel", f"hgu{USER}"], check=False, capture_output=True)
