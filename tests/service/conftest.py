"""One running service per module, on a state folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from service.answers import end
from service_under_test import ServiceUnderTest


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUnderTest]:
    under_test = ServiceUnderTest(tmp_path_factory.mktemp("service") / "state")
    try:
        under_test.start()
        yield under_test
    finally:
        under_test.close()


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUnderTest]:
    """Not started yet, and nobody else's."""
    under_test = ServiceUnderTest(tmp_path_factory.mktemp("fresh") / "state")
    try:
        yield under_test
    finally:
        under_test.close()


@pytest.fixture
def session(service: ServiceUnderTest) -> Iterator[dict[str, Any]]:
    """A running one-GPU notebook of amy's; gone again at the end."""
    workload = service.run("amy")
    yield workload
    end(service, workload["id"])
