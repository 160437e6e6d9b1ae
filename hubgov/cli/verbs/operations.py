"""Running the place: audit, hold and release queues, drain nodes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hubgov.cli import cells, options
from hubgov.cli.running import DONE
from hubgov.cli.screen import Table
from hubgov.event_texts import event_word, state_word

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it goes into the audit.")]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="A queue's name.")]
NodeName = Annotated[str, typer.Argument(metavar="NODE", help="A node's name.")]


def audit(
    ctx: typer.Context,
    workload: Annotated[str | None, typer.Option("--workload", metavar="ID", help="Only of this workload.")] = None,
    actor: Annotated[str | None, typer.Option("--actor", metavar="NAME", help="Only what this one did.")] = None,
    event: Annotated[str | None, typer.Option("--event", metavar="NAME", help="Only this event.")] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="Only from this day or instant on.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="Only up to this day or instant, without it.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also the daily run, not only people's acts.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=1000, help="At most so many rows.")
    ] = 100,
) -> int:
    """Who did what and why, newest first. Without --workload for admins, and leads of their teams."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    page = client.audit(
        workload=workload, actor=actor, event=event, start=start, end=end, all_events=every, limit=limit
    )
    if screen.json:
        screen.document(client.document)
        return DONE
    rows: list[Any] = [
        (
            cells.clock(line.at),
            cells.plain(line.actor),
            event_word(line.event, screen.lang),
            cells.plain(line.workload),
            line.record,
            cells.plain(state_word(line.from_, screen.lang)),
            cells.plain(state_word(line.to, screen.lang)),
            cells.plain(line.reason),
        )
        for line in page.items
    ]
    screen.table(
        Table(
            ("at", "actor", "event", "workload", "record", "from", "to", "reason"), rows, ("from", "record", "to")
        )
    )
    if not rows:
        screen.remark(screen.text("nothing"))
    return DONE


def hold(
    ctx: typer.Context,
    queue: QueueName,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; everybody who waits reads it.")],
    closed: Annotated[bool, typer.Option("--closed", help="Refuse new work too.")] = False,
) -> int:
    """Let nothing of a queue start any more; what runs goes on."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    done = client.hold(queue, reason=reason, closed=closed)
    if screen.json:
        screen.document(client.document)
    else:
        sentence = "closed_now" if done.closed else "held_now"
        screen.done(screen.text(sentence, queue=done.queue, reason=done.reason))
    return DONE


def release(ctx: typer.Context, queue: QueueName, reason: Reason = "") -> int:
    """Let a held queue go on."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    done = client.release(queue, reason=reason)
    if screen.json:
        screen.document(client.document)
    else:
        screen.done(screen.text("released_now", queue=done.queue))
    return DONE


def drain(ctx: typer.Context, node: NodeName, reason: Reason = "") -> int:
    """Let nothing new start on a node; what runs goes on."""
    return _set_drained(ctx, node, reason, drained=True)


def undrain(ctx: typer.Context, node: NodeName, reason: Reason = "") -> int:
    """Let a node take work again."""
    return _set_drained(ctx, node, reason, drained=False)


def _set_drained(ctx: typer.Context, node: str, reason: str, *, drained: bool) -> int:
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    done = client.drain(node, reason=reason) if drained else client.undrain(node, reason=reason)
    if screen.json:
        screen.document(client.document)
    else:
        screen.done(screen.text("drained_now" if done.drained else "undrained_now", node=done.node))
    return DONE
