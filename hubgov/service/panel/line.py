"""The queues: their rules, who holds them up, and the line of each in its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubgov import wire
from hubgov.clock import to_rfc3339
from hubgov.core import explain
from hubgov.core.model import QueueHold, Workload
from hubgov.core.policy import Kind, Queue
from hubgov.core.ranking import lines
from hubgov.service.documents import Desk

MOST_SHOWN = 200
"""Rows of one queue's line; how many more there are is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InLine:
    """One that waits; of another team's its team and size alone."""

    place: int
    workload: str | None
    name: str
    owner: str | None
    team: str
    job: str | None
    """The kind of a job; None for a notebook, and for what the reader may not see."""
    gpus: int | float
    waited_seconds: int
    latest_start: str | None
    decision: wire.Decision | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    queue: Queue
    hold: QueueHold | None
    running: int
    pending: int
    line: Sequence[InLine]
    simulated: bool


def queue_rows(desk: Desk) -> list[QueueRow]:
    """Every queue of the policy in its order there."""
    state = desk.state
    ranked = lines(state, desk.judged_at)
    waiting: dict[str, list[tuple[int, Workload]]] = {}
    for workload_id, (place, _) in ranked.items():
        workload = state.workloads[workload_id]
        waiting.setdefault(workload.queue, []).append((place, workload))
    running: dict[str, int] = {}
    for allocation in state.allocations.values():
        queue = state.workload_of(allocation).queue
        running[queue] = running.get(queue, 0) + 1
    return [
        QueueRow(
            queue=queue,
            hold=state.holds.get(queue.name),
            running=running.get(queue.name, 0),
            pending=len(waiting.get(queue.name, ())),
            line=[
                _in_line(desk, place, workload)
                for place, workload in sorted(waiting.get(queue.name, ()), key=lambda one: one[0])[:MOST_SHOWN]
            ],
            simulated=desk.simulated_in(queue.name),
        )
        for queue in state.policy.queues.values()
    ]


def _in_line(desk: Desk, place: int, workload: Workload) -> InLine:
    seen = desk.reader.sees(workload.owner, workload.team)
    since = workload.pending_since if workload.pending_since is not None else desk.now
    start = explain.latest_start(desk.state, workload, desk.judged_at)[1] if seen else None
    decision = explain.waiting(desk.state, workload, desk.judged_at) if seen else None
    return InLine(
        place=place,
        workload=workload.id if seen else None,
        name=workload.name if seen else "",
        owner=workload.owner if seen else None,
        team=workload.team,
        job=workload.kind.value if seen and workload.kind is not Kind.NOTEBOOK else None,
        gpus=wire.gpus(workload.request.smallest),
        waited_seconds=max(0, desk.now - since + workload.waited_ms) // 1000,
        latest_start=to_rfc3339(start) if start is not None else None,
        decision=desk.decision(decision, workload) if decision is not None else None,
    )
