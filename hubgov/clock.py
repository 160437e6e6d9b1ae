"""Time as a value: whole milliseconds since 1970 UTC, and clocks that are handed in."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NewType, Protocol

Instant = NewType("Instant", int)
"""An instant in milliseconds since 1970-01-01T00:00Z."""

Millis = NewType("Millis", int)
"""A span in milliseconds."""


class Clock(Protocol):
    """Tells the time. `rate` is how many of its seconds pass in one real second (1 but in demos)."""

    rate: int

    def now(self) -> Instant:
        """The current instant."""
        ...


@dataclass(slots=True)
class SystemClock:
    """The machine's clock, which never runs backwards within a process, even when the system time is set back.

    With a `rate` above 1 (demonstrations) time passes that much faster from `anchor` on, an instant that is
    kept with the ledger so that a restart goes on where it was.
    """

    rate: int = 1
    anchor: Instant = field(default_factory=lambda: Instant(0))
    _last: int = 0

    def now(self) -> Instant:
        real = time.time_ns() // 1_000_000
        shown = real if self.rate == 1 else self.anchor + (real - self.anchor) * self.rate
        self._last = max(self._last, shown)
        return Instant(self._last)


@dataclass(slots=True)
class FakeClock:
    """A clock that stands until it is moved. For tests and virtual time."""

    at: Instant = field(default_factory=lambda: Instant(1_772_442_000_000))
    rate: int = 1

    def now(self) -> Instant:
        return self.at

    def advance(self, span: Millis | int) -> Instant:
        """Move on by `span` milliseconds and return the new time."""
        self.at = Instant(self.at + span)
        return self.at


def to_rfc3339(at: Instant) -> str:
    """The instant as RFC 3339 UTC with milliseconds: `2026-03-02T01:00:00.000Z`."""
    stamp = datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{at % 1000:03d}Z"


def from_rfc3339(text: str) -> Instant:
    """The instant that an RFC 3339 text names. ValueError without an offset: a bare local time is ambiguous."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no UTC offset; write it as 2026-03-02T09:00:00+08:00 or …Z")
    whole = moment.astimezone(UTC).replace(microsecond=0)
    return Instant(int(whole.timestamp()) * 1000 + moment.microsecond // 1000)
