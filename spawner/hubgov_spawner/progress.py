"""What the pending page shows of a spawn: one line and a percentage for each state of its ticket."""

from __future__ import annotations

from typing import Any

from hubgov.wire import STARTING_STATES, WAITING_STATES, Workload
from hubgov_spawner.page_texts import clock, number, say


def event(ticket: Workload | None, lang: str, zone: str) -> dict[str, Any]:
    """The progress event of a ticket. `message` only: the page puts an html_message in as it is."""
    if ticket is None:
        return {"progress": 2, "message": say("requested", lang)}
    if ticket.state in WAITING_STATES:
        return {"progress": 5, "message": waiting_line(ticket, lang, zone)}
    if ticket.state in STARTING_STATES:
        if not ticket.gpus or not ticket.flavor:
            return {"progress": 50, "message": say("granted_cpu", lang)}
        facts = {"gpus": number(ticket.gpus), "flavor": ticket.flavor}
        return {"progress": 50, "message": say("granted", lang, **facts)}
    return {"progress": 3, "message": say("last_stopping", lang)}


def waiting_line(ticket: Workload, lang: str, zone: str) -> str:
    """Place, reason and latest start of a ticket in line."""
    line = ticket.headline
    if ticket.position is not None:
        line = say("queue_place", lang, position=ticket.position, queue=ticket.queue, headline=line)
    if ticket.latest_start is not None:
        line += " " + say("latest_start", lang, at=clock(ticket.latest_start, zone, now=ticket.now))
    return line
