"""The hub's pages with their replacements: language, links, receipt; rendered as the hub does, without a hub."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jupyterhub
import pytest
from hubgov_spawner import overview, pages, receipts, refusals
from hubgov_spawner.client import Client
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader
from jupyterhub._data import DATA_FILES_PATH
from spawner.governing import close
from spawner.standin import TOKEN, Standin, receipt, workload
from traitlets.config import Config

from hubgov.wire import Receipt, Workload
from hubgov.wire_json import from_json

STOCK = str(Path(DATA_FILES_PATH) / "templates")
HOSTILE = "<script>alert(1)</script>"


def test_what_a_site_configured_stays_and_comes_first() -> None:
    config = Config()
    config.JupyterHub.template_paths = ["/srv/templates"]
    config.JupyterHub.jinja_environment_options = {"extensions": ["site.Pages"], "cache_size": 7}
    pages.install(config)
    hub = config.JupyterHub
    assert hub.template_paths == ["/srv/templates", pages.FOLDER]
    options = {"extensions": ["site.Pages", "hubgov_spawner.pages.HubPages"], "cache_size": 7}
    assert hub.jinja_environment_options == options


class Handler:
    """What a page learns about its request."""

    def __init__(self, path: str, accept: str, cookie: str, query: dict[str, str]) -> None:
        arguments = {key: [value.encode()] for key, value in query.items()}
        headers = {"Accept-Language": accept}
        self.request = SimpleNamespace(path=path, headers=headers, query_arguments=arguments)
        self.query, self.cookie = query, cookie
        self.set: list[tuple[str, str]] = []

    def static_url(self, path: str, **_: Any) -> str:
        return f"/hub/static/{path}"

    def get_query_argument(self, name: str, default: str) -> str:
        return self.query.get(name, default)

    def get_cookie(self, name: str, default: str) -> str:
        return self.cookie or default

    def set_cookie(self, name: str, value: str, **_: Any) -> None:
        self.set.append((name, value))


def render(
    name: str,
    *,
    path: str = "/hub/home",
    accept: str = "en",
    cookie: str = "",
    query: dict[str, str] | None = None,
    handler: list[Handler] | None = None,
    **facts: Any,
) -> str:
    """A page, as the hub's handlers render it."""
    loader = ChoiceLoader(
        [PrefixLoader({"templates": FileSystemLoader([STOCK])}), FileSystemLoader([pages.FOLDER, STOCK])]
    )
    environment = Environment(
        loader=loader, autoescape=True, enable_async=True, extensions=["hubgov_spawner.pages.HubPages"]
    )
    asked = Handler(path, accept, cookie, query or {})
    if handler is not None:
        handler.append(asked)
    user = SimpleNamespace(
        name="amy",
        escaped_name="amy",
        json_escaped_name="amy",
        spawner=SimpleNamespace(options_form=True),
        spawners={},
        server_url=lambda name: f"/user/amy/{name}",
        all_spawners=lambda include_default: [],
    )
    given = {
        "base_url": "/hub/",
        "user": user,
        "static_url": asked.static_url,
        "services": [],
        "parsed_scopes": {},
        "xsrf": "token",
        "xsrf_token": "token",
        "server_name": "",
        "spawn_url": "/hub/spawn/amy",
        "url": "/hub/spawn/amy?_xsrf=token",
    }
    return asyncio.run(environment.get_template(name).render_async(**given | facts))


def a_user(view: receipts.View | None) -> SimpleNamespace:
    """A user whose stopped server tells this receipt, in time or not."""

    async def hubgov_receipt(lang: str) -> receipts.View | None:
        return view

    return SimpleNamespace(
        name="amy",
        json_escaped_name="amy",
        spawner=None,
        spawners={"": SimpleNamespace(hubgov_receipt=hubgov_receipt)},
    )


def a_view(lang: str = "en", options: dict[str, Any] | None = None, **change: Any) -> receipts.View:
    return receipts.as_view(from_json(Receipt, receipt(**change)), lang, options or {})


RUNS = {
    "state": "running", "position": None, "now": "2026-03-02T09:00:00Z", "expires_at": "2026-03-02T10:30:00Z",
    "grace_until": "2026-03-02T10:35:00Z", "cost": {"amount": "3.200000", "currency": "CNY"},
    "devices": [{"node": "box", "index": 0, "uuid": "GPU-0", "slice": None, "simulated": False}],
}  # fmt: skip
TAG = {"en": "en", "zh": "zh-CN"}

# --- language -------------------------------------------------------------------------------------------


def test_the_stock_page_is_the_one_these_pages_were_made_for() -> None:
    assert jupyterhub.__version__.startswith("6.")
    assert '<html lang="en">' in Path(STOCK, "page.html").read_text()


@pytest.mark.parametrize("template", pages.STOCK_PHRASES)
def test_every_phrase_that_is_replaced_stands_in_the_stock_template(template: str) -> None:
    source = Path(STOCK, template).read_text()
    assert [phrase for phrase in pages.STOCK_PHRASES[template] if phrase not in source] == []


def test_the_sign_in_page_is_in_the_readers_language() -> None:
    facts = {
        "authenticator_login_url": "/hub/login",
        "authenticator": SimpleNamespace(request_otp=False),
        "xsrf": "t",
    }
    wrong = "Invalid username or password"
    chinese = render("login.html", accept="zh", login_error=wrong, **facts)
    for text in ("<h1>登录</h1>", "用户名：", "密码：", "用户名或密码错误", 'title="显示密码"', "value='登录'"):
        assert text in chinese, text
    english = render("login.html", login_error=wrong, **facts)
    for text in ("Sign in", "Username", "Password:", wrong, "JupyterHub seems"):
        assert text not in chinese, text
    assert "<h1>Sign in</h1>" in english
    assert wrong in english
    assert "something else &lt;b&gt;" in render(
        "login.html", accept="zh", login_error="something else <b>", **facts
    )


def test_a_page_that_is_not_there_says_so_and_nothing_else() -> None:
    for accept, text in (("en", "There is no such page."), ("zh", "没有该页面。")):
        html = render("404.html", accept=accept, status_code=404, status_message=None)
        assert text in html
        assert "None" not in html
        assert "moons" not in html
    facts = {"status_code": 404, "status_message": "Not Found"}
    html = render("error.html", accept="zh", message="No access to resources or resources not found", **facts)
    assert "404 : 未找到" in html
    assert "此处没有可访问的内容" in html


@pytest.mark.parametrize(
    ("accept", "cookie", "query", "lang"),
    [
        ("en", "", {}, "en"),
        ("zh-CN,zh;q=0.9", "", {}, "zh"),
        ("zh-CN", "en", {}, "en"),
        ("fr", "", {}, "en"),
        ("en", "en", {"lang": "zh"}, "zh"),
        ("en", "", {"lang": "<x>"}, "en"),
    ],
)
def test_the_language_is_query_then_cookie_then_browser(
    accept: str, cookie: str, query: dict[str, str], lang: str
) -> None:
    seen: list[Handler] = []
    html = render(
        "home.html", accept=accept, cookie=cookie, query=query, handler=seen, default_server=SimpleNamespace()
    )
    assert f'<html lang="{TAG[lang]}">' in html
    assert ("启动我的服务器" if lang == "zh" else "Start my server") in html
    assert bool(seen[0].set) is (query.get("lang") == "zh")


def test_the_switch_leads_to_the_same_page_but_never_starts_a_server() -> None:
    html = render("home.html", path="/hub/home", query={"a": "1", "_xsrf": "t"}, default_server=SimpleNamespace())
    assert 'href="/hub/home?a=1&amp;lang=zh"' in html
    html = render("spawn.html", path="/hub/spawn/amy", spawner_options_form="", for_user=None)
    assert 'href="/hub/home?lang=zh"' in html


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["home.html", "spawn.html", "stop_pending.html", "error.html"])
def test_every_page_renders_in_both_languages(name: str, lang: str) -> None:
    facts = {"default_server": SimpleNamespace(active=True), "allow_named_servers": True, "status_code": 500}
    assert f'<html lang="{TAG[lang]}">' in render(name, accept=lang, **facts)


@pytest.mark.parametrize(("lang", "word"), [("en", "SIMULATED"), ("zh", "模拟")])
def test_simulated_servers_are_called_so_on_the_hubs_home(lang: str, word: str) -> None:
    facts = {"pending": None, "last_activity": None, "ready": True}
    rows = [
        SimpleNamespace(name="made-up", active=True, hubgov_simulated=True, **facts),
        SimpleNamespace(name="over", active=False, hubgov_simulated=True, **facts),
        SimpleNamespace(name="real", active=True, hubgov_simulated=False, **facts),
        SimpleNamespace(name="ungoverned", active=True, **facts),
    ]
    user = SimpleNamespace(
        name="amy",
        escaped_name="amy",
        json_escaped_name="amy",
        spawner=SimpleNamespace(options_form=True),
        spawners={},
        server_url=lambda name: f"/user/amy/{name}",
        all_spawners=lambda include_default: rows,
    )
    default = SimpleNamespace(active=True, hubgov_simulated=True)
    html = render("home.html", accept=lang, user=user, default_server=default, allow_named_servers=True)
    marked = [row.split("</tr>")[0] for row in html.split("data-server-name=")[1:]]
    assert [word in row for row in marked] == [True, False, False, False]
    assert html.count(word) == 2


# --- pending, queue, failure ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "page"), [("", "/hub/user/amy/"), ("w 0", "/hub/user/amy/w%200/")])
def test_the_page_of_a_server_that_stops_leads_to_its_receipt(name: str, page: str) -> None:
    """The stock one loads itself again, and is not found once a named server has stopped."""
    html = render("stop_pending.html", spawner=SimpleNamespace(name=name))
    assert f'const page = "{page}";' in html
    assert "location.reload" not in html
    assert "Your server is stopping" in html


def test_the_pending_page_stops_the_server_that_is_pending() -> None:
    spawner = SimpleNamespace(name="second", user=SimpleNamespace(name="bo"))
    html = render("spawn_pending.html", spawner=spawner, progress_url="/hub/api/progress")
    assert 'data-user="bo" data-server="second"' in html
    assert "api.stop_named_server(user, server, answer)" in html
    assert html.count("new EventSource") == 1


def test_who_is_in_the_queue_is_led_to_the_waiting_page() -> None:
    ticket = from_json(Workload, workload(headline=HOSTILE))
    error = refusals.queued(ticket, "/services/hubgov/wait", "en")
    facts = {"failed_html_message": error.jupyterhub_html_message, "failed_message": error.jupyterhub_message}
    html = render("not_running.html", failed=True, exception=error, **facts)
    assert "You are in the queue" in html
    assert '<meta http-equiv="refresh" content="3; url=/services/hubgov/wait/nb-1">' in html
    assert HOSTILE not in html
    html = render("error.html", status_code=503, exception=error, message_html=error.message_html)
    assert 'url=/services/hubgov/wait/nb-1">' in html


def test_another_failure_is_told_and_can_be_tried_again() -> None:
    error = refusals.invalid(HOSTILE, "", "en")
    facts = {"failed_html_message": error.jupyterhub_html_message, "failed_message": error.jupyterhub_message}
    html = render("not_running.html", failed=True, exception=error, **facts)
    assert "The server was not started" in html
    assert 'http-equiv="refresh"' not in html
    assert HOSTILE not in html
    assert "Try again" in html
    html = render("not_running.html", failed=True, exception=ValueError(), failed_message="plain <b>")
    assert "plain &lt;b&gt;" in html


# --- the receipt ----------------------------------------------------------------------------------------


def test_the_receipt_tells_what_was_saved_lost_and_charged() -> None:
    html = render("not_running.html", user=a_user(a_view()))
    for text in (
        "Session ended 18:30 — time limit (8h, queue lab)",
        "a.ipynb — saved 18:29",
        "variables of kernel python3 (a.ipynb)",
        "18:35:04",
        "8h · 8 GPU-h",
        "¥148.00",
        "1 × A100 (box/0, box/1) · project seg · queue lab",
    ):
        assert text in html
    zh = render("not_running.html", accept="zh", user=a_user(a_view("zh")))
    assert "会话已于 18:30 结束——达到时长上限（8h，队列 lab）" in zh
    assert "A100 × 1 (box/0, box/1) · 项目 seg · 队列 lab" in zh


def test_the_receipt_of_a_session_without_a_gpu_says_so() -> None:
    over = receipt()["workload"] | {"gpus": 0, "flavor": None, "devices": []}
    view = a_view(workload=over)
    assert view.request == "no GPU · project seg · queue lab"
    assert (view.used, view.returned) == ("8h", ""), "no GPU-hours, and none given back"


def test_the_receipt_says_why_less_is_charged_than_was_used() -> None:
    assert a_view(gpu_seconds=7 * 3600).used == "8h · 7 GPU-h (time past the end is free)"
    assert a_view(gpu_seconds=8 * 3600 - 1).used == "8h · 8 GPU-h"


# --- home -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "lang", "state", "text", "url"),
    [
        ({}, "en", "waiting", "place 3 in queue lab", "/services/hubgov/wait/nb-1"),
        ({}, "zh", "排队中", "队列 lab 第 3 位", "/services/hubgov/wait/nb-1"),
        ({"position": None}, "en", "waiting", "", "/services/hubgov/wait/nb-1"),
        (RUNS, "en", "running", "1 × A100 (box/0) · ends 18:30 · ¥3.20 so far", ""),
        (RUNS, "zh", "运行中", "A100 × 1 (box/0) · 18:30 到期 · 目前费用 ¥3.20", ""),
        (RUNS | {"state": "expiring"}, "en", "ending", "1 × A100 (box/0) · stops 18:35 · ¥3.20 so far", ""),
        (RUNS | {"gpus": 0, "devices": [], "expires_at": None, "grace_until": None}, "en", "running", "no GPU", ""),
    ],
)
def test_the_home_page_tells_what_each_server_holds_or_waits_for(
    change: dict[str, Any], lang: str, state: str, text: str, url: str
) -> None:
    document = from_json(Workload, workload(timezone="Asia/Shanghai", **change))
    line = overview.as_line(document, lang, "/services/hubgov/wait")
    assert (line.state, line.text, line.url) == (state, text, url)

    async def told(asked: str) -> dict[str, overview.Line]:
        return {"": line}

    default = SimpleNamespace(active=True, hubgov_overview=told)
    html = render("home.html", accept=lang, default_server=default)
    assert text in html
    assert (f'<a href="{url}">{state}</a>' in html) is bool(url)


def test_the_home_page_is_there_when_the_service_is_away() -> None:
    async def told(asked: str) -> dict[str, overview.Line]:
        return {}

    html = render("home.html", default_server=SimpleNamespace(active=True, hubgov_overview=told))
    assert "Stop my server" in html
    assert "hubgov-standing" not in html


def test_resume_is_a_form_with_the_same_request() -> None:
    view = a_view(options={"profile": "one", "lease": 7200})
    assert view.resume == {
        "profile": "one",
        "project": "seg",
        "lease": "7200",
        "resumes": "nb-7",
        "hubgov_lang": "en",
    }
    html = render("not_running.html", user=a_user(view))
    assert '<form id="hubgov-resume" method="post" action="/hub/spawn/amy"' in html
    assert '<input type="hidden" name="_xsrf" value="token">' in html
    assert '<input type="hidden" name="resumes" value="nb-7">' in html
    without = a_view()
    assert without.resume == {
        "queue": "lab",
        "gpus": "1",
        "flavor": "A100",
        "project": "seg",
        "lease": "28800",
        "resumes": "nb-7",
        "hubgov_lang": "en",
    }


def test_what_was_not_saved_stands_out_and_is_escaped() -> None:
    document = {"path": HOSTILE, "outcome": "failed", "error": "disk quota exceeded"}
    lost = [f"{HOSTILE}: disk quota exceeded"]
    html = render("not_running.html", user=a_user(a_view(documents=[document], lost=lost, devices_free_at=None)))
    assert re.search(r'class="text-danger fw-bold">[^<]*: disk quota exceeded<', html)
    assert "No open document was saved." in html, "nothing that is lost stands among what was saved"
    assert HOSTILE not in html
    assert "not yet: a process is still on it" in html


def test_without_a_receipt_the_page_is_there_all_the_same() -> None:
    html = render("not_running.html", user=a_user(None))
    assert "The server is not running" in html
    assert "Start a new session" in html


def test_a_page_does_not_wait_for_a_service_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Standin()

    async def scenario() -> receipts.View | None:
        asked = Client(url=service.url, token=TOKEN)
        try:
            service.receipts["amy", "second"] = receipt()
            log = logging.getLogger("test")
            assert await receipts.view(asked, "amy", "second", {}, log) is not None
            assert await receipts.view(asked, "amy", "", {}, log) is None
            assert {path.split("/")[1] for _, path, _ in service.asked} <= {"servers"}, "the receipt is enough"
            monkeypatch.setattr(receipts, "PAGE_SECONDS", 0.0)
            return await receipts.view(asked, "amy", "second", {}, log)
        finally:
            await close()

    try:
        assert asyncio.run(scenario()) is None
    finally:
        service.close()
