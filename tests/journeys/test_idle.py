"""An idle notebook under the real hub, in its box: asked, given back, and what its owner reads afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from demo_under_test import SHORT_LEASES, DemoUnderTest
from waiting import until

pytestmark = [pytest.mark.boxed, pytest.mark.slow]
LONG = SHORT_LEASES.replace("{default: 90s, max: 1h}", "{default: 9m, max: 1h}")
POLICY = (
    LONG.replace("    grace: 15s\n", "    grace: 15s\n    idle: {after: 8s, confirm: 4s, grace: 4s}\n")
    + "telemetry: {period: 1s}\n"
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoUnderTest]:
    under_test = DemoUnderTest(tmp_path_factory.mktemp("idle") / "state", POLICY)
    try:
        under_test.up()
        yield under_test
    finally:
        under_test.down()
        under_test.http.close()
    assert under_test.left() == []


def test_a_notebook_that_nobody_works_in_is_given_back(demo: DemoUnderTest) -> None:
    demo.spawn("amy")
    running = demo.until_state("amy", "running")
    path = f"/workloads/{running['id']}"
    until(lambda: demo.workload("amy")["idle_phase"] == "asked", 60, "its owner to be asked")
    why = demo.call("amy", "GET", f"{path}/why").json()
    assert {s["level"] for s in why["signals"]} == {"idle"}, why["signals"]
    ended = demo.until_state("amy", "culled")
    assert ended["end_reason"] == "idle"
    receipt = demo.call("amy", "GET", f"{path}/receipt").json()
    assert any("no kernel" in line for line in receipt["evidence"]), receipt["evidence"]
    assert demo.call("admin", "GET", "/devices").json()["items"][0]["state"] == "free"
