"""What each of a user's servers holds or waits for, in a line for the hub's home page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from hubgov import texts
from hubgov.wire import WAITING_STATES, Workload
from hubgov_spawner.client import Client, ServiceError
from hubgov_spawner.page_texts import clock, held, say
from hubgov_spawner.receipts import PAGE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`state` in words, what else there is to say, and the page that tells more, if any."""

    state: str
    text: str
    url: str


async def lines(client: Client, user: str, waiting_url: str, log: logging.Logger) -> Mapping[str, Line]:
    """The line of each server that waits or runs, by its name; none when the service doesn't tell in time."""
    try:
        async with asyncio.timeout(PAGE_SECONDS):
            found = await client.live_tickets(user)
    except (ServiceError, TimeoutError) as error:
        log.warning("No overview for %s: %s", user, error or "the service is too slow")
        return {}
    return {w.server or "": as_line(w, client.lang, waiting_url) for w in found if w.kind == "notebook"}


def as_line(workload: Workload, lang: str, waiting_url: str) -> Line:
    """Where it stands in line, or what it holds until when and what that cost so far."""
    zone, now = workload.timezone, workload.now
    parts = []
    if workload.state in WAITING_STATES:
        if workload.position:
            parts.append(say("place", lang, position=workload.position, queue=workload.queue))
    else:
        parts.append(held(workload, lang))
        if workload.grace_until and workload.state != "running":
            parts.append(say("stops_at", lang, at=clock(workload.grace_until, zone, now=now)))
        elif workload.expires_at:
            parts.append(say("ends_at", lang, at=clock(workload.expires_at, zone, now=now)))
        if workload.cost is not None and workload.gpus:
            cost = texts.money(workload.cost.amount, workload.cost.currency)
            parts.append(say("so_far", lang, cost=cost))
    waits = workload.state in WAITING_STATES
    return Line(
        state=texts.word(texts.STATES, workload.state, lang),
        text=" · ".join(parts),
        url=f"{waiting_url.rstrip('/')}/{workload.id}" if waits else "",
    )
