"""One running service per module, whose jobs run in boxes by root where the machine allows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jobs.jobs_under_test import Jobs


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    under_test = Jobs(tmp_path_factory.mktemp("jobs") / "state")
    try:
        under_test.start()
        yield under_test
    finally:
        under_test.close()


@pytest.fixture
def fresh(tmp_path: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """Not started yet, and nobody else's."""
    under_test = Jobs(tmp_path_factory.mktemp("fresh") / "state")
    try:
        yield under_test
    finally:
        under_test.close()
