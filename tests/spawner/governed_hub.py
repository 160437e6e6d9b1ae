"""A real hub with HubGovSpawner, its pages, and the scripted service behind it; people sign in to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from hub_under_test import HubUnderTest
from spawner.standin import TOKEN, Standin

CONFIG = """
from hubgov_spawner import HubGovSpawner, pages

c.JupyterHub.spawner_class = HubGovSpawner
c.GovernedMixin.hubgov_url = os.environ["TEST_SERVICE"]
c.GovernedMixin.hubgov_token = os.environ["TEST_SERVICE_TOKEN"]
c.GovernedMixin.attach_seconds = float(os.environ["TEST_ATTACH"])
c.Spawner.environment = {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}
c.Spawner.consecutive_failure_limit = 3
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": float(os.environ.get("TEST_SLOW", "10"))}
c.JupyterHub.allow_named_servers = True
c.JupyterHub.authenticate_prometheus = False
c.JupyterHub.db_url = "sqlite:///jupyterhub.sqlite"
c.BoxedSpawner.term_timeout = 3
pages.install(c)
"""


class GovernedHub(HubUnderTest):
    """The hub and its service."""

    def __init__(self, state: Path, isolation: str, *, attach: float, slow: float = 10) -> None:
        self.service = Standin()
        environment = {
            "TEST_SERVICE": self.service.url,
            "TEST_SERVICE_TOKEN": TOKEN,
            "TEST_ATTACH": str(attach),
            "TEST_SLOW": str(slow),
        }
        super().__init__(state, isolation, environment)
        with open(state / "jupyterhub_config.py", "a") as config:
            config.write(CONFIG)
        self.root = f"http://127.0.0.1:{self.port}/hub"

    def post(self, path: str, body: Any = None) -> httpx.Response:
        """POST to the hub's REST interface."""
        return self.http.post(f"{self.root}/api{path}", json=body)

    def failed(self) -> list[str]:
        """The hub's metrics of spawns that failed: those that it counted at least once."""
        lines = self.http.get(f"{self.root}/metrics").text.splitlines()
        found = [line for line in lines if line.startswith("jupyterhub_server_spawn_duration_seconds_count{")]
        return [line for line in found if 'status="success"' not in line and not line.endswith(" 0.0")]

    def log(self) -> str:
        """What the hub logged so far."""
        return (self.state / "hub.log").read_text()

    def close(self) -> None:
        """Stop all servers, the hub and the service."""
        try:
            super().close()
        finally:
            self.service.close()


@contextlib.contextmanager
def running(hub: GovernedHub) -> Iterator[GovernedHub]:
    """The hub, up."""
    try:
        hub.start()
        yield hub
    finally:
        hub.close()


@contextlib.contextmanager
def person(hub: GovernedHub, name: str, language: str = "en") -> Iterator[httpx.Client]:
    """A browser of somebody who signed in."""
    browser = httpx.Client(
        base_url=hub.root, headers={"Accept-Language": language}, timeout=30, follow_redirects=True, trust_env=False
    )
    with browser:
        browser.get("/login")
        form = {"username": name, "password": "x", "_xsrf": browser.cookies["_xsrf"]}
        answer = browser.post("/login", data=form, follow_redirects=False)
        assert answer.status_code == 302, answer.text
        yield browser


def xsrf(browser: httpx.Client) -> str:
    """The token that a form of this browser has to carry."""
    browser.get("/home")
    return [cookie.value or "" for cookie in browser.cookies.jar if cookie.name == "_xsrf"][-1]
