"""What the ledger knows: the live picture rebuilt, and history for lists, receipts, audit and cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from hubgov.clock import Instant
from hubgov.core.amounts import HALF_LIVES
from hubgov.core.devices import SeenNode
from hubgov.core.metering import Account, UsageSegment
from hubgov.core.model import (
    Allocation,
    AllocationId,
    Change,
    Departure,
    ExtensionId,
    ExtensionRequest,
    ExtensionState,
    Notice,
    PolicyText,
    QueueHold,
    SaveRecord,
    Workload,
)
from hubgov.core.past_use import Segment
from hubgov.core.policy import Policy
from hubgov.core.quota import project_place
from hubgov.core.state import State
from hubgov.core.transitions import SERVICE
from hubgov.ledger import schema
from hubgov.ledger.codec import decode

PolicyReader = Callable[[str, int], Policy]
"""(text, version) -> the policy; how an applied text is read is handed in."""


def current_policy(connection: sa.Connection, read: PolicyReader) -> PolicyText | None:
    """The newest applied policy, or None before the first."""
    table = schema.policy
    row = connection.execute(sa.select(table).order_by(table.c.version.desc()).limit(1)).one_or_none()
    return _policy_text(row, read) if row else None


def policy_version(connection: sa.Connection, version: int, read: PolicyReader) -> PolicyText | None:
    """One applied version of the policy."""
    table = schema.policy
    row = connection.execute(sa.select(table).where(table.c.version == version)).one_or_none()
    return _policy_text(row, read) if row else None


def _policy_text(row: Any, read: PolicyReader) -> PolicyText:
    return PolicyText(
        version=row.version,
        text=row.text,
        applied_at=Instant(row.applied_at),
        applied_by=row.applied_by,
        policy=read(row.text, row.version),
    )


def load_state(connection: sa.Connection, text: PolicyText, now: Instant) -> State:
    """The live picture as the ledger has it: what a restart begins with."""
    state = State(text.policy)
    state.policy_text = text
    state.last_seq = connection.execute(sa.select(sa.func.max(schema.workload.c.seq))).scalar() or 0
    records: list[Any] = []
    for kind, table, where in (
        (SeenNode, schema.node, sa.true()),
        (Departure, schema.departure, sa.true()),
        (QueueHold, schema.queue_hold, schema.queue_hold.c.held),
        (Workload, schema.workload, schema.workload.c.live),
        (Allocation, schema.allocation, schema.allocation.c.live),
        (ExtensionRequest, schema.extension, _of_live(schema.extension)),
        (Notice, schema.notice, schema.notice.c.allocation.in_(_live_allocations())),
        (SaveRecord, schema.save, _of_live(schema.save)),
    ):
        rows = connection.execute(sa.select(table.c.body).where(where).order_by(*table.primary_key)).scalars()
        records += [decode(kind, body) for body in rows]
    for record in records:
        state.apply(Change(event="loaded", before=None, after=record, actor="ledger"))
    state.extensions = without_older_denials(state.extensions)
    _load_past_use(connection, state, now)
    return state


def without_older_denials(requests: dict[ExtensionId, ExtensionRequest]) -> dict[ExtensionId, ExtensionRequest]:
    """The requests for more time that belong in the live picture: of hubgov's own denials the last of each
    workload, all others. The ledger has them all; how many there are is up to who asks."""
    last: dict[str, ExtensionRequest] = {}
    for request in requests.values():
        known = last.get(request.workload)
        if _denied_by_rule(request) and (known is None or number_of(request) > number_of(known)):
            last[request.workload] = request
    return {k: r for k, r in requests.items() if not _denied_by_rule(r) or last[r.workload] is r}


def number_of(request: ExtensionRequest) -> int:
    """Which of its workload's requests it is, from 1 on: the 3 of `nb-17-x3`."""
    return int(request.id.rpartition("-x")[2])


def _denied_by_rule(request: ExtensionRequest) -> bool:
    return request.state is ExtensionState.DENIED and request.decided_by == SERVICE


def _live_allocations() -> sa.Select[tuple[str]]:
    return sa.select(schema.allocation.c.id).where(schema.allocation.c.live)


def _of_live(table: sa.Table) -> sa.ColumnElement[bool]:
    live = sa.select(schema.workload.c.id).where(schema.workload.c.live)
    return table.c.workload.in_(live)


def _load_past_use(connection: sa.Connection, state: State, now: Instant) -> None:
    """The ended charges that still weigh in the ranking: of the last forty half-lives, beyond is exactly zero.

    A charge ended where its usage did; what was fenced after that is the pool's.
    """
    since = now - HALF_LIVES * state.policy.fairness.half_life_ms
    a, s = schema.allocation, schema.segment
    charged_until = sa.func.max(s.c.ended).label("charged_until")
    query = (
        sa.select(a.c.id, a.c.project, a.c.milli_gpus, a.c.reserved_at, charged_until)
        .join(s, s.c.allocation == a.c.id)
        .where(~a.c.live, a.c.milli_gpus > 0, a.c.ended_at > since, s.c.account != Account.FENCED.value)
        .group_by(a.c.id, a.c.project, a.c.milli_gpus, a.c.reserved_at)
    )
    for row in connection.execute(query):
        allocation = AllocationId(row.id)
        place, until = project_place(row.project), Instant(row.charged_until)
        state.past.put(Segment(allocation, place, row.milli_gpus, Instant(row.reserved_at), until))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFilter:
    """Which workloads a list is about; None = no condition. `states` are the words of the public table."""

    states: tuple[str, ...] | None = None
    owner: str | None = None
    team: str | None = None
    queue: str | None = None
    teams: tuple[str, ...] | None = None
    """Visible teams, together with what `viewer` owns; None = everything is visible."""
    viewer: str | None = None
    viewer_since: Instant = Instant(0)
    """Since when the viewer has had that name."""


def find_workload(connection: sa.Connection, workload_id: str) -> Workload | None:
    """A workload, live or ended, by its id."""
    table = schema.workload
    body = connection.execute(sa.select(table.c.body).where(table.c.id == workload_id)).scalar()
    return decode(Workload, body) if body else None


def list_workloads(
    connection: sa.Connection, wanted: WorkloadFilter, *, limit: int, before_seq: int | None
) -> tuple[list[Workload], int]:
    """(newest first, up to `limit` of those submitted before `before_seq`; how many there are in all)."""
    table = schema.workload
    where: list[sa.ColumnElement[bool]] = []
    for column, value in (
        (table.c.owner, wanted.owner),
        (table.c.team, wanted.team),
        (table.c.queue, wanted.queue),
    ):
        if value is not None:
            where.append(column == value)
    if wanted.states is not None:
        where.append(table.c.state.in_(wanted.states))
    if wanted.teams is not None:
        own = sa.and_(table.c.owner == wanted.viewer, table.c.submitted_at >= wanted.viewer_since)
        where.append(sa.or_(table.c.team.in_(wanted.teams), own))
    total = connection.execute(sa.select(sa.func.count()).select_from(table).where(*where)).scalar_one()
    page = where if before_seq is None else [*where, table.c.seq < before_seq]
    query = sa.select(table.c.body).where(*page).order_by(table.c.seq.desc()).limit(limit)
    return [decode(Workload, body) for body in connection.execute(query).scalars()], total


def last_of_server(connection: sa.Connection, owner: str, server: str, since: Instant) -> Workload | None:
    """The newest workload of a notebook server, live or ended, since its owner has had that name."""
    table = schema.workload
    where = (table.c.owner == owner, table.c.server == server, table.c.submitted_at >= since)
    query = sa.select(table.c.body).where(*where).order_by(table.c.seq.desc()).limit(1)
    body = connection.execute(query).scalar()
    return decode(Workload, body) if body else None


def allocations_of(connection: sa.Connection, workload_id: str) -> list[Allocation]:
    """All attempts of a workload, oldest first."""
    table = schema.allocation
    query = sa.select(table.c.body).where(table.c.workload == workload_id).order_by(table.c.attempt)
    return [decode(Allocation, body) for body in connection.execute(query).scalars()]


def saves_of(connection: sa.Connection, workload_id: str) -> list[SaveRecord]:
    """The saves of a session as it reported them, oldest first."""
    table = schema.save
    bodies = connection.execute(sa.select(table.c.body).where(table.c.workload == workload_id)).scalars()
    return sorted((decode(SaveRecord, body) for body in bodies), key=lambda s: (s.at, s.id))


def segments_of(connection: sa.Connection, workload_id: str) -> list[UsageSegment]:
    """The usage of a workload in closed spans, oldest first."""
    table = schema.segment
    query = sa.select(table).where(table.c.workload == workload_id).order_by(table.c.seq)
    return [_segment(row) for row in connection.execute(query).mappings()]


def segments_of_all(connection: sa.Connection, workload_ids: Sequence[str]) -> dict[str, list[UsageSegment]]:
    """The usage of several workloads in closed spans, by workload."""
    table = schema.segment
    query = sa.select(table).where(table.c.workload.in_(workload_ids)).order_by(table.c.seq)
    found: dict[str, list[UsageSegment]] = {}
    for row in connection.execute(query).mappings():
        found.setdefault(row["workload"], []).append(_segment(row))
    return found


def _segment(row: sa.RowMapping) -> UsageSegment:
    values = {key: value for key, value in row.items() if key not in ("seq", "class", "account")}
    return UsageSegment(class_=row["class"], account=Account(row["account"]), **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """One line of the journal: who did what to which record, what it was and became."""

    seq: int
    at: Instant
    event: str
    kind: str
    record: str
    workload: str | None
    actor: str
    reason: str
    was: str | None
    became: str | None
    detail: dict[str, Any]


def journal(
    connection: sa.Connection,
    *,
    workload: str | None = None,
    events: Sequence[str] | None = None,
    limit: int = 100,
    before: int | None = None,
) -> list[JournalLine]:
    """The newest journal lines first, of one workload or of some kinds of event."""
    table = schema.journal
    query = sa.select(table).order_by(table.c.seq.desc()).limit(limit)
    if workload is not None:
        query = query.where(table.c.workload == workload)
    if events is not None:
        query = query.where(table.c.event.in_(events))
    if before is not None:
        query = query.where(table.c.seq < before)
    return [
        JournalLine(
            seq=row.seq,
            at=Instant(row.at),
            event=row.event,
            kind=row.kind,
            record=row.record,
            workload=row.workload,
            actor=row.actor,
            reason=row.reason,
            was=row.was,
            became=row.became,
            detail=json.loads(row.detail),
        )
        for row in connection.execute(query)
    ]


def remembered(connection: sa.Connection, principal: str, route: str, key: str) -> tuple[str, str] | None:
    """(digest of the request, answer) kept under an idempotency key, or None."""
    table = schema.idempotency
    row = connection.execute(
        sa.select(table.c.digest, table.c.result).where(
            table.c.principal == principal, table.c.route == route, table.c.key == key
        )
    ).one_or_none()
    return (row.digest, row.result) if row else None


def has_answers_before(connection: sa.Connection, before: Instant) -> bool:
    """Whether any answer kept under an idempotency key is older than that."""
    table = schema.idempotency
    return connection.execute(sa.select(table.c.at).where(table.c.at < before).limit(1)).first() is not None


def charge_totals(connection: sa.Connection, *, ended_since: Instant | None = None) -> dict[str, int]:
    """Σ of the charge rows of each allocation that isn't zero, in milli-GPUs: of all there ever were, or of those
    that live or ended since then. Must equal what the live picture says; what ended has none left."""
    c, a = schema.charge, schema.allocation
    query = sa.select(c.c.allocation, sa.func.sum(c.c.milli_gpus)).group_by(c.c.allocation)
    if ended_since is not None:
        lately = sa.select(a.c.id).where(sa.or_(a.c.live, a.c.ended_at >= ended_since))
        query = query.where(c.c.allocation.in_(lately))
    return {allocation: int(total) for allocation, total in connection.execute(query) if total}
