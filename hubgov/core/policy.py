"""The policy as values: who may use what, in whole numbers. The YAML reader lives in `hubgov.policy`.

Units: GPUs in thousandths (milli), memory in MiB, time in milliseconds, money in millionths of the
currency, factors in millionths. `None` is unlimited where a limit is meant, `0` is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
MICRO = 1_000_000


class Kind(StrEnum):
    """What a workload is."""

    NOTEBOOK = "notebook"
    TRAINING = "training"
    INFERENCE = "inference"
    BATCH_INFERENCE = "batch_inference"
    EVALUATION = "evaluation"
    DATA = "data"


class PriorityClass(StrEnum):
    """How a queue's work stands to other work: protected is never a victim, opportunistic comes last."""

    PROTECTED = "protected"
    STANDARD = "standard"
    OPPORTUNISTIC = "opportunistic"


class Order(StrEnum):
    """Who is next inside a queue."""

    FAIR = "fair"
    FIFO = "fifo"
    PRIORITY = "priority"


class Placement(StrEnum):
    """Which of the nodes that fit: the fullest (pack) or the emptiest (spread)."""

    PACK = "pack"
    SPREAD = "spread"


class Mode(StrEnum):
    """enforce = act; observe = record all, stop nothing."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class Tier(StrEnum):
    """How important a project is; a temporary one always has a lease."""

    KEY = "key"
    NORMAL = "normal"
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """To whom a pool belongs: every device maps to all four."""

    team: str
    project: str | None
    environment: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """A card type. `guard_min_memory_mib`: a smaller request for memory is kept off it (fit guard)."""

    name: str
    vendor: str
    model: str
    memory_mib: int
    price_micro_per_hour: int = 0
    guard_min_memory_mib: int | None = None
    retired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Devices kept for a purpose, run by one engine."""

    name: str
    engine: str
    ownership: Ownership
    placement: Placement = Placement.PACK
    max_shares_per_device: int | None = None
    """How many workloads may share one device; None = no limit beyond its capacity, 1 = no sharing."""
    data_access: tuple[str, ...] = ()
    site: str | None = None
    retired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRule:
    """A declared node (or `count` equal ones), or a rule that a discovered node joins by its host name.

    For a declared one `pool`, `flavor` and `devices` say what it has. For a matched one `pools` maps each pool
    to device indexes or UUIDs, and the flavor follows from the card's model unless `flavor` says it.
    """

    name: str
    pool: str | None = None
    flavor: str | None = None
    devices: int = 0
    count: int = 1
    match_hostname: str | None = None
    pools: Mapping[str, tuple[int | str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    islands: tuple[int, ...] = ()
    cpus: int | None = None
    ram_mib: int | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    retired: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes this rule makes: `gpu-b-0 … gpu-b-3` for a count of 4."""
        return (self.name,) if self.count == 1 else tuple(f"{self.name}-{i}" for i in range(self.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A node of the team tree, which is the quota tree. `groups` are the hub's groups whose members belong."""

    name: str
    parent: str | None = None
    groups: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    weight: int = 1
    retired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    amount_micro: int
    period: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefacts:
    path: str
    after_ms: int
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A leaf of the team tree, with an owner and a purpose."""

    name: str
    team: str
    environment: str
    owner: str
    tier: Tier = Tier.NORMAL
    priority: int = 0
    weight: int = 1
    budget: Budget | None = None
    data_access: str | None = None
    artefacts: tuple[Artefacts, ...] = ()
    retired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRule:
    """How long an allocation runs. `max_ms` None = no end, for protected queues only."""

    default_ms: int | None = 4 * HOUR_MS
    max_ms: int | None = 12 * HOUR_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionRule:
    """What an owner may extend alone (`self_serve_count` times by at most `step_ms`), and who approves more.

    `max_total_ms` bounds the whole running time of a workload, extensions included.
    """

    self_serve_count: int = 0
    step_ms: int = 0
    approvers: tuple[str, ...] = ()
    max_total_ms: int | None = None
    reason_required: bool = False
    bridge_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRule:
    kernel_after_ms: int | None
    after_ms: int
    confirm_ms: int
    grace_ms: int
    keep_count: int
    keep_for_ms: int
    max_unverified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Limits that can't be lent. None = no limit."""

    workloads: int | None = None
    milli_gpus: int | None = None
    cpus: int | None = None
    pending: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapSet:
    """Caps per user, per project and in total, of one queue or (at the policy's top) over all queues."""

    per_user: Caps = Caps()
    per_project: Caps = Caps()
    total: Caps = Caps()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRule:
    max: int = 0
    backoff_ms: int = MINUTE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A lane with rules for some kinds of work."""

    name: str
    kinds: tuple[Kind, ...]
    pools: tuple[str, ...]
    flavors: tuple[str, ...] | None = None
    class_: PriorityClass = PriorityClass.STANDARD
    priority: int = 0
    priority_range: tuple[int, int] = (0, 0)
    allow: tuple[str, ...] = ()
    order: Order = Order.FAIR
    default_memory_mib: int | None = None
    lease: LeaseRule = LeaseRule()
    extension: ExtensionRule | None = None
    idle: IdleRule | None = None
    warn_ms: tuple[int, ...] = (30 * MINUTE_MS, 10 * MINUTE_MS, 2 * MINUTE_MS)
    grace_ms: int = 5 * MINUTE_MS
    checkpoint: str = "best_effort"
    checkpoint_budget_ms: int = 2 * MINUTE_MS
    min_runtime_ms: int = 0
    max_bypass_ms: int = 2 * HOUR_MS
    max_wait_ms: int | None = None
    attach_ms: int = MINUTE_MS
    claim_ms: int = 15 * MINUTE_MS
    start_deadline_ms: int = 15 * MINUTE_MS
    environments: tuple[str, ...] | None = None
    caps: CapSet = CapSet()
    retry: RetryRule = RetryRule()
    cost_factor_micro: int = MICRO
    retired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A recurring span of local time. `days` are 0 (Monday) to 6; `opens`, `closes` minutes after midnight.

    A window whose `closes` is not after its `opens` runs over midnight into the next day.
    """

    name: str
    days: tuple[int, ...]
    opens: int
    closes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRow:
    """Quota of a team or a project on one (pool, flavor). A row with a window replaces the base row while open;
    keys named in `unset` were left out of it and are then the base row's."""

    team: str | None
    project: str | None
    pool: str
    flavor: str
    guaranteed: int = 0
    borrow: int | None = None
    lend: int | None = None
    window: str | None = None
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fairness:
    half_life_ms: int = 7 * 24 * HOUR_MS
    fair_reclaim: bool = False
    sheltered: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    quota_cut_delay_ms: int | None = None
    hold_timeout_ms: int = 15 * MINUTE_MS
    term_ms: int = 15_000
    """How long a stopped server gets between SIGTERM and SIGKILL. No key of the file: what machines need."""
    save_ms: int = 15_000
    """How long a stop waits for a notebook's documents: Lab is waited for 9 s, copies follow. No key either."""
    stop_timeout_ms: int = MINUTE_MS
    lost_after_ms: int = 10 * MINUTE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    class_factor_micro: Mapping[PriorityClass, int] = field(default_factory=lambda: MappingProxyType({}))
    borrowed_factor_micro: int = MICRO


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnProfile:
    """One card of the spawn form. `gpus_milli` 0 is a session without a device."""

    name: str
    queue: str
    gpus_milli: int
    title: Mapping[str, str]
    flavor: str | None = None
    memory_mib: int | None = None
    cpus: int | None = None
    ram_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who may use what. Immutable; `version` counts the edits applied at this site, 0 = none yet."""

    version: int
    timezone: str
    currency: str
    mode: Mode
    defaults: Ownership
    flavors: Mapping[str, Flavor]
    pools: Mapping[str, Pool]
    nodes: Mapping[str, NodeRule]
    teams: Mapping[str, Team]
    projects: Mapping[str, Project]
    queues: Mapping[str, Queue]
    quotas: tuple[QuotaRow, ...] = ()
    windows: Mapping[str, Window] = field(default_factory=lambda: MappingProxyType({}))
    caps: CapSet = CapSet()
    fairness: Fairness = Fairness()
    reclaim: Reclaim = Reclaim()
    costs: Costs = Costs()
    telemetry_period_ms: int = 10_000
    """Between readings of the devices; in real time, however fast the clock runs."""
    max_attached: int = 20
    archive: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    notify_channels: tuple[str, ...] = ()
    spawn_profiles: tuple[SpawnProfile, ...] = ()

    def ancestors(self, team: str) -> tuple[str, ...]:
        """The team and all above it, nearest first."""
        path = [team]
        while (parent := self.teams[path[-1]].parent) is not None:
            path.append(parent)
        return tuple(path)

    def teams_of(self, user: str, groups: frozenset[str]) -> tuple[str, ...]:
        """The teams that a user belongs to by the hub's groups, or leads; sorted by name."""
        return tuple(sorted(t.name for t in self.teams.values() if groups & frozenset(t.groups) or user in t.leads))

    def projects_of(self, user: str, groups: frozenset[str]) -> tuple[str, ...]:
        """The projects that a user may charge: those of his teams and of teams below them, and what he owns."""
        mine = frozenset(self.teams_of(user, groups))
        return tuple(
            sorted(
                p.name
                for p in self.projects.values()
                if not p.retired and (p.owner == user or mine & frozenset(self.ancestors(p.team)))
            )
        )

    def leads_of(self, team: str) -> frozenset[str]:
        """Who leads this team: its own leads and those of every team above it."""
        return frozenset(lead for name in self.ancestors(team) for lead in self.teams[name].leads)
