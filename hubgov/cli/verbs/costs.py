"""What GPUs cost, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Annotated, Literal

import typer

from hubgov import wire
from hubgov.cli import cells, options
from hubgov.cli.running import DONE
from hubgov.cli.screen import NONE, Cell, Screen, Table

_FIGURES = (
    "gpu_hours", "list_cost", "discount", "cost", "borrowed_hours", "failed_hours", "credited", "overhead_hours",
)  # fmt: skip
_SPARE = ("overhead_hours", "credited", "discount", "failed_hours", "borrowed_hours", "list_cost")


def cost(
    ctx: typer.Context,
    by: Annotated[
        str, typer.Option("--by", metavar="NAME,…", help="Of team, project, user, queue, kind, flavor, day.")
    ] = "team",
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="DAY", help="From this day or instant on; else this month's first."),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="Up to this day or instant, without it; else now.")
    ] = None,
    format_: Annotated[
        Literal["table", "csv", "json"], typer.Option("--format", help="How it is written.")
    ] = "table",
    simulated: Annotated[
        bool, typer.Option("--include-simulated", help="With usage of simulated devices.")
    ] = False,
) -> int:
    """GPU-hours, list price and cost of a period, of what one may see."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    names = [name.strip() for name in by.split(",")]
    found = client.costs(names, start=start, end=end, include_simulated=simulated)
    if screen.json or format_ == "json":
        screen.document(client.document)
    elif format_ == "csv":
        screen.raw(_csv(found))
    else:
        _table(screen, found)
    return DONE


def _table(screen: Screen, found: wire.Costs) -> None:
    columns = (*found.by, *_FIGURES)
    rows: list[list[str | Cell]] = [
        [*(cells.plain(getattr(row, name)) for name in found.by), *_figures(row)] for row in found.items
    ]
    names = [screen.text("total"), *[NONE] * (len(found.by) - 1)]
    rows.append([*names, *_figures(found.total)])
    screen.table(Table(columns, rows, _SPARE))
    period = {"start": cells.clock(found.from_), "end": cells.clock(found.to)}
    screen.remark(screen.text("cost_period", **period))
    if found.simulated:
        screen.line(screen.text("simulated"))
    if found.simulated_left_out:
        screen.line(screen.text("simulated_left_out"))


def _figures(row: wire.CostRow) -> list[str]:
    return [
        _hours(row.gpu_seconds),
        cells.money(row.list_cost),
        cells.money(row.discount),
        cells.money(row.cost),
        _hours(row.borrowed_gpu_seconds),
        _hours(row.failed_gpu_seconds),
        cells.money(row.credited),
        _hours(row.overhead_gpu_seconds),
    ]


def _hours(seconds: int) -> str:
    return cells.number(round(seconds / 3600, 2))


def _csv(found: wire.Costs) -> str:
    """For other programs: seconds and amounts exactly, names so that no spreadsheet takes them for a formula."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    figures = ("gpu_seconds", "list_cost", "cost", "currency", "borrowed_gpu_seconds", "failed_gpu_seconds")
    table.writerow([*found.by, *figures, "overhead_gpu_seconds", "simulated", "discount", "credited"])
    for row in found.items:
        table.writerow(
            [
                *(_harmless(getattr(row, name) or "") for name in found.by),
                row.gpu_seconds,
                Decimal(row.list_cost.amount),
                Decimal(row.cost.amount),
                row.cost.currency,
                row.borrowed_gpu_seconds,
                row.failed_gpu_seconds,
                row.overhead_gpu_seconds,
                "yes" if found.simulated else "no",
                Decimal(row.discount.amount),
                Decimal(row.credited.amount),
            ]
        )
    return out.getvalue()


def _harmless(name: str) -> str:
    """A text that a spreadsheet shows as it is, with a quote before what it would calculate."""
    return f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name
