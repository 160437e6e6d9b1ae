"""The states of an allocation and of a workload, and every legal move (semantics §7).

The table is the rule: a (state, event) pair that is not in it is a no-op, which the caller notes in the
audit. Duplicate, late and reordered reports of an engine are therefore harmless.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class WorkloadState(StrEnum):
    """Where a request stands. SUBMITTED is the instant before PENDING and is never stored."""

    PENDING = "pending"
    ADMITTED = "admitted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    CULLED = "culled"

    @property
    def final(self) -> bool:
        """Whether nothing more can happen to it."""
        return self not in (WorkloadState.PENDING, WorkloadState.ADMITTED, WorkloadState.RUNNING)


class AllocationState(StrEnum):
    """Where the devices of one attempt stand."""

    RESERVED = "reserved"
    """Charged; the engine hasn't been told, or has not begun."""
    STARTING = "starting"
    """The engine launches it."""
    RUNNING = "running"
    """Ready; the lease runs."""
    EXPIRING = "expiring"
    """Past its end, in its grace."""
    PREEMPTING = "preempting"
    """Somebody entitled needs its devices; in its grace."""
    STOPPING = "stopping"
    """Told to stop; its processes may still live."""
    RELEASING = "releasing"
    """Its main process ended; the devices are not yet seen free."""
    QUARANTINED = "quarantined"
    """The stop was not confirmed in time: the charge ended, the devices are fenced."""
    SUSPECT = "suspect"
    """Its node doesn't answer; charge kept."""
    LOST = "lost"
    """Given up: the node stayed away, or the engine doesn't know it."""
    RELEASED = "released"
    """Over. Charge 0, devices free."""

    @property
    def live(self) -> bool:
        """Whether it still binds devices."""
        return self is not AllocationState.RELEASED


class Event(StrEnum):
    """What can happen to an allocation, in the past tense."""

    LAUNCHED = "launched"
    READY = "ready"
    EXITED = "exited"
    LEASE_ENDED = "lease_ended"
    EXTENDED = "extended"
    IDLED = "idled"
    REVIVED = "revived"
    PREEMPTED = "preempted"
    SPARED = "spared"
    GRACE_ENDED = "grace_ended"
    CANCELLED = "cancelled"
    START_OVERDUE = "start_overdue"
    GONE = "gone"
    STOP_OVERDUE = "stop_overdue"
    NODE_SILENT = "node_silent"
    NODE_BACK = "node_back"
    NODE_LOST = "node_lost"
    UNKNOWN_TO_ENGINE = "unknown_to_engine"


_S, _E = AllocationState, Event

MOVES: Mapping[tuple[AllocationState, Event], AllocationState] = MappingProxyType(
    {
        (_S.RESERVED, _E.LAUNCHED): _S.STARTING,
        # Nothing was launched: there is no process to wait for, so these end it at once.
        (_S.RESERVED, _E.CANCELLED): _S.RELEASED,
        (_S.RESERVED, _E.START_OVERDUE): _S.RELEASED,
        (_S.RESERVED, _E.EXITED): _S.RELEASED,
        (_S.RESERVED, _E.NODE_LOST): _S.LOST,
        # Granted to an engine that doesn't answer: nothing runs, so it waits again at its old place.
        (_S.RESERVED, _E.UNKNOWN_TO_ENGINE): _S.RELEASED,
        (_S.STARTING, _E.READY): _S.RUNNING,
        (_S.STARTING, _E.EXITED): _S.RELEASING,
        (_S.STARTING, _E.CANCELLED): _S.STOPPING,
        (_S.STARTING, _E.START_OVERDUE): _S.STOPPING,
        # One that starts on a silent node has no lease yet to come back to: its start deadline decides.
        (_S.STARTING, _E.NODE_LOST): _S.LOST,
        (_S.STARTING, _E.UNKNOWN_TO_ENGINE): _S.LOST,
        (_S.RUNNING, _E.EXITED): _S.RELEASING,
        (_S.RUNNING, _E.LEASE_ENDED): _S.EXPIRING,
        (_S.RUNNING, _E.EXTENDED): _S.RUNNING,
        (_S.RUNNING, _E.IDLED): _S.EXPIRING,
        (_S.RUNNING, _E.PREEMPTED): _S.PREEMPTING,
        (_S.RUNNING, _E.CANCELLED): _S.STOPPING,
        (_S.RUNNING, _E.NODE_SILENT): _S.SUSPECT,
        (_S.RUNNING, _E.UNKNOWN_TO_ENGINE): _S.LOST,
        (_S.EXPIRING, _E.EXTENDED): _S.RUNNING,
        # Of an idle stop only: a sign of life, or its owner's word.
        (_S.EXPIRING, _E.REVIVED): _S.RUNNING,
        (_S.EXPIRING, _E.EXITED): _S.RELEASING,
        (_S.EXPIRING, _E.GRACE_ENDED): _S.STOPPING,
        (_S.EXPIRING, _E.CANCELLED): _S.STOPPING,
        (_S.EXPIRING, _E.PREEMPTED): _S.PREEMPTING,
        (_S.EXPIRING, _E.NODE_SILENT): _S.SUSPECT,
        (_S.EXPIRING, _E.UNKNOWN_TO_ENGINE): _S.LOST,
        (_S.PREEMPTING, _E.SPARED): _S.RUNNING,
        (_S.PREEMPTING, _E.EXITED): _S.RELEASING,
        (_S.PREEMPTING, _E.GRACE_ENDED): _S.STOPPING,
        (_S.PREEMPTING, _E.CANCELLED): _S.STOPPING,
        (_S.PREEMPTING, _E.NODE_SILENT): _S.SUSPECT,
        (_S.PREEMPTING, _E.UNKNOWN_TO_ENGINE): _S.LOST,
        (_S.STOPPING, _E.EXITED): _S.RELEASING,
        (_S.STOPPING, _E.GONE): _S.RELEASED,
        (_S.STOPPING, _E.STOP_OVERDUE): _S.QUARANTINED,
        (_S.STOPPING, _E.NODE_LOST): _S.LOST,
        (_S.RELEASING, _E.GONE): _S.RELEASED,
        (_S.RELEASING, _E.STOP_OVERDUE): _S.QUARANTINED,
        (_S.RELEASING, _E.NODE_LOST): _S.LOST,
        (_S.QUARANTINED, _E.GONE): _S.RELEASED,
        (_S.SUSPECT, _E.NODE_BACK): _S.RUNNING,
        (_S.SUSPECT, _E.EXITED): _S.RELEASING,
        (_S.SUSPECT, _E.CANCELLED): _S.STOPPING,
        (_S.SUSPECT, _E.NODE_LOST): _S.LOST,
        (_S.LOST, _E.GONE): _S.RELEASED,
    }
)

CHARGED = frozenset(
    {
        _S.RESERVED,
        _S.STARTING,
        _S.RUNNING,
        _S.EXPIRING,
        _S.PREEMPTING,
        _S.STOPPING,
        _S.RELEASING,
        _S.SUSPECT,
    }
)
"""States in which the team is charged. QUARANTINED and LOST are not: the pool carries the fenced device."""

METERED = frozenset({_S.RUNNING, _S.EXPIRING, _S.PREEMPTING, _S.SUSPECT})
"""States that count as running time of the workload."""

GRACE = frozenset({_S.EXPIRING, _S.PREEMPTING})
"""States in which the owner is told, asked to save, and still computes."""


def advance(state: AllocationState, event: Event) -> AllocationState | None:
    """The state after `event`, or None where the table has no such move: then nothing happens."""
    return MOVES.get((state, event))


_PUBLIC = {
    _S.RESERVED: "admitted",
    _S.STARTING: "starting",
    _S.RUNNING: "running",
    _S.EXPIRING: "expiring",
    _S.PREEMPTING: "preempting",
    _S.STOPPING: "stopping",
    _S.RELEASING: "stopping",
    _S.QUARANTINED: "quarantined",
    _S.SUSPECT: "suspect",
    _S.LOST: "lost",
}


def public_state(workload: WorkloadState, allocation: AllocationState | None, queue_held: bool) -> str:
    """The one word that every surface shows for a workload and its current allocation (4-interfaces)."""
    if allocation is not None and allocation is not _S.RELEASED:
        return _PUBLIC[allocation]
    if workload is WorkloadState.PENDING:
        return "held" if queue_held else "pending"
    return workload.value
