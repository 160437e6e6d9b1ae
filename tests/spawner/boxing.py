"""A boxed spawner of amy whose server is a small program, with stand-ins for all that the hub gives it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hubgov_spawner import guarding
from hubgov_spawner.boxed import BoxedSpawner

from hubgov.wire import ProcessRef

MODES = [
    pytest.param("root", marks=pytest.mark.boxed),
    pytest.param("userns", marks=pytest.mark.boxed),
    "none",
]
USER = 4000
LISTEN = """
import http.server, os, signal, urllib.parse
address = urllib.parse.urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
http.server.HTTPServer((address.hostname, address.port), http.server.BaseHTTPRequestHandler).serve_forever()
"""


class Recording(BoxedSpawner):
    """Keeps what the governance mixin would be told."""

    told: list[tuple[ProcessRef, ProcessRef | None]]

    def hub_users(self) -> dict[int, tuple[str, str]]:
        return {7: ("amy", "2026-03-02T10:00:00.000001")}

    def hub_files(self) -> list[str]:
        return []

    async def processes_started(self, main: ProcessRef, init: ProcessRef | None) -> None:
        assert self.orm_spawner.state["main"] == [main.pid, main.start_ticks]
        self.told = [(main, init)]


def a_spawner(state: Path, mode: str, program: str = LISTEN, **change: Any) -> Recording:
    """A spawner of user number USER whose server runs `program`, with stand-ins for what the hub gives it."""
    # Accounts are the machine's: this number is no other test's.
    Path(state, "homes", f"hgu{USER - 1}").mkdir(parents=True, exist_ok=True)
    user = SimpleNamespace(id=7, name="amy", url="/user/amy/", settings={}, spawners={})
    user.db = SimpleNamespace(commit=lambda: None)
    hub = SimpleNamespace(
        public_host="", api_url="http://127.0.0.1:1/hub/api", base_url="/hub/", server=SimpleNamespace()
    )
    orm = SimpleNamespace(name="", server=None, state={})
    values = {
        "state_dir": str(state),
        "isolation": mode,
        "cmd": [sys.executable, "-c", program],
        "term_timeout": 5.0,
    }
    spawner = Recording(user=user, hub=hub, orm_spawner=orm, api_token="secret", **(values | change))
    spawner.told = []
    return spawner


async def released() -> None:
    """Wait until every port of the running loop that is about to be let go is."""
    loop = asyncio.get_running_loop()
    mine = [task for task in guarding._releases if task.get_loop() is loop]
    if mine:
        await asyncio.wait(mine)


@asynccontextmanager
async def started(spawner: Recording) -> AsyncIterator[Recording]:
    """The spawner with its server up; nothing is left of it afterwards."""
    try:
        url = await asyncio.wait_for(spawner.start(), 20)
        assert url == f"http://127.0.0.1:{spawner.port}"
        yield spawner
    finally:
        await spawner.stop(now=True)
        spawner.clear_state()
        await released()
