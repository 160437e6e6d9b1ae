"""The bounded wait of a spawn: a ticket in the service, then long polls until it is granted or time is up."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

from hubgov.wire import FINAL_STATES, STARTING_STATES, WAITING_STATES, Workload
from hubgov_spawner import options, refusals
from hubgov_spawner.client import Client, ServiceError

POLL_SECONDS = 20
"""How long one poll stays open: the place in line and the reason that are shown are this fresh."""
AWAY_SECONDS = 2.0
"""How long a spawn that has no ticket yet waits for the service to come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applicant:
    """One server of one user, and where its spawn's progress is shown."""

    client: Client
    user: str
    groups: list[str]
    server: str
    waiting_url: str
    show: Callable[[Workload], None]
    zone_known: Callable[[str], None]

    async def granted(self, wanted: options.Options, deadline: float) -> Workload:
        """The workload once it may start; SpawnException when it may not, or not before the deadline."""
        began = asyncio.get_running_loop().time()
        ticket = await self.ticket(wanted, deadline)
        if ticket.attach_seconds is not None:  # the queue's own limit
            deadline = min(deadline, began + ticket.attach_seconds)
        while ticket.state not in STARTING_STATES:
            self.show(ticket)
            if ticket.state in FINAL_STATES:
                raise refusals.over(ticket.headline, self.client.lang)
            if ticket.state in WAITING_STATES:
                ticket = await self._next(ticket, deadline)
            else:
                # An earlier session that the hub knows nothing of any more is still on its way out.
                await self._until_over(ticket.id, deadline)
                ticket = await self.ticket(wanted, deadline)
        return ticket

    async def ticket(self, wanted: options.Options, deadline: float) -> Workload:
        """The open ticket of this server or a new one, once its last session is out of the way."""
        found = await self.client.spawn_options(self.user, self.groups, self.server, within=AWAY_SECONDS)
        self.zone_known(str(found.get("timezone") or "UTC"))
        body = options.request(wanted, found, user=self.user, groups=self.groups, server=self.server)
        while True:
            try:
                return await self.client.ensure_ticket(body, within=AWAY_SECONDS)
            except ServiceError as error:
                last = error.details.get("workload")
                if error.code != "still_stopping" or not last:
                    raise
                await self._until_over(str(last), deadline)

    async def _next(self, ticket: Workload, deadline: float) -> Workload:
        """The next version of a ticket in line, or the same one later; SpawnException when time is up."""
        left = deadline - asyncio.get_running_loop().time()
        wait = max(1, min(POLL_SECONDS, math.ceil(left)))
        try:
            async with asyncio.timeout_at(deadline):
                return await self.client.workload(
                    ticket.id, after=ticket.version, wait=wait, attach=True, within=max(left, 0.0)
                )
        except TimeoutError:
            raise refusals.queued(ticket, self.waiting_url, self.client.lang) from None
        except ServiceError as error:
            if error.away or error.code == "too_many":  # the ticket stays in both cases
                raise refusals.queued(ticket, self.waiting_url, self.client.lang) from error
            raise

    async def _until_over(self, workload: str, deadline: float) -> None:
        """Return when this earlier session is over or back in line; SpawnException when that takes too long."""
        try:
            async with asyncio.timeout_at(deadline):
                last = await self.client.workload(workload)
                while last.state not in FINAL_STATES | WAITING_STATES:
                    self.show(last)
                    last = await self.client.workload(workload, after=last.version, wait=POLL_SECONDS)
        except TimeoutError:
            raise refusals.still_stopping(self.client.lang) from None
