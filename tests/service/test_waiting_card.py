"""The waiting page in every state: what it says, and what it offers to whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from builders import HOUR_MS, START, Play, a_policy
from service_under_test import PREFIX, ServiceUnderTest

from hubgov import texts
from hubgov.clock import Instant, to_rfc3339
from hubgov.control.actor import Actor
from hubgov.service import application
from hubgov.service.documents import Desk

WAITING = {"pending", "held"}
GRANTED = {"admitted", "starting", "running", "expiring"}
LEAVING = {"preempting", "stopping", "quarantined", "suspect"}
FINAL = {"succeeded", "failed", "cancelled", "expired", "culled", "refused"}
SERVER = "/user/ann/"


def _card(state: str, *, mine: bool, lang: str = "en", kind: str = "notebook", began: bool = True) -> str:
    """The card of ann's request in that state, as its owner or a team-mate sees it."""
    play = Play(a_policy().node("n", devices=1).team("A").lease(default_ms=HOUR_MS))
    play.run("r", owner="bo")
    play.submit("w", owner="ann")
    desk = Desk(play.state, START, Actor(name="ann" if mine else "ava"), lang, teams=frozenset({"A"}))
    document = desk.workload(play.workload("w"))
    ends = to_rfc3339(Instant(START + HOUR_MS))
    document = replace(
        document, state=state, ended_at=ends if state in FINAL else None, grace_until=ends,
        position=1 if state in WAITING else None, kind=kind, started_at=to_rfc3339(START) if began else None,
    )  # fmt: skip
    template = application._templates("/services/hubgov/").get_template("waiting_card.html")
    html: str = template.render(
        lang=lang, hub="/", prefix="/services/hubgov/", xsrf="x", workload=document, decision=None,
        server_url=SERVER, desk=desk, mine=mine,
    )  # fmt: skip
    return html


def test_every_state_is_known_here() -> None:
    assert {*WAITING, *GRANTED, *LEAVING, *FINAL, "lost"} == set(texts.STATES)


@pytest.mark.parametrize("mine", [True, False], ids=["its owner", "a team-mate"])
@pytest.mark.parametrize("state", texts.STATES)
def test_what_is_offered_in_each_state(state: str, mine: bool) -> None:
    html = _card(state, mine=mine)
    waits = state in WAITING
    assert ("<form" in html) == (waits and mine), "a button to cancel what waits, for its owner"
    assert ("Your place is kept" in html) == (waits and mine)
    assert ("Place 1 in queue train" in html) == waits
    assert ("Starts by" in html) == waits
    opens = mine and state in (GRANTED | {"preempting"})
    leads = opens or (mine and state in FINAL)
    assert (f'href="{SERVER}"' in html) == leads, "to the server while it lives, to its receipt then; for its owner"
    starts = mine and state in GRANTED - {"running", "expiring"}
    assert ("this page opens it by itself" in html) == starts
    assert ('href="/hub/home"' in html) == (not waits and not opens)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_is_on_its_way_out_says_how(lang: str) -> None:
    told = {}
    for state in sorted(LEAVING):
        found = re.search(
            r'<p class="lead" role="status">\s*(.*?)\s*</p>', _card(state, mine=True, lang=lang), re.S
        )
        assert found is not None, state
        told[state] = found[1]
        assert not told[state].startswith("is_"), "every state has its words"
    assert len(set(told.values())) == len(LEAVING)
    assert '<time datetime="2026-03-02T10:00:00.000Z">10:00</time>' in _card("preempting", mine=True, lang=lang)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", headless=True, args=flags)
        yield browser
        browser.close()


@pytest.mark.browser
def test_the_page_opens_the_server_for_its_owner_only(service: ServiceUnderTest, chromium: Any) -> None:
    service.run("bo", "two")
    waiting = service.ask("ava").json()["id"]
    address = f"http://127.0.0.1:{service.port}{PREFIX}wait/{waiting}"
    pages = {}
    for who in ("ava", "amy"):
        context = chromium.new_context(extra_http_headers={"Authorization": f"token {who}-token"})
        page = pages[who] = context.new_page()
        page.route("**/user/ava/**", lambda route: route.fulfill(body="the notebook", content_type="text/html"))
        page.goto(address)
        page.locator("text=In queue experiment").or_(page.locator("text=Place 1 in queue")).first.wait_for()
    for workload in service.call("admin", "GET", "/workloads?owner=bo").json()["items"]:
        service.call("bo", "DELETE", f"/workloads/{workload['id']}", {"now": True})
    pages["amy"].locator("[data-state=admitted]").wait_for(timeout=15_000)
    for step, body in (("launch", {}), ("ready", {"url": "http://127.0.0.1:1/"})):
        answer = service.call("spawner", "POST", f"/workloads/{waiting}/{step}", {"attempt": 1, **body})
        assert answer.status_code == 200, answer.text
    pages["ava"].wait_for_url("**/user/ava/", timeout=15_000)
    assert pages["ava"].locator("text=the notebook").count() == 1
    pages["amy"].locator("[data-state=running]").wait_for(timeout=15_000)
    assert "/wait/" in pages["amy"].url
    assert pages["amy"].locator("text=It is for ava to open").count() == 1
    for page in pages.values():
        page.context.close()


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_session_that_is_over_leads_its_owner_to_the_receipt(state: str) -> None:
    assert f'href="{SERVER}"' in _card(state, mine=True)
    assert f'href="{SERVER}"' not in _card(state, mine=False)
    assert f'href="{SERVER}"' not in _card(state, mine=True, began=False), "what never ran has none"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("state", texts.STATES)
def test_a_job_has_no_notebook_to_open(state: str, lang: str) -> None:
    html = _card(state, mine=True, kind="training", lang=lang)
    assert SERVER not in html
    assert ("hubgov logs" in html) == (state not in WAITING)
    assert "hubgov logs" not in _card(state, mine=False, kind="training", lang=lang)
