"""Closes the difference between where allocations are and where they should be.

The committed picture says what ought to happen; each pass looks at it anew and sends what is missing. There is
no list of things to do that a crash could lose, and every effect leaves after the commit that calls for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from hubgov.clock import Instant
from hubgov.control import jobs, session
from hubgov.control.attachments import Attachments
from hubgov.control.governor import Governor
from hubgov.control.unit import Unit
from hubgov.core.model import Allocation, AllocationId, Workload
from hubgov.core.states import AllocationState, Event
from hubgov.core.transitions import kill_due_at, moved, stop_due_at
from hubgov.engines.base import CannotStart, Engine, Knows, Report, Seen
from hubgov.errors import HubgovError

_S = AllocationState
ATTACH_PATIENCE_MS = 10_000
"""How long a grant waits for the spawner that was attached before the service starts the server itself."""
REPEAT_MS = 5_000
"""The least time between two sendings of one effect."""
LOOK_MS = 1_000
"""The least time between two questions whether a controller still knows of something that ends."""
REPORT_PATIENCE_MS = 7_000
"""How long a seen end waits for the spawner's report, which knows the exit code: the hub polls every 5 s."""
PROBES_TO_LOSE = 3
"""How often in a row the engine must not know of a start before it is given up (semantics §7)."""

StillHeld = Callable[[Allocation], bool]
"""Whether a probe sees somebody else's eyes on the allocation's devices: processes not known to us."""


class Reconciler:
    """Acts on the committed picture of one governor through its engines, of which each has kinds of its own."""

    def __init__(
        self,
        governor: Governor,
        engines: Sequence[Engine],
        attachments: Attachments,
        log: logging.Logger,
        still_held: StillHeld = lambda allocation: False,
        strangers: Callable[[], bool] = lambda: False,
    ) -> None:
        """`strangers`: whether work of another ledger runs on devices that ours takes for free. No engine counts
        as answering then."""
        self._governor = governor
        self._engines = tuple(engines)
        self._engine_of = {kind: engine for engine in engines for kind in engine.kinds}
        self._attachments = attachments
        self._log = log
        self._still_held = still_held
        self._strangers = strangers
        self._began = governor.clock.now()
        # People, browsers and processes take their time however fast the policy's clock runs.
        self._attach_patience = ATTACH_PATIENCE_MS * governor.clock.rate
        self._flying: dict[tuple[AllocationId, str], asyncio.Task[None]] = {}
        self._sent: dict[tuple[AllocationId, str], int] = {}
        self._seen_ended: dict[AllocationId, Instant] = {}
        self._not_known: dict[AllocationId, int] = {}
        self._silent = dict.fromkeys(self._engines, 0)
        """How often in a row an engine didn't answer."""
        self._asked_at = dict.fromkeys(self._engines, 0)
        self._failing: set[AllocationId] = set()

    async def run(self, period: float = 1.0) -> None:
        """Look after every commit, and at least once a period."""
        while True:
            # Nothing committed within the period: look all the same, processes end without telling.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(period):
                    await self._governor.committed.wait()
            self._governor.committed.clear()
            self.look()

    def look(self) -> None:
        """One pass over all allocations; what it starts runs on beside it. One that can't be looked at holds none
        of the others up: it is looked at again in the next pass."""
        for engine in self._engines:
            self._ask_whether_it_answers(engine)
        for allocation in list(self._governor.state.allocations.values()):
            try:
                workload = self._governor.state.workload_of(allocation)
                runs = self._engine_of.get(workload.kind)
                if runs is not None:
                    self._look_at(runs, workload, allocation)
                self._failing.discard(allocation.id)
            except Exception:  # noqa: BLE001  whatever it is, the others' ends and starts must not wait for it
                self._note_failure(allocation)
        live = self._governor.state.allocations
        for engine in self._engines:
            engine.forget_all_but(live.keys())
        self._failing = {allocation for allocation in self._failing if allocation in live}
        self._sent = {key: at for key, at in self._sent.items() if key[0] in live}
        self._seen_ended = {key: at for key, at in self._seen_ended.items() if key in live}
        self._not_known = {key: times for key, times in self._not_known.items() if key in live}

    def _note_failure(self, allocation: Allocation) -> None:
        """Of the exception that is being handled: said once, until it can be looked at again."""
        if allocation.id not in self._failing:
            self._log.exception("event=look_failed allocation=%s", allocation.id)
        self._failing.add(allocation.id)

    def _look_at(self, engine: Engine, workload: Workload, allocation: Allocation) -> None:
        match allocation.state:
            case _S.RESERVED:
                if engine.reports or self._nobody_comes(workload, allocation):
                    self._send(allocation, "start", lambda: self._start(engine, workload, allocation))
            case _S.STARTING | _S.RUNNING | _S.EXPIRING | _S.PREEMPTING | _S.SUSPECT:
                if engine.reports:
                    self._follow(engine, workload, allocation)
                else:
                    self._watch(engine, workload, allocation)
            case _S.STOPPING:
                self._bring_to_an_end(engine, workload, allocation)
            case _S.RELEASING | _S.QUARANTINED | _S.LOST:
                if not self._free(engine, allocation):
                    engine.kill(allocation)
            case _S.RELEASED:
                pass

    def _ask_whether_it_answers(self, engine: Engine) -> None:
        """While there is work for the engine: a controller that is away makes its work wait, and takes nothing."""
        now, key = self._governor.clock.now(), (AllocationId("engine"), ",".join(sorted(engine.kinds)))
        wanted = any(w.kind in engine.kinds for w in self._governor.state.workloads.values())
        due = now - self._asked_at[engine] >= REPEAT_MS * self._governor.clock.rate
        if (wanted or self._silent[engine]) and due and key not in self._flying:
            self._asked_at[engine] = now
            effect = self._carry_out(key, lambda: self._see_whether_it_answers(engine))
            self._flying[key] = asyncio.create_task(effect)

    async def _see_whether_it_answers(self, engine: Engine) -> None:
        kinds = engine.kinds
        answers = not self._strangers() and await engine.answers()
        self._silent[engine] = 0 if answers else self._silent[engine] + 1
        away = kinds <= self._governor.state.away
        if self._silent[engine] >= PROBES_TO_LOSE and not away:
            self._log.warning("event=engine_away kinds=%s", ",".join(sorted(kinds)))
            try:
                await self._governor.do(lambda unit: session.engine_away(unit, kinds))
            except BaseException:
                # Nothing was written: what was granted stays so, and the next look sends this again.
                self._governor.state.engine_back(kinds, self._governor.clock.now())
                raise
        elif self._silent[engine] == 0 and away:
            self._log.info("event=engine_back kinds=%s", ",".join(sorted(kinds)))
            await self._governor.do(lambda unit: session.engine_back(unit, kinds))

    def _nobody_comes(self, workload: Workload, allocation: Allocation) -> bool:
        """Nobody was attached, or who was doesn't take it; after a restart spawners get time to come back."""
        now = self._governor.clock.now()
        patience = self._attach_patience if self._attachments.attached(workload.id) else 0
        return now >= max(allocation.reserved_at + patience, self._began + self._attach_patience // 2)

    async def _start(self, engine: Engine, workload: Workload, allocation: Allocation) -> None:
        # Between the look and this unit it may have been cancelled, or a spawner may have taken it.
        if not engine.reports:
            if await self._governor.do(lambda unit: session.unattended(unit, allocation.id)):
                await engine.start(workload, allocation)
            return
        try:
            await engine.prepare(workload)
            if await self._governor.do(lambda unit: jobs.launched(unit, allocation.id)):
                await engine.start(workload, self._governor.state.allocations.get(allocation.id, allocation))
                self._governor.committed.set()  # what it has come to is to be taken down now
        except CannotStart as error:
            self._log.warning("event=cannot_start allocation=%s error=%s", allocation.id, error.message)
            failure = error.code
            await self._governor.do(lambda unit: jobs.cannot_start(unit, allocation.id, failure))

    async def take_stock(self) -> None:
        """What engines that report know of all that lives, in one unit: for the first one after a start, so that
        what ended while nobody looked ended then, before anything is due by the clock."""
        found = []
        for allocation in self._governor.state.allocations.values():
            engine = self._engine_of.get(self._governor.state.workload_of(allocation).kind)
            if engine is None or not engine.reports or allocation.state is _S.RESERVED:
                continue
            try:
                found.append((allocation.id, engine.report(allocation)))
            except Exception:  # noqa: BLE001  the service must come up for all the others
                self._note_failure(allocation)

        def observed(unit: Unit) -> None:
            for allocation_id, report in found:
                jobs.observed(unit, allocation_id, report)

        if found:
            await self._governor.do(observed)

    def _follow(self, engine: Engine, workload: Workload, allocation: Allocation) -> None:
        """As `_watch`, of what its engine launches itself."""
        report = engine.report(allocation)
        if report.lost:
            self._count_unknown(allocation)
            return
        self._not_known.pop(allocation.id, None)
        self._take_down(allocation, report)
        if report.ended is None:
            if not report.begun and allocation.state is _S.STARTING:
                self._send(allocation, "start", lambda: self._start(engine, workload, allocation))
            engine.attend(allocation)

    def _take_down(self, allocation: Allocation, report: Report) -> None:
        """Bring into the record what the engine newly knows."""
        known = report.main is None or (report.main, report.init) == (allocation.main, allocation.init)
        running = report.running_at is None or allocation.state is not _S.STARTING
        if not known or not running or report.ended is not None:
            self._send(
                allocation,
                f"report {report.stage()}",
                lambda: self._governor.do(lambda unit: jobs.observed(unit, allocation.id, report)),
            )

    def _count_unknown(self, allocation: Allocation) -> None:
        """Given up once its engine didn't know of it so often in a row."""
        times = self._not_known[allocation.id] = self._not_known.get(allocation.id, 0) + 1
        if times >= PROBES_TO_LOSE:
            self._send(allocation, "lost", lambda: self._governor.do(lambda unit: _lose(unit, allocation.id)))

    def _watch(self, engine: Engine, workload: Workload, allocation: Allocation) -> None:
        """A main process that is gone ends the allocation, also when nobody is left to report it."""
        match engine.look(allocation):
            case Seen.ALIVE | Seen.UNSEEN if allocation.main is None:
                # Not reported (yet): its hub may have been killed just before or after it made the processes.
                if self._governor.clock.now() - allocation.since > self._attach_patience:
                    self._send(allocation, "ask", lambda: self._ask_whether_known(engine, workload, allocation))
            case Seen.ALIVE | Seen.UNSEEN:
                self._seen_ended.pop(allocation.id, None)
                self._not_known.pop(allocation.id, None)
            case Seen.ENDED | Seen.GONE:
                now = self._governor.clock.now()
                at = self._seen_ended.setdefault(allocation.id, now)
                if now - at >= REPORT_PATIENCE_MS * self._governor.clock.rate:
                    self._send(
                        allocation,
                        "ended",
                        lambda: self._governor.do(lambda unit: session.vanished(unit, allocation.id, at)),
                    )

    async def _ask_whether_known(self, engine: Engine, workload: Workload, allocation: Allocation) -> None:
        """A start that nobody carries on (its hub was killed) goes back to its place in line."""
        if await engine.knows(workload) is not Knows.NO:
            self._not_known.pop(allocation.id, None)
            return
        times = self._not_known[allocation.id] = self._not_known.get(allocation.id, 0) + 1
        if times >= PROBES_TO_LOSE:
            await self._governor.do(lambda unit: _give_up(unit, allocation.id))

    def _bring_to_an_end(self, engine: Engine, workload: Workload, allocation: Allocation) -> None:
        if engine.reports:
            self._take_down(allocation, engine.report(allocation))
        now = self._governor.clock.now()
        if self._free(engine, allocation) or now < stop_due_at(allocation):
            return
        if not (engine.reports and allocation.stop_now):
            self._send(allocation, "stop", lambda: engine.stop(workload, allocation))
        # Who stops by asking somebody else gives him the time for it, also without grace.
        patience = stop_due_at(allocation) + self._governor.state.policy.reclaim.term_ms + 1
        if now >= (kill_due_at(self._governor.state, allocation) if engine.reports else patience):
            engine.kill(allocation)

    def _free(self, engine: Engine, allocation: Allocation) -> bool:
        """Hand the devices on once every process is gone and no probe sees one on them."""
        if (allocation.id, "start") in self._flying:
            return False  # what is about to be started isn't there yet
        if engine.look(allocation) is not Seen.GONE or self._still_held(allocation):
            return False
        if not engine.sees(allocation):  # it may run elsewhere until its controller says that it doesn't
            self._send(allocation, "gone", lambda: self._gone_if_unknown(engine, allocation), every_ms=LOOK_MS)
            return False
        self._send(allocation, "gone", lambda: self._governor.do(lambda unit: session.gone(unit, allocation.id)))
        return True

    async def _gone_if_unknown(self, engine: Engine, allocation: Allocation) -> None:
        if await engine.knows(self._governor.state.workload_of(allocation)) is Knows.NO:
            await self._governor.do(lambda unit: session.gone(unit, allocation.id))

    def _send(
        self,
        allocation: Allocation,
        what: str,
        effect: Callable[[], Awaitable[None]],
        *,
        every_ms: int = REPEAT_MS,
    ) -> None:
        """Send an effect unless the same is under way or was sent a moment ago."""
        key = (allocation.id, what)
        now = self._governor.clock.now()
        if key in self._flying or now - self._sent.get(key, 0) < every_ms * self._governor.clock.rate:
            return
        self._sent[key] = now
        self._flying[key] = asyncio.create_task(self._carry_out(key, effect))

    async def _carry_out(self, key: tuple[AllocationId, str], effect: Callable[[], Awaitable[None]]) -> None:
        try:
            await effect()
        except HubgovError as error:
            self._log.warning("event=effect_failed allocation=%s what=%s error=%s", *key, error.message)
        except Exception:  # noqa: BLE001  one failing effect must not stop the others
            self._log.exception("event=effect_failed allocation=%s what=%s", *key)
        finally:
            del self._flying[key]

    async def settled(self, within: float | None = None) -> None:
        """Wait until every effect under way is done, `within` so many seconds; what takes longer is cut off, and
        the next process finds the same difference."""
        waiting = list(self._flying.values())
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=within)
            for effect in late:
                effect.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


def _give_up(unit: Unit, allocation_id: AllocationId) -> None:
    """Back to its place in line, unless its processes were reported while the engine was asked."""
    allocation = unit.state.allocations.get(allocation_id)
    if allocation is not None and allocation.main is None:
        unit.write(moved(unit.state, allocation, Event.UNKNOWN_TO_ENGINE, unit.now))


def _lose(unit: Unit, allocation_id: AllocationId) -> None:
    """What nobody can tell the fate of runs again, at its old place in line."""
    allocation = unit.state.allocations.get(allocation_id)
    if allocation is not None:
        unit.write(moved(unit.state, allocation, Event.UNKNOWN_TO_ENGINE, unit.now))
