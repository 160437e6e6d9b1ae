"""`--down` ends sessions as their owners would: what they used is on the books, and no minute after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo_under_test import DemoUnderTest

from hubgov.clock import SystemClock, to_rfc3339

pytestmark = pytest.mark.boxed


def test_sessions_that_run_at_the_end_are_ended_and_charged_no_further(tmp_path: Path) -> None:
    demo = DemoUnderTest(tmp_path / "state")
    try:
        demo.up()
        demo.spawn("amy")
        running = demo.until_state("amy", "running")
        demo.down()
        down_at = to_rfc3339(SystemClock().now())
        assert demo.left() == []
        demo.up()
        ended = demo.call("amy", "GET", f"/workloads/{running['id']}").json()
        assert (ended["state"], ended["end_reason"]) == ("cancelled", "cancelled")
        receipt = demo.call("amy", "GET", f"/workloads/{running['id']}/receipt").json()
        assert receipt["devices_free_at"] <= down_at, "and not when the next start saw it gone"
    finally:
        demo.down()
        demo.http.close()
