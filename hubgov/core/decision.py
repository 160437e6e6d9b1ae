"""What was decided on a request, with every number that was compared (semantics §10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hubgov.clock import Instant
from hubgov.core.model import WorkloadId


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBy:
    workload: WorkloadId
    owner: str
    team: str
    until: Instant | None
    """When it is free at the latest, grace and stop included, if nobody extends."""
    ends_at: Instant | None = None
    """The end of its lease, as its owner sees it, while it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One thing in the way. `need`, `have`, `limit` in `unit` (milli_gpus, workloads, cpus, mib, ms, micro)."""

    code: str
    need: int
    have: int
    limit: int | None = None
    unit: str = "milli_gpus"
    scope: str = ""
    """Place in the tree or in the rules: a team, a user, a queue, a cap's name."""
    node: str | None = None
    pool: str | None = None
    flavor: str | None = None
    held_by: tuple[HeldBy, ...] = ()
    frees_at: Instant | None = None


class Outcome(StrEnum):
    GRANTED = "granted"
    WAITING = "waiting"
    REFUSED = "refused"
    NEEDS_APPROVAL = "needs_approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Granted, waiting or refused, with every number compared. A value, never an exception.

    `code` is the first of the reasons; `facts` are the numbers that its sentence needs; `next_steps` are codes.
    """

    outcome: Outcome
    code: str
    rule: str = ""
    blockers: tuple[Blocker, ...] = ()
    facts: Mapping[str, int | str] = field(default_factory=dict)
    next_steps: tuple[str, ...] = ()
    latest_start: Instant | None = None
    latest_start_basis: str = "none"
    position: int | None = None
    rank: Mapping[str, int | str | bool] = field(default_factory=dict)
    cost_micro: int | None = None
    evaluated_at: Instant = Instant(0)
    policy_version: int = 0
