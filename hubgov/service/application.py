"""The tornado application: routes, templates, settings."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import jinja2
from jupyterhub.services.auth import HubOAuthCallbackHandler
from tornado import web

from hubgov import texts, wire
from hubgov.service.base import Base, Page, Services
from hubgov.service.handlers import contract, health, pages, panel
from hubgov.service.page_texts import PAGE
from hubgov.service.panel_texts import PANEL
from hubgov.service.routes import EXTENSION, ID, NAME, ROUTES

TEMPLATES = Path(__file__).parent / "templates"


class NoSuchRoute(Base):
    """Any other address: a document for programs, never the sign-in page."""

    async def prepare(self) -> None:
        raise web.HTTPError(404)


class Callback(HubOAuthCallbackHandler):  # type: ignore[misc]
    """Where the hub sends people back after their sign-in."""


def make(services: Services) -> web.Application:
    """The application under the service's prefix."""
    prefix = services.prefix
    api = prefix.rstrip("/") + wire.API
    handlers: dict[str, type[Any]] = {}
    for route in ROUTES:
        handlers[route.pattern] = route.handler
    table: list[Any] = [(api + pattern, handler) for pattern, handler in handlers.items()]
    for base in (prefix.rstrip("/"), api):
        table.append((base + "/openapi.json", contract.OpenApi))
    table.append((prefix.rstrip("/") + "/health", health.Health))
    table += [
        (prefix + "oauth_callback", Callback),
        (prefix + r"wait/(?P<workload_id>.*)", pages.Waiting),
        (prefix, pages.Home),
        *_panel(prefix),
        (prefix.rstrip("/"), web.RedirectHandler, {"url": prefix}),
        pages.static_route(prefix),
    ]
    return web.Application(
        table,
        default_handler_class=NoSuchRoute,
        hubgov=services,
        templates=_templates(prefix),
        cookie_secret=secrets.token_bytes(32),
        xsrf_cookies=True,
        log_function=_log_request,
    )


def _panel(prefix: str) -> list[Any]:
    """The panel's pages, and the forms on them."""
    base = prefix + "panel"
    queue, node = NAME.format("queue"), NAME.format("node")
    return [
        (base, panel.Holders),
        (base + f"/stop/{ID}", panel.StopWorkload),
        (base + "/queues", panel.Queues),
        (base + f"/queues/{queue}/(?P<act>hold|release)", panel.SetQueue),
        (base + "/inbox", panel.Inbox),
        (base + f"/inbox/{EXTENSION}", panel.Decide),
        (base + "/nodes", panel.Nodes),
        (base + f"/nodes/{node}/(?P<act>drain|undrain)", panel.SetNode),
        (base + "/audit", panel.AuditPage),
        (base + "/audit.csv", panel.AuditCsv),
        (base + "/cost", panel.Cost),
    ]


def _short(seconds: int) -> str:
    """A span as people say it: its two largest units, whole minutes above ten."""
    if seconds >= 86_400:
        seconds -= seconds % 3600
    elif seconds >= 600:
        seconds -= seconds % 60
    return wire.format_span(seconds * 1000)


def _gib(mib: int, of_mib: int | None = None) -> str:
    """Memory in GiB, `31/80 GiB`; `—` where the size isn't known."""
    used = f"{mib / 1024:.0f}" if mib % 1024 == 0 or mib > 10_240 else f"{mib / 1024:.1f}"
    return f"{used}/{of_mib / 1024:.0f} GiB" if of_mib else f"{used} GiB"


_ICONS = {
    "free": "○", "held": "●", "partly": "◐", "running": "●", "starting": "◔", "admitted": "◔", "expiring": "◒",
    "preempting": "◒", "stopping": "■", "drained": "⏸", "sick": "✕", "fenced": "⊘", "quarantined": "⊘",
    "unknown": "?", "suspect": "?", "lost": "?", "pending": "…", "unassigned": "–",
}  # fmt: skip


def _templates(prefix: str) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.globals["short"] = _short
    environment.globals["gib"] = _gib
    environment.globals["icon"] = lambda state: _ICONS.get(state, "·")
    environment.globals["t"] = _page_word
    environment.globals["state_word"] = lambda state, lang: texts.word(texts.STATES, state, lang)
    environment.globals["reason_word"] = lambda code, lang: texts.word(texts.REASONS, code, lang)
    environment.globals["extension_word"] = lambda state, lang: texts.word(texts.EXTENSION_STATES, state, lang)
    environment.globals["device_word"] = lambda state, lang: texts.word(texts.DEVICE_STATES, state, lang)
    environment.globals["money"] = lambda cost: texts.money(cost.amount, cost.currency)
    environment.globals["static"] = lambda name: f"{prefix}static/{name}"
    return environment


def _page_word(key: str, lang: str, **facts: object) -> str:
    """A word of the pages: the panel's own, else one of every page."""
    return texts.word(texts.having(key, PANEL, PAGE), key, lang, **facts)


def _log_request(handler: Any) -> None:
    """One line per request that failed, without its query: that may carry what is nobody's business."""
    if handler.get_status() >= 500 and isinstance(handler, Base | Page):
        log = handler.services.log
        log.warning("event=request_failed status=%s path=%s", handler.get_status(), handler.request.path)
