"""What is there: quota, devices, pools, queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from hubgov import wire
from hubgov.cli import cells, options
from hubgov.cli.running import DONE
from hubgov.cli.screen import NONE, Cell, Screen, Table
from hubgov.client import Client


def _shown(
    screen: Screen,
    client: Client,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    spare: Sequence[str] = (),
) -> int:
    if screen.json:
        screen.document(client.document)
        return DONE
    screen.table(Table(columns, rows, spare))
    if not rows:
        screen.remark(screen.text("nothing"))
    return DONE


def quota(
    ctx: typer.Context,
    team: Annotated[str | None, typer.Option("--team", metavar="NAME", help="Only of this team.")] = None,
    pool: Annotated[str | None, typer.Option("--pool", metavar="NAME", help="Only in this pool.")] = None,
) -> int:
    """Quota and use, one's own teams first."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    endless = screen.text("no_limit")
    rows = [
        (
            q.team,
            cells.plain(q.project),
            cells.marked(q.pool, q.simulated, screen.lang),
            cells.plain(q.flavor),
            cells.number(q.guaranteed),
            cells.number(q.used),
            cells.number(q.borrowed),
            cells.number(q.lent),
            cells.number(q.available),
            endless if q.borrow is None else cells.number(q.borrow),
            endless if q.lend is None else cells.number(q.lend),
            cells.plain(q.window),
            cells.clock(q.next_change),
        )
        for q in client.quotas(team=team, pool=pool)
    ]
    columns = (
        "team", "project", "pool", "flavor", "guaranteed", "used", "borrowed", "lent", "available", "borrow",
        "lend", "window", "next_change",
    )  # fmt: skip
    return _shown(screen, client, columns, rows, ("window", "next_change", "lent", "lend", "borrow", "project"))


def devices(ctx: typer.Context) -> int:
    """Every device: whose it is, who holds it since when and until when, what it is seen to do."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    columns = (
        "device", "pool", "flavor", "state", "team", "project", "environment", "owner", "workload", "since",
        "until", "util", "mem", "reading", "isolation",
    )  # fmt: skip
    rows = [_device(d, screen.lang) for d in client.devices()]
    spare = ("since", "isolation", "environment", "team", "flavor", "pool", "reading", "mem", "util", "project")
    return _shown(screen, client, columns, rows, spare)


def _device(d: wire.Device, lang: str) -> list[str | Cell]:
    notes = [d.unknown_because or "", cells.age(d.age_seconds, lang)]
    return [
        cells.device(d, lang),
        cells.plain(d.pool),
        cells.plain(d.flavor),
        cells.device_state(d.state, lang),
        cells.plain(d.team),
        cells.plain(d.project),
        cells.plain(d.environment),
        cells.plain(d.owner),
        cells.plain(d.workload),
        cells.clock(d.since),
        cells.clock(d.until),
        cells.percent(d.utilisation),
        cells.memory(d.used_mib),
        "; ".join(note for note in notes if note) or NONE,
        d.isolation,
    ]


def pools(ctx: typer.Context) -> int:
    """Pools with their ownership, and how many of their devices are free."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    rows: list[Any] = [
        (
            cells.marked(p.name, p.simulated, screen.lang),
            p.engine,
            str(p.devices),
            str(p.free),
            cells.plain(p.team),
            cells.plain(p.project),
            cells.plain(p.environment),
            cells.plain(p.owner),
            p.placement,
            p.isolation,
        )
        for p in client.pools()
    ]
    columns = (
        "pool", "engine", "devices", "free", "team", "project", "environment", "owner", "placement", "isolation",
    )  # fmt: skip
    return _shown(screen, client, columns, rows, ("engine", "placement", "isolation", "team"))


def queues(ctx: typer.Context) -> int:
    """Queues with their limits, and how many wait and run."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    endless = screen.text("no_limit")
    rows: list[Any] = [
        (
            q.name,
            ", ".join(q.kinds),
            ", ".join(q.pools),
            q.class_,
            str(q.priority),
            q.order,
            endless if q.lease_default_seconds is None else cells.span(q.lease_default_seconds),
            endless if q.lease_max_seconds is None else cells.span(q.lease_max_seconds),
            Cell(screen.text("yes"), "yellow") if q.held else screen.text("no"),
            str(q.pending),
            str(q.running),
        )
        for q in client.queues()
    ]
    columns = (
        "queue", "kinds", "pools", "class", "priority", "order", "lease", "max_lease", "held", "pending", "running",
    )  # fmt: skip
    return _shown(screen, client, columns, rows, ("order", "class", "priority", "pools"))
