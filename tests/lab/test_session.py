"""The session as the server extension relays it."""

from __future__ import annotations

import asyncio
import inspect
import time
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hubgov_lab import session as session_module
from hubgov_lab.app import HubgovLab
from hubgov_lab.session import ServiceTime
from hubgov_lab.settings import governed as read_environment
from lab.standin import TOKEN, WORKLOAD, Ask, Standin, decision, extension, stamp, until
from tornado.httpclient import HTTPClientError

from hubgov import processes
from hubgov.errors import Invalid


async def test_a_plain_server_is_not_governed_and_says_so(home: Path, jp_serverapp: Any, ask: Ask) -> None:
    assert await ask("session") == {"governed": False}
    status, answer = await ask("extend", {"by_seconds": 60, "reason": "", "key": "k-12345678"})
    assert (status, answer["error"]["code"]) == (404, "not_governed")
    assert not (home / ".hubgov").exists()


def test_an_environment_that_lacks_the_service_is_named() -> None:
    assert read_environment({}) is None
    with pytest.raises(Invalid, match="HUBGOV_URL"):
        read_environment({"HUBGOV_WORKLOAD_ID": "w-1", "JUPYTERHUB_API_TOKEN": "t"})


async def test_the_session_is_relayed_with_the_service_time(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    found = await ask("session", tab="t-1")
    assert found["governed"] is True
    assert found["offline_seconds"] is None
    assert found["workload"]["id"] == WORKLOAD
    assert found["workload"]["expires_at"] == standin.workload["expires_at"]
    assert found["rate"] == 1
    assert abs(_seconds(found["now"]) - time.time()) < 5
    assert standin.tokens == {f"token {TOKEN}"}


async def test_the_first_browser_claims_the_server_once(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    assert standin.claims == 0, "a server that runs unopened is not claimed by running"
    await ask("session", tab="t-1")
    await until(lambda: standin.claims == 1)
    await ask("session", tab="t-2")
    await ask("session", tab="t-1")
    assert standin.claims == 1


async def test_one_request_waits_at_the_service(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    waiting = asyncio.ensure_future(ask("session", after=1, wait=20))
    await until(lambda: len(standin.asked) == 2)
    assert standin.asked == [{"wait": "0"}, {"after": "1", "wait": "20"}]
    begun = time.monotonic()
    await standin.change(state="expiring")
    found = await waiting
    assert found["workload"]["state"] == "expiring"
    assert time.monotonic() - begun < 5


async def test_a_wait_without_news_ends(app: HubgovLab, ask: Ask) -> None:
    found = await ask("session", after=1, wait=1)
    assert found["revision"] == 1


async def test_polls_are_no_activity(app: HubgovLab, jp_serverapp: Any, ask: Ask) -> None:
    before = jp_serverapp.web_app.settings.get("api_last_activity")
    await ask("session")
    await ask("documents", {"paths": []})
    await ask("saved", {"save": "s-1", "documents": []})
    assert jp_serverapp.web_app.settings.get("api_last_activity") == before


async def test_offline_keeps_the_last_state_with_its_age(
    app: HubgovLab, standin: Standin, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_FIRST_RETRY_SECONDS", 0.05)
    standin.away = True
    await standin.change(state="expiring")
    found = await ask("session", after=1, wait=20)
    assert found["offline_seconds"] == 0
    assert found["workload"]["state"] == "running"
    assert found["revision"] == 2
    standin.away = False
    found = await ask("session", after=2, wait=20)
    assert found["offline_seconds"] is None
    assert found["workload"]["state"] == "expiring"


async def test_an_older_answer_changes_nothing(app: HubgovLab, standin: Standin) -> None:
    session = app.session
    assert session is not None
    assert session.workload is not None
    older = session.workload
    await standin.change(state="expiring")
    await session.wait_beyond(1, 5)
    assert await session.accept(older) is False
    assert session.workload.state == "expiring"


async def test_the_deadline_file_follows_the_lease(app: HubgovLab, standin: Standin, governed: Path) -> None:
    file = governed / ".hubgov" / "deadline"
    assert file.read_text() == f"{standin.workload['expires_at']}\n"
    assert app.session is not None
    later = stamp(9000)
    await standin.change(expires_at=later)
    await app.session.wait_beyond(1, 5)
    assert file.read_text() == f"{later}\n"
    await standin.change(expires_at=None)
    await app.session.wait_beyond(2, 5)
    assert not file.exists()
    assert [found.name for found in file.parent.iterdir() if found.is_file()] == []


async def test_an_extension_is_granted_and_moves_the_end(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    before = standin.workload["expires_at"]
    answer = await ask("extend", {"by_seconds": 7200, "reason": "eval", "key": "key-12345"})
    assert answer["outcome"] == "granted"
    assert answer["extension"]["by_seconds"] == 7200
    assert answer["workload"]["expires_at"] > before
    assert answer["workload"]["extensions_left"] == 1
    assert answer["error"] is None
    assert standin.extended == [("key-12345", {"by_seconds": 7200, "reason": "eval"})]


async def test_the_same_click_twice_carries_the_same_key(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    for _ in range(2):
        await ask("extend", {"by_seconds": 60, "reason": "", "key": "key-of-one-click"})
    assert {key for key, _ in standin.extended} == {"key-of-one-click"}


async def test_an_extension_needs_approval(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    standin.extend_answer = (202, extension("needs_approval", None, 7200, needs=["team-lead"]))
    answer = await ask("extend", {"by_seconds": 7200, "reason": "eval", "key": "key-12345"})
    assert answer["outcome"] == "needs_approval"
    assert answer["extension"]["needs"] == ["team-lead"]


async def test_a_denied_extension_carries_the_decision(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    refused = {"code": "above_maximum", "message": "no", "details": decision(), "hint": "ask"}
    standin.extend_answer = (422, {"error": refused})
    answer = await ask("extend", {"by_seconds": 43200, "reason": "eval", "key": "key-12345"})
    assert answer["outcome"] == "denied"
    assert answer["decision"]["blockers"][0]["limit"] == 36000
    assert answer["decision"]["next_steps"][0] == "Ask a team lead for an exception"
    assert answer["error"]["code"] == "above_maximum"


async def test_a_session_that_ended_is_not_extended(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    standin.extend_answer = (409, {"error": {"code": "ended", "message": "it is over"}})
    answer = await ask("extend", {"by_seconds": 60, "reason": "", "key": "key-12345"})
    assert (answer["outcome"], answer["error"]["code"]) == ("ended", "ended")


async def test_an_extension_fails_while_the_service_is_away(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    standin.away = True
    answer = await ask("extend", {"by_seconds": 60, "reason": "", "key": "key-12345"})
    assert (answer["outcome"], answer["error"]["code"]) == ("failed", "unavailable")
    assert answer["workload"]["state"] == "running"
    status, answer = await ask("why")
    assert (status, answer["error"]["code"]) == (503, "unavailable")


async def test_whoever_took_the_services_port_gets_no_token(
    app: HubgovLab, standin: Standin, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "impostor_at", lambda url: 61002)
    answer = await ask("extend", {"by_seconds": 60, "reason": "", "key": "key-12345"})
    assert (answer["outcome"], answer["error"]["code"]) == ("failed", "unavailable")
    assert standin.extended == []


async def test_why_and_stop_are_relayed(app: HubgovLab, standin: Standin, ask: Ask) -> None:
    assert (await ask("why"))["headline"] == standin.why["headline"]
    answer = await ask("stop", {"reason": "done"})
    assert answer["workload"]["state"] == "stopping"
    assert standin.stopped == [{"reason": "done", "now": False}], "so that the documents are saved first"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("extend", {"by_seconds": "60", "reason": "", "key": "key-12345"}),
        ("extend", {"by_seconds": True, "reason": "", "key": "key-12345"}),
        ("extend", {"by_seconds": 0, "reason": "", "key": "key-12345"}),
        ("extend", {"by_seconds": 60, "reason": 7, "key": "key-12345"}),
        ("extend", {"by_seconds": 60, "reason": "", "key": "a\nb-12345678"}),
        ("extend", []),
        ("stop", {"reason": 7}),
        ("documents", {"paths": "a"}),
        ("documents", {"paths": [7]}),
        ("documents", {"paths": [], "tab": 7}),
        ("saved", {"save": 7, "documents": []}),
        ("saved", {"save": "s-1", "documents": [{"path": "a"}]}),
        ("saved", {"save": "s-1", "documents": ["a"]}),
    ],
)
async def test_bad_bodies_are_refused(app: HubgovLab, standin: Standin, ask: Ask, path: str, body: Any) -> None:
    status, answer = await ask(path, body)
    assert (status, answer["error"]["code"]) == (400, "invalid")
    assert standin.extended == []


async def test_nobody_asks_without_the_token(app: HubgovLab, jp_fetch: Any) -> None:
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch("hubgov", "session", headers={"Authorization": "token wrong"})
    assert refused.value.code == 403


async def test_a_notice_is_shown_once_over_tabs_and_a_restart(
    app: HubgovLab, standin: Standin, ask: Ask, governed: Path
) -> None:
    notice = {
        "id": "n-1",
        "kind": "expiring",
        "threshold_seconds": 1800,
        "deadline": stamp(1800),
        "issued_at": stamp(0),
    }
    await standin.change(notices=[notice])
    first, second = await asyncio.gather(
        ask("session", after=1, wait=5, tab="t-1"), ask("session", after=1, wait=5, tab="t-2")
    )
    assert [found["id"] for found in first["unshown_notices"]] == ["n-1"]
    assert first["unshown_notices"] == second["unshown_notices"]
    claims = await asyncio.gather(ask("notices/n-1/shown", {}), ask("notices/n-1/shown", {}))
    assert sorted(claim["first"] for claim in claims) == [False, True]
    assert (await ask("session"))["unshown_notices"] == []
    assert app.session is not None
    kept = type(app.session.memory).of(governed, WORKLOAD)
    assert kept.shown == {"n-1"}
    status, answer = await ask("notices/n-9/shown", {})
    assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_documents_are_opened_again_by_one_tab(app: HubgovLab, ask: Ask, governed: Path) -> None:
    assert (await ask("session"))["resumed"] is False
    assert (await ask("resume", {}))["first"] is True
    assert (await ask("resume", {}))["first"] is False
    assert (await ask("session"))["resumed"] is True


def test_the_speed_of_the_service_clock_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    here = iter((0.0, 10.0, 11.0, 20.0))
    monkeypatch.setattr(session_module, "time", SimpleNamespace(monotonic=lambda: next(here)))
    clock = ServiceTime()
    clock.read("2026-03-02T09:00:00.000Z", 60)
    assert clock.rate == 1
    clock.read("2026-03-02T09:10:00.000Z", 60)
    assert clock.rate == 60
    assert clock.now() == "2026-03-02T09:11:00.000Z"
    clock.read("not a time", 60)
    clock.read("2026-03-02T09:00:20.000Z", 60)
    assert clock.rate == 1


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("query", "claims"),
    [({}, True), ({"workload": WORKLOAD}, True), ({"workload": "nb-old"}, False), ({"visible": 0}, False)],
)
async def test_only_a_tab_that_came_for_this_session_claims_it(
    query: dict[str, Any], claims: bool, app: HubgovLab, standin: Standin, ask: Ask
) -> None:
    await ask("session", tab="t-1", **query)
    assert app.session is not None
    assert app.session._opened is claims


async def test_what_somebody_else_does_in_a_session_names_him(
    app: HubgovLab, standin: Standin, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask("session", tab="t-1")
    assert app.serverapp is not None
    provider = app.serverapp.identity_provider
    known = provider.get_user

    async def from_the_hub(handler: Any) -> Any:
        user: Any = known(handler)
        user = await user if inspect.isawaitable(user) else user
        user.hub_user = {"name": "root"}  # as jupyterhub-singleuser does
        return user

    monkeypatch.setattr(provider, "get_user", from_the_hub)
    await ask("stop", {"reason": "maintenance"})
    assert standin.stopped[-1]["reason"] == "maintenance (asked by root in the owner's JupyterLab)"


async def test_a_deeply_nested_body_is_refused(app: HubgovLab, ask: Ask, jp_fetch: Any) -> None:
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch("hubgov", "extend", method="POST", body="[" * 100_000)
    assert refused.value.code == 400
