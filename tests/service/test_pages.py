"""The pages for people: sign-in, confinement, both languages, and the one button there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlparse

import httpx
import pytest
from service_under_test import PREFIX, ServiceUnderTest
from waiting import until


@pytest.fixture(scope="module")
def waiting(service: ServiceUnderTest) -> str:
    """Ava waits, behind amy and bo."""
    service.run("amy")
    service.run("bo")
    asked: str = service.ask("ava").json()["id"]
    return asked


def _page(service: ServiceUnderTest, path: str, who: str = "ava", **headers: str) -> httpx.Response:
    return service.http.get(PREFIX + path, headers={"Authorization": f"token {who}-token", **headers})


@pytest.mark.parametrize("path", ["", "wait/{id}", "wait/nb-999", "api/v1/workloads", "api/v1/nothing", "health"])
def test_every_answer_is_confined(service: ServiceUnderTest, waiting: str, path: str) -> None:
    answer = _page(service, path.format(id=waiting))
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    if answer.headers["Content-Type"].startswith("text/html"):
        assert not re.search(r"<script(?![^>]* src=)|\son\w+=|style=", answer.text), "nothing inline"
        assert not re.search(r"(?:src|href)=.https?://", answer.text), "nothing from elsewhere"


@pytest.mark.parametrize(
    ("query", "accept", "language", "word"),
    [
        ("", "", "en", "Waiting for quota"),
        ("", "zh-CN,zh;q=0.9", "zh-CN", "等待配额"),
        ("?lang=zh", "en", "zh-CN", "等待配额"),
        ("?lang=en", "zh", "en", "Waiting for quota"),
        ("?lang=xx", "zh", "zh-CN", "等待配额"),
        ("?lang=%25ff", "", "en", "Waiting for quota"),
    ],
)
def test_the_waiting_page_speaks_the_readers_language(
    service: ServiceUnderTest, waiting: str, query: str, accept: str, language: str, word: str
) -> None:
    service.http.cookies.clear()
    answer = _page(service, f"wait/{waiting}{query}", **({"Accept-Language": accept} if accept else {}))
    assert answer.status_code == 200
    assert f'<html lang="{language}">' in answer.text
    assert word in answer.text
    remembered = "hubgov_lang" in answer.headers.get("set-cookie", "")
    assert remembered == (query in ("?lang=zh", "?lang=en"))
    service.http.cookies.clear()


def test_the_waiting_page_names_no_one_of_another_team(service: ServiceUnderTest, waiting: str) -> None:
    text = _page(service, f"wait/{waiting}").text
    assert "amy" in text
    assert "team nlp" in text
    assert not re.search(r"\bbo\b", text)
    assert "Place 1 in queue experiment" in text


def test_a_page_of_what_one_may_not_see_is_a_404_that_names_nothing(
    service: ServiceUnderTest, waiting: str
) -> None:
    answer = _page(service, f"wait/{waiting}", who="bo")
    assert answer.status_code == 404
    assert answer.text.replace(waiting, "ID") == _page(service, "wait/nb-999", who="bo").text.replace(
        "nb-999", "ID"
    )


@pytest.mark.parametrize(
    "odd", ["nb", "NB-1", "nb-1x", "nb-9999999999999999999999", "a/b", "%3Cb%3E", "", "x" * 500]
)
def test_an_address_that_is_no_request_is_a_page_too(service: ServiceUnderTest, odd: str) -> None:
    for language, word in (("en", "No request"), ("zh", "没有请求")):
        mine = {"Authorization": "token amy-token", "Accept-Language": language}
        for answer in (
            service.http.get(f"{PREFIX}wait/{odd}", headers=mine),
            service.http.post(f"{PREFIX}wait/{odd}", headers=mine),
        ):
            assert answer.status_code == 404
            assert answer.headers["Content-Type"].startswith("text/html")
            assert word in answer.text
            assert "<b>" not in answer.text


def test_who_may_not_see_or_cancel_a_request_is_told_nothing_of_commands(
    service: ServiceUnderTest, waiting: str
) -> None:
    for who, status in (("bo", 404), ("amy", 403)):
        answer = service.http.post(f"{PREFIX}wait/{waiting}", headers={"Authorization": f"token {who}-token"})
        assert (answer.status_code, answer.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
        assert "hubgov list" not in answer.text
    assert "ask its owner or a lead of its team" in answer.text


def test_a_stranger_is_sent_to_the_hubs_sign_in(service: ServiceUnderTest, waiting: str) -> None:
    answer = service.http.get(f"{PREFIX}wait/{waiting}")
    assert answer.status_code == 302
    assert "/hub/api/oauth2/authorize" in answer.headers["Location"]
    assert service.http.post(f"{PREFIX}wait/{waiting}").status_code == 401


@contextmanager
def _signed_in(service: ServiceUnderTest) -> Iterator[httpx.Client]:
    """A browser that came through the hub's OAuth."""
    with httpx.Client(base_url=f"http://127.0.0.1:{service.port}", trust_env=False) as browser:
        sent = browser.get(PREFIX)
        state = parse_qs(urlparse(sent.headers["Location"]).query)["state"][0]
        back = browser.get(f"{PREFIX}oauth_callback", params={"code": "c", "state": state})
        assert back.status_code == 302, back.text
        yield browser


def test_a_browsers_cookie_alone_changes_nothing(service: ServiceUnderTest) -> None:
    """Another site can make a browser send its cookies, but not the token of the page."""
    mine = service.ask("amy", "cpu", server="page").json()["id"]
    with _signed_in(service) as browser:
        page = browser.get(f"{PREFIX}wait/{mine}")
        assert page.status_code == 200
        api = f"{PREFIX}api/v1/workloads/{mine}"
        forged: list[tuple[str, str, Any]] = [
            ("POST", f"{PREFIX}wait/{mine}", None),
            ("DELETE", api, {}),
            ("POST", f"{api}/claim", {}),
            ("POST", f"{api}/extensions", {"by_seconds": 60}),
        ]
        for method, path, body in forged:
            answer = browser.request(method, path, json=body, headers={"Sec-Fetch-Mode": "cors"})
            assert answer.status_code == 403, (method, path, answer.text)
        assert service.show(mine)["state"] == "admitted"
        found = re.search(r'data-xsrf="([^"]+)"', page.text)
        assert found is not None
        answer = browser.request("DELETE", api, json={}, headers={"X-XSRFToken": found[1]})
        assert answer.status_code == 200, answer.text
    until(lambda: service.show(mine)["state"] == "cancelled", 10, "it to be cancelled")
    token_only = service.call("amy", "POST", "/plan", {"queue": "experiment", "kind": "notebook", "gpus": 0})
    assert token_only.status_code == 200, "a token in a header needs no such proof"


def test_all_that_is_simulated_is_called_so_on_the_home_page(service: ServiceUnderTest, waiting: str) -> None:
    tables = _page(service, "").text.split("<table>")[1:]
    for table in tables:
        rows = [row for row in table.split("<tr")[2:] if "<td" in row]
        assert rows
        assert all("SIMULATED" in row for row in rows), rows


def test_the_button_of_the_page_cancels(service: ServiceUnderTest, waiting: str) -> None:
    answer = service.http.post(f"{PREFIX}wait/{waiting}", headers={"Authorization": "token ava-token"})
    assert answer.status_code == 302
    assert service.show(waiting)["state"] == "cancelled"
    again = _page(service, f"wait/{waiting}")
    assert again.status_code == 200
    assert "its owner stopped it" in again.text
    home = _page(service, "", who="amy")
    assert home.status_code == 200
    assert "SIMULATED" in home.text


def test_errors_are_pages_too(service: ServiceUnderTest) -> None:
    late = service.ask("amy", "cpu", server="late").json()["id"]
    service.call("amy", "DELETE", f"/workloads/{late}", {})
    until(lambda: service.show(late)["ended_at"], 10, "it to be over")
    mine = {"Authorization": "token amy-token"}
    for language, word in (("en", "is over"), ("zh", f"{late} 已结束")):
        answer = service.http.post(f"{PREFIX}wait/{late}", headers={**mine, "Accept-Language": language})
        assert answer.status_code == 409
        assert answer.headers["Content-Type"].startswith("text/html")
        assert word in answer.text
        assert "<h1>409</h1>" in answer.text
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    outside = service.http.get(PREFIX, headers={"Authorization": "token outsider-token", "Accept-Language": "zh"})
    assert (outside.status_code, outside.headers["Content-Type"]) == (403, "text/html; charset=utf-8")
    assert "hub 不允许你使用该服务" in outside.text
    for odd in ("?lang=%00", "?fragment=%ff"):
        answer = service.http.get(f"{PREFIX}wait/{late}{odd}", headers=mine)
        assert answer.status_code in (200, 400), odd
        assert answer.headers["Content-Type"].startswith("text/html"), odd
