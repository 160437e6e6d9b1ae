"""Requests for more time: extensions, approvals, approve, deny, withdraw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from hubgov import wire
from hubgov.cli import cells, options
from hubgov.cli.running import DONE
from hubgov.cli.screen import Screen, Table
from hubgov.texts import EXTENSION_STATES, word

RequestId = Annotated[str, typer.Argument(metavar="REQUEST", help="A request's id, such as nb-7-x1.")]
Word = Annotated[str, typer.Option("--reason", metavar="TEXT", help="A word to who asked.")]


def extensions(ctx: typer.Context) -> int:
    """Requests for more time of the live workloads that one may see, oldest first."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    found = client.extensions()
    if screen.json:
        screen.document(client.document)
        return DONE
    rows: list[Any] = [
        (
            e.id,
            e.workload,
            word(EXTENSION_STATES, e.state, screen.lang),
            cells.span(e.by_seconds),
            cells.clock(e.expires_at),
            cells.plain(e.requested_by),
            cells.plain(e.reason),
            cells.plain(e.decided_by),
            cells.plain(", ".join(e.needs)),
        )
        for e in found
    ]
    columns = ("id", "workload", "state", "by", "expires_at", "requested_by", "reason", "decided_by", "needs")
    _table(screen, columns, rows)
    return DONE


def approvals(ctx: typer.Context) -> int:
    """What waits for a decision, and whom it would delay."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    found = client.extensions(state="needs_approval")
    if screen.json:
        screen.document(client.document)
        return DONE
    rows: list[Any] = [
        (
            e.id,
            cells.plain(e.requested_by),
            cells.span(e.by_seconds),
            cells.clock(e.expires_at),
            cells.plain(e.reason),
            _delays(screen, e.delays),
            cells.plain(", ".join(e.needs)),
        )
        for e in found
    ]
    _table(screen, ("id", "requested_by", "by", "expires_at", "reason", "delays", "needs"), rows)
    return DONE


def approve(
    ctx: typer.Context,
    request_id: RequestId,
    by: Annotated[str | None, typer.Option("--by", metavar="TIME", help="Less than was asked for.")] = None,
    reason: Word = "",
) -> int:
    """Grant a request for more time, or part of it."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    seconds = options.seconds("--by", by) if by is not None else None
    found = client.approve(request_id, seconds=seconds, reason=reason)
    return _said(screen, client.document, found)


def deny(
    ctx: typer.Context,
    request_id: RequestId,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; who asked reads it.")],
) -> int:
    """Refuse a request for more time."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    found = client.deny(request_id, reason=reason)
    return _said(screen, client.document, found)


def withdraw(ctx: typer.Context, request_id: RequestId) -> int:
    """Take back one's own open request."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    found = client.withdraw(request_id)
    return _said(screen, client.document, found)


def _said(screen: Screen, document: Any, found: wire.Extension) -> int:
    if screen.json:
        screen.document(document)
        return DONE
    state = word(EXTENSION_STATES, found.state, screen.lang)
    key = "decided_until" if found.state == "granted" else "decided"
    screen.done(screen.text(key, id=found.id, state=state, at=cells.clock(found.expires_at)))
    return DONE


def _delays(screen: Screen, found: Iterable[wire.Delay]) -> str:
    parts = []
    for delay in found:
        who = delay.workload if delay.workload != "-" else screen.text("of_team", team=delay.team)
        how_long = cells.span(delay.by_seconds) if delay.by_seconds is not None else screen.text("without_end")
        parts.append(f"{who} +{how_long}")
    return ", ".join(parts) or cells.plain(None)


def _table(screen: Screen, columns: tuple[str, ...], rows: list[Any]) -> None:
    screen.table(Table(columns, rows))
    if not rows:
        screen.remark(screen.text("nothing"))
