"""A Decision as the command line shows it: the sentence, every number compared, what can be done."""

from __future__ import annotations

from typing import Any

from hubgov import wire
from hubgov.cli import cells
from hubgov.cli.cli_texts import OUTCOMES, UNITS, text
from hubgov.cli.screen import NONE, Cell, Screen, Table
from hubgov.texts import LEVELS, SIGNALS, place, word

_SIGN_COLUMNS = ("sign", "level", "evidence", "last_busy", "age")
_COLUMNS = ("code", "need", "have", "limit", "unit", "where", "held_by", "frees_at")


def show(screen: Screen, decision: wire.Decision, document: Any) -> None:
    """Write it. In a pipe: a table of one row, an empty line, the table of what is in the way, next steps."""
    if screen.json:
        screen.document(document)
        return
    outcome = word(OUTCOMES, decision.outcome, screen.lang)
    if screen.tty:
        screen.line(f"{outcome}  {decision.code}  {decision.headline}")
    else:
        screen.table(Table(("outcome", "code", "headline"), [(outcome, decision.code, decision.headline)]))
    if decision.blockers:
        screen.line("")
        screen.table(Table(_COLUMNS, [_row(b, decision.evaluated_at, screen.lang) for b in decision.blockers]))
    if decision.signals:
        screen.line("")
        screen.table(Table(_SIGN_COLUMNS, [_sign(s, decision.evaluated_at, screen.lang) for s in decision.signals]))
    for line in _lines(screen, decision):
        screen.line(line)


def _sign(s: wire.Signal, now: str, lang: str) -> list[str | Cell]:
    """What it comes from, busy, idle or unknown, what it rests on, when it was last busy, how old that is."""
    return [
        word(SIGNALS, s.kind, lang),
        word(LEVELS, s.level, lang),
        s.text,
        cells.clock(s.busy_at, now or None),
        cells.span(s.age_seconds),
    ]


def _lines(screen: Screen, decision: wire.Decision) -> list[str]:
    lines = []
    if decision.simulated:
        lines.append(screen.text("simulated_why"))
    if decision.position is not None:
        lines.append(screen.text("place", position=decision.position))
    if decision.latest_start is not None:
        at = cells.clock(decision.latest_start, decision.evaluated_at)
        lines.append(screen.text("latest_start", at=at))
    if decision.cost is not None:
        lines.append(screen.text("costs", cost=cells.money(decision.cost)))
    if decision.next_steps:
        lines.append(screen.text("next", steps=" · ".join(decision.next_steps)))
    return lines


def _row(b: wire.Blocker, now: str, lang: str) -> list[str | Cell]:
    holders = ", ".join(_holder(h, now, lang) for h in b.held_by)
    places = [place(b.scope, lang), b.pool, b.flavor, b.node]
    return [
        b.code,
        _amount(b.need, b.unit),
        _amount(b.have, b.unit),
        _amount(b.limit, b.unit),
        word(UNITS, b.unit, lang),
        " ".join(name for name in places if name) or NONE,
        holders or NONE,
        cells.clock(b.frees_at, now or None),
    ]


def _holder(holder: wire.Holder, now: str, lang: str) -> str:
    """Whose it is, which of his, and when its lease ends; what it holds is free after grace and stop."""
    who = f"{holder.owner} {holder.workload}".removesuffix(" -")
    if holder.ends_at is None:
        return who
    return text("holder", lang, who=who, end=cells.clock(holder.ends_at, now or None))


def _amount(value: float | None, unit: str) -> str:
    """A number compared; a time as people say it."""
    if value is not None and unit == "seconds":
        return wire.format_span(int(value) * 1000)
    return cells.number(value)
