"""An engine without processes: what its workloads do when told is written beforehand. For tests and demos."""

from __future__ import annotations

from dataclasses import dataclass, field

from hubgov.clock import Clock, Instant
from hubgov.core.model import Allocation, AllocationId, Workload
from hubgov.core.policy import Kind
from hubgov.engines.base import Engine, Knows, Seen, meant_to_live
from hubgov.errors import Unavailable

FOR_EVER = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How an allocation's processes take a stop and a kill, in ms until they are gone."""

    stop_takes_ms: int = 0
    """FOR_EVER: it ignores the stop."""
    kill_takes_ms: int = 0
    """Above 0: it hangs in the kernel; the kill works, but late."""
    straggles_ms: int = 0
    """How long a child lives on after the main process ended."""


@dataclass(slots=True)
class _Run:
    """Processes of one allocation. `main_until` and `all_until`: the first instant at which they are gone."""

    behaviour: Behaviour
    main_until: int = FOR_EVER
    all_until: int = FOR_EVER

    def ends(self, at: int) -> None:
        self.main_until = min(self.main_until, at)
        self.all_until = min(self.all_until, at + self.behaviour.straggles_ms)

    def killed(self, at: int) -> None:
        self.main_until, self.all_until = min(self.main_until, at), min(self.all_until, at)


@dataclass(slots=True)
class Call:
    """One thing the engine was asked."""

    what: str
    allocation: AllocationId
    at: Instant


@dataclass(slots=True)
class Script:
    """What the engine does: written by the test, read by the engine."""

    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    """By workload; one that isn't named obeys at once."""
    unknown: set[str] = field(default_factory=set)
    """Workloads that the engine's controller knows nothing of."""
    down: bool = False
    """The controller doesn't answer. Seeing and killing need none."""


class ScriptedEngine(Engine):
    """Remembers every call in `calls`. `launch` and `end` are what its controller and its workloads do."""

    kinds = frozenset(Kind)

    def __init__(self, clock: Clock) -> None:
        self.script = Script()
        self.calls: list[Call] = []
        self._clock = clock
        self._runs: dict[AllocationId, _Run] = {}

    # --- what happens on its side ----------------------------------------------------------------------

    def launch(self, allocation: Allocation) -> None:
        """The controller starts the processes."""
        behaviour = self.script.behaviours.get(allocation.workload, Behaviour())
        self._runs.setdefault(allocation.id, _Run(behaviour))

    def end(self, allocation: Allocation) -> None:
        """The main process ends by itself."""
        self._runs[allocation.id].ends(self._clock.now())

    def asked(self, what: str, workload: str | None = None) -> int:
        """How often it was asked to start, stop or kill."""
        return sum(
            1
            for call in self.calls
            if call.what == what and (workload is None or call.allocation.rpartition(".")[0] == workload)
        )

    # --- the engine ------------------------------------------------------------------------------------

    async def start(self, workload: Workload, allocation: Allocation) -> None:
        self._note("start", allocation)
        self._answering()

    async def stop(self, workload: Workload, allocation: Allocation) -> None:
        self._note("stop", allocation)
        self._answering()
        run = self._runs.get(allocation.id)
        if run is not None:
            run.ends(self._clock.now() + run.behaviour.stop_takes_ms)

    def kill(self, allocation: Allocation) -> None:
        self._note("kill", allocation)
        run = self._runs.get(allocation.id)
        if run is not None:
            run.killed(self._clock.now() + run.behaviour.kill_takes_ms)

    def look(self, allocation: Allocation) -> Seen:
        run, now = self._runs.get(allocation.id), self._clock.now()
        if run is None:
            return Seen.UNSEEN if meant_to_live(allocation) else Seen.GONE
        if now < run.main_until:
            return Seen.ALIVE
        return Seen.ENDED if now < run.all_until else Seen.GONE

    async def answers(self) -> bool:
        return not self.script.down

    async def knows(self, workload: Workload) -> Knows:
        if self.script.down:
            return Knows.UNKNOWN
        return Knows.NO if workload.id in self.script.unknown else Knows.YES

    def _note(self, what: str, allocation: Allocation) -> None:
        self.calls.append(Call(what, allocation.id, self._clock.now()))

    def _answering(self) -> None:
        if self.script.down:
            raise Unavailable("the scripted controller is down", hint="it is asked again")
