"""What a change does to the tables: the record itself, the journal, and what follows from it exactly.

All changes of one unit are written in one transaction, fenced by the leader's epoch and sequence: a leader
that lost its place, or whose picture is behind, writes nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from hubgov.clock import Instant
from hubgov.core.devices import SeenNode
from hubgov.core.metering import Entry, UsageSegment
from hubgov.core.model import (
    Allocation,
    Change,
    Departure,
    ExtensionRequest,
    Notice,
    PolicyText,
    QueueHold,
    Record,
    SaveRecord,
    Workload,
)
from hubgov.core.policy import Kind
from hubgov.core.state import record_id
from hubgov.ledger import schema
from hubgov.ledger.codec import difference, encode

Row = dict[str, Any]


def write(connection: sa.Connection, entries: Sequence[Entry], *, epoch: int, now: Instant) -> None:
    """Write the changes in order, with the usage and charges that follow from them.

    Rows of one table go out together: the last version of each record, every journal line.
    """
    batch = _Batch(epoch, now)
    for entry in entries:
        batch.add(entry)
    batch.flush(connection)


class _Batch:
    """Rows by table, in an order that foreign keys allow."""

    def __init__(self, epoch: int, now: Instant) -> None:
        self._epoch, self._now = epoch, now
        self._upserts: dict[sa.Table, dict[str, Row]] = {}
        self._appends: dict[sa.Table, list[Row]] = {}
        self._bound: dict[str, list[Row]] = {}
        self._freed: list[str] = []

    def add(self, entry: Entry) -> None:
        change = entry.change
        record = change.after
        if record is None:
            raise ValueError(f"{change.event}: nothing is ever deleted from the ledger")
        self._journal(change, record)
        if isinstance(record, Allocation):
            self._allocation(record, entry)
        else:
            table, row = _row(record)
            self._put(table, record_id(record), row)
        if entry.segments:
            self._append(schema.segment, *map(_segment_row, entry.segments))

    def flush(self, connection: sa.Connection) -> None:
        tables = metadata_order()
        for table in tables:
            rows = list(self._upserts.get(table, {}).values())
            if rows:
                _upsert(connection, table, rows)
        if self._freed:
            gone = schema.device_share.c.allocation.in_(self._freed)
            connection.execute(schema.device_share.delete().where(gone))
        shares = [row for rows in self._bound.values() for row in rows]
        if shares:
            connection.execute(schema.device_share.insert(), shares)
        for table in tables:
            if self._appends.get(table):
                connection.execute(table.insert(), self._appends[table])

    def _put(self, table: sa.Table, key: str, row: Row) -> None:
        self._upserts.setdefault(table, {})[key] = row

    def _append(self, table: sa.Table, *rows: Row) -> None:
        self._appends.setdefault(table, []).extend(rows)

    def _journal(self, change: Change, record: Record) -> None:
        was, became = _state_word(change.before), _state_word(record)
        row = {
            "at": self._now,
            "epoch": self._epoch,
            "event": change.event,
            "kind": type(record).__name__,
            "record": record_id(record),
            "workload": _workload_of(record),
            "actor": change.actor,
            "reason": change.reason,
            "was": was,
            "became": became,
            "detail": difference(change.before, record),
        }
        self._append(schema.journal, row)

    def _allocation(self, after: Allocation, entry: Entry) -> None:
        before, workload = entry.change.before, entry.workload
        if workload is None:
            raise ValueError(f"{after.id}: an allocation without its workload")
        self._put(schema.allocation, after.id, _allocation_row(after, workload))
        if before is None:
            self._bound[after.id] = _share_rows(after)
        elif not after.state.live and self._bound.pop(after.id, None) is None:
            self._freed.append(after.id)
        held = _charge(before) if isinstance(before, Allocation) else 0
        if held != _charge(after) and after.flavor is not None:
            row = {"at": self._now, "allocation": after.id, "pool": after.pool, "flavor": after.flavor}
            row |= {"team": workload.team, "project": workload.project, "cause": entry.change.event}
            self._append(schema.charge, row | {"milli_gpus": _charge(after) - held})


def metadata_order() -> list[sa.Table]:
    """The tables with those that others refer to first."""
    return schema.metadata.sorted_tables


def _charge(allocation: Allocation) -> int:
    return allocation.milli_gpus if allocation.charged else 0


def _row(record: Record) -> tuple[sa.Table, Row]:
    """The table and row of any record but an allocation, whose row also needs its workload."""
    match record:
        case Workload():
            return schema.workload, _workload_row(record)
        case ExtensionRequest():
            row: Row = {"id": record.id, "workload": record.workload, "state": record.state.value}
            return schema.extension, row | {"body": encode(record)}
        case Notice():
            row = {"id": record.id, "allocation": record.allocation, "threshold_ms": record.threshold_ms}
            return schema.notice, row | {"lease_version": record.lease_version, "body": encode(record)}
        case SaveRecord():
            return schema.save, {"id": record.id, "workload": record.workload, "body": encode(record)}
        case QueueHold():
            return schema.queue_hold, {"queue": record.queue, "held": record.held, "body": encode(record)}
        case Departure():
            return schema.departure, {"name": record.name, "body": encode(record)}
        case SeenNode():
            return schema.node, {"name": record.name, "body": encode(record)}
        case PolicyText():
            row = {"version": record.version, "text": record.text, "applied_at": record.applied_at}
            return schema.policy, row | {"applied_by": record.applied_by}
        case Allocation():
            raise TypeError("an allocation's row needs its workload")


def _share_rows(a: Allocation) -> list[Row]:
    return [
        {"node": s.node, "device": s.uuid, "allocation": a.id, "milli": s.milli, "memory_mib": s.memory_mib}
        for s in a.devices
    ]


def _segment_row(segment: UsageSegment) -> Row:
    row = dataclasses.asdict(segment)
    row["class"] = row.pop("class_")
    row["account"] = segment.account.value
    return row


def _workload_row(w: Workload) -> Row:
    return {
        "id": w.id,
        "seq": w.seq,
        "live": w.live,
        "state": w.state.value,
        "kind": w.kind.value,
        "owner": w.owner,
        "server": w.request.server if w.kind is Kind.NOTEBOOK else None,
        "team": w.team,
        "project": w.project,
        "environment": w.environment,
        "queue": w.queue,
        "submitted_at": w.submitted_at,
        "ended_at": w.ended_at,
        "version": w.version,
        "body": encode(w),
    }


def _allocation_row(a: Allocation, workload: Workload) -> Row:
    return {
        "id": a.id,
        "workload": a.workload,
        "attempt": a.attempt,
        "live": a.state.live,
        "state": a.state.value,
        "project": workload.project,
        "milli_gpus": a.milli_gpus,
        "reserved_at": a.reserved_at,
        "ended_at": a.ended_at,
        "lease_version": a.lease.version,
        "body": encode(a),
    }


def _upsert(connection: sa.Connection, table: sa.Table, rows: list[Row]) -> None:
    insert = sqlite_insert if connection.dialect.name == "sqlite" else postgresql_insert
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    rest = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=rest), rows)


def _state_word(record: Record | None) -> str | None:
    match record:
        case Workload() | Allocation() | ExtensionRequest():
            return record.state.value
        case _:
            return None


def _workload_of(record: Record) -> str | None:
    match record:
        case Workload():
            return record.id
        case Allocation() | ExtensionRequest() | Notice() | SaveRecord():
            return record.workload
        case _:
            return None


def remember(
    connection: sa.Connection, principal: str, route: str, key: str, digest: str, result: str, now: Instant
) -> None:
    """Keep the answer to a request that came with an idempotency key, in the transaction of its changes."""
    row: Mapping[str, Any] = {
        "principal": principal,
        "route": route,
        "key": key,
        "digest": digest,
        "result": result,
        "at": now,
    }
    connection.execute(schema.idempotency.insert(), [dict(row)])


FORGET_AT_ONCE = 500
"""Rows removed in one transaction, which holds everybody up."""


def forget(connection: sa.Connection, before: Instant) -> int:
    """Remove up to `FORGET_AT_ONCE` answers kept under idempotency keys since before then, the oldest first; how
    many it were."""
    table = schema.idempotency
    keys = tuple(table.primary_key)
    old = sa.select(*keys).where(table.c.at < before).order_by(table.c.at).limit(FORGET_AT_ONCE)
    return connection.execute(table.delete().where(sa.tuple_(*keys).in_(old))).rowcount
