"""A lead at the panel and a data scientist in Lab, in Chromium, through the real hub: more time granted in the
inbox, and a session that is stopped by its lead.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from demo_under_test import DemoUnderTest
from journeys.test_a_day import Person, cancel_all
from playwright.sync_api import Browser, expect
from waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.boxed]
REASON = "The card is needed for the release."
SAYS = {
    "en": {
        "inbox": "Requests for more time", "approve": "Approve", "approved": "is approved", "by": "by lena",
        "minutes": r"[4-6] m", "stop": "Stop ", "do": "Stop it", "stopping": "is being stopped",
        "told": "lena stops this session", "stops": "stops", "ended": "This session has ended",
        "open": "Open the receipt", "receipt": f"by lena: {REASON}",
    },
    "zh": {
        "inbox": "延长申请", "approve": "批准", "approved": "已批准", "by": "审批人 lena", "minutes": r"[4-6] 分",
        "stop": "停止 ", "do": "停止", "stopping": "正在停止", "told": "停止本会话", "stops": "停止",
        "ended": "会话已结束", "open": "打开会话回执", "receipt": f"由 lena 停止：{REASON}",
    },
}  # fmt: skip


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_the_lead_grants_time_and_later_stops_the_session(
    lang: str, demo: DemoUnderTest, browser: Browser, shots: Path
) -> None:
    says = SAYS[lang]
    amy, lena = Person(demo, browser, "amy", lang), Person(demo, browser, "lena", lang)
    amy.ask_for("one-gpu")
    amy.in_lab()
    running = demo.until_state("amy", "running")
    path = f"/workloads/{running['id']}"

    # 1. More than she may take herself: it appears in the lead's inbox by itself, and is granted there.
    lena.page.goto(f"{demo.url}/services/hubgov/panel/inbox")
    expect(lena.page.locator("h1")).to_have_text(says["inbox"])
    asked = demo.call("amy", "POST", f"{path}/extensions", {"by_seconds": 300, "reason": "the last epoch"})
    assert asked.status_code == 202, asked.text
    request = lena.page.locator(f"#request-{asked.json()['id']}")
    expect(request).to_contain_text("the last epoch", timeout=20_000)
    request.locator("textarea").fill("until the release")
    lena.page.screenshot(path=shots / "1-inbox.png", full_page=True)
    request.get_by_role("button", name=says["approve"], exact=True).click()
    expect(lena.page.locator(".said")).to_contain_text(says["approved"])
    assert demo.workload("amy")["expires_at"] > running["expires_at"]
    told = amy.page.locator(".Toastify__toast", has_text=says["by"])
    expect(told).to_contain_text("until the release", timeout=20_000)
    expect(amy.page.locator("button.hubgov-StatusItem")).to_contain_text(re.compile(says["minutes"]))
    amy.page.screenshot(path=shots / "2-approved.png")

    # 2. The lead stops it: who, why and until when is told in Lab, and the countdown is that of the stop.
    amy.new_notebook()
    amy.run_cell("kept = 6 * 7; print(kept)")
    lena.page.goto(f"{demo.url}/services/hubgov/panel")
    row = lena.page.locator("tr", has_text=running["id"])
    lena.page.screenshot(path=shots / "3-panel.png", full_page=True)
    row.get_by_role("link", name=f"{says['stop']}{running['id']}").click()
    lena.page.locator("#stop-reason").fill(REASON)
    lena.page.screenshot(path=shots / "4-stop.png", full_page=True)
    lena.page.get_by_role("button", name=says["do"], exact=True).click()
    expect(lena.page.locator(".said")).to_contain_text(says["stopping"])
    toast = amy.page.locator(".Toastify__toast", has_text=says["told"])
    expect(toast).to_contain_text(REASON, timeout=10_000)
    expect(amy.page.locator("button.hubgov-StatusItem")).to_contain_text(says["stops"])
    amy.page.screenshot(path=shots / "5-told.png")
    refused = demo.call("amy", "POST", f"{path}/extensions", {"by_seconds": 30})
    assert refused.status_code == 409, "no way round it"

    # 3. Documents are saved, and the receipt says who and why.
    ended = until(lambda: (w := demo.call("amy", "GET", path).json())["ended_at"] and w, 60, "the stop")
    assert (ended["state"], ended["end_reason"], ended["ended_by"]) == ("cancelled", "admin", "lena")
    receipt = demo.call("amy", "GET", f"{path}/receipt").json()
    assert "saved" in [d["outcome"] for d in receipt["documents"] if d["path"].startswith("Untitled")]
    amy.page.locator(".jp-Dialog", has_text=says["ended"]).wait_for()
    amy.page.locator(".jp-Dialog button", has_text=says["open"]).click()
    expect(amy.page.locator("#hubgov-receipt")).to_contain_text(says["receipt"])
    amy.page.screenshot(path=shots / "6-receipt.png", full_page=True)
    assert amy.foreign == []
    assert lena.foreign == []
    for person in (amy, lena):
        person.context.close()
    cancel_all(demo, "amy")
