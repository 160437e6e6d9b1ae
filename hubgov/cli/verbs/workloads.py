"""Workloads: list, show, why, extend, cancel, receipt."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from hubgov import wire
from hubgov.cli import cells, decisions, options
from hubgov.cli.cli_texts import DOCUMENTS
from hubgov.cli.running import DONE, FAILED, WAITING
from hubgov.cli.screen import Screen, Table
from hubgov.cli.workload_rows import DEFAULT, KNOWN, Listing, facts
from hubgov.client import Client
from hubgov.texts import STATES, word

Id = Annotated[str, typer.Argument(metavar="ID", help="A workload's id, such as nb-7.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is shown to others.")]

_STATE_FILTERS = (*STATES, "live", "ended")
_BEFORE_RUNNING = wire.WAITING_STATES | wire.STARTING_STATES
_BAD_ENDS = ("failed", "refused")
_POLL_SECONDS = 25


def list_workloads(
    ctx: typer.Context,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help=f"Only these: live, ended, {', '.join(STATES)}.")
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Only of this person.")] = None,
    team: Annotated[str | None, typer.Option("--team", metavar="NAME", help="Only of this team.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", metavar="NAME", help="Only in this queue.")] = None,
    columns: Annotated[
        str, typer.Option("--columns", metavar="A,B,…", help=f"Which of {', '.join(KNOWN)}, in what order.")
    ] = DEFAULT,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many rows.")] = 100,
    watch: Annotated[bool, typer.Option("--watch", help="Draw again whenever something changes.")] = False,
) -> int:
    """List workloads, newest first; on a terminal with the quota of one's team below."""
    screen = options.screen_of(ctx)
    if state is not None:
        options.one_of("--state", state, _STATE_FILTERS)
    if not 1 <= limit <= 100_000:
        raise options.Usage("bad_number", option="--limit", value=str(limit), least=1, most=100_000)
    chosen = [
        options.one_of("--columns", name.strip().lower().replace("-", "_"), KNOWN) for name in columns.split(",")
    ]
    filters = {"state": state, "owner": owner, "team": team, "queue": queue}
    listing = Listing(screen, options.client_of(ctx), chosen, filters, limit)
    listing.draw()
    if watch:
        from hubgov.cli.watch import Watch

        watching = Watch(lambda: options.connect(screen))
        try:
            while True:
                watching.until_change(listing.versions)
                screen.clear()
                listing.draw()
        except KeyboardInterrupt:
            return DONE
    return DONE


def show(
    ctx: typer.Context,
    workload_id: Id,
    wait: Annotated[
        str | None, typer.Option("--wait", metavar="TIME", help="Wait so long until it runs or is over.")
    ] = None,
) -> int:
    """Show one workload. With --wait: 4 when it still waits after that time, 1 when it failed."""
    screen = options.screen_of(ctx)
    seconds = options.seconds("--wait", wait) if wait is not None else 0
    client = options.client_of(ctx)
    found = client.workload(workload_id)
    if wait is not None:
        found = _until_running(client, found, seconds)
    if screen.json:
        screen.document(client.document)
    else:
        screen.facts(facts(found, screen.lang))
    if wait is None:
        return DONE
    if found.state in _BEFORE_RUNNING:
        span = wire.format_span(seconds * 1000)
        message = screen.text("still_waiting", id=found.id, span=span, why=found.headline or found.state)
        screen.complain(message, screen.text("hint_why", id=found.id))
        return WAITING
    return FAILED if found.state in _BAD_ENDS else DONE


def _until_running(client: Client, found: wire.Workload, seconds: int) -> wire.Workload:
    deadline = time.monotonic() + seconds
    while found.state in _BEFORE_RUNNING:
        left = int(deadline - time.monotonic())
        if left < 1:
            break
        found = client.wait_for_version(found.id, found.version, min(left, _POLL_SECONDS))
    return found


def why(ctx: typer.Context, workload_id: Id) -> int:
    """Why it waits: every number compared, who holds what until when, what can be done; or whether it is idle."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    decision = client.why(workload_id)
    decisions.show(screen, decision, client.document)
    return DONE


def extend(
    ctx: typer.Context,
    workload_id: Id,
    by: Annotated[str, typer.Option("--by", metavar="TIME", help="How much longer, such as 2h.")],
    reason: Reason = "",
) -> int:
    """Ask for more time. 3 when the policy denies it, 6 when somebody has to agree."""
    screen = options.screen_of(ctx)
    seconds = options.seconds("--by", by)
    client = options.client_of(ctx)
    extension = client.extend(workload_id, seconds, reason=reason)
    if screen.json:
        screen.document(client.document)
    elif extension.decision is not None:
        screen.done(extension.decision.headline)
    else:
        screen.done(f"{extension.workload}: {cells.clock(extension.expires_at)}")
    return DONE


def keep(ctx: typer.Context, workload_id: Id) -> int:
    """Keep an idle session. 3 when its queue allows it no more."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    found = client.keep(workload_id)
    if screen.json:
        screen.document(client.document)
    else:
        until = cells.clock(found.idle_deadline, found.now)
        screen.done(screen.text("kept", id=found.id, until=until, left=cells.plain(found.keeps_left)))
    return DONE


def cancel(
    ctx: typer.Context,
    workload_id: Id,
    reason: Reason = "",
    now: Annotated[bool, typer.Option("--now", help="At once, without the time to save.")] = False,
) -> int:
    """Stop a workload, in whatever state it is."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    found = client.cancel(workload_id, reason=reason, now=now)
    if screen.json:
        screen.document(client.document)
    else:
        screen.done(screen.text("cancelled", id=found.id, state=word(STATES, found.state, screen.lang)))
    return DONE


def receipt(ctx: typer.Context, workload_id: Id) -> int:
    """What was saved, lost, used and charged by a workload that is over."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    found = client.receipt(workload_id)
    if screen.json:
        screen.document(client.document)
        return DONE
    _show_receipt(screen, found)
    return DONE


def _show_receipt(screen: Screen, found: wire.Receipt) -> None:
    workload = found.workload
    screen.facts(
        [
            ("id", workload.id),
            ("state", cells.state(workload.state, screen.lang)),
            ("headline", cells.plain(workload.headline)),
            ("device", cells.devices(workload, screen.lang)),
            ("used", cells.span(found.used_seconds)),
            ("gpu_hours", f"{found.gpu_seconds / 3600:.2f}"),
            ("cost", cells.money(found.cost)),
            ("ended", cells.clock(workload.ended_at, workload.now)),
        ]
    )
    screen.line("")
    saved = [
        (
            d.path,
            word(DOCUMENTS, d.outcome, screen.lang),
            str(d.bytes),
            cells.clock(d.saved_at, workload.now),
            cells.plain(d.error),
        )
        for d in found.documents
    ]
    if saved:
        screen.table(Table(("path", "outcome", "bytes", "saved_at", "note"), saved))
    for line in found.evidence:
        screen.line(screen.text("was_idle", what=line))
    for lost in found.lost:
        screen.line(screen.text("lost", what=lost))
    if not found.lost and workload.kind == "notebook":
        screen.line(screen.text("nothing_lost"))
