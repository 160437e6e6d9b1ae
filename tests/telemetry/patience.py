"""Waiting for what a test expects, with a limit, and watching that the event loop keeps turning meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psutil


async def until(condition: Callable[[], object], what: str, timeout: float = 30.0) -> None:
    """Wait for the condition, letting the loop turn; AssertionError naming `what` when it doesn't come."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"waited {timeout} s in vain for {what}"
        await asyncio.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether the process has ended; one that only waits to be reaped has."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@dataclass
class Ticking:
    """How often a task got its turn, and the longest it had to wait for one, in seconds."""

    ticks: int = 0
    longest: float = 0.0


@asynccontextmanager
async def ticking() -> AsyncIterator[Ticking]:
    """Measures how long the event loop stands still."""
    seen = Ticking()

    async def tick() -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(0.005)
            now = time.monotonic()
            seen.ticks, seen.longest, before = seen.ticks + 1, max(seen.longest, now - before), now

    task = asyncio.create_task(tick())
    try:
        yield seen
    finally:
        task.cancel()
