"""Does the governing service still know what a server runs on?

A ledger that was lost, or put back from an older backup, gives the server's devices to others. So a running server
is asked about when the hub comes up and now and then; it is ended when the service answers and doesn't know it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from traitlets.config import LoggingConfigurable

from hubgov import errors
from hubgov.wire import FINAL_STATES, WAITING_STATES, Workload
from hubgov_spawner.client import Client, ServiceError
from hubgov_spawner.reports import Held

ASK_SECONDS = 20.0
"""How often each running server is asked about, at most as often as the hub polls it."""

_NOT_RUNNING = (WAITING_STATES - {"lost"}) | FINAL_STATES | {"admitted"}
"""States of a workload that no server of it can be in that was launched. What is lost may come back."""

_Base: Any = LoggingConfigurable


def goes_with_user(spawner: Any) -> bool:
    """Whether its deletion is that of its user, whose first server it is. The hub keeps a user while another
    server of his is active, and answers with an error."""
    others = (s for s in spawner.user.spawners.values() if s is not spawner)
    return spawner.name == "" and not any(other.active for other in others)


class Standing(_Base):  # type: ignore[misc]
    """Put before any spawner class, as part of GovernedMixin."""

    held: Held | None = None
    """What the server runs on; also in the hub's database."""

    _end_told = False
    _asked_at = float("-inf")  # in the loop's time
    _asking: asyncio.Task[None] | None = None

    async def poll(self) -> int | None:
        """None while the server runs. It goes on running while the service is away."""
        status: int | None = await super().poll()
        now = asyncio.get_running_loop().time()
        if status is None and self.held is not None and now - self._asked_at >= ASK_SECONDS and not self.pending:
            self._asked_at = now
            self._asking = asyncio.ensure_future(self._end_if_unknown(self.held))
        return status

    async def _end_if_unknown(self, held: Held) -> None:
        why = await unknown(self.hubgov_client("en"), held, self.user.name, self.name)
        if not why or self.held != held or self.pending:
            return
        self.log.error(
            "Server of %s is ended: hubgov doesn't know what it runs on (%s), so its devices may be another's. "
            "Was the ledger lost, or put back from a backup? What wasn't saved in it is lost.",
            self._log_name,
            why,
        )
        self._end_told = True  # there is nothing that this end could be reported of
        try:
            await super().stop()
        except errors.HubgovError as error:  # asked and tried again later
            self.log.error("Server of %s: %s", self._log_name, error)


async def unknown(client: Client, held: Held, user: str, server: str) -> str:
    """Why the service can't mean this server by what it holds; empty while it does, or doesn't answer."""
    try:
        found = await client.workload(held.workload)
    except ServiceError as error:
        return f"there is no {held.workload}" if (error.status, error.code) == (404, "not_found") else ""
    return _difference(found, held, user, server)


def _difference(found: Workload, held: Held, user: str, server: str) -> str:
    if (found.owner, found.server or "") != (user, server):
        return f"{found.id} is another's"
    if found.attempt != held.attempt:
        return f"{found.id} is at attempt {found.attempt}, not {held.attempt}"
    return f"{found.id} is {found.state}" if found.state in _NOT_RUNNING else ""
