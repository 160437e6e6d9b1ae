"""Requests for more time: what waits for whose decision, what it costs and whom it delays, and what was decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from hubgov import wire
from hubgov.clock import Instant, to_rfc3339
from hubgov.control import approvals
from hubgov.control.actor import Actor, may_change
from hubgov.core.amounts import rounded
from hubgov.core.metering import cost_of, segments_until
from hubgov.core.model import ExtensionRequest, ExtensionState, Workload
from hubgov.core.state import State
from hubgov.service.documents import Desk

DECIDED_DAYS = 7
"""For how long a decision is still shown."""


def open_to(actor: Actor, state: State, now: Instant) -> int:
    """How many requests wait for this one's decision."""
    waiting = [r for r in state.extensions.values() if r.state is ExtensionState.NEEDS_APPROVAL]
    return sum(1 for r in waiting if approvals.decides(actor, state, r, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An open request with what an approver wants to know."""

    request: wire.Extension
    name: str
    owner: str
    team: str
    queue: str
    gpus: int | float
    flavor: str | None
    simulated: bool
    asked_at: str
    ends_at: str | None
    """The present end."""
    until: str | None
    """The end if all of it is granted."""
    cost: wire.Money
    """What it costs, at today's price."""
    decides: bool


def asked(desk: Desk) -> list[Asked]:
    """The open requests that the reader may decide on or steer the work of, oldest first."""
    state = desk.state
    found = []
    for request in sorted(state.extensions.values(), key=lambda r: (r.requested_at, r.id)):
        workload = state.workloads.get(request.workload)
        if workload is None or request.state is not ExtensionState.NEEDS_APPROVAL:
            continue
        decides = approvals.decides(desk.actor, state, request, desk.now)
        if decides or may_change(desk.actor, state.policy, workload):
            found.append(_asked(desk, request, workload, decides))
    return found


def _asked(desk: Desk, request: ExtensionRequest, workload: Workload, decides: bool) -> Asked:
    allocation = desk.state.allocation_of(workload)
    end = allocation.lease.expires_at if allocation is not None else None
    until = request.expires_at + request.by_ms if request.expires_at is not None else None
    return Asked(
        request=desk.extension(request, delays=desk.delays(request)),
        name=workload.name,
        owner=workload.owner,
        team=workload.team,
        queue=workload.queue,
        gpus=wire.gpus(allocation.milli_gpus) if allocation is not None else 0,
        flavor=allocation.flavor if allocation is not None else None,
        simulated=any(s.simulated for s in allocation.devices) if allocation is not None else False,
        asked_at=to_rfc3339(request.requested_at),
        ends_at=to_rfc3339(end) if end is not None else None,
        until=to_rfc3339(Instant(until)) if until is not None else None,
        cost=_cost(desk, workload, request.by_ms),
        decides=decides,
    )


def _cost(desk: Desk, workload: Workload, span_ms: int) -> wire.Money:
    """What the time costs at the tariff that holds now."""
    allocation = desk.state.allocation_of(workload)
    if allocation is None:
        return desk.money(0)
    as_of = replace(allocation, since=desk.now, tariffs=())
    spans = segments_until(desk.state, workload, as_of, Instant(desk.now + span_ms))
    return desk.money(rounded(sum((cost_of(s) for s in spans), start=Fraction(0))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A request that was decided on, with the work it was about."""

    request: wire.Extension
    name: str
    owner: str


def decided(desk: Desk, found: Iterable[tuple[ExtensionRequest, Workload]]) -> list[Decided]:
    """Of these the ones whose work the reader may steer, or that he decided on himself."""
    return [
        Decided(request=desk.extension(request), name=workload.name, owner=workload.owner)
        for request, workload in found
        if may_change(desk.actor, desk.state.policy, workload) or request.decided_by == desk.actor.principal
    ]
