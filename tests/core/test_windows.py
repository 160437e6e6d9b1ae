"""When windows of local time are open: against zoneinfo itself, over two years in six zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubgov.clock import Instant, from_rfc3339
from hubgov.core.policy import Window
from hubgov.core.windows import next_edge, open_span

ZONES = (
    "Asia/Shanghai",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Casablanca",
)
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
MINUTES = 2 * 365 * 24 * 60


def oracle(window: Window, at: Instant, zone: str) -> bool:
    """Open by the wall clock alone, minute by minute: independent of how spans are computed.

    At a repeated hour an opening takes the first occurrence and a closing the second, so a minute that comes
    twice is open if either reading of the edges covers it.
    """
    tz = ZoneInfo(zone)
    for back in (0, 1, 2):
        day = (datetime.fromtimestamp(at / 1000, tz) - timedelta(days=back)).date()
        if day.weekday() not in window.days:
            continue
        last = day if window.closes > window.opens else day + timedelta(days=1)
        opens = _first_instant_not_before(datetime(day.year, day.month, day.day), window.opens, tz, fold=0)
        closes = _first_instant_not_before(datetime(last.year, last.month, last.day), window.closes, tz, fold=1)
        if opens <= at < closes:
            return True
    return False


@cache
def _first_instant_not_before(midnight: datetime, minutes: int, tz: ZoneInfo, fold: int) -> int:
    """The instants of a day whose wall clock shows that time; none: the first that shows a later one."""
    wanted = midnight + timedelta(minutes=minutes)
    offset = wanted.replace(tzinfo=tz).utcoffset()
    assert offset is not None
    begin = (wanted - offset - timedelta(hours=3)).replace(tzinfo=UTC)
    shown = [(begin + timedelta(minutes=n)) for n in range(6 * 60)]
    exact = [t for t in shown if t.astimezone(tz).replace(tzinfo=None) == wanted]
    if exact:
        return int(exact[0 if fold == 0 else -1].timestamp()) * 1000
    return int(next(t for t in shown if t.astimezone(tz).replace(tzinfo=None) > wanted).timestamp()) * 1000


@given(
    st.sampled_from(ZONES),
    st.integers(0, MINUTES),
    st.integers(0, 24 * 4 - 1),
    st.integers(1, 24 * 4),
    st.sets(st.integers(0, 6), min_size=1),
)
def test_open_as_the_wall_clock_says(zone: str, minute: int, opens: int, closes: int, days: set[int]) -> None:
    window = Window(name="w", days=tuple(sorted(days)), opens=opens * 15, closes=closes * 15)
    at = Instant(int((BEGIN + timedelta(minutes=minute)).timestamp()) * 1000)
    assert (open_span(window, at, zone) is not None) == oracle(window, at, zone)


def changes(zone: str) -> list[datetime]:
    """The days of the two years on which a zone's clocks change."""
    tz, day = ZoneInfo(zone), BEGIN
    found = []
    for _ in range(2 * 365):
        if day.astimezone(tz).utcoffset() != (day + timedelta(days=1)).astimezone(tz).utcoffset():
            found.append(day)
        day += timedelta(days=1)
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_around_every_change_of_the_clocks(zone: str) -> None:
    """Every quarter of an hour of the nights of change, for windows that begin, end and lie inside them."""
    nights = changes(zone)
    assert bool(nights) == (zone != "Asia/Shanghai")
    for opens, closes in ((120, 180), (22 * 60, 150), (150, 8 * 60), (0, 24 * 60)):
        window = Window(name="w", days=tuple(range(7)), opens=opens, closes=closes)
        for night in nights:
            for quarter in range(0, 36 * 4, 3):
                at = Instant(int((night - timedelta(hours=4) + timedelta(minutes=15 * quarter)).timestamp()) * 1000)
                assert (open_span(window, at, zone) is not None) == oracle(window, at, zone), (night, at, opens)


@given(st.sampled_from(ZONES), st.integers(0, MINUTES), st.integers(0, 95), st.integers(1, 96))
def test_the_next_edge_is_where_open_and_closed_change(zone: str, minute: int, opens: int, closes: int) -> None:
    window = Window(name="w", days=(0, 2, 5), opens=opens * 15, closes=closes * 15)
    at = Instant(int((BEGIN + timedelta(minutes=minute)).timestamp()) * 1000)
    edge = next_edge(window, at, zone)
    assert edge is not None
    assert at < edge <= at + 8 * 24 * 3_600_000
    now, before, after = (open_span(window, Instant(t), zone) for t in (at, edge - 1, edge))
    assert now == before or (now is None) == (before is None)
    assert after != before


@pytest.mark.parametrize(
    ("zone", "opens", "closes", "at", "span"),
    [
        pytest.param(
            "Europe/Berlin", 150, 240, "2026-03-29T01:00:00Z",
            ("2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"),
            id="half past two doesn't exist: it opens with the first instant after the gap",
        ),
        pytest.param(
            "Europe/Berlin", 60, 150, "2026-03-29T00:30:00Z",
            ("2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"),
            id="an end that doesn't exist is the first instant after the gap",
        ),
        pytest.param("Europe/Berlin", 125, 175, "2026-03-29T01:00:00Z", None, id="all of it in the gap: not open"),
        pytest.param(
            "Europe/Berlin", 120, 180, "2026-10-25T00:30:00Z",
            ("2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"),
            id="from two to three on the long night lasts two hours",
        ),
        pytest.param(
            "Europe/Berlin", 22 * 60, 8 * 60, "2026-03-29T00:00:00Z",
            ("2026-03-28T21:00:00Z", "2026-03-29T06:00:00Z"),
            id="the short night has nine of ten hours",
        ),
        pytest.param(
            "Asia/Shanghai", 0, 24 * 60, "2026-03-02T05:00:00Z",
            ("2026-03-01T16:00:00Z", "2026-03-02T16:00:00Z"),
            id="from midnight to midnight is the whole day",
        ),
    ],
)  # fmt: skip
def test_gaps_and_repeats(zone: str, opens: int, closes: int, at: str, span: tuple[str, str] | None) -> None:
    window = Window(name="w", days=tuple(range(7)), opens=opens, closes=closes)
    wanted = tuple(map(from_rfc3339, span)) if span else None
    assert open_span(window, from_rfc3339(at), zone) == wanted


def test_a_window_without_days_is_never_open_and_has_no_edge() -> None:
    window = Window(name="w", days=(), opens=0, closes=60)
    assert open_span(window, Instant(0), "UTC") is None
    assert next_edge(window, Instant(0), "UTC") is None


def test_both_edges_are_exact_to_the_millisecond() -> None:
    window = Window(name="w", days=(0,), opens=9 * 60, closes=10 * 60)
    opens, closes = from_rfc3339("2026-03-02T09:00:00Z"), from_rfc3339("2026-03-02T10:00:00Z")
    wanted = [False, True, True, False]
    at = [Instant(opens - 1), opens, Instant(closes - 1), closes]
    assert [open_span(window, t, "UTC") is not None for t in at] == wanted
