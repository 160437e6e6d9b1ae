"""Checks that need a card: part of a run with --gpu only, and not there at all without it."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves this folder out: a skip would say that something was to be tested here and wasn't."""
    wanted = config.getoption("--gpu", default=False)
    return None if wanted or not collection_path.is_relative_to(Path(__file__).parent) else True
