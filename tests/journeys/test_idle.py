"""An idle notebook under the real hub, in its box: asked, given back, and what its owner reads afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_under_test import SHORT_LEASES, DemoUnderTest
from journeys.test_a_day import Person
from playwright.sync_api import Browser
from waiting import until

pytestmark = [pytest.mark.boxed]
LONG = SHORT_LEASES.replace("{default: 90s, max: 1h}", "{default: 9m, max: 1h}")
POLICY = (
    LONG.replace(
        "    grace: 15s\n",
        "    grace: 15s\n    idle: {after: 8s, confirm: 12s, grace: 5s, keep: {count: 1, for: 6s}}\n",
    )
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


SAYS = {
    "en": ("No GPU or kernel activity", "Keep", "it was idle", "Why it counted as idle"),
    "zh": ("没有 GPU 或内核活动", "保留", "空闲", "空闲依据"),
}
"""What the toast begins with, its button, why the session ended, and the evidence on the receipt."""


@pytest.mark.browser
@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_in_lab_it_is_asked_kept_asked_again_and_given_back(
    lang: str, demo: DemoUnderTest, browser: Browser, shots: Path
) -> None:
    asks, keep, why, evidence = SAYS[lang]
    user = {"en": "amy", "zh": "bo"}[lang]
    person = Person(demo, browser, user, lang)
    person.ask_for("one-gpu")
    person.in_lab()
    page = person.page
    toast = page.locator(".Toastify__toast", has_text=asks)
    toast.wait_for()
    page.screenshot(path=shots / "1-asked.png")
    toast.get_by_text(keep, exact=True).click()
    until(lambda: demo.workload(user)["idle_phase"] == "kept", 20, "it to be kept")
    assert demo.workload(user)["keeps_left"] == 0
    toast.wait_for(state="detached")

    toast.wait_for()  # the time it was kept for is over, and nothing was done meanwhile
    until(lambda: demo.workload(user)["idle_phase"] == "asked", 20, "it to be asked again")
    ended = demo.until_state(user, "culled")
    assert ended["end_reason"] == "idle"
    page.goto(f"{demo.url}/hub/user/{user}/")
    page.locator("#hubgov-receipt").wait_for()
    page.screenshot(path=shots / "2-receipt.png", full_page=True)
    receipt = page.locator("#hubgov-receipt").inner_text()
    assert why in receipt
    assert evidence in receipt
    assert person.foreign == [], "everything comes from this hub"
    person.context.close()
