"""Documents of the service that `wire` has no class for, since only clients read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """A part of a list. `next` is the cursor of the part that follows, None at the end."""

    items: tuple[T, ...]
    next: str | None
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue with its rules, and how many wait and run in it."""

    name: str
    kinds: tuple[str, ...]
    pools: tuple[str, ...]
    class_: str
    priority: int
    order: str
    lease_default_seconds: int | None
    lease_max_seconds: int | None
    held: bool
    closed: bool
    pending: int
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool with its ownership, and how many of its devices are free."""

    name: str
    engine: str
    team: str | None
    project: str | None
    environment: str | None
    owner: str | None
    placement: str
    devices: int
    free: int
    isolation: str
    simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """Who did what to which record and why, and what it was and became."""

    seq: int
    at: str
    event: str
    kind: str
    record: str
    workload: str | None
    actor: str
    reason: str
    from_: str | None
    to: str | None
    changed: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyText:
    """The policy in force as it was written."""

    version: int
    text: str
    applied_at: str
    applied_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProblem:
    """One thing that is wrong with a policy text; `text` is `FILE:LINE: CODE: message; …`."""

    line: int
    path: str
    code: str
    severity: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChecked:
    """What a check found; `ok` as soon as nothing of it is an error."""

    ok: bool
    problems: tuple[PolicyProblem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEdit:
    """One value that differs, in the notation of the file; None where there was or is no such key."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDifference:
    """What a text would change of the policy of this version."""

    version: int
    edits: tuple[PolicyEdit, ...]
    warnings: tuple[str, ...] = ()
    """`FILE:LINE: warning CODE: …`: what is likely meant otherwise, and stops nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyApplied:
    """The version that is in force now."""

    version: int
    applied_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHold:
    """Whether a queue is on hold; `closed` refuses new work too."""

    queue: str
    held: bool
    closed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """Whether a node takes new work."""

    node: str
    drained: bool
