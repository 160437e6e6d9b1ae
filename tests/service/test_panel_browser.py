"""The panel in Chromium: nothing foreign, nothing that its policy for content forbids; rows that change by
themselves, and words that don't while they are typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import httpx
import pytest
from journeys.conftest import CHROMIUM
from playwright.sync_api import Browser, BrowserContext, Page, expect
from service.answers import end
from service_under_test import PREFIX, ServiceUnderTest

pytestmark = pytest.mark.browser
PAGES = {
    "home": "", "holders": "panel", "queues": "panel/queues", "inbox": "panel/inbox", "nodes": "panel/nodes",
    "audit": "panel/audit", "cost": "panel/cost?by=team&by=user&include_simulated=1",
}  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path="/usr/bin/chromium", headless=True, args=CHROMIUM)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def busy(service: ServiceUnderTest) -> Iterator[dict[str, str]]:
    """Amy and bo hold a card each, ava waits, amy asks for more time."""
    amy, bo = service.run("amy", name="train-unet")["id"], service.run("bo", name="chat-tuning")["id"]
    ava = service.ask("ava", name="eval").json()["id"]
    more = {"by_seconds": 4 * 3600, "reason": "The last epoch takes until the evening."}
    assert service.call("amy", "POST", f"/workloads/{amy}/extensions", more).status_code == 202
    yield {"amy": amy, "bo": bo, "ava": ava}
    for workload in (ava, amy, bo):
        end(service, workload)


class Reader:
    """Somebody signed in, with an eye on what the page asks for and complains of."""

    def __init__(self, service: ServiceUnderTest, browser: Browser, name: str, lang: str, **look: Any) -> None:
        service.hub.signs_in = name
        self.base = f"http://127.0.0.1:{service.port}"
        look = {"viewport": {"width": 1280, "height": 900}, **look}
        self.context: BrowserContext = browser.new_context(locale={"en": "en-US", "zh": "zh-CN"}[lang], **look)
        self.context.add_cookies(self._signed_in())
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self.page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.foreign.append(r.url) if not r.url.startswith(self.base) else None)

    def _signed_in(self) -> list[Any]:
        """The cookies of somebody who came through the hub's sign-in."""
        with httpx.Client(base_url=self.base, trust_env=False) as client:
            sent = client.get(PREFIX)
            state = parse_qs(urlparse(sent.headers["Location"]).query)["state"][0]
            client.get(f"{PREFIX}oauth_callback", params={"code": "c", "state": state})
            return [
                {"name": c.name, "value": c.value, "domain": "127.0.0.1", "path": c.path}
                for c in client.cookies.jar
            ]

    def open(self, path: str) -> None:
        answer = self.page.goto(self.base + PREFIX + path)
        assert answer is not None
        assert answer.status == 200, path


@pytest.fixture
def shots(request: pytest.FixtureRequest) -> Path:
    folder = Path(str(request.config.rootpath)) / "test-results" / re.sub(r"\W+", "-", request.node.name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("lang", "scheme", "width"), [("en", "light", 1280), ("zh", "dark", 1280), ("zh", "light", 400)]
)
def test_every_page_keeps_to_itself(
    service: ServiceUnderTest,
    browser: Browser,
    busy: dict[str, str],
    shots: Path,
    lang: str,
    scheme: Any,
    width: int,
) -> None:
    reader = Reader(service, browser, "admin", lang, color_scheme=scheme, viewport={"width": width, "height": 900})
    for name, path in {**PAGES, "stop": f"panel?stop={busy['bo']}"}.items():
        reader.open(path)
        expect(reader.page.locator("h1").first).to_be_visible()
        overflow = reader.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0, f"{name} is wider than the window by {overflow} px"
        hidden = reader.page.evaluate(
            "[...document.querySelectorAll('.card')].filter(c => c.scrollWidth > c.clientWidth).length"
        )
        assert hidden == 0, f"{name}: what is cut off can't be reached by the keyboard"
        reader.page.screenshot(path=shots / f"{name}.png", full_page=True)
    assert reader.foreign == []
    assert reader.complaints == [], "the policy for content forbids nothing that a page does"
    reader.context.close()


def test_rows_change_by_themselves(service: ServiceUnderTest, browser: Browser, busy: dict[str, str]) -> None:
    reader = Reader(service, browser, "admin", "en")
    reader.open("panel")
    rows = reader.page.locator("tr[id^=row-]")
    expect(rows).to_have_count(2)
    reader.page.evaluate("document.querySelector('tr[id^=row-]').dataset.mine = 'kept'")
    late = service.run("ava", "cpu", server="late", name="late-comer")["id"]
    expect(reader.page.locator("tr", has_text="late-comer")).to_be_visible(timeout=15_000)
    service.call("admin", "DELETE", f"/workloads/{late}", {"reason": "enough", "now": False})
    expect(reader.page.locator("tr", has_text="late-comer")).to_contain_text("ending", timeout=15_000)
    assert reader.complaints == []
    end(service, late)
    expect(reader.page.locator("tr", has_text="late-comer")).to_have_count(0, timeout=15_000)
    reader.context.close()


def test_only_the_row_that_changed_is_put_in(
    service: ServiceUnderTest, browser: Browser, busy: dict[str, str]
) -> None:
    late = service.run("ava", "cpu", server="row", name="row-changer")["id"]
    reader = Reader(service, browser, "admin", "en")
    reader.open("panel")
    reader.page.evaluate("for (const row of document.querySelectorAll('tr[id^=row-]')) row.marked = true")
    service.call("admin", "DELETE", f"/workloads/{late}", {"reason": "enough"})
    expect(reader.page.locator("tr", has_text="row-changer")).to_contain_text("ending", timeout=15_000)
    marked = reader.page.evaluate("[...document.querySelectorAll('tr[id^=row-]')].map(row => row.marked === true)")
    assert sorted(marked) == [False, True, True]
    reader.context.close()
    end(service, late)


def test_what_an_approver_types_is_never_lost(
    service: ServiceUnderTest, browser: Browser, busy: dict[str, str]
) -> None:
    reader = Reader(service, browser, "lena", "en")
    reader.open("panel/inbox")
    field = reader.page.locator("textarea").first
    field.fill("because the evaluation")
    reader.page.locator("h1").click()
    late = service.run("ava", "cpu", server="typed")["id"]
    expect(reader.page.locator("#paused")).to_be_visible(timeout=15_000)
    assert field.input_value() == "because the evaluation"
    field.fill("")
    reader.page.locator("h1").click()
    expect(reader.page.locator("#paused")).to_be_hidden(timeout=15_000)
    assert reader.complaints == []
    reader.context.close()
    end(service, late)


def test_the_keyboard_is_enough(service: ServiceUnderTest, browser: Browser, busy: dict[str, str]) -> None:
    reader = Reader(service, browser, "admin", "en")
    reader.open("panel")
    reader.page.keyboard.press("j")
    reader.page.keyboard.press("j")
    rows = reader.page.locator("#panel tbody tr[tabindex]")
    expect(rows.nth(1)).to_be_focused()
    reader.page.keyboard.press("k")
    expect(rows.nth(0)).to_be_focused()
    reader.page.keyboard.press("?")
    expect(reader.page.locator("#keys")).to_be_visible()
    reader.page.keyboard.press("/")
    expect(reader.page.locator("#search")).to_be_focused()
    reader.page.keyboard.type("train-unet")
    reader.page.keyboard.press("Enter")
    expect(reader.page.locator("tr[id^=row-]")).to_have_count(1)
    reader.context.close()


def test_a_form_is_sent_and_its_page_says_what_was_done(
    service: ServiceUnderTest, browser: Browser, busy: dict[str, str]
) -> None:
    late = service.run("ava", "cpu", server="sent")["id"]
    reader = Reader(service, browser, "lena", "en")
    reader.open("panel")
    reader.page.locator("tr", has_text=late).get_by_role("link", name=f"Stop {late}").click()
    reader.page.locator("#stop-reason").fill("The cards are needed.")
    reader.page.get_by_role("button", name="Stop it").click()
    expect(reader.page.locator(".said")).to_contain_text(f"{late} is being stopped")
    shown = service.show(late, "ava")
    assert (shown["state"], shown["notices"][-1]["by"]) == ("expiring", "lena")
    assert reader.complaints == []
    reader.context.close()
    end(service, late)
