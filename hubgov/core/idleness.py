"""What is on record of a session's idleness: phases with absolute deadlines, and kernels to be shut down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hubgov.clock import Instant
from hubgov.core.signals import Signal


class IdlePhase(StrEnum):
    """Where the idle rule stands with a session (semantics §8). Every phase but ACTIVE has a deadline."""

    ACTIVE = "active"
    SUSPECT = "suspect"
    """Idle, and only observed: nobody is asked, nothing is stopped."""
    ASKED = "asked"
    """Idle, and its owner was asked."""
    KEPT = "kept"
    """Its owner chose to keep it."""
    GRACE = "grace"
    """Nobody answered: EXPIRING, with the queue's `idle.grace`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idleness:
    """What is on record of a session's idleness: phases, not samples. Deadlines are absolute.

    `window_from`: an act of the owner; the window counts from there at the earliest. `evidence` is what the
    signals said when the phase began.
    """

    phase: IdlePhase = IdlePhase.ACTIVE
    since: Instant | None = None
    """When the window of idleness began."""
    until: Instant | None = None
    asked: int = 0
    """How often its owner was asked."""
    keeps_used: int = 0
    window_from: Instant = Instant(0)
    claims_ended_at: Instant | None = None
    """The last instant on record from which on claims alone no longer counted."""
    evidence: tuple[Signal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEnding:
    """A kernel that its session is to shut down for idleness. `failed`: why it didn't. `observed`: noted only."""

    id: str
    path: str
    since: Instant
    asked_at: Instant
    observed: bool = False
    failed: str = ""
