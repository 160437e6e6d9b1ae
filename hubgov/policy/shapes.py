"""Which keys a policy file has, of which form, and what each is when left out.

Every block refuses unknown keys. Values are in whole numbers already (milliseconds, MiB, milli-GPUs, millionths);
what one key means for another is checked in `references` and `rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hubgov.core.policy import HOUR_MS, MICRO, MINUTE_MS, Mode, Order, Placement, PriorityClass, Tier

from .values import (
    MAX_INDEX,
    Amount,
    ClassWord,
    Clock,
    Count,
    Days,
    DeviceList,
    Factor,
    Flag,
    Gpus,
    Inside,
    KindWord,
    Memory,
    ModeWord,
    Name,
    OrderWord,
    PlacementWord,
    Positive,
    Priorities,
    Priority,
    SomeSpan,
    Span,
    Text,
    Texts,
    TierWord,
    Visible,
    counts,
    known,
)

DAY_MS = 24 * HOUR_MS


class Shape(BaseModel):
    """A block of the policy file."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    def gives(self, key: str) -> bool:
        """Whether the file gives this field (by its Python name), even as null."""
        return key in self.model_fields_set


class DefaultsShape(Shape):
    environment: Visible | None = None
    owner: Visible | None = None
    team: Name | None = None


class FitGuardShape(Shape):
    min_memory: Memory


class FlavorShape(Shape):
    vendor: Visible
    model: Text
    memory: Memory
    price_per_hour: Amount = 0
    fit_guard: FitGuardShape | None = None
    retired: Flag = False


class ShareShape(Shape):
    max_per_device: Positive | None = None


class PoolShape(Shape):
    engine: Annotated[str, known("local", "slurm", "kubernetes")]
    placement: PlacementWord = Placement.PACK
    share: ShareShape | None = ShareShape()
    data_access: tuple[Visible, ...] = ()
    site: Visible | None = None
    team: Name | None = None
    project: Name | None = None
    environment: Visible | None = None
    owner: Visible | None = None
    retired: Flag = False


class MatchShape(Shape):
    hostname: Text


class NodeShape(Shape):
    pool: Name | None = None
    flavor: Name | None = None
    devices: Annotated[int, counts(MAX_INDEX + 1)] = 0
    count: Annotated[int, counts(10_000, 1)] = 1
    match: MatchShape | None = None
    pools: dict[Name, DeviceList] = {}
    islands: tuple[Positive, ...] = ()
    cpus: Positive | None = None
    ram: Memory | None = None
    labels: Texts = Field(default_factory=dict)
    retired: Flag = False


class TeamShape(Shape):
    parent: Name | None = None
    groups: tuple[Visible, ...] = ()
    leads: tuple[Visible, ...] = ()
    weight: Count = 1
    retired: Flag = False


class BudgetShape(Shape):
    amount: Amount
    period: Annotated[str, known("day", "week", "month", "quarter", "year")]


class ArtefactsShape(Shape):
    path: Inside
    after: SomeSpan
    by: Annotated[str, known("last_use", "created")] = "last_use"


class ProjectShape(Shape):
    team: Name | None = None
    environment: Visible | None = None
    owner: Visible | None = None
    tier: TierWord = Tier.NORMAL
    priority: Priority = 0
    weight: Count = 1
    budget: BudgetShape | None = None
    data_access: Visible | None = None
    artefacts: tuple[ArtefactsShape, ...] = ()
    retired: Flag = False


class LeaseShape(Shape):
    default: SomeSpan | None = 4 * HOUR_MS
    max: SomeSpan | None = 12 * HOUR_MS


class SelfServeShape(Shape):
    count: Count = 2
    step: SomeSpan = 2 * HOUR_MS


class ExtensionShape(Shape):
    self_serve: SelfServeShape | None = SelfServeShape()
    approvers: tuple[Annotated[str, known("team-lead", "admin")], ...] | None = ("team-lead", "admin")
    max_total: SomeSpan | None = 24 * HOUR_MS
    reason: Annotated[str, known("required", "optional")] | None = "required"
    bridge: Span = 0


class KeepShape(Shape):
    count: Count = 2
    for_: SomeSpan = Field(HOUR_MS, alias="for")


class IdleShape(Shape):
    kernel_after: SomeSpan | None = None
    after: SomeSpan = 30 * MINUTE_MS
    confirm: Span = 15 * MINUTE_MS
    grace: Span = 15 * MINUTE_MS
    keep: KeepShape | None = None
    max_unverified: SomeSpan = 4 * HOUR_MS


class CapsShape(Shape):
    workloads: Count | None = None
    gpus: Gpus | None = None
    cpus: Count | None = None
    pending: Count | None = None


class CapSetShape(Shape):
    per_user: CapsShape | None = None
    per_project: CapsShape | None = None
    total: CapsShape | None = None


class RetryShape(Shape):
    max: Count = 0
    backoff: Span = MINUTE_MS


class QueueShape(Shape):
    kinds: tuple[KindWord, ...] = ()
    pools: tuple[Name, ...] = ()
    flavors: tuple[Name, ...] | None = None
    class_: ClassWord = Field(PriorityClass.STANDARD, alias="class")
    priority: Priority = 0
    priority_range: Priorities = (0, 0)
    allow: tuple[Annotated[str, known("override", "non_preemptible")], ...] = ()
    order: OrderWord = Order.FAIR
    default_memory: Memory | None = None
    lease: LeaseShape | None = LeaseShape()
    extension: ExtensionShape | None = None
    idle: IdleShape | None = None
    warn: tuple[SomeSpan, ...] = (30 * MINUTE_MS, 10 * MINUTE_MS, 2 * MINUTE_MS)
    grace: Span = 5 * MINUTE_MS
    checkpoint: Annotated[str, known("none", "best_effort", "required")] = "best_effort"
    checkpoint_budget: Span = 2 * MINUTE_MS
    min_runtime: Span = 0
    max_bypass: Span = 2 * HOUR_MS
    max_wait: SomeSpan | None = None
    attach: Span = MINUTE_MS
    claim: SomeSpan = 15 * MINUTE_MS
    start_deadline: SomeSpan = 15 * MINUTE_MS
    environments: tuple[Text, ...] | None = None
    caps: CapSetShape | None = None
    retry: RetryShape | None = None
    cost_factor: Factor = MICRO
    retired: Flag = False


class QuotaShape(Shape):
    team: Name | None = None
    project: Name | None = None
    pool: Name | None = None
    flavor: Name | None = None
    guaranteed: Gpus = 0
    borrow: Gpus | None = None
    lend: Gpus | None = None
    window: Name | None = None


class WindowShape(Shape):
    days: Days
    from_: Clock = Field(alias="from")
    to: Clock


class FairnessShape(Shape):
    half_life: SomeSpan = 7 * DAY_MS
    fair_reclaim: Flag = False
    sheltered: Count = 1


class ReclaimShape(Shape):
    quota_cut_delay: Span | None = None
    hold_timeout: SomeSpan = 15 * MINUTE_MS
    stop_timeout: SomeSpan = MINUTE_MS
    lost_after: SomeSpan = 10 * MINUTE_MS


class CostsShape(Shape):
    class_: dict[ClassWord, Factor] = Field(default={}, alias="class")
    borrowed: Factor = MICRO


class TelemetryShape(Shape):
    period: SomeSpan = 10_000


class ArchiveShape(Shape):
    logs_after: SomeSpan | None = 30 * DAY_MS
    checkpoints_after: SomeSpan | None = 14 * DAY_MS
    to: Visible = "archive"


class NotifyShape(Shape):
    channels: tuple[Visible, ...] = ()


class ProfileShape(Shape):
    name: Name
    queue: Name | None = None
    gpus: Gpus = 0
    title: Texts = Field(default_factory=dict)
    flavor: Name | None = None
    memory: Memory | None = None
    cpus: Positive | None = None
    ram: Memory | None = None


class Document(Shape):
    """The whole policy file."""

    version: Annotated[int, counts(1, 1)] = 1
    timezone: Text = "UTC"
    currency: Visible = "CNY"
    mode: ModeWord = Mode.ENFORCE
    defaults: DefaultsShape = DefaultsShape()
    flavors: dict[Name, FlavorShape] = {}
    pools: dict[Name, PoolShape] = {}
    nodes: dict[Name, NodeShape] = {}
    teams: dict[Name, TeamShape] = {}
    projects: dict[Name, ProjectShape] = {}
    queues: dict[Name, QueueShape] = {}
    quotas: tuple[QuotaShape, ...] = ()
    windows: dict[Name, WindowShape] = {}
    caps: CapSetShape | None = None
    fairness: FairnessShape = FairnessShape()
    reclaim: ReclaimShape = ReclaimShape()
    costs: CostsShape | None = None
    telemetry: TelemetryShape = TelemetryShape()
    max_attached: Positive = 20
    archive: ArchiveShape | None = None
    notify: NotifyShape | None = None
    spawn_profiles: tuple[ProfileShape, ...] = ()


def schema() -> Mapping[str, Any]:
    """The JSON Schema of the policy file, for editors that complete and check while one types."""
    return Document.model_json_schema(by_alias=True)
