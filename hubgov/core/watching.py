"""What the samples of one allocation add up to: since when it is quiet, and whether that is a whole window.

A `Watched` is all that is kept of the samples, however long the window: the last one and a few instants. It
lives in memory only; after a restart watching begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from hubgov.clock import Instant
from hubgov.core.policy import IdleRule
from hubgov.core.signals import MEASURED, Level, Sample, Signal, SignalKind

GAP_PERIODS = 3
"""A silence longer than so many sampling periods starts the window anew (semantics §8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWatched:
    """One kernel: since when each of its samples says idle."""

    level: Level
    path: str
    quiet_since: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The samples so far. `quiet_since` begins the run in which every signal was idle, `unused_since` the run in
    which the machine's use was, whatever was claimed."""

    began: Instant
    after_gap: bool
    """Whether watching began after a silence; else it began with the session, or with this process."""
    at: Instant
    period_ms: int
    signals: Mapping[SignalKind, Signal]
    busy_at: Mapping[SignalKind, Instant]
    """When each kind was last busy."""
    quiet_since: Instant
    unused_since: Instant
    used_at: Instant
    """When use of the machine was last seen; watching begins with the benefit of the doubt."""
    kernels: Mapping[str, KernelWatched]


def observed(before: Watched | None, seen: Sample, period_ms: int) -> Watched:
    """The watch after one more sample. One that is older than the last changes nothing."""
    if before is not None and seen.at < before.at:
        return before
    if before is None or seen.at - before.at > GAP_PERIODS * period_ms:
        before = _begun(before, seen, period_ms)
    levels = {kind: signal.level for kind, signal in seen.signals.items()}
    busy_at = dict(before.busy_at)
    for kind, signal in seen.signals.items():
        last = seen.at if signal.level is Level.BUSY else signal.busy_at
        if last is not None:
            busy_at[kind] = max(last, busy_at.get(kind, last))
    unknown = Level.UNKNOWN in levels.values()
    use = any(levels[kind] is Level.BUSY for kind in MEASURED)
    used_at = max(before.used_at, *(busy_at.get(kind, before.used_at) for kind in MEASURED))
    signs = max([before.quiet_since, *busy_at.values()])
    return Watched(
        began=before.began,
        after_gap=before.after_gap,
        at=seen.at,
        period_ms=period_ms,
        signals=seen.signals,
        busy_at=MappingProxyType(busy_at),
        quiet_since=seen.at if unknown else Instant(min(signs, seen.at)),
        unused_since=seen.at if unknown or use else Instant(min(max(before.unused_since, used_at), seen.at)),
        used_at=Instant(used_at),
        kernels=_kernels(before, seen),
    )


def _begun(before: Watched | None, seen: Sample, period_ms: int) -> Watched:
    """Nothing seen yet, or nothing that still counts. What was last busy when stays known for the evidence."""
    return Watched(
        began=seen.at,
        after_gap=before is not None,
        at=seen.at,
        period_ms=period_ms,
        signals=seen.signals,
        busy_at=before.busy_at if before is not None else MappingProxyType({}),
        quiet_since=seen.at,
        unused_since=seen.at,
        used_at=before.used_at if before is not None else seen.at,
        kernels=MappingProxyType({}),
    )


def _kernels(before: Watched, seen: Sample) -> Mapping[str, KernelWatched]:
    """Each kernel that is there; one that is new, or came back after a silence, begins its own run."""
    found = {}
    for kernel in seen.kernels:
        known = before.kernels.get(kernel.id)
        quiet = seen.at if known is None or kernel.level is not Level.IDLE else known.quiet_since
        if kernel.busy_at is not None:
            quiet = Instant(min(seen.at, max(quiet, kernel.busy_at)))
        found[kernel.id] = KernelWatched(level=kernel.level, path=kernel.path, quiet_since=quiet)
    return MappingProxyType(found)


class Standing(StrEnum):
    """What the samples say of a session as a whole."""

    BUSY = "busy"
    UNKNOWN = "unknown"
    """Something is not known: nothing is ended for idleness."""
    SETTLING = "settling"
    """All is idle, but not for a whole window yet."""
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The standing, the kinds it comes from, when the window began and when it is or was full."""

    standing: Standing
    because: tuple[SignalKind, ...]
    since: Instant
    full_at: Instant
    claims_end: Instant
    """From when on claims alone no longer count (`max_unverified`)."""
    by_claim: bool
    """Whether only claims speak for it, and they no longer count."""

    @property
    def at_work(self) -> bool:
        return self.standing is Standing.BUSY


def judge(watched: Watched, rule: IdleRule, now: Instant, window_from: Instant) -> Verdict:
    """Idle only when every signal is idle over the whole window, none unknown in it; the window begins at
    `window_from` at the earliest.

    Once nothing but claims has spoken for a session for `max_unverified`, a window begins in which they don't
    count; use of the machine ends that.
    """
    levels = watched.signals
    busy = tuple(kind for kind, signal in levels.items() if signal.level is Level.BUSY)
    unknown = tuple(kind for kind, signal in levels.items() if signal.level is Level.UNKNOWN)
    claims_end = Instant(watched.used_at + rule.max_unverified_ms)
    void = watched.at >= claims_end
    since = watched.quiet_since
    if void:
        since = min(since, max(watched.unused_since, claims_end))
    since = max(since, window_from)
    heard = tuple(kind for kind in busy if kind in MEASURED or not void)
    stale = now - watched.at > GAP_PERIODS * watched.period_ms
    full_at = Instant(since + rule.after_ms)
    if stale:
        standing, because = Standing.UNKNOWN, tuple(SignalKind)
    elif heard:
        standing, because = Standing.BUSY, heard
    elif unknown:
        standing, because = Standing.UNKNOWN, unknown
    else:
        standing, because = Standing.IDLE if watched.at >= full_at else Standing.SETTLING, ()
    return Verdict(
        standing=standing,
        because=because,
        since=since,
        full_at=full_at,
        claims_end=claims_end,
        by_claim=void and bool(busy) and not heard,
    )
