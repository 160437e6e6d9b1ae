"""The life of a job as its engine sees it: the same moves as a notebook's, reported from within the service.

As there, a duplicate, a late report or one of an older attempt changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from hubgov.control.session import refuse_departed
from hubgov.control.unit import Unit
from hubgov.core.model import Allocation, AllocationId, Change
from hubgov.core.states import AllocationState, Event
from hubgov.core.transitions import SERVICE, exited, moved
from hubgov.engines.base import Report
from hubgov.errors import Conflict


def launched(unit: Unit, allocation_id: AllocationId) -> bool:
    """The engine is about to start what was granted; on record before it does. False when it must not."""
    allocation = unit.state.allocations.get(allocation_id)
    if allocation is None:
        return False
    try:
        refuse_departed(unit, unit.state.workload_of(allocation))
    except Conflict as error:  # so no other try is made of it, and it costs nothing
        cannot_start(unit, allocation_id, error.code)
        return False
    unit.write(moved(unit.state, allocation, Event.LAUNCHED, unit.now, launched_at=unit.now))
    return unit.state.allocations[allocation_id].state is AllocationState.STARTING


def cannot_start(unit: Unit, allocation_id: AllocationId, failure: str) -> None:
    """Nothing of it was started, and asking again would not help."""
    allocation = unit.state.allocations.get(allocation_id)
    if allocation is not None and allocation.state in (AllocationState.RESERVED, AllocationState.STARTING):
        unit.write(exited(unit.state, allocation, unit.now, code=None, failure=failure))


def observed(unit: Unit, allocation_id: AllocationId, report: Report) -> None:
    """What the engine saw: its processes, that its command runs, how it ended."""
    allocation = unit.state.allocations.get(allocation_id)
    if allocation is None:
        return
    known = replace(allocation, main=report.main, init=report.init)
    if report.main is not None and known != allocation:
        unit.write([Change(event="processes_known", before=allocation, after=known, actor=SERVICE)])
    if report.running_at is not None:
        unit.write(moved(unit.state, _now(unit, allocation_id), Event.READY, report.running_at))
    if (end := report.ended) is not None:
        now = _now(unit, allocation_id)
        unit.write(exited(unit.state, now, end.at, code=end.code, signal=end.signal, failure=end.failure))


def _now(unit: Unit, allocation_id: AllocationId) -> Allocation:
    return unit.state.allocations[allocation_id]
