"""What runs for a ledger that was lost, or put back from a backup: its devices are not free, whatever ours says."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable

from hubgov import processes

PATIENCE_SECONDS = 60.0
"""How long the spawner, which ends them in order, has for it."""


class Strangers:
    """Sessions of this state folder that another ledger than `site`'s began. No new ones come: what starts needs a
    ticket of ours."""

    def __init__(self, site: str, log: logging.Logger, seconds: Callable[[], float] = time.monotonic) -> None:
        self._site, self._log, self._seconds = site, log, seconds
        self._since = seconds()
        self._gone = False

    def left(self) -> bool:
        """Whether any of their processes lives. After `PATIENCE_SECONDS` they are killed."""
        if self._gone:
            return False
        found = processes.marked_elsewhere(self._site)
        self._gone = not found
        if found and self._seconds() - self._since > PATIENCE_SECONDS:
            self._log.error("event=strangers_killed processes=%s", len(found))
            for process in found:
                processes.send(process, signal.SIGKILL)
        return not self._gone
