"""A day of a data scientist, in Chromium, through the real hub: ask, work, extend, end, receipt, resume; and a
second one who waits for the same GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from demo_under_test import DemoUnderTest
from playwright.sync_api import Browser, Page, expect
from waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.boxed]
MINUTE = 60_000


class Person:
    """Somebody at a browser: signed in, with an eye on the console."""

    def __init__(self, demo: DemoUnderTest, browser: Browser, name: str, lang: str = "en") -> None:
        self.demo, self.name = demo, name
        self.context = browser.new_context(
            viewport={"width": 1280, "height": 900}, locale={"en": "en-US", "zh": "zh-CN"}[lang]
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(90_000)
        self.foreign: list[str] = []
        self.page.on("request", lambda request: self._note(request.url))
        self.page.goto(f"{demo.url}/hub/login")
        self.page.fill("#username_input", name)
        self.page.fill("#password_input", demo.passwords[name])
        self.page.click("#login_submit")
        self.page.wait_for_url(re.compile(r"/hub/(spawn|home)|/user/"))

    def _note(self, url: str) -> None:
        if not url.startswith((self.demo.url, "data:", "blob:", self.demo.url.replace("http", "ws"))):
            self.foreign.append(url)

    def ask_for(self, profile: str) -> None:
        self.page.goto(f"{self.demo.url}/hub/spawn")
        self.page.locator(f"input[name=profile][value={profile}]").check(force=True)
        self.page.locator("form [type=submit]").first.click()

    def in_lab(self) -> None:
        self.page.wait_for_url(re.compile(rf"/user/{self.name}/lab"))
        self.page.locator("#jp-main-dock-panel").wait_for()
        self.page.locator("button.hubgov-StatusItem").wait_for()

    def status(self) -> str:
        return self.page.locator("button.hubgov-StatusItem").inner_text()

    def new_notebook(self) -> None:
        self.page.locator('.jp-LauncherCard[data-category="Notebook"]').first.click()
        self.page.locator(".jp-Notebook .jp-Cell .cm-content").first.wait_for()
        self.page.locator("#jp-main-statusbar").get_by_text(re.compile(r"\| Idle")).wait_for()
        until(self._kernel_ready, 60, "the kernel to be connected and idle")

    def _kernel_ready(self) -> bool:
        answer = self.demo._request(self.name, "GET", f"/user/{self.name}/api/kernels", None)
        kernels = answer.json() if answer.status_code == 200 else []
        return any(k["connections"] >= 1 and k["execution_state"] == "idle" for k in kernels)

    def run_cell(self, code: str) -> str:
        self.page.locator(".jp-Notebook .jp-Cell .cm-content").last.click()
        self.page.keyboard.type(code)
        self.page.keyboard.press("Shift+Enter")
        output = self.page.locator(".jp-OutputArea-output pre").last
        output.wait_for()
        return output.inner_text()


@pytest.fixture
def amy(demo: DemoUnderTest, browser: Browser) -> Iterator[Person]:
    person = Person(demo, browser, "amy")
    yield person
    person.context.close()


def cancel_all(demo: DemoUnderTest, *users: str) -> None:
    for user in users:
        for workload in demo.call(user, "GET", f"/workloads?state=live&owner={user}").json()["items"]:
            demo.call(user, "DELETE", f"/workloads/{workload['id']}", {"now": True})
    until(lambda: not live(demo), 60, "everything to end")


def live(demo: DemoUnderTest) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = demo.call("admin", "GET", "/workloads?state=live").json()["items"]
    return items


def test_a_session_from_the_form_to_its_receipt_and_back(demo: DemoUnderTest, amy: Person, shots: Path) -> None:
    # 1. The form shows what is free, what is mine, what it costs.
    amy.page.goto(f"{demo.url}/hub/spawn")
    form = amy.page.locator("form")
    expect(form).to_contain_text("SIMULATED")
    expect(form).to_contain_text("free now 1/1")
    expect(form).to_contain_text("0 of 1 GPUs in queue experiment")
    expect(form).to_contain_text("18.50")
    amy.page.screenshot(path=shots / "1-form.png", full_page=True)
    amy.ask_for("one-gpu")

    # 2. Lab opens with exactly the granted device, and counts down to the server's stop time.
    amy.in_lab()
    running = demo.until_state("amy", "running")
    expect(amy.page.locator("button.hubgov-StatusItem")).to_contain_text("SIMULATED")
    expect(amy.page.locator("button.hubgov-StatusItem")).to_contain_text(re.compile(r"left"))
    amy.new_notebook()
    seen = amy.run_cell(
        "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], os.environ['HUBGOV_WORKLOAD_ID'], "
        "open(os.environ['HUBGOV_DEADLINE_FILE']).read().strip())"
    ).split()
    assert seen[:2] == [running["devices"][0]["uuid"], running["id"]]
    assert seen[2][:19] == running["expires_at"][:19]
    amy.page.keyboard.press("Control+s")
    amy.page.locator(".jp-Dialog button.jp-mod-accept").click()  # Lab asks a new notebook for its name
    amy.page.screenshot(path=shots / "2-lab.png")

    # 3. Extend in two clicks; the new time is shown, and it is the server's.
    amy.page.locator("button.hubgov-StatusItem").click()
    amy.page.locator(".hubgov-Popover").wait_for()
    amy.page.screenshot(path=shots / "3-popover.png")
    amy.page.locator(".hubgov-Popover button", has_text=re.compile("Extend")).first.click()
    amy.page.get_by_text(re.compile(r"Extended to \d\d:\d\d")).first.wait_for()
    extended = demo.workload("amy")
    assert extended["lease_version"] == 2
    assert extended["extensions_left"] == 1
    assert extended["expires_at"] > running["expires_at"]
    amy.page.screenshot(path=shots / "3-extended.png")

    # 4. Warnings come, recorded by the server, once each; unsaved work is saved; then the server stops.
    amy.run_cell("x = 6 * 7; print(x)")
    warned = until(lambda: demo.workload("amy")["notices"], 2 * MINUTE // 1000, "a warning to be recorded")
    assert {n["threshold_seconds"] for n in warned} <= {60, 30, 10}
    amy.page.locator(".Toastify__toast").first.wait_for()
    amy.page.screenshot(path=shots / "4-warning.png")
    ended = until(
        lambda: (w := demo.call("amy", "GET", f"/workloads/{running['id']}").json())["ended_at"] and w,
        240,
        "the session to end",
    )
    assert (ended["state"], ended["end_reason"]) == ("expired", "lease")
    with_notices = demo.call("amy", "GET", f"/workloads/{running['id']}/events?limit=200").json()["items"]
    issued = [line["record"] for line in with_notices if line["event"] == "warning_issued"]
    assert len(issued) == len(set(issued))
    assert len(issued) >= 3

    # 5. The not-running page is a receipt, and it is true.
    receipt = demo.call("amy", "GET", f"/workloads/{running['id']}/receipt").json()
    saved = [d for d in receipt["documents"] if d["outcome"] == "saved"]
    assert [d["path"] for d in saved] == ["Untitled.ipynb"]
    assert receipt["saved_by_lab"] is True
    assert receipt["devices_free_at"] >= ended["expires_at"]
    assert any("Untitled.ipynb" in line for line in receipt["lost"]), receipt["lost"]
    home = next(demo.state.glob("homes/*/Untitled.ipynb"))
    assert "6 * 7" in home.read_text(), "what was typed last is on disk"
    amy.page.locator(".jp-Dialog", has_text="This session has ended").wait_for()
    amy.page.screenshot(path=shots / "5-ended.png")
    amy.page.locator(".jp-Dialog button", has_text="Open the receipt").click()
    page = amy.page.locator("#hubgov-receipt")
    expect(page).to_contain_text("time limit")
    expect(page).to_contain_text("Untitled.ipynb")
    amy.page.screenshot(path=shots / "5-receipt.png", full_page=True)

    # 6. Resume starts the same request and opens the same documents.
    amy.page.locator("#hubgov-resume button").click()
    amy.in_lab()
    amy.page.locator(".jp-NotebookPanel").get_by_text("6 * 7").first.wait_for()
    again = demo.until_state("amy", "running")
    assert again["id"] != running["id"]
    assert (again["gpus"], again["project"], again["queue"]) == (1, "seg", "experiment")
    amy.page.screenshot(path=shots / "6-resumed.png")

    # 7. Stop now saves first, and its receipt says so.
    amy.page.locator(".jp-Notebook .jp-Cell .cm-content").last.click()
    amy.page.keyboard.type("# typed last")
    amy.page.locator("button.hubgov-StatusItem").click()
    amy.page.locator(".hubgov-Popover button", has_text="Stop now").click()
    amy.page.locator(".jp-Dialog button.jp-mod-warn").click()
    stopped = until(
        lambda: (w := demo.call("amy", "GET", f"/workloads/{again['id']}").json())["ended_at"] and w, 60, "the stop"
    )
    assert (stopped["state"], stopped["end_reason"]) == ("cancelled", "cancelled")
    receipt = demo.call("amy", "GET", f"/workloads/{again['id']}/receipt").json()
    assert ("Untitled.ipynb", "saved") in [(d["path"], d["outcome"]) for d in receipt["documents"]]
    assert receipt["saved_by_lab"] is True
    assert "# typed last" in home.read_text()

    # 8. So does the hub's own stop, which takes the way to the server away first: time and again.
    for _ in range(3):
        amy.ask_for("one-gpu")
        amy.in_lab()
        stopped = demo.until_state("amy", "running")
        amy.page.locator(".jp-NotebookPanel").get_by_text("# typed last").first.wait_for()
        demo.hub("amy", "DELETE", "/users/amy/server")
        path = f"/workloads/{stopped['id']}"
        until(lambda path=path: demo.call("amy", "GET", path).json()["ended_at"], 60, "the hub's stop")
        receipt = demo.call("amy", "GET", f"{path}/receipt").json()
        assert receipt["saved_by_lab"] is True
        assert ("Untitled.ipynb", "saved") in [(d["path"], d["outcome"]) for d in receipt["documents"]]
    assert amy.foreign == [], "nothing comes from another host"
    cancel_all(demo, "amy")


def test_two_people_and_one_gpu(demo: DemoUnderTest, browser: Browser, amy: Person, shots: Path) -> None:
    demo.spawn("amy")
    holding = demo.until_state("amy", "running")
    bo = Person(demo, browser, "bo")
    bo.ask_for("one-gpu")
    bo.page.screenshot(path=shots / "1-pending.png")
    # The wait moves from the hub to the service's own page, with place, reason and the latest start.
    bo.page.wait_for_url(re.compile(r"/services/hubgov/wait/nb-\d+"))
    card = bo.page.locator("#waiting .card")
    expect(card).to_contain_text("Place 1 in queue experiment")
    expect(card).to_contain_text("this request needs 1")
    waiting = demo.call("bo", "GET", f"/workloads/{demo.workload('bo')['id']}").json()
    assert waiting["state"] == "pending"
    assert waiting["latest_start"] > holding["expires_at"]
    assert waiting["latest_start_basis"] == "bound"
    why = demo.call("bo", "GET", f"/workloads/{waiting['id']}/why").json()
    assert {b["code"] for b in why["blockers"]} == {"waiting_quota", "waiting_devices"}
    assert all(h["workload"] == "-" for b in why["blockers"] for h in b["held_by"]), (
        "another team's work is not named"
    )
    bo.page.screenshot(path=shots / "2-waiting.png", full_page=True)
    # Freed, granted, started by itself, and the page opens it.
    demo.call("amy", "DELETE", f"/workloads/{holding['id']}", {"now": True})
    bo.in_lab()
    started = demo.until_state("bo", "running")
    assert started["id"] == waiting["id"]
    assert started["devices"] == holding["devices"]
    bo.page.screenshot(path=shots / "3-started.png")
    events = f"/workloads/{started['id']}/events?limit=200"
    until(
        lambda: "server_claimed" in {line["event"] for line in demo.call("bo", "GET", events).json()["items"]},
        20,
        "the server that started by itself to be claimed by who opened it",
    )
    bo.context.close()
    cancel_all(demo, "amy", "bo")


def test_cancelling_a_wait_works_at_once_also_for_a_named_server(demo: DemoUnderTest, amy: Person) -> None:
    demo.spawn("amy")
    demo.until_state("amy", "running")
    for server in ("", "second"):
        demo.spawn("bo", server=server)
        waiting = demo.until_state("bo", "pending")
        assert waiting["server"] == server
        answer = demo.call("bo", "DELETE", f"/workloads/{waiting['id']}", {"reason": "changed my mind"})
        assert answer.status_code == 200
        assert answer.json()["state"] == "cancelled"
        servers = demo.hub("bo", "GET", "/users/bo").json()["servers"]
        assert not any(s["ready"] for s in servers.values())
    assert demo.workload("amy")["state"] == "running"
    cancel_all(demo, "amy", "bo")


def test_in_chinese(demo: DemoUnderTest, browser: Browser, shots: Path) -> None:
    bo = Person(demo, browser, "bo", lang="zh")
    bo.page.goto(f"{demo.url}/hub/spawn")
    expect(bo.page.locator("form")).to_contain_text("单卡")
    expect(bo.page.locator("form")).to_contain_text("模拟")
    assert bo.page.locator("html").get_attribute("lang") == "zh-CN"
    bo.page.screenshot(path=shots / "form-zh.png", full_page=True)
    bo.page.goto(f"{demo.url}/services/hubgov/")
    expect(bo.page.locator("main")).to_contain_text("我的会话与请求")
    bo.page.screenshot(path=shots / "home-zh.png", full_page=True)
    bo.context.close()
