"""What runs for a ledger that was lost, or put back from a backup: its devices are not free, whatever ours says."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path

from hubgov import processes
from hubgov.engines.job_folder import JobFolder
from hubgov.wire import ProcessRef

PATIENCE_SECONDS = 60.0
"""How long the spawner, which ends servers in order, has for it, and jobs for saving their work."""
OCCASION = "stranger"


class Strangers:
    """Sessions of this state folder that another ledger than `site`'s began. No new ones come: what starts needs a
    ticket of ours."""

    def __init__(
        self,
        site: str,
        log: logging.Logger,
        seconds: Callable[[], float] = time.monotonic,
        *,
        jobs: Path | None = None,
        own: str = "",
    ) -> None:
        """`jobs`: where the jobs of every ledger have their folders, `own` the name of ours there."""
        self._site, self._log, self._seconds = site, log, seconds
        self._jobs, self._own = jobs, own
        self._since = seconds()
        self._gone = False

    def left(self) -> bool:
        """Whether any of their processes lives. A job is asked to end when it is found, as at the beginning of a
        grace: no spawner does that. After `PATIENCE_SECONDS` all are killed."""
        if self._gone:
            return False
        found = processes.marked_elsewhere(self._site)
        if found:
            self._ask_jobs()
        self._gone = not found
        if found and self._seconds() - self._since > PATIENCE_SECONDS:
            self._log.error("event=strangers_killed processes=%s", len(found))
            for process in found:
                processes.send(process, signal.SIGKILL)
        return not self._gone

    def _ask_jobs(self) -> None:
        """SIGTERM, once, to the command of each job of another ledger and to what it started. Not to its box, whose
        end would leave the command no time."""
        for path in self._jobs.glob("*/*") if self._jobs is not None else ():
            if path.parent.name == self._own:
                continue
            job = JobFolder(path)
            main = job.status().main
            ref = ProcessRef(pid=main.pid, start_ticks=main.start_ticks, boot_id=main.boot_id) if main else None
            if ref is None or job.end() is not None or not processes.is_alive(ref):
                continue
            try:
                if not job.note_signal(OCCASION):
                    continue
            except OSError as error:  # rather none than one in each look
                self._log.warning("event=signal_not_noted job=%s error=%s", path, error)
                continue
            self._log.error("event=stranger_asked job=%s", path)
            for process in [ref, *processes.descendants(ref)]:
                with contextlib.suppress(PermissionError):
                    processes.send(process, signal.SIGTERM)
