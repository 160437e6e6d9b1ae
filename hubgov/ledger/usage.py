"""Usage of a period, summed up by the database: whole numbers only, cut at the edges of the period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from hubgov.clock import Instant
from hubgov.core.metering import Account
from hubgov.core.states import AllocationState
from hubgov.insight.costs import Place, Usage
from hubgov.ledger import schema

UNTIL_READY = (AllocationState.RESERVED.value, AllocationState.STARTING.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Whose usage is counted: the owner's and that of `teams`; None for everybody's."""

    owner: str
    since: Instant
    """Since when the owner has had that name."""
    teams: tuple[str, ...]


def head(connection: sa.Connection) -> int:
    """The last segment there is: what is closed later belongs to a later picture."""
    return connection.execute(sa.select(sa.func.max(schema.segment.c.seq))).scalar() or 0


def usage(
    connection: sa.Connection,
    spans: Sequence[tuple[Instant, Instant]],
    columns: Sequence[str],
    whose: Whose | None,
    *,
    simulated: bool,
    up_to: int,
) -> list[tuple[int, Usage]]:
    """(which of `spans`, what was used in it by closed segments up to that one), grouped by these columns of the
    segments. Without `simulated` only real devices count.
    """
    found = []
    for index, (start, end) in enumerate(spans):
        query = _query(start, end, columns, whose, simulated).where(schema.segment.c.seq <= up_to)
        for row in connection.execute(query):
            place: Place = tuple(row[: len(columns)])
            state, account, borrowed, price, queue, class_, borrowing, total = row[len(columns) :]
            one = Usage(
                place=place,
                account=Account(account),
                failed=state in UNTIL_READY and account != Account.TEAM.value,
                borrowed=borrowed,
                milli_gpu_ms=int(total),
                price_micro_per_hour=price,
                queue_factor_micro=queue,
                class_factor_micro=class_,
                borrowed_factor_micro=borrowing,
            )
            found.append((index, one))
    return found


def has_simulated(connection: sa.Connection, start: Instant, end: Instant, whose: Whose | None) -> bool:
    """Whether closed segments of the period lie on simulated devices."""
    s = schema.segment
    query = sa.select(s.c.seq).where(*_within(start, end, whose), s.c.simulated).limit(1)
    return connection.execute(query).first() is not None


def _query(
    start: Instant, end: Instant, columns: Sequence[str], whose: Whose | None, simulated: bool
) -> sa.Select[Any]:
    s = schema.segment
    began = sa.case((s.c.began < start, start), else_=s.c.began)
    ended = sa.case((s.c.ended > end, end), else_=s.c.ended)
    alike = [s.c[name] for name in columns]
    alike += [s.c.state, s.c.account, s.c.borrowed, s.c.price_micro_per_hour]
    alike += [s.c.queue_factor_micro, s.c.class_factor_micro, s.c.borrowed_factor_micro]
    where = _within(start, end, whose)
    if not simulated:
        where.append(~s.c.simulated)
    return sa.select(*alike, sa.func.sum((ended - began) * s.c.milli_gpus)).where(*where).group_by(*alike)


def _within(start: Instant, end: Instant, whose: Whose | None) -> list[sa.ColumnElement[bool]]:
    s = schema.segment
    where: list[sa.ColumnElement[bool]] = [s.c.ended > start, s.c.began < end, s.c.milli_gpus > 0]
    if whose is not None:
        # By when it was asked for, as the picture tells whose work is whose: what a deleted user's work used
        # after he was deleted is not the next one's of that name.
        w = schema.workload
        asked = sa.exists().where(w.c.id == s.c.workload, w.c.submitted_at >= whose.since)
        own = sa.and_(s.c.owner == whose.owner, asked)
        where.append(sa.or_(own, s.c.team.in_(whose.teams)))
    return where
