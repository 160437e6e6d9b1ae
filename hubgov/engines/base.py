"""What every engine can do. Calls are idempotent: done twice is done once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum

from hubgov.core.model import Allocation, Workload
from hubgov.core.policy import Kind
from hubgov.core.states import AllocationState


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
    over = allocation.halted_at is not None or allocation.outcome is not None
    return not over and allocation.state is not AllocationState.LOST


class Engine(ABC):
    """Runs the kinds of work it names."""

    kinds: frozenset[Kind]

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
