"""Before a server is stopped: the service is told, and the session gets the time to save what is open.

The hub takes the way to a server out of its proxy first and stops the server then; in between no tab can save. So
the saving has to come before both: this hub's proxy waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from hubgov_spawner.client import Client, ServiceError
from hubgov_spawner.reports import Held

STOPPING_SECONDS = 5.0
"""How long a stop waits for one answer of the service."""
SAVING_SECONDS = 15
"""How long a stop waits for the session's documents to be saved."""


@runtime_checkable
class Parting(Protocol):
    """A spawner whose server is asked to save before it is stopped."""

    async def part(self) -> None:
        """The hub is about to take the way to the server away. Never raises: the stop goes on in any case."""


def wait_with_routes(proxy: Any) -> None:
    """Have the hub's proxy take the way to a server away only once its spawner has parted with it.

    The hub has no hook there, so it is the proxy's own method that waits. Done once for each proxy.
    """
    if proxy is None or getattr(proxy.delete_user, "waits", False):
        return
    taken = proxy.delete_user

    async def delete_user(user: Any, server_name: str = "") -> None:
        spawner = user.spawners.get(server_name)
        if isinstance(spawner, Parting):
            await spawner.part()
        await taken(user, server_name)

    delete_user.waits = True  # type: ignore[attr-defined]
    proxy.delete_user = delete_user


async def announce(
    client: Client, held: Held, *, now: bool, refuse: Callable[[str], Awaitable[None]], log: logging.Logger
) -> None:
    """Tell the service that the server will be stopped, and wait for its session to save, unless `now`.

    `refuse` raises where what it holds is another's. Failures are logged: they keep no server from its stop.
    """
    try:
        async with asyncio.timeout(STOPPING_SECONDS):
            await refuse(held.workload)
            found = await client.stopping(held.workload, held.attempt, now=now)
        async with asyncio.timeout(SAVING_SECONDS):
            while found.save_requested is not None and found.state == "stopping":
                found = await client.workload(found.id, after=found.version, wait=SAVING_SECONDS)
    except (ServiceError, TimeoutError) as error:
        log.warning("Server of %s: stopped without a word of its saves: %s", held.workload, error)
