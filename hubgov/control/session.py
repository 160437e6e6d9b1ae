"""The life of a notebook server as its spawner and its own extension report it.

Reports are idempotent: a duplicate, a late one or one of an older attempt changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from hubgov.clock import Instant
from hubgov.control.actor import Actor
from hubgov.control.unit import Unit
from hubgov.core import kernels
from hubgov.core.model import (
    Allocation,
    AllocationId,
    Change,
    Departure,
    ProcessId,
    SaveRecord,
    Workload,
    WorkloadId,
)
from hubgov.core.policy import Kind
from hubgov.core.saving import save_answered
from hubgov.core.states import METERED, AllocationState, Event, WorkloadState
from hubgov.core.transitions import cancelled, exited, moved, stop_due_at
from hubgov.errors import Conflict, NotAllowed


def check_spawner(actor: Actor) -> None:
    """NotAllowed for everybody but the spawner's own identity."""
    if not actor.spawner:
        raise NotAllowed("only the spawner reports on servers", hint="this is no call for people")


def launch(unit: Unit, workload_id: str, attempt: int, actor: Actor) -> Allocation:
    """The spawner begins to start what was granted. Asked twice, it gets the same answer."""
    check_spawner(actor)
    workload = unit.workload(workload_id)
    allocation = unit.allocation(workload, attempt)
    refuse_departed(unit, workload)
    if allocation.state is AllocationState.RESERVED:
        unit.write(
            moved(unit.state, allocation, Event.LAUNCHED, unit.now, actor=actor.principal, launched_at=unit.now)
        )
    elif allocation.outcome is not None or allocation.state is not AllocationState.STARTING:
        raise Conflict(
            f"{workload.id} is {allocation.state.value}, not about to start",
            code="not_starting",
            hint="ask for the workload again",
        )
    return unit.state.allocations[allocation.id]


def processes(
    unit: Unit,
    workload_id: str,
    attempt: int,
    actor: Actor,
    *,
    main: ProcessId,
    init: ProcessId | None,
    uid: int | None = None,
) -> None:
    """Which processes the server is: written before it is ready, so that nothing can be left unseen. `uid` is
    whose the main process is."""
    check_spawner(actor)
    workload = unit.workload(workload_id)
    allocation = unit.allocation(workload, attempt)
    after = replace(allocation, main=main, init=init, uid=uid if init is None else None)
    if after != allocation:
        unit.write([Change(event="processes_known", before=allocation, after=after, actor=actor.principal)])


def ready(unit: Unit, workload_id: str, attempt: int, actor: Actor, url: str) -> Allocation:
    """The server answers: the lease begins."""
    check_spawner(actor)
    workload = unit.workload(workload_id)
    allocation = unit.allocation(workload, attempt)
    unit.write(moved(unit.state, allocation, Event.READY, unit.now, actor=actor.principal, url=url))
    return unit.state.allocations[allocation.id]


def stopping(unit: Unit, workload_id: str, attempt: int, actor: Actor, *, now: bool) -> Workload:
    """The hub was told to stop the server: its owner's word, unless a stop is on its way already."""
    check_spawner(actor)
    workload = unit.workload(workload_id)
    allocation = unit.allocation(workload, attempt)
    if allocation.state not in METERED | {AllocationState.STARTING} and stop_due_at(allocation) <= unit.now:
        return workload  # hubgov's own stop, arriving at the hub: nobody has cancelled anything
    unit.write(
        cancelled(
            unit.state, workload, unit.now, actor=workload.owner, reason="", code="cancelled", now=now,
            save_within_ms=unit.state.policy.reclaim.save_ms,
        )
    )  # fmt: skip
    return unit.latest(workload)


def ended(
    unit: Unit,
    workload_id: str,
    attempt: int,
    actor: Actor,
    *,
    code: int | None,
    signal: int | None,
    by_owner: bool,
) -> None:
    """The server's process ended. `by_owner`: the hub was told to stop it, by a person and not by hubgov.

    Of what is over already, or of another attempt, it is no news.
    """
    check_spawner(actor)
    workload = unit.state.workloads.get(WorkloadId(workload_id))
    allocation = unit.state.allocation_of(workload) if workload is not None else None
    if workload is None or allocation is None or allocation.attempt != attempt:
        return
    if by_owner and allocation.outcome is None:
        before = allocation
        allocation = replace(allocation, outcome=WorkloadState.CANCELLED, end_reason="cancelled")
        unit.write([Change(event="stop_asked", before=before, after=allocation, actor=workload.owner)])
    unit.write(exited(unit.state, allocation, unit.now, code=code, signal=signal))


def gone(unit: Unit, allocation_id: str) -> None:
    """Every process of an allocation was seen gone and its devices free: they may be handed on."""
    allocation = unit.state.allocations.get(AllocationId(allocation_id))
    if allocation is not None:
        unit.write(moved(unit.state, allocation, Event.GONE, unit.now))


def vanished(unit: Unit, allocation_id: str, at: Instant) -> None:
    """Its main process is no longer there and nobody reported an exit."""
    allocation = unit.state.allocations.get(AllocationId(allocation_id))
    if allocation is not None and allocation.halted_at is None:
        unit.write(exited(unit.state, allocation, at, code=None))


def unattended(unit: Unit, allocation_id: str) -> bool:
    """The service is about to start the server itself: nobody was attached when it was granted.

    False when it must not: the grant is gone, or a spawner has taken it meanwhile.
    """
    allocation = unit.state.allocations.get(AllocationId(allocation_id))
    if allocation is None or allocation.state is not AllocationState.RESERVED:
        return False
    if not allocation.unattended:
        after = replace(allocation, unattended=True)
        unit.write([Change(event="server_start_asked", before=allocation, after=after, actor="hubgov")])
    return True


def engine_away(unit: Unit, kinds: frozenset[Kind]) -> None:
    """The engine of these kinds doesn't answer: what it was granted and hasn't begun waits again at its place."""
    unit.state.engine_away(kinds)
    for allocation in sorted(unit.state.allocations.values(), key=lambda a: a.id):
        if allocation.state is AllocationState.RESERVED and unit.state.workload_of(allocation).kind in kinds:
            unit.write(moved(unit.state, allocation, Event.UNKNOWN_TO_ENGINE, unit.now, reason="engine_away"))


def engine_back(unit: Unit, kinds: frozenset[Kind]) -> None:
    """It answers again: its work may be admitted, and start deadlines count from now."""
    unit.state.engine_back(kinds, unit.now)


def departed(unit: Unit, name: str, actor: Actor, *, ago_ms: int = 0) -> None:
    """The hub deleted a user so long ago: whoever gets the name next has nothing of what was asked for until then.

    What of it still waits or runs ends at once, in the same commit: started later, it would do so in the home of
    the next, with his rights.
    """
    check_spawner(actor)
    before = unit.state.departures.get(name)
    at = Instant(max(unit.now - ago_ms, before.at if before is not None else 0))
    after = Departure(name=name, at=at)
    unit.write([Change(event="user_departed", before=before, after=after, actor=actor.principal)])
    theirs = [w for w in unit.state.workloads.values() if w.owner == name and w.submitted_at <= at]
    for workload in sorted(theirs, key=lambda w: w.seq):
        unit.write(
            cancelled(
                unit.state, workload, unit.now, actor=actor.principal, reason="user_departed", code="admin",
                now=True,
            )
        )  # fmt: skip


def refuse_departed(unit: Unit, workload: Workload) -> None:
    """Conflict for work of a user who is deleted: it must not start in what the next of that name has."""
    if workload.submitted_at < unit.state.known_since(workload.owner):
        raise Conflict(
            f"{workload.id} was asked for by a {workload.owner} whom the hub has deleted",
            code="owner_departed",
            hint="ask for new work",
        )


def claim(unit: Unit, workload_id: str, actor: Actor) -> None:
    """Somebody opened the notebook: it is no longer given back for want of an owner."""
    workload = unit.workload(workload_id)
    _check_own(workload, actor)
    allocation = unit.state.allocation_of(workload)
    if allocation is not None and (allocation.claim_by is not None or allocation.unattended):
        after = replace(allocation, claim_by=None, unattended=False)
        unit.write([Change(event="server_claimed", before=allocation, after=after, actor=actor.principal)])


def saved(unit: Unit, workload_id: str, actor: Actor, record: SaveRecord) -> None:
    """What the session reports of a save it was asked for: kept for the receipt; the first word per save counts.

    Only ids that hubgov gave out are taken, and each once: any kernel can send reports with its server's token,
    and they must not fill the ledger.
    """
    workload = unit.workload(workload_id)
    _check_own(workload, actor)
    allocation = unit.allocation(workload)
    asked = {n.id for n in unit.state.notices.values() if n.allocation == allocation.id} | {allocation.save}
    if record.id not in asked:
        raise Conflict(
            "nobody asked this session for that save", code="stale_attempt", hint="use the id you were given"
        )
    if record.id in unit.state.saves:
        return
    unit.write([Change(event="documents_saved", before=None, after=record, actor=actor.principal)])
    if allocation.save == record.id:
        unit.write(save_answered(unit.state, allocation, unit.now, actor=actor.principal))


def kernel_ended(unit: Unit, workload_id: str, actor: Actor, kernel: str, failed: str) -> None:
    """What came of a kernel that the session was told to shut down: done, or why not. Nobody asked: no news."""
    workload = unit.workload(workload_id)
    _check_own(workload, actor)
    allocation = unit.allocation(workload)
    changes = kernels.ended(unit.state, allocation, kernel, unit.now, actor=actor.principal, failed=failed)
    if unit.write(changes) and not failed:
        unit.state.unwatch_kernel(allocation.id, kernel)


def _check_own(workload: Workload, actor: Actor) -> None:
    if not actor.owns(workload):
        raise NotAllowed(f"{workload.id} belongs to {workload.owner}", hint="only its own server reports on it")
