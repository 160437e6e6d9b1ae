"""Becoming the one service of a ledger: an older copy of the same state folder is asked to stand down.

A killed hub leaves the service it managed alive and starts a second one. The newer one belongs to the living
hub, whose tokens are valid; the older one can't do anything for anybody any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from pathlib import Path

from hubgov import processes
from hubgov.errors import Unavailable
from hubgov.ledger.leadership import lock_path
from hubgov.ledger.ledger import Ledger
from hubgov.wire import ProcessRef

PATIENCE_SECONDS = 20.0
KILL_AFTER_SECONDS = 10.0


async def take_over(ledger: Ledger, log: logging.Logger) -> None:
    """Become the leader. Unavailable when the other one doesn't give way in time."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    asked: set[ProcessRef] = set()
    while True:
        try:
            ledger.lead()
            return
        except Unavailable:
            waited = loop.time() - began
            older = _older_copy(ledger)
            if waited > PATIENCE_SECONDS or (older is None and lock_path(ledger.url) is not None and waited > 5):
                raise
            if older is not None and (older not in asked or waited > KILL_AFTER_SECONDS):
                log.warning("event=standing_down_older pid=%s", older.pid)
                hard = older in asked
                with contextlib.suppress(PermissionError):  # another user's: who gives up in the end
                    processes.send(older, signal.SIGKILL if hard else signal.SIGTERM)
                asked.add(older)
            await asyncio.sleep(0.2)


def _older_copy(ledger: Ledger) -> ProcessRef | None:
    """The process that holds the lock, if it is a hubgov service; the lock lies in our private folder."""
    path = lock_path(ledger.url)
    if path is None or not path.exists():
        return None
    text = path.read_text(errors="replace").strip()
    ref = processes.identify(int(text)) if text.isdigit() else None
    if ref is None or ref.pid == os.getpid():  # ourselves: the lock was free, the database isn't
        return None
    try:
        command = Path(f"/proc/{ref.pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it ended just now, as it was asked to
        return None
    return ref if b"hubgov" in command and b"service" in command else None
