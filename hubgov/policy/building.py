"""How the checked shape of a policy becomes the values that the core decides by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from hubgov.core.policy import (
    Artefacts,
    Budget,
    Caps,
    CapSet,
    Costs,
    ExtensionRule,
    Fairness,
    Flavor,
    IdleRule,
    LeaseRule,
    NodeRule,
    Ownership,
    Policy,
    Pool,
    Project,
    Queue,
    QuotaRow,
    Reclaim,
    RetryRule,
    SpawnProfile,
    Team,
    Tier,
    Window,
)

from .ownership import pool_team, project_owner, project_team, team_owner, teams_without_projects
from .shapes import (
    CapSetShape,
    CapsShape,
    Document,
    ExtensionShape,
    IdleShape,
    PoolShape,
    ProjectShape,
    QueueShape,
    QuotaShape,
)

V = TypeVar("V")


def build(document: Document, version: int) -> Policy:
    """The policy that a checked document says, as its `version`-th edit."""
    archive = document.archive
    return Policy(
        version=version,
        timezone=document.timezone,
        currency=document.currency,
        mode=document.mode,
        defaults=Ownership(
            team=document.defaults.team or "",
            project=None,
            environment=document.defaults.environment or "",
            owner=document.defaults.owner or "",
        ),
        flavors=_fixed({name: _flavor(name, document) for name in document.flavors}),
        pools=_fixed({name: _pool(name, shape, document) for name, shape in document.pools.items()}),
        nodes=_fixed({name: _node(name, document) for name in document.nodes}),
        teams=_fixed({name: _team(name, document) for name in document.teams}),
        projects=_projects(document),
        queues=_fixed({name: _queue(name, shape) for name, shape in document.queues.items()}),
        quotas=tuple(_row(row) for row in document.quotas),
        windows=_fixed(
            {
                name: Window(name=name, days=shape.days, opens=shape.from_, closes=shape.to)
                for name, shape in document.windows.items()
            }
        ),
        caps=_cap_set(document.caps),
        fairness=_fairness(document),
        reclaim=_reclaim(document),
        costs=_costs(document),
        telemetry_period_ms=document.telemetry.period,
        max_attached=document.max_attached,
        archive=_fixed(
            {}
            if archive is None
            else {
                "logs_after_ms": archive.logs_after,
                "checkpoints_after_ms": archive.checkpoints_after,
                "to": archive.to,
            }
        ),
        notify_channels=document.notify.channels if document.notify else (),
        spawn_profiles=_profiles(document),
    )


def _fixed(values: dict[str, V]) -> Mapping[str, V]:
    return MappingProxyType(values)


def _flavor(name: str, document: Document) -> Flavor:
    shape = document.flavors[name]
    return Flavor(
        name=name,
        vendor=shape.vendor,
        model=shape.model,
        memory_mib=shape.memory,
        price_micro_per_hour=shape.price_per_hour,
        guard_min_memory_mib=shape.fit_guard.min_memory if shape.fit_guard else None,
        retired=shape.retired,
    )


def _pool(name: str, shape: PoolShape, document: Document) -> Pool:
    return Pool(
        name=name,
        engine=shape.engine,
        ownership=Ownership(
            team=_owned(pool_team(document, name)),
            project=shape.project,
            environment=_owned(shape.environment or document.defaults.environment),
            owner=_owned(shape.owner or document.defaults.owner),
        ),
        placement=shape.placement,
        # Switched off (null), a device isn't shared: one workload each.
        max_shares_per_device=shape.share.max_per_device if shape.share else 1,
        data_access=shape.data_access,
        site=shape.site,
        retired=shape.retired,
    )


def _owned(value: str | None) -> str:
    if value is None:
        raise ValueError("a policy was built without having been checked: something belongs to nobody")
    return value


def _node(name: str, document: Document) -> NodeRule:
    shape = document.nodes[name]
    return NodeRule(
        name=name,
        pool=shape.pool,
        flavor=shape.flavor,
        devices=shape.devices,
        count=shape.count,
        match_hostname=shape.match.hostname if shape.match else None,
        pools=_fixed(dict(shape.pools)),
        islands=shape.islands,
        cpus=shape.cpus,
        ram_mib=shape.ram,
        labels=_fixed(dict(shape.labels)),
        retired=shape.retired,
    )


def _team(name: str, document: Document) -> Team:
    shape = document.teams[name]
    return Team(
        name=name,
        parent=shape.parent,
        groups=shape.groups,
        leads=shape.leads,
        weight=shape.weight,
        retired=shape.retired,
    )


def _projects(document: Document) -> Mapping[str, Project]:
    """The projects declared, and one of its own name for every team that declares none."""
    projects = {name: _project(name, shape, document) for name, shape in document.projects.items()}
    environment = document.defaults.environment
    for name in teams_without_projects(document):
        owner = team_owner(document, name)
        if owner is not None and environment is not None:
            retired = document.teams[name].retired
            projects[name] = Project(name=name, team=name, environment=environment, owner=owner, retired=retired)
    return _fixed(projects)


def _project(name: str, shape: ProjectShape, document: Document) -> Project:
    return Project(
        name=name,
        team=_owned(project_team(document, shape)),
        environment=_owned(shape.environment or document.defaults.environment),
        owner=_owned(project_owner(document, shape)),
        tier=Tier(shape.tier),
        priority=shape.priority,
        weight=shape.weight,
        budget=Budget(amount_micro=shape.budget.amount, period=shape.budget.period) if shape.budget else None,
        data_access=shape.data_access,
        artefacts=tuple(Artefacts(path=a.path, after_ms=a.after, by=a.by) for a in shape.artefacts),
        retired=shape.retired,
    )


def _queue(name: str, shape: QueueShape) -> Queue:
    lease, retry = shape.lease, shape.retry
    given_budget = shape.gives("checkpoint_budget")
    return Queue(
        name=name,
        kinds=shape.kinds,
        pools=shape.pools,
        flavors=shape.flavors,
        class_=shape.class_,
        priority=shape.priority,
        priority_range=shape.priority_range,
        allow=shape.allow,
        order=shape.order,
        default_memory_mib=shape.default_memory,
        lease=LeaseRule(default_ms=lease.default if lease else None, max_ms=lease.max if lease else None),
        extension=_extension(shape.extension),
        idle=_idle(shape.idle),
        warn_ms=shape.warn,
        grace_ms=shape.grace,
        checkpoint=shape.checkpoint,
        # The checkpoint runs inside the grace, so what is left out can't be longer than it.
        checkpoint_budget_ms=(
            shape.checkpoint_budget if given_budget else min(shape.checkpoint_budget, shape.grace)
        ),
        min_runtime_ms=shape.min_runtime,
        max_bypass_ms=shape.max_bypass,
        max_wait_ms=shape.max_wait,
        attach_ms=shape.attach,
        claim_ms=shape.claim,
        start_deadline_ms=shape.start_deadline,
        environments=shape.environments,
        caps=_cap_set(shape.caps),
        retry=RetryRule(max=retry.max, backoff_ms=retry.backoff) if retry else RetryRule(),
        cost_factor_micro=shape.cost_factor,
        retired=shape.retired,
    )


def _extension(shape: ExtensionShape | None) -> ExtensionRule | None:
    if shape is None:
        return None
    alone = shape.self_serve
    return ExtensionRule(
        self_serve_count=alone.count if alone else 0,
        step_ms=alone.step if alone else 0,
        approvers=shape.approvers or (),
        max_total_ms=shape.max_total,
        reason_required=shape.reason == "required",
        bridge_ms=shape.bridge,
    )


def _idle(shape: IdleShape | None) -> IdleRule | None:
    if shape is None:
        return None
    return IdleRule(
        kernel_after_ms=shape.kernel_after,
        after_ms=shape.after,
        confirm_ms=shape.confirm,
        grace_ms=shape.grace,
        keep_count=shape.keep.count if shape.keep else 0,
        keep_for_ms=shape.keep.for_ if shape.keep else 0,
        max_unverified_ms=shape.max_unverified,
    )


def _cap_set(shape: CapSetShape | None) -> CapSet:
    if shape is None:
        return CapSet()
    return CapSet(per_user=_caps(shape.per_user), per_project=_caps(shape.per_project), total=_caps(shape.total))


def _caps(shape: CapsShape | None) -> Caps:
    if shape is None:
        return Caps()
    return Caps(workloads=shape.workloads, milli_gpus=shape.gpus, cpus=shape.cpus, pending=shape.pending)


def _row(shape: QuotaShape) -> QuotaRow:
    own = ("guaranteed", "borrow", "lend")
    return QuotaRow(
        team=shape.team,
        project=shape.project,
        pool=_owned(shape.pool),
        flavor=_owned(shape.flavor),
        guaranteed=shape.guaranteed,
        borrow=shape.borrow,
        lend=shape.lend,
        window=shape.window,
        unset=tuple(key for key in own if not shape.gives(key)) if shape.window else (),
    )


def _fairness(document: Document) -> Fairness:
    shape = document.fairness
    return Fairness(half_life_ms=shape.half_life, fair_reclaim=shape.fair_reclaim, sheltered=shape.sheltered)


def _reclaim(document: Document) -> Reclaim:
    shape = document.reclaim
    return Reclaim(
        quota_cut_delay_ms=shape.quota_cut_delay,
        hold_timeout_ms=shape.hold_timeout,
        stop_timeout_ms=shape.stop_timeout,
        lost_after_ms=shape.lost_after,
    )


def _costs(document: Document) -> Costs:
    shape = document.costs
    if shape is None:
        return Costs()
    factors: dict[Any, int] = dict(shape.class_)
    return Costs(class_factor_micro=MappingProxyType(factors), borrowed_factor_micro=shape.borrowed)


def _profiles(document: Document) -> tuple[SpawnProfile, ...]:
    return tuple(
        SpawnProfile(
            name=shape.name,
            queue=_owned(shape.queue),
            gpus_milli=shape.gpus,
            title=MappingProxyType(dict(shape.title) or {"en": shape.name}),
            flavor=shape.flavor,
            memory_mib=shape.memory,
            cpus=shape.cpus,
            ram_mib=shape.ram,
        )
        for shape in document.spawn_profiles
    )
