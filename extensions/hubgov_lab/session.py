"""The governed session as this server knows it: the last good answer, its age, and what it set in motion."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hubgov.errors import HubgovError, Unavailable
from hubgov.wire import Notice, Workload
from hubgov.wire_json import to_json
from hubgov_lab.activity import Activity
from hubgov_lab.home import Memory, write_deadline
from hubgov_lab.saving import Saving
from hubgov_lab.service import Service

_POLL_SECONDS = 20
_FIRST_RETRY_SECONDS = 1.0
_LAST_RETRY_SECONDS = 30.0
_MIN_GAP_SECONDS = 0.2
_RATE_AFTER_SECONDS = 5.0


@dataclass(slots=True)
class ServiceTime:
    """The service's clock as seen from here: its last reading and how fast it runs.

    In a demo its clock may run `clock_rate` times as fast. Whether it does is measured rather than believed,
    because a countdown that runs at the wrong speed is worse than one that is corrected with each answer.
    """

    _first: tuple[float, datetime] | None = None
    _last: tuple[float, datetime] | None = None
    rate: int = 1

    def read(self, now: str, clock_rate: int) -> None:
        """Take over the time of an answer that just arrived."""
        try:
            moment = datetime.fromisoformat(now)
        except ValueError:
            return
        if moment.tzinfo is None:
            return
        here = time.monotonic()
        self._first = self._first or (here, moment)
        self._last = (here, moment)
        span = here - self._first[0]
        if span >= _RATE_AFTER_SECONDS and clock_rate > 1:
            passed = (moment - self._first[1]).total_seconds() / span
            self.rate = clock_rate if passed > (1 + clock_rate) / 2 else 1

    def now(self) -> str:
        """The service's time at this moment, as RFC 3339."""
        if self._last is None:
            moment = datetime.now(UTC)
        else:
            moment = self._last[1] + timedelta(seconds=(time.monotonic() - self._last[0]) * self.rate)
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class Session:
    """One governed server. `watch` keeps it up to date; the handlers read it and write to its memory."""

    service: Service
    memory: Memory
    saving: Saving
    log: logging.Logger
    time: ServiceTime
    activity: Activity
    deadline_file: Path | None = None
    workload: Workload | None = None
    revision: int = 0
    _silent_since: float | None = None
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _started_saves: set[str] = field(default_factory=set)
    _written_deadline: tuple[str | None] | None = None
    _deadline_failed: bool = False
    _opened: bool = False

    def start(self) -> None:
        """Begin to watch, and to say what goes on."""
        self._spawn(self.watch())
        self._spawn(self.activity.run())

    async def stop(self) -> None:
        """End what runs in the background and let go of the connections."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.service.close()

    async def watch(self) -> None:
        """Ask for the next version for ever: one request at a time, more slowly while nobody answers."""
        retry = _FIRST_RETRY_SECONDS
        while True:
            begun = time.monotonic()
            try:
                after = None if self.workload is None else self.workload.version
                found = await self.service.workload(after, 0 if after is None else _POLL_SECONDS)
            except HubgovError as error:
                await self._silent(error)
                await asyncio.sleep(retry)
                retry = min(retry * 2, _LAST_RETRY_SECONDS)
                continue
            retry = _FIRST_RETRY_SECONDS
            moved = await self.accept(found)
            # A service that doesn't hold the request would otherwise be asked in a tight loop.
            if not moved and time.monotonic() - begun < 1:
                await asyncio.sleep(_FIRST_RETRY_SECONDS)
            else:
                await asyncio.sleep(_MIN_GAP_SECONDS)

    async def accept(self, found: Workload) -> bool:
        """Take over an answer of the service; False when it brings nothing new."""
        if self.workload is not None and found.version < self.workload.version:
            return False
        self.time.read(found.now, found.clock_rate)
        back = self._silent_since is not None
        moved = self.workload is None or found.version > self.workload.version
        self.workload = found
        self._silent_since = None
        if back:
            self.log.info("hubgov: the governing service answers again")
        await self._write_deadline(found.expires_at)
        self._begin_save(found.save_requested)
        if moved or back:
            await self._announce()
        return moved

    def opened(self) -> None:
        """A browser is here: a server that was started with nobody attached is not given back unopened."""
        if not self._opened:
            self._opened = True
            self._spawn(self._claim())

    async def _claim(self) -> None:
        retry = _FIRST_RETRY_SECONDS
        while True:
            try:
                await self.service.claim()
            except Unavailable:
                await asyncio.sleep(retry)
                retry = min(retry * 2, _LAST_RETRY_SECONDS)
            except HubgovError as error:
                self.log.warning("hubgov: that somebody is here was not taken: %s", error.message)
                return
            else:
                return

    async def refresh(self) -> None:
        """Ask once, now, after something set in motion here; the last answer stays when that fails."""
        try:
            await self.accept(await self.service.workload())
        except HubgovError as error:
            await self._silent(error)

    async def wait_beyond(self, revision: int, seconds: float) -> None:
        """Return as soon as something is newer than `revision`, or when the time is over."""
        async with self._changed:
            try:
                await asyncio.wait_for(self._changed.wait_for(lambda: self.revision > revision), seconds)
            except TimeoutError:
                return

    def unshown(self) -> tuple[Notice, ...]:
        """The warnings that no browser has claimed yet."""
        notices = self.workload.notices if self.workload is not None else ()
        return tuple(notice for notice in notices if notice.id not in self.memory.shown)

    async def claim_notice(self, notice: str) -> bool:
        """Whether the caller is the first to show this warning; the others then stay silent."""
        if notice in self.memory.shown:
            return False
        self.memory.shown.add(notice)
        await self._remember()
        return True

    def claimable(self, notice: str) -> bool:
        """Whether the service ever issued such a warning, as far as this server knows."""
        known = self.workload.notices if self.workload is not None else ()
        return notice in self.memory.shown or any(notice == found.id for found in known)

    async def claim_resume(self) -> bool:
        """Whether the caller is the workload's first browser, the one that opens documents again."""
        if self.memory.resumed:
            return False
        self.memory.resumed = True
        await self._remember()
        return True

    def document(self) -> dict[str, Any]:
        """The session as the browser sees it."""
        silent = None if self._silent_since is None else int(time.monotonic() - self._silent_since)
        return {
            "governed": True,
            "offline_seconds": silent,
            "workload": to_json(self.workload),
            "now": self.time.now(),
            "rate": self.time.rate,
            "revision": self.revision,
            "resumed": self.memory.resumed,
            "unshown_notices": to_json(self.unshown()),
        }

    async def _silent(self, error: HubgovError) -> None:
        if self._silent_since is None:
            self._silent_since = time.monotonic()
            self.log.warning("hubgov: %s; the last known state stays on show", error.message)
            await self._announce()

    async def _announce(self) -> None:
        self.revision += 1
        async with self._changed:
            self._changed.notify_all()

    async def _write_deadline(self, expires_at: str | None) -> None:
        if self.deadline_file is None or self._written_deadline == (expires_at,):
            return
        try:
            await asyncio.to_thread(write_deadline, self.deadline_file, expires_at)
        except OSError as error:
            # Tried again with each answer; said once, or a full disk would fill the log.
            if not self._deadline_failed:
                self.log.warning("hubgov: the deadline file was not written: %s", error)
            self._deadline_failed = True
            return
        self._deadline_failed = False
        self._written_deadline = (expires_at,)

    def _begin_save(self, save: str | None) -> None:
        if save is None or save in self._started_saves or save in self.memory.saved:
            return
        self._started_saves.add(save)
        self._spawn(self._save(save))

    async def _save(self, save: str) -> None:
        if await self.saving.save(save):
            self.memory.saved.add(save)
            await self._remember()

    async def _remember(self) -> None:
        # One writer at a time, and the text is taken inside: the last write holds everything.
        async with self._writing:
            try:
                await asyncio.to_thread(self.memory.store, self.memory.text())
            except OSError as error:
                self.log.warning("hubgov: what was shown is kept in memory only: %s", error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log.error("hubgov: a background task failed", exc_info=error)
