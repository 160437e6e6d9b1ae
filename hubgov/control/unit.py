"""One unit of work: changes applied to the live picture as they are made, undone if it fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hubgov.clock import Instant
from hubgov.core.metering import Entry, entry
from hubgov.core.model import Allocation, Change, Workload, WorkloadId
from hubgov.core.state import State
from hubgov.errors import Ended, NotFound


@dataclass(slots=True)
class Unit:
    """What a use case works on. It reads `state`, writes through `write`, and never touches ledger or engine."""

    state: State
    now: Instant
    clock_rate: int = 1
    entries: list[Entry] = field(default_factory=list)

    def write(self, changes: Iterable[Change]) -> bool:
        """Apply the changes and keep them for the commit. False if there were none."""
        wrote = False
        for change in changes:
            self.entries.append(entry(self.state, change))
            self.state.apply(change)
            wrote = True
        return wrote

    def undo_to(self, mark: int) -> None:
        """Take back everything written after the first `mark` entries."""
        while len(self.entries) > mark:
            self.state.apply(self.entries.pop().change.undone)

    def workload(self, workload_id: str) -> Workload:
        """A live workload. Ended: it is over, or there never was one (the ledger tells the two apart)."""
        workload = self.state.workloads.get(WorkloadId(workload_id))
        if workload is None:
            raise Ended(
                f"{workload_id} is over", hint=f"hubgov show {workload_id}", details={"workload": workload_id}
            )
        return workload

    def latest(self, workload: Workload) -> Workload:
        """The workload as this unit has left it, also when it is over and gone from the live picture."""
        for written in reversed(self.entries):
            after = written.change.after
            if isinstance(after, Workload) and after.id == workload.id:
                return after
        return self.state.workloads.get(workload.id, workload)

    def allocation(self, workload: Workload, attempt: int | None = None) -> Allocation:
        """The workload's allocation; NotFound without one, or when `attempt` is an older one."""
        allocation = self.state.allocation_of(workload)
        if allocation is None or (attempt is not None and allocation.attempt != attempt):
            raise NotFound(
                f"{workload.id} has no devices in attempt {attempt if attempt is not None else workload.attempt}",
                code="stale_attempt",
                hint="the attempt is over; ask for the workload again",
            )
        return allocation
