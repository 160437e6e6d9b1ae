"""Users whom the hub deleted, on the disk until the service took the word for it.

The hub deletes a user whatever his spawner says, and doesn't say it again. Were the word lost because the service
was away, the next user of that name would come into the former's work. So it is noted beside the register of homes
first, and told until it is taken: at once, when the hub comes up, and before anything of that name starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hubgov_spawner.client import Client, ServiceError
from hubgov_spawner.owners import HOMES

FILE = ".departures"
PAUSE_SECONDS = 10.0
"""How long after it couldn't be told it is tried again."""

_telling: dict[str, asyncio.Task[None]] = {}  # by state folder: each is told by one task of this hub


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """Those of one state folder. Calls that aren't coroutines block for some milliseconds and may raise OSError."""

    state_dir: str
    log: logging.Logger

    def note(self, name: str, at_seconds: float | None = None) -> None:
        """A user is gone, since now or since then (since 1970): on the disk when this returns."""
        with self._held() as fd:
            _append(fd, {"name": name, "at": time.time() if at_seconds is None else at_seconds, "told": False})

    def untold(self) -> Mapping[str, float]:
        """Of whom the service doesn't know: name -> when the last of that name was gone."""
        with self._held() as fd:
            return _untold(fd, self.log)

    def taken(self, name: str, at_seconds: float) -> None:
        """The service knows of those of this name until then. The file is emptied when nothing is left to tell."""
        with self._held() as fd:
            _append(fd, {"name": name, "at": at_seconds, "told": True})
            if not _untold(fd, self.log):
                os.ftruncate(fd, 0)
                os.fsync(fd)

    def any(self) -> bool:
        """Whether there may be somebody to tell of; without opening anything."""
        try:
            return os.stat(os.path.join(self.state_dir, HOMES, FILE)).st_size > 0
        except OSError:
            return False

    async def tell(self, client: Client, name: str | None = None, *, within: float = 0.0) -> None:
        """Tell of all, or of those of one name; ServiceError when the service doesn't take it."""
        if not self.any():
            return
        for left, at in (await asyncio.to_thread(self.untold)).items():
            if name in (None, left):
                await client.departed(left, ago_seconds=max(0, int(time.time() - at)), within=within)
                await asyncio.to_thread(self.taken, left, at)

    def keep_telling(self, client: Callable[[], Client]) -> asyncio.Task[None]:
        """Tell in the background until all is told: one task for each state folder."""
        task = _telling.get(self.state_dir)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = _telling[self.state_dir] = asyncio.create_task(self._until_told(client))
        return task

    async def _until_told(self, client: Callable[[], Client]) -> None:
        failed = ""
        while self.any():
            try:
                await self.tell(client())
            except (ServiceError, OSError) as error:
                if str(error) != failed:
                    self.log.error("hubgov could not be told of deleted users, it is tried again: %s", error)
                failed = str(error)
                await asyncio.sleep(PAUSE_SECONDS)

    @contextlib.contextmanager
    def _held(self) -> Iterator[int]:
        """The file, open to read and append; one at a time, also between processes."""
        homes = os.path.join(self.state_dir, HOMES)
        os.makedirs(homes, mode=0o711, exist_ok=True)
        folder = os.open(homes, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(FILE, flags, 0o600, dir_fd=folder)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                yield fd
            finally:
                os.close(fd)
            os.fsync(folder)
        finally:
            os.close(folder)


def _append(fd: int, line: Mapping[str, object]) -> None:
    """A line more, begun anew after one that a crash cut off."""
    end = os.lseek(fd, 0, os.SEEK_END)
    torn = end > 0 and os.pread(fd, 1, end - 1) != b"\n"
    data = (("\n" if torn else "") + json.dumps(line) + "\n").encode()
    if os.write(fd, data) != len(data):
        os.ftruncate(fd, end)
        raise OSError("the disk took half of a line")
    os.fsync(fd)


def _untold(fd: int, log: logging.Logger) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in os.pread(fd, os.fstat(fd).st_size, 0).decode("utf-8", "replace").splitlines():
        try:
            line = json.loads(text)
            name, at, told = str(line["name"]), float(line["at"]), bool(line["told"])
        except (ValueError, TypeError, KeyError):
            log.error("A line of %s can't be read: %r", FILE, text[:200])
            continue
        if not told:
            found[name] = max(at, found.get(name, 0.0))
        elif found.get(name, at) <= at:
            found.pop(name, None)
    return found
