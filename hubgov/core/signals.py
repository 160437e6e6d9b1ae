"""What a session shows of being at work: signals of each kind, busy, idle or unknown (semantics §8).

What isn't known is `unknown` and never counts as idle: a failed reading taken for 0 % is how work gets lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from hubgov.clock import Instant


class SignalKind(StrEnum):
    """Where a signal comes from, in the order in which it is shown."""

    GPU = "gpu"
    CPU = "cpu"
    IO = "io"
    KERNEL = "kernel"
    TERMINAL = "terminal"
    CHILD = "child"
    HUMAN = "human"


class Level(StrEnum):
    BUSY = "busy"
    IDLE = "idle"
    UNKNOWN = "unknown"


MEASURED = frozenset({SignalKind.GPU, SignalKind.CPU, SignalKind.IO})
"""Kinds that show use of the machine. All others are claims: who runs code in the session can make them up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One kind at one instant. `code` and `facts` are its evidence, a sentence of `texts.EVIDENCE`.

    `busy_at` is the last instant of work that its source itself knows of, also when it is idle now.
    """

    kind: SignalKind
    level: Level
    code: str = ""
    facts: Mapping[str, int | str] = field(default_factory=dict)
    busy_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSample:
    """One kernel: whether it works, by its requests, its process tree and its accelerator use together."""

    id: str
    level: Level
    path: str = ""
    """The document that it belongs to; empty for none."""
    busy_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """All that was seen of one allocation at one instant."""

    at: Instant
    signals: Mapping[SignalKind, Signal]
    kernels: tuple[KernelSample, ...] = ()


def sample(at: Instant, signals: Iterable[Signal], kernels: Iterable[KernelSample] = ()) -> Sample:
    """A sample of these signals; kinds that nobody named are unknown."""
    given = {signal.kind: signal for signal in signals}
    for kind in SignalKind:
        given.setdefault(kind, Signal(kind=kind, level=Level.UNKNOWN, code="not_read"))
    ordered = {kind: given[kind] for kind in SignalKind}
    return Sample(at=at, signals=MappingProxyType(ordered), kernels=tuple(kernels))
