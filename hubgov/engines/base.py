"""What every engine can do. Calls are idempotent: done twice is done once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum

from hubgov.clock import Instant
from hubgov.core.model import Allocation, AllocationId, ProcessId, Workload
from hubgov.core.policy import Kind
from hubgov.core.states import GRACE, AllocationState
from hubgov.errors import HubgovError


def mark(site: str, allocation: Allocation) -> str:
    """What every process of an allocation carries in HUBGOV_ALLOCATION_ID.

    `site` tells one ledger from another: two hubs on one machine both have an `nb-1.1`, and the stragglers of
    the one are not the other's to kill.
    """
    return f"{allocation.id}@{site}"


class Seen(StrEnum):
    """What an engine sees of an allocation's processes."""

    ALIVE = "alive"
    """The main process lives."""
    ENDED = "ended"
    """The main process is gone, others of it still live or may."""
    GONE = "gone"
    """Nothing is left that could use the devices."""
    UNSEEN = "unseen"
    """No process was ever reported: it may be about to start, or its starter died."""


class Knows(StrEnum):
    """Whether the engine's own controller has a start under way or running."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """It doesn't answer. Never a reason to give something up."""


def meant_to_live(allocation: Allocation) -> bool:
    """Whether processes are due, reported or not; what was given up or told to end expects none."""
    told = allocation.outcome is not None and allocation.state not in GRACE  # in its grace it still computes
    over = allocation.halted_at is not None or told
    return not over and allocation.state is not AllocationState.LOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the processes of an allocation ended: by code, by signal, or by a failure to run at all."""

    at: Instant
    code: int | None = None
    signal: int | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an engine that launches by itself knows of an allocation."""

    begun: bool = False
    """Whether its start is under way; if not, it is to be asked for again."""
    main: ProcessId | None = None
    init: ProcessId | None = None
    running_at: Instant | None = None
    """Since when its command runs."""
    ended: Ended | None = None
    lost: bool = False
    """Whether it was there and nothing is left that could tell what became of it."""

    def stage(self) -> str:
        """How far it has come: what is newly known is told once for each."""
        if self.ended is not None:
            return "ended"
        if self.running_at is not None:
            return "running"
        return "known" if self.main is not None else "nothing"


class CannotStart(HubgovError):
    """Asking again would not help: the allocation fails with `code` as its class of failure."""

    code = "box_failed"


class Engine(ABC):
    """Runs the kinds of work it names."""

    kinds: frozenset[Kind]
    reports = False
    """Whether it launches what it is asked to start and says what becomes of it; else somebody else does, as the
    spawner of notebook servers."""

    async def prepare(self, workload: Workload) -> None:  # noqa: B027  most need nothing
        """Get what a start needs from elsewhere, before it is on record that it begins. Unavailable: ask again."""

    def report(self, allocation: Allocation) -> Report:
        """What it knows of an allocation, where `reports`. Cheap and without waiting."""
        return Report()

    def attend(self, allocation: Allocation) -> None:  # noqa: B027
        """Tell the processes of a live allocation what they are to know now: the end of the lease, that its grace
        has begun. Cheap and without waiting; told twice is told once."""

    def forget_all_but(self, live: Set[AllocationId]) -> None:  # noqa: B027
        """These are all the allocations that there are: of others nothing has to be remembered."""

    @abstractmethod
    async def start(self, workload: Workload, allocation: Allocation) -> None:
        """Ask for the start of what was reserved. Unavailable when the asking failed; it will be asked again."""

    @abstractmethod
    async def stop(self, workload: Workload, allocation: Allocation) -> None:
        """Ask for the end. Whether it came is seen by `look`."""

    @abstractmethod
    def kill(self, allocation: Allocation) -> None:
        """End every process of the allocation by force."""

    @abstractmethod
    def look(self, allocation: Allocation) -> Seen:
        """What is there now. Cheap and without waiting."""

    def sees(self, allocation: Allocation) -> bool:
        """Whether `look` can see this allocation's processes: not where they are none of this machine. Of those
        only the controller's word tells (`knows`)."""
        return True

    @abstractmethod
    async def answers(self) -> bool:
        """Whether the controller behind the engine can be asked for anything now."""

    @abstractmethod
    async def knows(self, workload: Workload) -> Knows:
        """Whether the controller behind the engine knows of this workload."""
