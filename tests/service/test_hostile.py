"""Whatever is sent to whatever route: a 4xx that says what is wrong, and nothing but that happens."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from service_under_test import PREFIX, ServiceUnderTest
from waiting import until

from hubgov.errors import Invalid
from hubgov.service import reading_json
from hubgov.service.routes import ROUTES

CHANGING = [route for route in ROUTES if route.method in ("POST", "PUT", "DELETE")]
IDS = [f"{route.method} {route.pattern.partition('(')[0]}…{route.pattern.rpartition('/')[2]}" for route in CHANGING]
NAMES = {
    "workload_id": "nb-1",
    "extension_id": "nb-1-x1",
    "queue": "experiment",
    "node": "box",
    "save_id": "nb-1.1-1-end",
    "user": "amy",
    "server": "s",
}
INJECTIONS = (
    "'; DROP TABLE workload; --",
    "<script>alert(1)</script>",
    "{{7*7}}${7*7}",
    "%s%n%x",
    "../../etc/passwd",
    "a\nevent=forged record=nb-1",
    "\u202egpj.exe",
    "🙂" * 40,
    "𝔸𝔹ℂ",
    "اختبار",
    "\x00",
    "\ud800",
)
BODIES: dict[str, bytes] = {
    "empty list": b"[]",
    "a number": b"7",
    "null": b"null",
    "not JSON": b"{",
    "not UTF-8": b'{"reason": "\xff\xfe"}',
    "NaN": b'{"gpus": NaN}',
    "Infinity": b'{"by_seconds": Infinity}',
    "minus Infinity": b'{"attempt": -Infinity}',
    "a huge number": b'{"gpus": 1e999999999, "by_seconds": 1e999999999, "attempt": 1e999999999}',
    "a tiny number": b'{"gpus": 1e-999999999, "queue": "experiment"}',
    "a long number": b'{"gpus": 0.2500000000000000000000000000000000000001, "queue": "experiment"}',
    "a number of 5000 digits": b'{"attempt": ' + b"9" * 5000 + b"}",
    "nested 500 deep": b'{"reason": ' + b"[" * 500 + b"]" * 500 + b"}",
    "nested 100000 deep": b'{"reason": ' + b'{"a":' * 100_000,
    "3 MB": b'{"reason": "' + b"x" * 3_000_000 + b'"}',
    "twice the same key": b'{"reason": "a", "reason": "b"}',
    "NUL": b'{"reason": "a\\u0000b"}',
    "a lone surrogate": b'{"reason": "\\ud800"}',
    "NUL in a key": b'{"a\\u0000": 1}',
    "10000 unknown keys": json.dumps({f"k{n}": n for n in range(10_000)}).encode(),
    "wrong types": json.dumps(
        {key: {"a": []} for key in ("queue", "reason", "attempt", "by_seconds", "text", "save", "now", "url")}
    ).encode(),
}


ODD: tuple[Any, ...] = (
    None, [], {}, "", 0, -1, 1.5, True, "x", ["x"], {"a": 1}, 10**30, [None], [[]], {"": None}, "9" * 5000,
)  # fmt: skip


RIGHT: dict[str, Any] = {
    "queue": "experiment", "gpus": 1, "attempt": 1, "main": {"pid": 1, "start_ticks": 1, "boot_id": "b"},
    "url": "x", "save": "s", "asked_lab": True, "reason": "r", "text": "t",
}  # fmt: skip
"""A value of each field that a body can't do without."""


@pytest.mark.parametrize("route", CHANGING, ids=IDS)
def test_no_value_of_a_field_breaks_its_reading(route: Any) -> None:
    """Read, or refused as invalid for that field alone: never a failure of the reader itself."""
    fields = {field.alias or name: field for name, field in route.body.model_fields.items()}
    right = {name: RIGHT[name] for name, field in fields.items() if field.is_required()}
    assert isinstance(reading_json.parse(route.body, json.dumps(right).encode()), route.body)
    for name in fields:
        refused = 0
        for value in ODD:
            try:
                body = reading_json.parse(route.body, json.dumps(right | {name: value}).encode())
            except Invalid as error:
                problems = error.details["problems"]
                assert problems, (name, value)
                assert {problem["field"].partition(".")[0] for problem in problems} == {name}, (name, value)
                refused += 1
            else:
                assert isinstance(body, route.body), (name, value)
        assert refused, f"{name} takes whatever comes"


def _address(pattern: str) -> str:
    """The address of a route with names that exist, or might."""
    plain = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", r"{\1}", pattern)
    return f"{PREFIX}api/v1{plain.format(**NAMES)}"


def _send(service: ServiceUnderTest, who: str, method: str, address: str, body: bytes) -> Any:
    return service.http.request(method, address, content=body, headers={"Authorization": f"token {who}-token"})


@pytest.mark.parametrize("route", CHANGING, ids=IDS)
def test_no_body_breaks_a_route(service: ServiceUnderTest, route: Any) -> None:
    before = service.call("admin", "GET", "/audit?all=1&limit=1").json()["items"][0]["seq"]
    for who in ("admin", "spawner", "amy"):
        for what, body in BODIES.items():
            answer = _send(service, who, route.method, _address(route.pattern), body)
            assert 400 <= answer.status_code < 500, (what, who, answer.status_code, answer.text)
            error = answer.json()["error"]
            assert error["code"], (what, who)
            assert error["message"], (what, who)
            assert len(answer.content) < 20_000, what
    after = service.call("admin", "GET", "/audit?all=1&limit=1").json()["items"][0]["seq"]
    assert after == before, "nothing was written"


@pytest.mark.parametrize("route", CHANGING, ids=IDS)
def test_no_text_breaks_a_route(service: ServiceUnderTest, route: Any) -> None:
    """In every text field of every body, one after another; what may pass does, and shows as it was written."""
    assert route.body is not None
    fields = route.body.model_json_schema()["properties"]
    for text in INJECTIONS:
        for name in fields:
            body = json.dumps({name: text}).encode()
            for who in ("admin", "spawner"):
                answer = _send(service, who, route.method, _address(route.pattern), body)
                assert answer.status_code < 500, (name, text, answer.text)
                if answer.status_code >= 400:
                    assert answer.json()["error"]["code"]
    # Queue and node may have been held or drained by a reason that is a perfectly good text.
    service.call("admin", "POST", "/queues/experiment/release", {})


@pytest.mark.parametrize("text", [t for t in INJECTIONS if t.isprintable() and len(t) < 64 and "\u202e" not in t])
def test_odd_names_are_kept_as_written_and_shown_escaped(service: ServiceUnderTest, text: str) -> None:
    asked = service.ask("amy", "cpu", server="odd", name=text)
    assert asked.status_code == 201, asked.text
    workload = asked.json()
    assert service.show(workload["id"])["name"] == text
    for page in (f"wait/{workload['id']}", f"wait/{workload['id']}?fragment=1", ""):
        answer = service.http.get(PREFIX + page, headers={"Authorization": "token amy-token"})
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        assert "49" not in answer.text.partition("</h1>")[0] or "7*7" in answer.text
    assert service.call("amy", "DELETE", f"/workloads/{workload['id']}", {"reason": text}).status_code == 200
    until(lambda: service.show(workload["id"])["ended_at"], 10, "it to be over")
    assert text in json.dumps(
        service.call("amy", "GET", f"/workloads/{workload['id']}/events").json(), ensure_ascii=False
    )


def test_the_log_holds_neither_tokens_nor_what_people_wrote(service: ServiceUnderTest) -> None:
    secret = "s3cr3t-sentence\nevent=forged"
    workload = service.ask("bo", "cpu", name="private-name-77", labels={"password": "hunter2"}).json()
    service.call("bo", "DELETE", f"/workloads/{workload['id']}", {"reason": secret})
    service.call("bo", "GET", "/workloads?owner=query-secret-5&token=query-secret-6")
    service.call("bo", "GET", "/workloads?owner=query-secret-7%00")
    service.call("bo", "PUT", "/nothing?token=query-secret-8")
    log = service.log()
    assert workload["id"] in log
    for word in (
        "s3cr3t",
        "event=forged",
        "private-name-77",
        "hunter2",
        "bo-token",
        "query-secret",
        "spawner-token",
    ):
        assert word not in log, word
    assert "Traceback" not in log
