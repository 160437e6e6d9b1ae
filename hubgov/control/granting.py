"""Putting a longer lease in force, however it was agreed to."""

from __future__ import annotations

from dataclasses import replace

from hubgov.control.actor import Actor
from hubgov.control.unit import Unit
from hubgov.core import idle
from hubgov.core.model import Allocation, Change, Lease, Workload
from hubgov.core.states import Event
from hubgov.core.transitions import moved
from hubgov.errors import Ended


def grant(
    unit: Unit,
    workload: Workload,
    allocation: Allocation,
    lease: Lease,
    actor: Actor,
    reason: str,
    *,
    counted: bool,
) -> None:
    """Put the longer lease in force; a window of idleness begins anew. `counted`: it is one of those that the
    owner may take by himself.

    Ended where the allocation is in no state to be extended any more.
    """
    extended = moved(
        unit.state, allocation, Event.EXTENDED, unit.now, actor=actor.principal, reason=reason,
        lease=lease, stop_at=None, halted_at=None, idle=idle.back(allocation.idle, unit.now),
    )  # fmt: skip
    if not unit.write(extended):
        raise Ended(
            f"{workload.id} can't be extended while it is {allocation.state.value}", hint="look again in a moment"
        )
    if counted:
        before = unit.state.workloads[workload.id]
        after = replace(before, extensions_used=before.extensions_used + 1)
        unit.write([Change(event="extension_counted", before=before, after=after, actor=actor.principal)])
