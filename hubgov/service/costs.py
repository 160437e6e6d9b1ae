"""Who used how many GPU-hours and what they cost: closed usage from the ledger, what goes on from the picture."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from hubgov import wire
from hubgov.clock import Instant, from_rfc3339, to_rfc3339
from hubgov.core.metering import UsageSegment, segments_until
from hubgov.core.windows import day_of, midnight
from hubgov.errors import Invalid
from hubgov.insight.costs import DIMENSIONS, CostRow, Usage, cost_rows
from hubgov.ledger import usage as ledger_usage
from hubgov.ledger.ledger import Ledger
from hubgov.ledger.usage import Whose
from hubgov.service.documents import Desk

MOST_DAYS = 92
"""The longest period that is told day by day."""
Span = tuple[Instant, Instant]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: grouped by what, of which period (up to `to`, not including it)."""

    by: tuple[str, ...]
    start: Instant
    end: Instant
    simulated: bool


def question(desk: Desk, by: str | None, start: str | None, end: str | None, simulated: bool) -> Question:
    """The question of a query: by team, and from the first of the month until now, where it says nothing."""
    names = tuple(dict.fromkeys((by or "team").split(",")))
    for name in names:
        if name not in DIMENSIONS:
            raise Invalid(f"by: there is no {name[:40]!r}", hint="one or more of: " + ", ".join(DIMENSIONS))
    zone = desk.state.policy.timezone
    first = midnight(day_of(desk.now, zone).replace(day=1), zone)
    begins = first if start is None else moment("from", start, zone)
    ends = desk.now if end is None else moment("to", end, zone)
    if begins >= ends:
        raise Invalid("from: the period is empty, or begins after its end", hint="from must come before to")
    asked = Question(by=names, start=begins, end=ends, simulated=simulated)
    if "day" in names and len(_days(asked, zone)) > MOST_DAYS:
        raise Invalid(f"by: day by day at most {MOST_DAYS} days", hint="ask for a shorter period, or not by day")
    return asked


async def report(desk: Desk, ledger: Ledger, asked: Question) -> wire.Costs:
    """The answer, of what the reader may see: his own, of the teams he leads, all for an admin.

    What goes on is read from the picture, what is closed from the ledger as far as it goes with that picture; the
    long read of the latter is done beside the loop, so that nobody's answer waits for it.
    """
    zone = desk.state.policy.timezone
    spans = _days(asked, zone) if "day" in asked.by else [(asked.start, asked.end)]
    columns = [DIMENSIONS[name] for name in asked.by if name != "day"]
    whose = _whose(desk)
    live = [s for s in _live(desk, whose) if s.ended > asked.start and s.began < asked.end]
    with ledger.reading() as connection:
        head = ledger_usage.head(connection)

    def closed() -> tuple[list[tuple[int, Usage]], bool]:
        with ledger.reading() as connection:
            found = ledger_usage.usage(connection, spans, columns, whose, simulated=asked.simulated, up_to=head)
            return found, ledger_usage.has_simulated(connection, asked.start, asked.end, whose)

    used, any_simulated = await asyncio.to_thread(closed)
    any_simulated = any_simulated or any(segment.simulated for segment in live)
    used += _clipped([s for s in live if asked.simulated or not s.simulated], spans, columns)
    if "day" in asked.by:
        days = [day_of(start, zone).isoformat() for start, _ in spans]
        used = [(i, _dated(usage, asked.by.index("day"), days[i])) for i, usage in used]
    rows, total = cost_rows(usage for _, usage in used)
    return wire.Costs(
        by=asked.by,
        from_=to_rfc3339(asked.start),
        to=to_rfc3339(asked.end),
        timezone=zone,
        items=tuple(_row(desk, asked.by, row) for row in rows),
        total=_row(desk, (), total),
        simulated=any_simulated and asked.simulated,
        simulated_left_out=any_simulated and not asked.simulated,
    )


def _whose(desk: Desk) -> Whose | None:
    if desk.actor.admin:
        return None
    policy = desk.state.policy
    led = tuple(sorted(team for team in policy.teams if desk.actor.leads(policy, team)))
    return Whose(owner=desk.actor.principal, since=desk.actor.since, teams=led)


def moment(name: str, text: str, zone: str) -> Instant:
    """What a query says: an instant, or the beginning of a day in the policy's zone."""
    try:
        if len(text) == len("2026-03-02"):
            found = midnight(date.fromisoformat(text), zone)
        else:
            found = from_rfc3339(text.replace(" ", "+"))  # a plus sign of a query that wasn't escaped
    except (ValueError, OverflowError):
        found = Instant(-1)
    if found < 0:
        raise Invalid(
            f"{name}: {text[:40]!r} is no day and no instant", hint="2026-03-02, or 2026-03-02T09:00:00+08:00"
        )
    return found


def _days(asked: Question, zone: str) -> list[Span]:
    """The period cut at each midnight; one day more than is allowed at most."""
    spans: list[Span] = []
    start = asked.start
    while start < asked.end and len(spans) <= MOST_DAYS:
        end = min(midnight(day_of(start, zone) + timedelta(days=1), zone), asked.end)
        spans.append((start, end))
        start = end
    return spans


def _live(desk: Desk, whose: Whose | None) -> Iterator[UsageSegment]:
    """The usage of live allocations in their present state, until now."""
    for allocation in desk.state.allocations.values():
        workload = desk.state.workload_of(allocation)
        seen = whose is None or desk.actor.owns(workload) or workload.team in whose.teams
        if seen and allocation.milli_gpus:
            yield from segments_until(desk.state, workload, allocation, desk.now)


def _clipped(segments: list[UsageSegment], spans: list[Span], columns: list[str]) -> Iterator[tuple[int, Usage]]:
    for segment in segments:
        for index, (start, end) in enumerate(spans):
            span_ms = min(segment.ended, end) - max(segment.began, start)
            if span_ms > 0:
                yield (
                    index,
                    Usage(
                        place=tuple(getattr(segment, name) for name in columns),
                        account=segment.account,
                        failed=False,
                        borrowed=segment.borrowed,
                        milli_gpu_ms=span_ms * segment.milli_gpus,
                        price_micro_per_hour=segment.price_micro_per_hour,
                        queue_factor_micro=segment.queue_factor_micro,
                        class_factor_micro=segment.class_factor_micro,
                        borrowed_factor_micro=segment.borrowed_factor_micro,
                    ),
                )


def _dated(usage: Usage, at: int, day: str) -> Usage:
    return replace(usage, place=(*usage.place[:at], day, *usage.place[at:]))


def _row(desk: Desk, by: tuple[str, ...], row: CostRow) -> wire.CostRow:
    return wire.CostRow(
        gpu_seconds=row.gpu_seconds,
        list_cost=desk.money(row.list_cost_micro),
        discount=desk.money(row.discount_micro),
        cost=desk.money(row.cost_micro),
        borrowed_gpu_seconds=row.borrowed_gpu_seconds,
        failed_gpu_seconds=row.failed_gpu_seconds,
        overhead_gpu_seconds=row.overhead_gpu_seconds,
        credited=desk.money(row.credited_micro),
        **dict(zip(by, row.place, strict=True)),
    )
