"""What the page of who holds what costs with 500 sessions on 500 cards, and when Chromium shows it. Run as a
script; prints milliseconds: of CPU to make the page, the best of five, and to the first paint."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.documents import best, crowd
from builders import HOUR_MS, START
from journeys.conftest import CHROMIUM
from playwright.sync_api import sync_playwright

from hubgov.clock import Instant
from hubgov.control.actor import ADMIN, Actor
from hubgov.core.state import State
from hubgov.service.application import _templates
from hubgov.service.documents import Desk
from hubgov.service.panel.holders import Wanted, choices, holder_rows

SESSIONS = 504
STATIC = Path(__file__).parents[2] / "hubgov" / "service" / "static"


def page(state: State) -> str:
    actor = Actor(name="root", scopes=frozenset({ADMIN}))
    desk = Desk(state, Instant(START + HOUR_MS), actor, "en")
    rows = holder_rows(desk, {}, "enforced")
    template = _templates("/").get_template("panel_holders.html")
    return template.render(
        lang="en", status=200, switch="?lang=zh", hub="/", prefix="/", actor=actor, nav=(), xsrf="x",
        section="holders", desk=desk, said=None, what="", at="12:00", rows=rows, any_rows=True, wanted=Wanted(),
        choices=choices(rows, "en"), stopping=None,
    )  # fmt: skip


class Serve(BaseHTTPRequestHandler):
    """The page, made anew each time, and its files."""

    state: State

    def do_GET(self) -> None:
        name = self.path.removeprefix("/static/")
        body = (STATIC / name).read_bytes() if name != self.path else page(self.state).encode()
        self.send_response(200)
        self.send_header(
            "Content-Type", {"css": "text/css", "js": "text/javascript"}.get(name[-3:].strip("."), "text/html")
        )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # the browser went on to the next page
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


def first_paint(state: State) -> float:
    Serve.state = state
    server = ThreadingHTTPServer(("127.0.0.1", 0), Serve)
    Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", headless=True, args=CHROMIUM)
        shown = browser.new_page()
        paints = []
        for _ in range(5):
            shown.goto(f"http://127.0.0.1:{server.server_port}/panel")
            shown.wait_for_timeout(300)
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            paints.append(float(shown.evaluate(paint)))
        browser.close()
    server.shutdown()
    return min(paints)


if __name__ == "__main__":
    crowded = crowd(SESSIONS, 0)
    print(f"{len(page(crowded)) // 1024} KiB")
    print(f"made in        {best(partial(page, crowded)):8.1f}")
    print(f"first paint at {first_paint(crowded):8.1f}")
