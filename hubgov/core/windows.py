"""When a recurring window of local time is open: a pure function of the rows and the instant (semantics §2).

A local time that doesn't exist (the clocks go forward) is the first instant after the gap. At a repeated hour
(they go back) an opening takes the first occurrence and a closing the second.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hubgov.clock import Instant
from hubgov.core.policy import Window

_DAY_MINUTES = 24 * 60


def open_span(window: Window, at: Instant, zone: str) -> tuple[Instant, Instant] | None:
    """The (from, to) that contains `at`, or None while the window is closed; `to` is outside of it.

    Where spans overlap (adjacent ones on the long night) the one that began last.
    """
    found = [span for span in _spans_around(window, at, zone) if span[0] <= at < span[1]]
    return max(found, default=None)


def next_edge(window: Window, at: Instant, zone: str) -> Instant | None:
    """The first instant after `at` at which the window opens or closes; None for one without days."""
    edges = [edge for span in _spans_around(window, at, zone) for edge in span if edge > at]
    return min(edges, default=None)


def midnight(day: date, zone: str) -> Instant:
    """The first instant of a day in a zone, which is not 00:00 where the clocks go forward then."""
    return _instant(day, 0, ZoneInfo(zone), fold=0)


def day_of(at: Instant, zone: str) -> date:
    """The day of an instant in a zone."""
    return datetime.fromtimestamp(at // 1000, ZoneInfo(zone)).date()


def _spans_around(window: Window, at: Instant, zone: str) -> list[tuple[Instant, Instant]]:
    """The spans that begin within nine days of `at`, enough to hold the current and the next one."""
    tz = ZoneInfo(zone)
    today = datetime.fromtimestamp(at // 1000, tz).date()
    spans = []
    for offset in range(-2, 9):
        day = today + timedelta(days=offset)
        if day.weekday() not in window.days:
            continue
        last_day = day if window.closes > window.opens else day + timedelta(days=1)
        begins = _instant(day, window.opens, tz, fold=0)
        ends = _instant(last_day, window.closes, tz, fold=1)
        if begins < ends:
            spans.append((begins, ends))
    return spans


def _instant(day: date, minutes: int, tz: ZoneInfo, *, fold: int) -> Instant:
    """The instant of a local time; 24:00 is the next day's midnight."""
    day += timedelta(days=minutes // _DAY_MINUTES)
    minutes %= _DAY_MINUTES
    local = datetime(day.year, day.month, day.day, minutes // 60, minutes % 60)
    early, late = (_epoch(local, tz, f) for f in (0, 1))
    if early > late:  # only in a gap do the two readings stand in this order
        return Instant(_transition(late, early, tz) * 1000)
    return Instant((early, late)[fold] * 1000)


def _epoch(local: datetime, tz: ZoneInfo, fold: int) -> int:
    return int(local.replace(tzinfo=tz, fold=fold).timestamp())


def _transition(low: int, high: int, tz: ZoneInfo) -> int:
    """The second in (low, high] from which the offset of `high` holds."""

    def offset(second: int) -> timedelta | None:
        return datetime.fromtimestamp(second, UTC).astimezone(tz).utcoffset()

    target = offset(high)
    low -= 1
    while high - low > 1:
        middle = (low + high) // 2
        if offset(middle) == target:
            high = middle
        else:
            low = middle
    return high
