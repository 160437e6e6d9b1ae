"""How workloads are listed: which columns there are, what stands in them, and the line of quota below."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hubgov import wire
from hubgov.cli import cells
from hubgov.cli.cli_texts import IDLE_PHASES
from hubgov.cli.screen import NONE, Cell, Screen, Table
from hubgov.client import Client
from hubgov.texts import END_REASONS, word

DEFAULT = "id,state,position,why,device,util,mem,stops_at,left,cost"
KNOWN = (
    "id", "name", "state", "position", "why", "device", "util", "mem", "stops_at", "left", "cost", "owner", "team",
    "project", "queue", "kind", "gpus", "flavor", "submitted", "started", "ended", "waited", "headline",
    "evictions",
)  # fmt: skip
_SPARE = ("mem", "util", "position", "cost")
_FROM_DEVICES = ("util", "mem")
_PAGE = 1000


class Use(NamedTuple):
    """What a workload's devices are seen to do: mean utilisation, memory in all; None for what nobody can see."""

    util: int | None
    mib: int | None


class Listing:
    """One `hubgov list`: asks, draws, and remembers the versions that it has drawn."""

    def __init__(
        self, screen: Screen, client: Client, columns: Sequence[str], filters: Mapping[str, str | None], limit: int
    ) -> None:
        self._screen, self._client, self._columns = screen, client, columns
        self._filters, self._limit = filters, limit
        self.versions: dict[str, int] = {}

    def draw(self) -> None:
        """Ask for the list as it is now and write it."""
        found, document = self._found()
        self.versions = {w.id: w.version for w in found if w.state not in wire.FINAL_STATES}
        screen = self._screen
        if screen.json:
            screen.document(document)
            return
        uses = self._uses(found) if any(name in _FROM_DEVICES for name in self._columns) else {}
        rows = [[_cell(name, w, uses.get(w.id), screen.lang) for name in self._columns] for w in found]
        screen.table(Table(self._columns, rows, _SPARE if self._columns == DEFAULT.split(",") else ()))
        if not found:
            screen.remark(screen.text("none_workloads"))
        total = int(document["total"])
        if total > len(found):
            screen.remark(screen.text("more", more=total - len(found), total=total))
        if screen.tty and not screen.quiet and (line := quota_line(self._client.quotas(), screen)):
            screen.remark(line)

    def _found(self) -> tuple[list[wire.Workload], dict[str, Any]]:
        """As many pages as the limit asks for, and their documents as one."""
        found: list[wire.Workload] = []
        raw: list[Any] = []
        cursor: str | None = None
        while True:
            limit = min(self._limit - len(found), _PAGE)
            page = self._client.workloads(**self._filters, limit=limit, cursor=cursor)
            found += page.items
            raw += self._client.document.get("items", [])
            cursor = page.next
            if cursor is None or len(found) >= self._limit or not page.items:
                return found, {"items": raw, "next": cursor, "total": page.total}

    def _uses(self, found: Sequence[wire.Workload]) -> dict[str, Use]:
        if not any(w.devices for w in found):
            return {}
        seen = {(d.node, d.index): d for d in self._client.devices()}
        return {
            w.id: _use([seen[r.node, r.index] for r in w.devices if (r.node, r.index) in seen])
            for w in found
            if w.devices and w.ended_at is None
        }


def _use(devices: Sequence[wire.Device]) -> Use:
    utils = [d.utilisation for d in devices if d.utilisation is not None]
    mibs = [d.used_mib for d in devices if d.used_mib is not None]
    return Use(sum(utils) // len(utils) if utils else None, sum(mibs) if mibs else None)


def _cell(name: str, w: wire.Workload, use: Use | None, lang: str) -> str | Cell:
    match name:
        case "state":
            return cells.state(w.state, lang)
        case "why":
            return _why(w, lang)
        case "device":
            return cells.devices(w, lang)
        case "util":
            return cells.percent(use.util if use else None)
        case "mem":
            return cells.memory(use.mib if use else None)
        case "stops_at":
            return cells.clock(w.expires_at, w.now)
        case "left":
            return cells.left(w.expires_at, w.now) if w.ended_at is None else NONE
        case "cost":
            return cells.money(w.cost)
        case "gpus":
            return cells.number(w.gpus)
        case "waited":
            return cells.span(w.wait_seconds)
        case "submitted" | "started" | "ended":
            return cells.clock(getattr(w, f"{name}_at"), w.now)
        case _:
            return cells.plain(getattr(w, name))


def _why(w: wire.Workload, lang: str) -> str:
    """The code of what it waits for; of one that is over, how it ended."""
    if w.why is not None:
        return w.why
    return word(END_REASONS, w.end_reason, lang) if w.end_reason is not None else NONE


def quota_line(quotas: Sequence[wire.Quota], screen: Screen) -> str:
    """The quota of the reader's first team: the service lists his own first. Empty without any quota."""
    if not quotas:
        return ""
    team = quotas[0].team
    rows = []
    for q in quotas:
        if q.team != team or q.project is not None:
            continue
        numbers = {name: cells.number(getattr(q, name)) for name in ("used", "guaranteed", "available", "borrowed")}
        pool = cells.marked(q.pool, q.simulated, screen.lang).text
        row = screen.text("quota_part", pool=pool, flavor=q.flavor, **numbers)
        rows.append(row + (screen.text("quota_borrowed", **numbers) if q.borrowed else ""))
    return screen.text("quota_line", team=team, rows="; ".join(rows)) if rows else ""


def facts(w: wire.Workload, lang: str) -> list[tuple[str, str | Cell]]:
    """One workload, everything that is known of it; what doesn't apply is left out."""
    every: list[tuple[str, str | Cell]] = [
        ("id", w.id),
        ("name", cells.plain(w.name)),
        ("state", cells.state(w.state, lang)),
        ("why", _why(w, lang)),
        ("headline", cells.plain(w.headline)),
        ("kind", w.kind),
        ("owner", w.owner),
        ("team", w.team),
        ("project", w.project),
        ("environment", cells.plain(w.environment)),
        ("queue", w.queue),
        ("priority", str(w.priority)),
        ("command", cells.plain(shlex.join(w.command))),
        ("cwd", cells.plain(w.cwd)),
        ("env", cells.plain(" ".join(f"{name}={shlex.quote(value)}" for name, value in w.env.items()))),
        ("gpus", cells.number(w.gpus)),
        ("flavor", cells.plain(w.flavor)),
        ("memory", cells.memory(w.memory_mib)),
        ("device", cells.devices(w, lang)),
        ("position", cells.plain(w.position)),
        ("latest_start", cells.clock(w.latest_start, w.now)),
        ("waited", cells.span(w.wait_seconds)),
        ("submitted", cells.clock(w.submitted_at, w.now)),
        ("started", cells.clock(w.started_at, w.now)),
        ("stops_at", cells.until(w.expires_at, w.now, lang, w.grace_until) if w.ended_at is None else NONE),
        ("extensions_left", cells.plain(w.extensions_left)),
        ("idle_phase", word(IDLE_PHASES, w.idle_phase, lang) if w.idle_phase else NONE),
        ("idle_deadline", cells.clock(w.idle_deadline, w.now)),
        ("keeps_left", cells.plain(w.keeps_left)),
        ("ended", cells.clock(w.ended_at, w.now)),
        ("end_reason", word(END_REASONS, w.end_reason, lang) if w.end_reason else NONE),
        ("exit_code", cells.plain(w.exit_code)),
        ("signal", cells.plain(w.signal)),
        ("evictions", cells.plain(w.evictions or None)),
        ("cost", cells.money(w.cost)),
        ("note", cells.plain(w.note)),
        ("url", cells.plain(w.url)),
    ]
    return [(name, value) for name, value in every if (value.text if isinstance(value, Cell) else value) != NONE]
