"""A governed spawner of amy that starts nothing, with stand-ins for all that the hub gives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from hubgov_spawner import GovernedMixin, client, reports
from jupyterhub.spawner import Spawner, SpawnException
from spawner.standin import TOKEN, Standin
from waiting import until_async

from hubgov.wire import ProcessRef

MAIN = ProcessRef(pid=1, start_ticks=2, boot_id="boot")


class Light(Spawner):  # type: ignore[misc]
    """A spawner that only remembers."""

    running = False
    status = 0
    broken: BaseException | None = None
    hanging = False
    environment_seen: dict[str, str]

    async def start(self) -> str:
        if self.hanging:
            await asyncio.Event().wait()
        if self.broken:
            raise self.broken
        self.environment_seen = self.get_env()
        await self.report_processes(MAIN, None)
        self.running = True
        return "http://127.0.0.1:9999"

    async def stop(self, now: bool = False) -> None:
        self.running = False

    async def poll(self) -> int | None:
        return None if self.running else self.status

    async def get_url(self) -> str:
        return "http://127.0.0.1:9999"


class Governed(GovernedMixin, Light):
    """What is tested."""

    def server_processes(self) -> tuple[ProcessRef, None]:
        return MAIN, None


def a_spawner(service: Standin, user_options: Any = None, **change: Any) -> Governed:
    """A spawner of amy, with stand-ins for all that the hub gives it."""
    user = SimpleNamespace(id=1, name="amy", url="/user/amy/", settings={}, spawners={})
    user.groups = [SimpleNamespace(name="vision")]
    hub = SimpleNamespace(public_host="", api_url="http://127.0.0.1:1/hub/api", base_url="/hub/")
    orm = SimpleNamespace(name=change.pop("server_name", ""), server=None, state={}, user_options=user_options)
    values = {"hubgov_url": service.url, "hubgov_token": TOKEN, "attach_seconds": 5.0}
    spawner = Governed(user=user, hub=hub, orm_spawner=orm, api_token="secret", **(values | change))
    spawner.user_options = user_options if user_options is not None else {}
    return spawner


async def arrived() -> None:
    """Wait until every report of the running loop that is on its way has arrived, or was given up."""
    loop = asyncio.get_running_loop()
    mine = [task for task in reports._on_their_way if task.get_loop() is loop]
    if mine:
        await asyncio.wait(mine)


async def close() -> None:
    """Close the connections of the running loop."""
    for http in client._shared.pop(asyncio.get_running_loop(), {}).values():
        await http.aclose()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run it in a loop of its own, with every report arrived and every connection closed at its end."""

    async def whole() -> None:
        try:
            await scenario()
            await arrived()
        finally:
            await close()

    asyncio.run(whole())


async def refusal_of(spawner: Governed) -> SpawnException:
    with pytest.raises(SpawnException) as raised:
        await spawner.start()
    error: SpawnException = raised.value
    assert error.jupyterhub_message == error.message
    assert error.jupyterhub_html_message
    return error


async def has(condition: Callable[[], Any], what: str) -> None:
    async def asked() -> Any:
        return condition()

    await until_async(asked, 5, what)


@asynccontextmanager
async def running(service: Standin) -> AsyncIterator[Governed]:
    spawner = a_spawner(service)
    await spawner.start()
    yield spawner
    await arrived()
