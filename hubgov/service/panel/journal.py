"""The audit as people read it: who did what to what, what it was and became, why, under which policy."""

from __future__ import annotations

import csv
import io
import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hubgov.clock import Instant, to_rfc3339
from hubgov.event_texts import event_word, state_word
from hubgov.ledger.reading import JournalLine

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_HIDDEN = frozenset({"version", "since", "state"})
"""Fields of a record that say nothing to a reader, or that other columns say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    seq: int
    at: str
    actor: str
    event: str
    what: str
    workload: str | None
    was: str
    became: str
    changed: Sequence[tuple[str, str, str]]
    """(field, before, after)"""
    reason: str
    policy_version: int | None


def audit_rows(lines: Iterable[JournalLine], versions: Sequence[tuple[Instant, int]], lang: str) -> list[AuditRow]:
    """`versions`: (when applied, version) of every policy, the oldest first."""
    begun = [at for at, _ in versions]
    rows = []
    for line in lines:
        at = bisect_right(begun, line.at)
        rows.append(
            AuditRow(
                seq=line.seq,
                at=to_rfc3339(line.at),
                actor=line.actor,
                event=event_word(line.event, lang),
                what=line.record,
                workload=line.workload,
                was=state_word(line.was, lang) or "",
                became=state_word(line.became, lang) or "",
                changed=_changed(line.detail),
                reason=line.reason,
                policy_version=versions[at - 1][1] if at else None,
            )
        )
    return rows


def _changed(detail: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    found = []
    for name, values in detail.items():
        if name not in _HIDDEN and isinstance(values, list) and len(values) == 2:
            found.append((name, _text(values[0]), _text(values[1])))
    return found


def _text(value: Any) -> str:
    text = "—" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + "…"


def as_csv(rows: Iterable[AuditRow], headings: Sequence[str]) -> str:
    """A table for spreadsheets. What they would take for a formula is told as text by an apostrophe before it."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    table.writerow(headings)
    for row in rows:
        changed = "; ".join(f"{name}: {was} -> {became}" for name, was, became in row.changed)
        version = "" if row.policy_version is None else str(row.policy_version)
        cells = (row.at, row.actor, row.event, row.what, row.was, row.became, row.reason, version, changed)
        table.writerow([_harmless(cell) for cell in cells])
    return out.getvalue()


def _harmless(text: str) -> str:
    return "'" + text if text.startswith(_FORMULA) else text
