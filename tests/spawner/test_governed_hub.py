"""A real hub with governed spawners: what REST clients and browsers see, and what the hub thinks afterwards."""

from __future__ import annotations

import functools
import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from spawner.governed_hub import GovernedHub, person, running, xsrf
from spawner.standin import decision, profile, receipt
from waiting import until


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GovernedHub]:
    """A hub that attaches for 1.5 s and answers 202 after half a second; servers run without a box."""
    with running(GovernedHub(tmp_path_factory.mktemp("hub"), "none", attach=1.5, slow=0.5)) as hub:
        yield hub


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GovernedHub]:
    """A hub whose spawns stay attached for longer than any test."""
    with running(GovernedHub(tmp_path_factory.mktemp("patient"), "none", attach=60, slow=0.2)) as hub:
        yield hub


def progress(hub: GovernedHub, user: str, server: str = "server") -> list[dict[str, object]]:
    """The events of a spawn until its end."""
    with hub.http.stream("GET", f"{hub.root}/api/users/{user}/{server}/progress") as answer:
        assert answer.status_code == 200
        return [json.loads(line[5:]) for line in answer.iter_lines() if line.startswith("data:")]


# --- waiting --------------------------------------------------------------------------------------------


def test_what_is_not_granted_in_time_leads_to_the_waiting_page(hub: GovernedHub) -> None:
    hub.service.grant = "pending"
    hub.api("POST", "/users/ann")
    assert hub.post("/users/ann/server").status_code == 202
    events = progress(hub, "ann")
    assert {"progress": 5, "message": "Place 3 in queue lab. All cards are in use."} in events
    assert events[-1]["failed"]
    assert 'class="hubgov-waiting" href="/services/hubgov/wait/nb-' in str(events[-1]["html_message"])
    with person(hub, "ann") as browser:
        page = browser.get("/spawn-pending/ann")
    assert page.status_code == 503
    assert "You are in the queue" in page.text
    assert "Spawn failed" not in page.text
    assert '<meta http-equiv="refresh" content="3; url=/services/hubgov/wait/nb-' in page.text


def test_leaving_for_the_waiting_page_is_no_failure_of_the_hub(hub: GovernedHub) -> None:
    hub.service.grant, hub.service.full = "pending", True
    for number in range(5):
        hub.api("POST", f"/users/many{number}")
        answer = hub.post(f"/users/many{number}/server")
        assert answer.status_code == 503
        assert "/services/hubgov/wait/nb-" in answer.json()["message"]
    hub.service.full = False
    assert hub.http.get(f"{hub.root}/api/").status_code == 200
    assert any('reason="queue"' in line and 'status="failure"' in line for line in hub.failed())
    assert not any('status="error"' in line for line in hub.failed())


def test_a_refusal_is_told_on_the_form_and_by_rest(hub: GovernedHub) -> None:
    details = decision("refused", headline="Above the <maximum>.", next_steps=["Ask for less"])
    error = {"code": "above_maximum", "message": "m", "details": details, "hint": ""}
    hub.service.refusal = 422, {"error": error}
    try:
        hub.api("POST", "/users/ned")
        answer = hub.post("/users/ned/server", {"user_options": {"profile": "one"}})
        assert answer.status_code == 422
        assert answer.json()["message"] == "Above the <maximum>. You can: Ask for less."
        with person(hub, "ned") as browser:
            form = {"profile": "one", "hours": "2", "project": "seg"}
            page = browser.post(f"/spawn/ned?_xsrf={xsrf(browser)}", data=form)
            assert page.status_code == 422
            assert "Above the &lt;maximum&gt;." in page.text
            assert "<li>Ask for less</li>" in page.text
    finally:
        hub.service.refusal = None


def answered_at_once(browser: httpx.Client, path: str, form: dict[str, str]) -> str | None:
    """The form with its refusal; None where that came too late, or an earlier start isn't over yet."""
    answer = browser.post(f"{path}?_xsrf={xsrf(browser)}", data=form)
    return answer.text if answer.status_code == 422 else None


@pytest.mark.parametrize("server", ["", "second"])
def test_after_a_refusal_the_form_keeps_what_was_chosen_and_why_it_was_refused(
    server: str, hub: GovernedHub
) -> None:
    details = decision("refused", headline="至多 12h。", next_steps=["Ask for less"])
    hub.service.refusal = 422, {"error": {"code": "above_maximum", "message": "m", "details": details, "hint": ""}}
    hub.service.options["profiles"] = [profile("one"), profile("two")]
    user = f"tom{server}"
    path = f"/spawn/{user}/{server}".rstrip("/")
    try:
        hub.api("POST", f"/users/{user}")
        with person(hub, user, "zh-CN") as browser:
            form = {"profile": "two", "hours": "custom", "minutes": "2880", "project": "seg"}
            posted = browser.post(f"{path}?_xsrf={xsrf(browser)}", data=form).text
            again = browser.get(path).text
        for page in (posted, again):
            assert 'value="two" checked' in page
            assert 'value="custom" checked' in page
            assert 'value="2880"' in page
            assert page.count("<strong>至多 12h。</strong>") == 1
            assert "空闲 3/8" in page
        hub.service.refusal, hub.service.grant = None, "pending"
        with person(hub, user) as browser:
            browser.post(f"{path}?_xsrf={xsrf(browser)}", data={"profile": "two", "hours": "1", "project": "seg"})
            until(functools.partial(ticket_of, hub, user), 10, "a ticket")
            until(lambda: not servers_of(hub, user).get(server, {}).get("pending"), 20, "it went to the queue")
            page = browser.get(path).text
        assert "至多 12h" not in page
    finally:
        hub.service.refusal = None
        hub.service.options["profiles"] = [profile()]


def test_a_refusal_that_comes_late_also_leaves_the_choice(hub: GovernedHub) -> None:
    hub.service.grant = "pending"
    hub.service.options["profiles"] = [profile("one"), profile("two")]
    try:
        hub.api("POST", "/users/una")
        with person(hub, "una") as browser, ThreadPoolExecutor() as pool:
            form = {"profile": "two", "hours": "8", "project": "seg"}
            asked = pool.submit(browser.post, f"/spawn/una?_xsrf={xsrf(browser)}", data=form)
            ticket = until(functools.partial(ticket_of, hub, "una"), 10, "her ticket")
            asked.result()
            hub.service.tell(ticket, state="cancelled")
            until(lambda: not hub.server("una").get("pending"), 10, "the spawn is over")
            page = browser.get("/spawn/una").text
        assert 'value="two" checked' in page
        assert 'value="8" checked' in page
        assert 'role="alert"' not in page
    finally:
        hub.service.options["profiles"] = [profile()]


def test_a_mistake_in_the_form_is_told_in_its_language_and_fills_no_log(hub: GovernedHub) -> None:
    before = len(hub.log())
    details = decision("refused", headline="No.")
    hub.api("POST", "/users/uwe")
    with person(hub, "uwe", "zh-CN") as browser:
        path = f"/spawn/uwe?_xsrf={xsrf(browser)}"
        assert 'name="hubgov_lang" value="zh"' in browser.get("/spawn/uwe").text
        form = {"profile": "one", "hours": "0", "project": "seg", "hubgov_lang": "zh"}
        answer = browser.post(path, data=form)
        assert answer.status_code == 422
        assert "hours：&#39;0&#39; 不是 1 到 87600 的整数" in answer.text
        hub.service.refusal = (
            422,
            {"error": {"code": "above_maximum", "message": "m", "details": details, "hint": ""}},
        )
        try:
            assert "<strong>No.</strong>" in browser.post(path, data=form | {"hours": "1"}).text
        finally:
            hub.service.refusal = None
    assert "Failed to spawn single-user server with form: invalid: hours" in hub.log()[before:]
    assert "Traceback" not in hub.log()[before:]


def test_options_from_rest_are_checked(hub: GovernedHub) -> None:
    before = len(hub.log())
    hub.api("POST", "/users/eve")
    for options in ({"cmd": "sh"}, {"profile": ["one"]}, {"user": "ann"}):
        answer = hub.post("/users/eve/server", {"user_options": options})
        assert answer.status_code == 422, answer.text
    assert "Traceback" not in hub.log()[before:]


def test_with_the_service_away_nothing_is_started(hub: GovernedHub) -> None:
    hub.service.failing["GET"] = 503, "unavailable"
    try:
        hub.api("POST", "/users/sid")
        hub.post("/users/sid/server")
        until(lambda: not hub.server("sid").get("pending"), 10, "the spawn is over")
        with person(hub, "sid") as browser:
            page = browser.get("/spawn-pending/sid")
            assert page.status_code == 503
            assert "nothing was started" in page.text
            assert "Availability is unknown" in browser.get("/spawn/sid").text
            assert "Running servers go on" in browser.get("/spawn/sid").text
    finally:
        del hub.service.failing["GET"]


# --- taken back -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["server", "servers/second"])
def test_a_spawn_that_waits_can_be_taken_back(path: str, patient: GovernedHub) -> None:
    hub, user = patient, f"kim{len(path)}"
    hub.service.grant = "pending"
    hub.api("POST", f"/users/{user}")
    assert hub.post(f"/users/{user}/{path}").status_code == 202
    ticket = until(functools.partial(ticket_of, hub, user), 5, "its ticket")
    began = time.monotonic()
    answer = hub.http.request("DELETE", f"{hub.root}/api/users/{user}/{path}")
    assert answer.status_code in (202, 204), answer.text
    assert time.monotonic() - began < 2  # of which the hub itself sleeps one second
    until(lambda: ticket in hub.service.cancelled(), 5, "the ticket is cancelled")
    assert not any(server["ready"] or server["pending"] for server in servers_of(hub, user).values())
    assert "InvalidState" not in hub.log()


def servers_of(hub: GovernedHub, user: str) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = hub.api("GET", f"/users/{user}?include_stopped_servers").json()["servers"]
    return found


def test_a_hub_that_is_shut_down_leaves_the_tickets(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(GovernedHub(tmp_path_factory.mktemp("short"), "none", attach=60, slow=0.2)) as hub:
        hub.service.grant = "pending"
        hub.api("POST", "/users/lea")
        assert hub.post("/users/lea/server").status_code == 202
        until(lambda: hub.service.polls, 5, "the spawn waits")
        hub.end(signal.SIGTERM)
        assert hub.service.cancelled() == []
        assert "Traceback" not in hub.log()


def test_the_pages_buttons_name_the_right_server(patient: GovernedHub) -> None:
    hub = patient
    hub.service.grant = "pending"
    hub.api("POST", "/users/nina")
    assert hub.post("/users/nina/servers/second").status_code == 202
    with person(hub, "nina", "zh-CN") as browser:
        page = browser.get("/spawn-pending/nina/second").text
    assert 'data-user="nina" data-server="second"' in page
    assert 'lang="zh-CN"' in page
    assert "服务器正在启动" in page
    hub.http.request("DELETE", f"{hub.root}/api/users/nina/servers/second")


# --- a server, from grant to receipt --------------------------------------------------------------------


def test_a_session_from_the_form_to_its_receipt(patient: GovernedHub) -> None:
    hub = patient
    hub.service.grant = "pending"
    with person(hub, "amy") as browser, ThreadPoolExecutor() as pool:
        page = browser.get("/spawn/amy").text
        assert "free now 3/8" in page
        form = {"profile": "one", "hours": "2", "project": "seg", "minutes": ""}
        asked = pool.submit(browser.post, f"/spawn/amy?_xsrf={xsrf(browser)}", data=form)
        ticket = until(functools.partial(ticket_of, hub, "amy"), 10, "her ticket")
        assert asked.result().status_code == 200
        events = pool.submit(progress, hub, "amy")
        hub.service.tell(ticket, state="admitted")
        until(lambda: hub.server("amy").get("ready"), 60, "her server is up")
        assert events.result()[-1]["ready"]

        kernel = hub.kernel("amy")
        code = "import os; print(sorted((k, v) for k, v in os.environ.items() if 'VISIBLE' in k or 'HUBGOV' in k))"
        seen = hub.run("amy", kernel, code)
        assert "('CUDA_VISIBLE_DEVICES', 'GPU-1')" in seen
        assert f"('HUBGOV_ALLOCATION_ID', '{ticket}.1')" in seen
        assert "token-of" not in seen

        assert hub.api("DELETE", "/users/amy/server").status_code in (202, 204)
        until(lambda: not hub.server("amy"), 30, "her server has stopped")
        mine = f"/workloads/{ticket}/"
        words = [path.removeprefix(mine) for _, path, _ in hub.service.asked if path.startswith(mine)]
        assert words == ["launch", "processes", "ready", "stopping", "ended"]

        hub.service.receipts["amy", ""] = receipt()
        page = browser.get("/user/amy/lab").text
        assert "Session ended 18:30 — time limit (8h, queue lab)" in page
        assert "a.ipynb — saved 18:29" in page
        assert "variables of kernel python3" in page
        assert "18:35:04" in page
        assert "¥148.00" in page
        assert '<input type="hidden" name="resumes" value="nb-7">' in page
        assert '<input type="hidden" name="lease" value="7200">' in page


def ticket_of(hub: GovernedHub, user: str) -> str | None:
    return next((t["id"] for t in hub.service.tickets.values() if t["owner"] == user), None)


@pytest.mark.boxed
def test_a_killed_hub_goes_on_with_the_same_ticket(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(GovernedHub(tmp_path_factory.mktemp("killed"), "root", attach=5)) as hub:
        assert hub.launch("amy").status_code in (201, 202), hub.log()[-3000:]
        hub.end(signal.SIGKILL)
        hub.start()
        until(lambda: hub.server("amy").get("ready"), 30, "her server is known again")
        assert hub.server("amy")["state"]["hubgov"] == ["nb-1", 1, "nb-1.1", True]
        assert "('CUDA_VISIBLE_DEVICES', 'GPU-1')" in hub.run(
            "amy", hub.kernel("amy"), "import os; print([i for i in os.environ.items() if i[0][:4] == 'CUDA'])"
        )
        assert hub.api("DELETE", "/users/amy/server").status_code in (202, 204)
        until(lambda: hub.service.told("ended"), 30, "its end is told")
        assert len(hub.service.tickets) == 1
        assert hub.service.tickets["nb-1"]["state"] == "cancelled"
