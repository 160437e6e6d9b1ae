"""The panel's pages: who sees what, forms that are sent without scripts, both languages, nothing that does harm."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from service.answers import end
from service_under_test import PREFIX, ServiceUnderTest
from waiting import until

from hubgov.service.page_texts import PAGE
from hubgov.service.panel_texts import PANEL

PAGES = ("panel", "panel/queues", "panel/inbox", "panel/nodes", "panel/audit", "panel/cost")
NASTY = '<script>alert("x")</script>&\'"'


def page(service: ServiceUnderTest, path: str, who: str = "admin", **headers: str) -> httpx.Response:
    service.http.cookies.clear()
    return service.http.get(PREFIX + path, headers={"Authorization": f"token {who}-token", **headers})


def send(service: ServiceUnderTest, path: str, who: str = "admin", **fields: str) -> httpx.Response:
    service.http.cookies.clear()
    return service.http.post(PREFIX + path, data=fields, headers={"Authorization": f"token {who}-token"})


@pytest.fixture(scope="module")
def cast(service: ServiceUnderTest) -> Iterator[dict[str, Any]]:
    """Amy and bo hold a card each, ava waits, amy asks for more than she may take."""
    amy, bo = service.run("amy", name="amys-work"), service.run("bo", name="bos-work")
    ava = service.ask("ava", name="avas-work").json()
    more = {"by_seconds": 4 * 3600, "reason": NASTY}
    asked = service.call("amy", "POST", f"/workloads/{amy['id']}/extensions", more)
    assert asked.status_code == 202, asked.text
    yield {"amy": amy["id"], "bo": bo["id"], "ava": ava["id"], "request": asked.json()["id"]}
    for name in (ava["id"], amy["id"], bo["id"]):
        end(service, name)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_whole_in_both_languages(
    service: ServiceUnderTest, cast: dict[str, Any], path: str, lang: str
) -> None:
    answer = page(
        service, f"{path}?lang={lang}&include_simulated=1" if path.endswith("cost") else f"{path}?lang={lang}"
    )
    assert answer.status_code == 200, answer.text[:2000]
    text = answer.text
    assert "<h1>" in text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert not re.search(r"<script(?![^>]* src=)|\son\w+=|style=", text), "nothing inline"
    assert not re.search(r"(?:src|href|action)=.https?://", text), "nothing from elsewhere"
    assert "alert(" not in text or "&lt;script&gt;" in text
    shown = re.sub(r"<[^>]+>", "\n", text)
    keys = {key for key in {**PANEL, **PAGE} if "_" in key}
    assert {line.strip() for line in shown.splitlines()} & keys == set(), "a text without words"
    for tag in re.findall(r"<th\b[^>]*>", text):
        assert "scope=" in tag, tag
    assert text.count("<table") == text.count("<caption")
    if lang == "zh":
        english = {pair[0] for pair in {**PAGE, **PANEL}.values() if " " in pair[0] and "{" not in pair[0]}
        assert not [sentence for sentence in english if f">{sentence}<" in text]


def test_others_are_seen_as_their_team_alone(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    own = page(service, "panel", "ava").text
    assert "amys-work" in own, "a team-mate by name"
    assert cast["bo"] not in own
    assert "bos-work" not in own
    assert "another team" in own
    assert f"panel?stop={cast['amy']}" not in own, "no action on another's"
    assert f"panel?stop={cast['amy']}" in page(service, "panel", "amy").text
    lead = page(service, "panel", "lena").text
    assert f"panel?stop={cast['amy']}" in lead
    assert f"panel?stop={cast['bo']}" in lead
    line = page(service, "panel/queues", "bo").text
    assert cast["ava"] not in line
    assert "1 GPU of team vision" in line


def test_the_filters_of_the_address(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    def rows(query: str, who: str = "admin") -> int:
        return page(service, f"panel?{query}", who).text.count('<tr id="row-')

    assert rows("") == 2
    assert rows("team=vision") == rows("q=AMYS") == rows(f"q={cast['bo']}") == 1
    assert rows("state=running&pool=dev") == 2
    assert rows("state=sick") == rows("q=nothing-like-it") == 0
    assert rows("q=bos-work", "ava") == 0, "what one may not see isn't found either"
    assert "Nothing fits these filters" in page(service, "panel?node=elsewhere").text


def test_stop_from_the_page(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    workload = service.run("amy", "cpu", server="stopped")["id"]
    form = page(service, f"panel?stop={workload}", "lena").text
    assert "After 5m" in form
    assert service.show(workload)["state"] == "running", "looking stops nothing"
    nothing = send(service, f"panel/stop/{workload}", "lena", when="grace", reason=" ")
    assert nothing.status_code == 400
    assert nothing.headers["Content-Type"].startswith("text/html")
    done = send(service, f"panel/stop/{workload}", "lena", when="grace", reason=NASTY)
    assert done.status_code == 303
    shown = service.show(workload, "amy")
    assert (shown["state"], shown["binding_rule"]) == ("expiring", "admin")
    (notice,) = [n for n in shown["notices"] if n["kind"] == "stop_ordered"]
    assert (notice["by"], notice["reason"], notice["deadline"]) == ("lena", NASTY, shown["grace_until"])
    after = service.http.get(done.headers["Location"], headers={"Authorization": "token lena-token"}).text
    assert f"{workload} is being stopped" in after
    now = send(service, f"panel/stop/{workload}", "lena", when="now", reason="at once")
    assert now.status_code == 303
    until(lambda: service.show(workload)["ended_at"], 20, "it to be over")
    over = service.call("amy", "GET", f"/workloads/{workload}/receipt").json()["workload"]
    assert (over["end_reason"], over["ended_by"], over["note"]) == ("admin", "lena", NASTY)
    assert NASTY in over["headline"]
    assert "<script>alert" not in page(service, f"wait/{workload}", "amy").text
    assert "<script>alert" not in page(service, "panel/audit").text


def test_hold_and_release(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    assert send(service, "panel/queues/experiment/hold", "lena", reason="x").status_code == 403
    assert send(service, "panel/queues/experiment/hold", reason="").status_code == 400
    assert send(service, "panel/queues/nowhere/hold", reason="x").status_code == 404
    assert send(service, "panel/queues/experiment/hold", reason=NASTY, closed="1").status_code == 303
    text = page(service, "panel/queues", "ava").text
    assert "On hold and closed to new work by admin" in text
    assert "<script>alert" not in text
    assert 'action="/services/hubgov/panel/queues/experiment/' not in text, "no action without the right"
    assert send(service, "panel/queues/experiment/release").status_code == 303
    assert "On hold" not in page(service, "panel/queues", "ava").text


def test_drain_and_undrain(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    node = service.call("admin", "GET", "/devices").json()["items"][0]["node"]
    before = page(service, "panel/nodes").text
    assert f"2 sessions are on {node}" in before
    assert send(service, f"panel/nodes/{node}/drain", "lena").status_code == 403
    assert send(service, f"panel/nodes/{node}/drain", reason="upkeep").status_code == 303
    assert "takes no new work" in page(service, "panel/nodes", "ava").text
    assert send(service, f"panel/nodes/{node}/undrain").status_code == 303
    assert "takes work" in page(service, "panel/nodes", "ava").text


def test_the_inbox_decides(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    request = cast["request"]
    text = page(service, "panel/inbox", "lena").text
    assert f'id="request-{request}"' in text
    assert "¥74.00" in text, "4 h at 18.50"
    assert '<span class="count">1</span>' in text
    mine = page(service, "panel/inbox", "amy").text
    assert f'id="request-{request}"' in mine
    assert 'value="approve"' not in mine, "nobody decides on his own"
    assert f'id="request-{request}"' not in page(service, "panel/inbox", "ava").text
    path = f"panel/inbox/{request}"
    assert send(service, path, "lena", act="deny", reason="").status_code == 400
    assert send(service, path, "lena", act="shorter", minutes="none").status_code == 400
    assert send(service, path, "ava", act="approve").status_code == 403
    assert send(service, path, "bo", act="approve").status_code == 404
    before = service.show(cast["amy"])["expires_at"]
    assert send(service, path, "lena", act="shorter", minutes="60", reason="one will do").status_code == 303
    assert service.show(cast["amy"])["expires_at"] > before
    assert send(service, path, "lena", act="approve").status_code == 409, "decided once"
    after = page(service, "panel/inbox", "lena").text
    assert f'id="request-{request}"' not in after
    assert "one will do" in after
    assert "one will do" not in page(service, "panel/inbox", "ava").text


def test_the_audit_is_for_admins_and_leads_of_their_teams(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    assert page(service, "panel/audit", "amy").status_code == 403
    assert page(service, f"panel/audit?workload={cast['amy']}", "amy").status_code == 200
    led = service.call("lena", "GET", "/audit?all=1&limit=1000").json()["items"]
    everything = service.call("admin", "GET", "/audit?all=1&limit=1000").json()["items"]
    assert {line["workload"] for line in led} >= {cast["amy"], cast["bo"]}
    assert all(line["workload"] for line in led)
    assert len(led) < len(everything)
    only = service.call("admin", "GET", f"/audit?event=workload_submitted&workload={cast['amy']}").json()["items"]
    assert [line["event"] for line in only] == ["workload_submitted"]
    assert service.call("admin", "GET", "/audit?actor=nobody-of-that-name").json()["items"] == []
    assert service.call("admin", "GET", "/audit?to=2001-01-01").json()["items"] == []
    assert service.call("admin", "GET", "/audit?event=no-such").status_code == 400
    text = page(service, "panel/audit?all=1&limit=5").text
    assert text.count('<tr id="line-') == 5
    following = re.search(r"/panel/(audit\?all=1&amp;limit=5&amp;cursor=\d+)", text)
    assert following is not None
    older = page(service, "panel/" + following[1].replace("&amp;", "&")).text
    assert set(re.findall(r'id="line-(\d+)"', text)).isdisjoint(re.findall(r'id="line-(\d+)"', older))


def test_a_spreadsheet_takes_no_reason_for_a_formula(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    formula = "=cmd|' /C calc'!A0"
    service.call("admin", "POST", "/queues/experiment/hold", {"reason": formula})
    service.call("admin", "POST", "/queues/experiment/release", {"reason": "+1"})
    answer = page(service, "panel/audit.csv?actor=admin")
    assert answer.headers["Content-Type"].startswith("text/csv")
    table = list(csv.reader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    cells = [cell for row in table for cell in row]
    assert "'" + formula in cells
    assert "'+1" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert page(service, "panel/audit.csv", "amy").status_code == 403


def test_the_cost_page_shows_what_the_interface_says(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    without = page(service, "panel/cost?from=2020-01-01").text
    assert "Time on simulated devices is left out" in without
    text = page(service, "panel/cost?by=user&by=queue&include_simulated=1").text
    for name in ("amy", "bo", "experiment"):
        assert name in text
    own = page(service, "panel/cost?by=user&include_simulated=1", "amy").text
    assert re.search(r">\s*amy\s*<", own)
    assert not re.search(r">\s*bo\s*<", own)
    assert page(service, "panel/cost?by=nonsense").status_code == 400


def test_looking_changes_nothing(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    before = service.call("admin", "GET", "/audit?all=1&limit=1").json()["items"][0]["seq"]
    for path in (
        *PAGES, f"panel?stop={cast['amy']}", f"panel/stop/{cast['amy']}?when=now&reason=x",
        "panel/queues/experiment/hold?reason=x", f"panel/inbox/{cast['request']}?act=approve",
    ):  # fmt: skip
        assert page(service, path).status_code in (200, 405), path
    assert service.call("admin", "GET", "/audit?all=1&limit=1").json()["items"][0]["seq"] == before
    assert service.show(cast["amy"])["state"] == "running"


def test_a_form_needs_the_pages_own_proof(service: ServiceUnderTest, cast: dict[str, Any]) -> None:
    from service.test_pages import _signed_in

    mine = service.run("amy", "cpu", server="forged")["id"]
    with _signed_in(service) as browser:
        path = f"{PREFIX}panel/stop/{mine}"
        forged = browser.post(path, data={"when": "now"}, headers={"Sec-Fetch-Mode": "navigate"})
        assert forged.status_code == 403
        assert service.show(mine)["state"] == "running"
        form = browser.get(f"{PREFIX}panel?stop={mine}").text
        proof = re.search(r'name="_xsrf" value="([^"]+)"', form)
        assert proof is not None
        sent = browser.post(path, data={"when": "now", "_xsrf": proof[1]})
        assert sent.status_code == 303, sent.text
    until(lambda: service.show(mine)["ended_at"], 20, "it to be over")
