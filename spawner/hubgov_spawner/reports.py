"""Reports about a server that must arrive, although nobody waits for them and the service may be away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hubgov.wire import ProcessRef
from hubgov_spawner.client import Client, ServiceError

RETRY_SECONDS = 900.0
"""How long reports are tried again. After that the service finds out by itself, by looking for the processes."""

_on_their_way: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a server runs on: the attempt of a workload that was granted."""

    workload: str
    attempt: int
    allocation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """Sends the reports of one spawner in the background."""

    client: Client
    user: str
    server: str
    log: logging.Logger

    async def refuse_anothers(self, workload: str, *, within: float = 0.0) -> None:
        """ServiceError when the workload isn't this server's: a ledger that was lost deals its numbers anew."""
        found = await self.client.workload(workload, within=within)
        if (found.owner, found.server or "") != (self.user, self.server):
            raise ServiceError(f"{workload} is another's now", code="another", status=409)

    def ended(self, held: Held, code: int | None, signal: int | None, *, by_owner: bool) -> asyncio.Task[None]:
        """The server's processes are gone."""

        async def tell() -> None:
            await self.refuse_anothers(held.workload, within=RETRY_SECONDS)
            await self.client.ended(
                held.workload, held.attempt, code=code, signal=signal, by_owner=by_owner, within=RETRY_SECONDS
            )

        return self._send(f"the end of {held.workload}", tell)

    def withdrawn(self, workload: str, held: Held | None) -> asyncio.Task[None]:
        """A person took the spawn back: the ticket is cancelled, and what was started for it is gone."""

        async def tell() -> None:
            failed = None
            await self.refuse_anothers(workload, within=RETRY_SECONDS)
            try:
                await self.client.cancel(workload, "", now=True, within=RETRY_SECONDS)
            except ServiceError as error:  # over already, or away: what ran for it has ended in any case
                failed = error
            if held is not None:
                await self.client.ended(
                    held.workload, held.attempt, code=None, signal=None, by_owner=True, within=RETRY_SECONDS
                )
            if failed is not None:
                raise failed

        return self._send(f"the cancellation of {workload}", tell)

    def started(
        self, held: Held, found: tuple[ProcessRef, ProcessRef | None] | None, url: str
    ) -> asyncio.Task[None]:
        """A server runs whose start was not told to its end."""

        async def tell() -> None:
            await self.refuse_anothers(held.workload, within=RETRY_SECONDS)
            if found is not None:
                await self.client.processes(held.workload, held.attempt, *found, within=RETRY_SECONDS)
            await self.client.ready(held.workload, held.attempt, url, within=RETRY_SECONDS)

        return self._send(f"the start of {held.workload}", tell)

    def _send(self, what: str, tell: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def send() -> None:
            try:
                await tell()
            except ServiceError as error:
                # The service knows better already (404, 409), or it was away for too long and will look itself.
                level = logging.INFO if error.status in (404, 409) else logging.WARNING
                self.log.log(level, "Report of %s was not taken: %s %s", what, error.code, error.message)

        task = asyncio.create_task(send())
        _on_their_way.add(task)
        task.add_done_callback(_on_their_way.discard)
        return task
