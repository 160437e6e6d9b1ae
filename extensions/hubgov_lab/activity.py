"""Tells the service what goes on in this session, and shuts kernels down that the service calls idle.

What is told are claims: the service bounds how long they count, and measures the use of the machine itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import ensure_async

from hubgov.errors import HubgovError
from hubgov.wire import ActivityReport, KernelActivity, KernelEnd
from hubgov_lab.kernels import kernel_paths
from hubgov_lab.requests import KernelWatch, listening
from hubgov_lab.saving import Saving
from hubgov_lab.service import Service

_FIRST_PERIOD_SECONDS = 10.0
_LEAST_GAP_SECONDS = 1.0
"""Between two reports, however much changes."""
_ATTEND_SECONDS = 0.5
_MOST_KERNELS = 200
_EDITS_KEPT = 200
_STATES = ("starting", "restarting", "dead")


@dataclass(slots=True)
class Edits:
    """When somebody last worked on a document here, in all and by path, on the steady clock."""

    last: float | None = None
    by_path: dict[str, float] = field(default_factory=dict)

    def note(self, path: str | None) -> None:
        """Somebody edits now."""
        self.last = time.monotonic()
        if path:
            self.by_path.pop(path, None)
            self.by_path[path] = self.last
            if len(self.by_path) > _EDITS_KEPT:
                del self.by_path[next(iter(self.by_path))]


@dataclass(slots=True, kw_only=True)
class Activity:
    """Reports every period and on change, for as long as the server runs."""

    service: Service
    saving: Saving
    watch: KernelWatch
    log: logging.Logger
    paths: Callable[[], Awaitable[dict[str, str]]]
    terminals: Callable[[], tuple[int, int]]
    edits: Edits = field(default_factory=Edits)
    period_seconds: float = _FIRST_PERIOD_SECONDS
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: dict[str, KernelEnd] = field(default_factory=dict)
    _ending: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _silent: bool = False
    _failing: set[str] = field(default_factory=set)

    def change(self) -> None:
        """Something began or ended: the next report goes out soon."""
        self._changed.set()

    def edited(self, path: str | None) -> None:
        """Somebody edits. What is written because a save was asked for is nobody's work."""
        if self.saving.at_work:
            return
        before = self.edits.last
        self.edits.note(path)
        if before is None or time.monotonic() - before > self.period_seconds:
            self.change()

    async def run(self) -> None:
        """For ever. A service that doesn't answer is asked again after a period."""
        attending = asyncio.create_task(self._attend())
        try:
            while True:
                self._changed.clear()
                await self._guarded("what goes on here", self.report)
                await asyncio.sleep(_LEAST_GAP_SECONDS)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), max(0.0, self.period_seconds - _LEAST_GAP_SECONDS))
        finally:
            for task in (attending, *self._ending.values()):
                task.cancel()
            self.watch.close()

    async def _attend(self) -> None:
        while True:
            await self._guarded("the kernels", self._attend_once)
            await asyncio.sleep(_ATTEND_SECONDS)

    async def _attend_once(self) -> None:
        self.watch.attend()
        await self.watch.bury()

    async def _guarded(self, what: str, step: Callable[[], Awaitable[None]]) -> None:
        """One round, whatever comes of it: the next one is made all the same. What fails is said once."""
        try:
            await step()
        except Exception as error:
            if what not in self._failing:
                self.log.warning("hubgov: %s can't be followed", what, exc_info=error)
            self._failing.add(what)
        else:
            self._failing.discard(what)

    async def report(self) -> None:
        """Tell what goes on now, and begin with what the answer asks for."""
        told = tuple(self._ended.values())
        try:
            answer = await self.service.report_activity(await self.made(told))
        except HubgovError as error:
            if not self._silent:
                self.log.warning("hubgov: what goes on here was not taken: %s", error.message)
            self._silent = True
            return
        self._silent = False
        self.period_seconds = min(max(1.0, float(answer.period_seconds)), 600.0)
        for end in told:
            self._ended.pop(end.id, None)
        for kernel in answer.end_kernels:
            if kernel not in self._ending and kernel not in self._ended:
                self._ending[kernel] = asyncio.create_task(self._end(kernel))

    async def made(self, ended: tuple[KernelEnd, ...] = ()) -> ActivityReport:
        """What goes on now."""
        paths = await self.paths()
        terminals, jobs = self.terminals()
        kernels = [self._kernel(name, paths.get(name, "")) for name in self.watch.manager.list_kernel_ids()]
        kernels.sort(key=lambda kernel: kernel.heard and not kernel.requests)  # of too many, those that matter
        return ActivityReport(
            kernels=tuple(kernels[:_MOST_KERNELS]),
            terminals=terminals,
            jobs=jobs,
            edited_seconds_ago=_ago(self.edits.last),
            ended=ended,
        )

    def _kernel(self, name: str, path: str) -> KernelActivity:
        kernel = self.watch.manager.get_kernel(name)
        requests = self.watch.found.get(name)
        state = getattr(kernel, "execution_state", "alive")
        return KernelActivity(
            id=name,
            name=str(kernel.kernel_name),
            path=path,
            state=state if state in _STATES else "alive",
            heard=self.watch.heard(name),
            requests=len(requests.open) if requests is not None and state != "dead" else 0,
            waits=requests is not None and requests.waits,
            busy_seconds_ago=_ago(requests.ended_at) if requests is not None else None,
            edited_seconds_ago=_ago(self.edits.by_path.get(path)),
        )

    async def _end(self, kernel: str) -> None:
        """Save its document, then shut the kernel down; or say why not."""
        try:
            failed = await self._save_and_shut_down(kernel)
        except Exception as error:
            self.log.warning("hubgov: kernel %s was not shut down", kernel, exc_info=error)
            failed = f"{type(error).__name__}"
        self._ended[kernel] = KernelEnd(id=kernel, failed=failed)
        del self._ending[kernel]
        self.change()

    async def _save_and_shut_down(self, kernel: str) -> str:
        manager = self.watch.manager
        if kernel not in manager:
            return ""
        path = (await self.paths()).get(kernel, "")
        if path:
            saved = await self.saving.copy_of(f"idle-{kernel[:36]}", path)
            if saved.outcome != "saved":
                return f"its document was not saved: {saved.error}"[:200]
        if not self.watch.heard(kernel):
            return "whether it works can't be heard"
        if self.watch.found[kernel].open:
            return "it works again"
        self.log.info("hubgov: kernel %s (%s) was idle and is shut down", kernel, path)
        await ensure_async(manager.shutdown_kernel(kernel))
        return ""


def _ago(moment: float | None) -> int | None:
    return None if moment is None else int(time.monotonic() - moment)


def terminals_of(server: ServerApp) -> tuple[int, int]:
    """How many terminals are open, and in how many of them something runs in the foreground."""
    manager = server.web_app.settings.get("terminal_manager")
    if manager is None:
        return 0, 0
    found = [terminal.ptyproc for terminal in manager.terminals.values()]
    return len(found), sum(_runs_something(process) for process in found)


def _runs_something(process: Any) -> bool:
    """Whether the terminal's foreground isn't its shell."""
    try:
        return os.tcgetpgrp(process.fd) != os.getpgid(process.pid)
    except (OSError, AttributeError):
        return False  # it has just ended


def activity_of(server: ServerApp, service: Service, saving: Saving, log: logging.Logger) -> Activity:
    """The activity of a server: its kernels, its connections, its terminals, what is saved through it."""
    watch = KernelWatch(manager=server.kernel_manager, changed=lambda: None, log=log)

    async def paths() -> dict[str, str]:
        return await kernel_paths(server)

    activity = Activity(
        service=service, saving=saving, watch=watch, log=log, paths=paths, terminals=lambda: terminals_of(server)
    )
    watch.changed = activity.change
    settings = server.web_app.settings
    settings["kernel_websocket_connection_class"] = listening(settings["kernel_websocket_connection_class"], watch)

    def saved(model: Any = None, **_: Any) -> None:
        activity.edited(model.get("path") if isinstance(model, dict) else None)

    contents: Any = server.contents_manager
    contents.register_post_save_hook(saved)
    return activity
