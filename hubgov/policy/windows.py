"""Do two windows of one quota row overlap?"""

from __future__ import annotations

from collections.abc import Mapping

from .problems import Findings, Path
from .shapes import Document, WindowShape

_DAY = 24 * 60
_WEEK = 7 * _DAY


def check(document: Document, found: Findings) -> None:
    """Report rows of one team or project on one (pool, flavor) whose windows are open at the same time."""
    rows: dict[tuple[str | None, ...], dict[str, Path]] = {}
    for index, row in enumerate(document.quotas):
        if row.window is not None and row.window in document.windows:
            path = (*found.original(("quotas", index)), "window")
            # A second row for the same window is a duplicate, and reported as one.
            rows.setdefault((row.team, row.project, row.pool, row.flavor), {}).setdefault(row.window, path)
    for who, windows in rows.items():
        whose = who[0] or who[1]
        for first, second in overlaps({name: document.windows[name] for name in windows}):
            message = f"{whose}: the windows {first} and {second} are open at the same time"
            path = max(windows[first], windows[second], key=lambda place: int(place[1]))
            found.error("overlapping_windows", path, message, "move one, or drop a row")


def overlaps(windows: Mapping[str, WindowShape]) -> list[tuple[str, str]]:
    """The pairs of windows that share a minute of the week, in local time without clock changes."""
    spans = sorted((start, end, name) for name, window in windows.items() for start, end in _spans(window))
    pairs: dict[tuple[str, str], None] = {}
    longest = (-1, "")
    # The week is walked twice, so that what runs from Sunday into Monday meets Monday's.
    for start, end, name in [*spans, *((start + _WEEK, end + _WEEK, name) for start, end, name in spans)]:
        if start < longest[0] and name != longest[1]:
            pairs[min(name, longest[1]), max(name, longest[1])] = None
        longest = max(longest, (end, name))
    return list(pairs)


def _spans(window: WindowShape) -> list[tuple[int, int]]:
    """From which minute of the week to which it is open, each time."""
    minutes = (window.to - window.from_) % _DAY or _DAY
    return [(day * _DAY + window.from_, day * _DAY + window.from_ + minutes) for day in window.days]
