"""Before a server is stopped: the service is told, and the session gets the time to save what is open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from hubgov_spawner.client import Client, ServiceError
from hubgov_spawner.reports import Held

STOPPING_SECONDS = 5.0
"""How long a stop waits for one answer, of the service or of the proxy."""
SAVING_SECONDS = 15
"""How long a stop waits for the session's documents to be saved."""


@dataclass(frozen=True, slots=True)
class Way:
    """The way from browsers to one server. The hub takes it away before it stops a server."""

    proxy: Any
    spec: str
    server: Any
    user: str
    name: str

    @asynccontextmanager
    async def open(self, log: logging.Logger) -> AsyncIterator[None]:
        """Open again for so long. Whatever a proxy raises, the stop goes on: then no tab can save."""
        if self.proxy is None or self.server is None:
            yield
            return
        data = {"user": self.user, "server_name": self.name}
        await self._asked(self.proxy.add_route(self.spec, self.server.host, data), log)
        try:
            yield
        finally:
            await self._asked(self.proxy.delete_route(self.spec), log)

    async def _asked(self, answer: Awaitable[None], log: logging.Logger) -> None:
        try:
            async with asyncio.timeout(STOPPING_SECONDS):
                await answer
        except Exception as error:  # noqa: BLE001  proxies raise what their libraries do
            log.warning("Server at %s: its route is as the proxy left it: %r", self.spec, error)


async def announce(
    client: Client,
    held: Held,
    *,
    now: bool,
    refuse: Callable[[str], Awaitable[None]],
    way: Way,
    log: logging.Logger,
) -> None:
    """Tell the service that the server will be stopped, and wait for its session to save, unless `now`.

    `refuse` raises where what it holds is another's. Failures are logged: they keep no server from its stop.
    """
    try:
        async with asyncio.timeout(STOPPING_SECONDS):
            await refuse(held.workload)
            found = await client.stopping(held.workload, held.attempt, now=now)
        if found.save_requested is not None and found.state == "stopping":
            async with way.open(log), asyncio.timeout(SAVING_SECONDS):
                while found.save_requested is not None and found.state == "stopping":
                    found = await client.workload(found.id, after=found.version, wait=SAVING_SECONDS)
    except (ServiceError, TimeoutError) as error:
        log.warning("Server of %s: stopped without a word of its saves: %s", held.workload, error)
