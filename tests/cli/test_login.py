"""`hubgov login`: one password, a token that can do little, in a file that nobody else reads."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from cli.conftest import Program
from cli.standin import TOKEN, Standin

TOKENS = "/hub/api/users/ann/tokens"
LOGIN = ("login", "--user", "ann", "--password-stdin")


@pytest.fixture
def hub(standin: Standin) -> Standin:
    """The stand-in as a hub that knows ann, who may administer hubgov among other things."""
    token = {"id": "a7", "token": TOKEN, "expires_at": "2026-04-01T08:00:00.000000Z"}
    standin.set("POST", TOKENS, token, 201)
    standin.set("GET", "/hub/api/user", {"name": "ann", "scopes": ["admin:users", "custom:hubgov:admin", "self"]})
    standin.set("DELETE", f"{TOKENS}/a7", None, 204)
    return standin


@pytest.fixture
def away(hubgov: Program) -> Program:
    """The program outside of any notebook."""
    del hubgov.environment["HUBGOV_URL"], hubgov.environment["HUBGOV_TOKEN"]
    return hubgov


def _file(home: Path) -> Path:
    return home / ".config" / "hubgov" / "login.json"


def test_the_token_is_kept_for_later_calls_and_never_shown(away: Program, hub: Standin, home: Path) -> None:
    ran = away(*LOGIN, "--url", hub.url, given="secret word\n")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"Signed in as ann at {hub.url} until 2026-04-01 16:00.\n"
    file = _file(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert list(file.parent.iterdir()) == [file]
    assert json.loads(file.read_text())["token"] == TOKEN
    assert away("queues").code == 0
    assert hub.last("GET", "/queues").headers["Authorization"] == f"token {TOKEN}"


def test_the_token_reaches_hubgov_and_nothing_else_of_the_hub(away: Program, hub: Standin) -> None:
    ran = away(*LOGIN, "--url", hub.hub, "--json", given="secret word")
    assert ran.document == {
        "url": hub.url,
        "user": "ann",
        "expires_at": "2026-04-01T08:00:00.000000Z",
        "file": ran.document["file"],
    }
    first, last = (a for a in hub.asked if a.method == "POST")
    assert first.body["auth"] == {"username": "ann", "password": "secret word"}
    assert first.body["expires_in"] <= 120
    assert "auth" not in last.body
    assert last.headers["Authorization"] == f"token {TOKEN}"
    assert last.body["scopes"] == ["access:services!service=hubgov", "custom:hubgov:admin"]
    assert last.body["expires_in"] == 30 * 86_400
    assert hub.asked[-1].method == "DELETE"


def test_a_hub_that_allows_less_time_gives_what_it_allows(away: Program, hub: Standin) -> None:
    kept = hub.answers["POST", TOKENS]
    hub.then("POST", TOKENS, {"status": 400, "message": "token expires_in: 2592000 must not exceed 86400"}, 400)
    hub.set("POST", TOKENS, *kept[::-1])
    ran = away(*LOGIN, "--url", hub.url, given="secret")
    assert ran.code == 3
    assert [a.body.get("expires_in") for a in hub.asked if a.method == "POST"] == [120, 2_592_000, None]


def test_a_wrong_password(away: Program, hub: Standin, home: Path) -> None:
    hub.set("POST", TOKENS, {"status": 403, "message": "Forbidden"}, 403)
    ran = away(*LOGIN, "--url", hub.url, given="wrong")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("hubgov: the hub did not accept user and password\nhint: ")
    assert not _file(home).exists()


def test_something_that_is_no_hub(away: Program, hub: Standin) -> None:
    hub.set("POST", TOKENS, "<html>", 404)
    assert away(*LOGIN, "--url", hub.url, given="x").code == 5
    assert away(*LOGIN, "--url", "http://127.0.0.1:1", given="x").code == 5
    ran = away(*LOGIN, "--url", "ftp://x", given="x")
    assert ran.code == 1
    assert "hint:" in ran.err


def test_a_file_that_others_may_read_is_refused(away: Program, hub: Standin, home: Path) -> None:
    away(*LOGIN, "--url", hub.url, given="x")
    _file(home).chmod(0o640)
    ran = away("queues")
    assert ran.code == 3
    assert f"chmod 600 {_file(home)}" in ran.err
    assert TOKEN not in ran.err
    away(*LOGIN, "--url", hub.url, given="x")
    assert stat.S_IMODE(_file(home).stat().st_mode) == 0o600


def test_a_file_that_is_damaged_says_so(away: Program, hub: Standin, home: Path) -> None:
    away(*LOGIN, "--url", hub.url, given="x")
    for text in ("", "[]", '{"url": 5}', "\x00"):
        _file(home).write_text(text)
        ran = away("queues")
        assert ran.code == 1
        assert "hubgov login" in ran.err


def test_a_token_is_sent_to_its_own_address_only(away: Program, hub: Standin) -> None:
    away(*LOGIN, "--url", "http://127.0.0.1:1/services/hubgov", given="x")
    away(*LOGIN, "--url", hub.url, given="x")
    asked = len(hub.asked)
    ran = away("queues", HUBGOV_URL=f"{hub.hub}/services/other")
    assert ran.code == 3
    assert "not signed in at" in ran.err
    assert len(hub.asked) == asked


def test_a_notebook_has_its_own_token(away: Program, hub: Standin) -> None:
    assert away("queues", HUBGOV_URL=hub.url, JUPYTERHUB_API_TOKEN=TOKEN).code == 0
    elsewhere = away("queues", JUPYTERHUB_API_TOKEN=TOKEN)
    assert elsewhere.code == 5


def test_the_password_is_asked_for_without_showing_it(away: Program, hub: Standin) -> None:
    terminal = away.on_terminal("login", "--user", "ann", "--url", hub.url, "--lang", "zh")
    terminal.until("ann 的密码：")
    terminal.type("secret word\n")
    code, shown = terminal.end()
    assert code == 0
    assert "secret" not in shown
    assert "已以 ann 登录" in shown
