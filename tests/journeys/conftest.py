"""One demo per module, and a browser that belongs to the test run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_under_test import DemoUnderTest

CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoUnderTest]:
    """The product, up; down again afterwards, with nothing left."""
    under_test = DemoUnderTest(tmp_path_factory.mktemp("demo") / "state")
    try:
        under_test.up()
        yield under_test
    finally:
        under_test.down()
        under_test.http.close()
    assert under_test.left() == []


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path="/usr/bin/chromium", headless=True, args=CHROMIUM)
        yield launched
        launched.close()


@pytest.fixture
def shots(request: pytest.FixtureRequest) -> Path:
    """Where this test's screenshots go."""
    folder = Path(str(request.config.rootpath)) / "test-results" / re.sub(r"\W+", "-", request.node.name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
