"""The one writer: takes all waiting intents, decides, writes them in one commit, and only then answers.

An intent is a function of a `Unit`. It runs to its end without awaiting anything, so no two interleave. What it
raises undoes its own changes and nobody else's. After the intents of a batch comes the cycle: what is due by
the clock, then who may start. Effects are not sent from here: the reconciler reads where each allocation
should be from the committed picture, so that a crash between commit and effect loses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hubgov.clock import Clock, Instant
from hubgov.control.unit import Unit
from hubgov.core.decide import decide
from hubgov.core.due import due
from hubgov.core.model import Change, ExtensionRequest, Record, Workload, WorkloadId
from hubgov.core.state import State
from hubgov.core.transitions import SERVICE
from hubgov.errors import HubgovError, KeyReused, Refusal, Unavailable
from hubgov.ledger import reading
from hubgov.ledger.leadership import StaleLeader
from hubgov.ledger.ledger import Ledger, Remembered

T = TypeVar("T")
FAILED = "the service failed to decide; see its log"
"""What is told of a failure that is not the ledger's; the rest is for the log."""
KEYS_KEPT_MS = 24 * 3_600_000
"""How long a used idempotency key gets its first answer again, in real milliseconds; after that it is a new one."""
LINGER_SECONDS = 0.002
"""How long the writer waits for company after the first intent: what comes meanwhile shares its commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An idempotency key: the same one from the same principal on the same route gets the same answer."""

    principal: str
    route: str
    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a keyed intent answered; `replayed` when the key had been used before."""

    text: str
    replayed: bool


@dataclass(slots=True)
class _Waiting(Generic[T]):
    intent: Callable[[Unit], T]
    future: asyncio.Future[T]
    key: Key | None = None


class Governor:
    """Owns the live picture and the right to write. One per ledger."""

    def __init__(self, ledger: Ledger, state: State, clock: Clock, log: logging.Logger) -> None:
        self.ledger = ledger
        self.state = state
        state.began = clock.now()
        self.clock = clock
        self._log = log
        self._intents: asyncio.Queue[_Waiting[Any]] = asyncio.Queue()
        self._watchers: dict[str, set[asyncio.Future[None]]] = {}
        self.committed = asyncio.Event()
        """Set after every commit; the reconciler clears it and looks."""
        self.listeners: list[Callable[[Sequence[Change]], None]] = []
        """Called after every commit with what it changed. They must neither wait nor raise."""
        self.trouble: str | None = None
        """What keeps this process from writing, in a sentence for everybody; None once it can again."""
        self._unit_failed = False
        """Whether the last unit was lost: what is due waits for the next."""
        self.fallen: asyncio.Future[str] | None = None
        """Done with the reason once this process must no longer write."""

    # --- asking --------------------------------------------------------------------------------------

    async def do(self, intent: Callable[[Unit], T]) -> T:
        """Run the intent in the next unit; answers once it is committed, or raises what it raised."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        await self._intents.put(_Waiting(intent, future))
        return await future

    async def do_once(self, key: Key, intent: Callable[[Unit], str]) -> Answer:
        """As `do`, at most once per key: a key that comes back gets the first answer again.

        KeyReused when it comes back with another body. Answer and changes are committed together.
        """
        if (known := self._remembered(key)) is not None:
            return known
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await self._intents.put(_Waiting(intent, future, key))
        try:
            return Answer(await future, False)
        except _Replayed as replayed:
            return Answer(replayed.text, True)

    def _remembered(self, key: Key) -> Answer | None:
        with self.ledger.reading() as connection:
            found = reading.remembered(connection, key.principal, key.route, key.key)
        if found is None:
            return None
        if found[0] != key.digest:
            raise _reused(key)
        return Answer(found[1], True)

    async def until_changed(self, workload_id: str, version: int, seconds: float) -> None:
        """Return when the workload's version is beyond `version`, it ended, or the time is over."""
        current = self.state.workloads.get(WorkloadId(workload_id))
        if current is None or current.version > version:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers.setdefault(workload_id, set()).add(future)
        try:
            await asyncio.wait([future], timeout=seconds)
        finally:
            watching = self._watchers.get(workload_id, set())
            watching.discard(future)
            if not watching:
                self._watchers.pop(workload_id, None)

    # --- writing -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """The writer's loop, for ever. Ends only when this process has lost the lead."""
        while True:
            first = await self._intents.get()
            await asyncio.sleep(LINGER_SECONDS)
            batch = [first]
            while not self._intents.empty():
                batch.append(self._intents.get_nowait())
            self.run_batch(batch)

    async def tick(self) -> None:
        """Let time act: what is due, and who may start. Idle ticks write nothing."""
        await self.do(lambda unit: None)

    async def sweep(self) -> None:
        """What comes every second: time acts, and a few of the answers whose keys are too old are forgotten."""
        await self.tick()
        with contextlib.suppress(Unavailable):  # that nothing can be written is seen and said by the renewal
            self.ledger.forget_answers(Instant(self.clock.now() - KEYS_KEPT_MS * self.clock.rate))

    def run_batch(self, batch: list[_Waiting[Any]]) -> None:
        """One unit: every intent, then the cycle, then one commit, then the answers."""
        unit = Unit(self.state, self.clock.now(), self.clock.rate)
        results: list[tuple[_Waiting[Any], Any]] = []
        answers: list[Remembered] = []
        for waiting in batch:
            mark = len(unit.entries)
            try:
                results.append((waiting, self._run_intent(unit, waiting, answers)))
            except _Replayed as replayed:
                # Of a double click in one batch: it may only be told what the first is told, after the commit.
                results.append((waiting, replayed))
            except Exception as error:  # noqa: BLE001  whatever it is belongs to this intent's caller alone
                unit.undo_to(mark)
                self._fail(waiting, error)
        try:
            cycle(unit)
            self.ledger.commit(unit.entries, unit.now, answers)
        except StaleLeader as error:
            self._abort(unit, results, error)
            if self.fallen is not None and not self.fallen.done():
                self.fallen.set_result(error.message)
        except Exception as error:  # noqa: BLE001  nothing was written: everybody waiting must hear it
            if self.trouble is None:
                self._log.exception("event=commit_failed")
            self.trouble = error.message if isinstance(error, Unavailable) else FAILED
            self._unit_failed = True
            self._abort(unit, results, Unavailable(f"nothing was changed: {self.trouble}", hint="try again"))
        else:
            self._unit_failed = False
            self._done(unit, results)

    def renew(self) -> None:
        """Prolong the lead, and see by that whether the ledger can be written: it sets and clears `trouble`.

        StaleLeader when another leads. A failed write is no loss of the lead: nobody else writes meanwhile either
        (the file lock is ours; a PostgreSQL row that moved on fences every commit), and what is read is right.
        """
        try:
            self.ledger.renew()
        except Unavailable as error:
            if self.trouble is None:
                self._log.exception("event=renew_failed")
            self.trouble = error.message
        else:
            if not self._unit_failed:
                self.trouble = None

    def _run_intent(self, unit: Unit, waiting: _Waiting[Any], answers: list[Remembered]) -> Any:
        key = waiting.key
        if key is not None:
            for earlier in answers:  # a double click within one batch
                if (earlier.principal, earlier.route, earlier.key) == (key.principal, key.route, key.key):
                    raise _Replayed(earlier.result) if earlier.digest == key.digest else _reused(key)
            if (known := self._remembered(key)) is not None:
                raise _Replayed(known.text)
        result = waiting.intent(unit)
        if key is not None:
            answers.append(
                Remembered(principal=key.principal, route=key.route, key=key.key, digest=key.digest, result=result)
            )
        return result

    def _fail(self, waiting: _Waiting[Any], error: Exception) -> None:
        if not isinstance(error, HubgovError | Refusal):
            self._log.error("event=intent_failed", exc_info=error)
        if not waiting.future.done():
            waiting.future.set_exception(error)

    def _abort(self, unit: Unit, results: list[tuple[_Waiting[Any], Any]], error: Exception) -> None:
        unit.undo_to(0)
        for waiting, _ in results:
            self._fail(waiting, error)

    def _done(self, unit: Unit, results: list[tuple[_Waiting[Any], Any]]) -> None:
        for written in unit.entries:
            self._tell(written.change)
        for waiting, result in results:
            if waiting.future.done():
                continue
            if isinstance(result, _Replayed):
                waiting.future.set_exception(result)
            else:
                waiting.future.set_result(result)
        if any(_is_over(written.change.after) for written in unit.entries):
            self.state.tidy(unit.now)
        if any(isinstance(written.change.after, ExtensionRequest) for written in unit.entries):
            self.state.extensions = reading.without_older_denials(self.state.extensions)
        if unit.entries:
            self.trouble = None
            self.committed.set()
            changes = [written.change for written in unit.entries]
            for listener in self.listeners:
                listener(changes)

    def _tell(self, change: Change) -> None:
        """One log line per change, and a nudge to whoever watches the workload. What people wrote as a reason is
        in the journal, not in the log."""
        record = change.after
        reason = change.reason if change.actor == SERVICE else ""
        name = getattr(record, "id", None) or getattr(record, "name", "") or getattr(record, "queue", "")
        state = getattr(record, "state", "")
        self._log.info("event=%s record=%s state=%s reason=%s", change.event, name, state, reason)
        if isinstance(record, Workload):
            for future in self._watchers.get(record.id, set()):
                if not future.done():
                    future.set_result(None)


class _Replayed(Exception):
    """Carries the first answer of a key to the second asker."""

    def __init__(self, text: str) -> None:
        super().__init__("replayed")
        self.text = text


def _is_over(record: Record | None) -> bool:
    return isinstance(record, Workload) and not record.live


def _reused(key: Key) -> KeyReused:
    return KeyReused(
        "this idempotency key came with another request before",
        hint="use a new key for another request",
        details={"key": key.key},
    )


def cycle(unit: Unit) -> None:
    """What time brings about, then who may start, until nothing more follows."""
    while unit.write(due(unit.state, unit.now)):
        pass
    if unit.state.pending():
        unit.write(decide(unit.state, unit.now))
