"""Wait for a condition with a deadline; tests never just sleep."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
_PAUSE_SECONDS = 0.05


def until(condition: Callable[[], T], timeout: float, what: str) -> T:
    """The first true value of `condition`; AssertionError naming `what` if none came in time."""
    deadline = time.monotonic() + timeout
    never = threading.Event()
    while True:
        if value := condition():
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain: {what}")
        never.wait(_PAUSE_SECONDS)


async def until_async(condition: Callable[[], Awaitable[T]], timeout: float, what: str) -> T:
    """`until` for a condition that is awaited."""
    deadline = time.monotonic() + timeout
    while True:
        if value := await condition():
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain: {what}")
        await asyncio.sleep(_PAUSE_SECONDS)
