"""Waiting until one of many workloads changes, by the service's long poll: nobody asks in a loop."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping

from hubgov.client import Client
from hubgov.errors import HubgovError, NotFound

MOST = 8
"""So many are waited for at a time, the newest first; the others are seen at the next redraw by the clock."""
POLL_SECONDS = 25
REDRAW_SECONDS = 15.0
"""At the latest: what is left counts down, and work that came meanwhile is seen."""
PAUSE_SECONDS = 0.5
"""At the soonest: a burst of changes is one redraw."""


class Watch:
    """Waits for changes of live workloads. Its threads end with the process: each waits in a single request."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._waiting: set[str] = set()
        self._changed: queue.Queue[tuple[str, HubgovError | None]] = queue.Queue()
        self._never = threading.Event()

    def until_change(self, versions: Mapping[str, int], seconds: float = REDRAW_SECONDS) -> None:
        """Return once one of these is beyond its version, or the time is over. Raises what a request raised."""
        for workload_id in list(versions)[:MOST]:
            if workload_id not in self._waiting:
                self._waiting.add(workload_id)
                wait = threading.Thread(target=self._wait, args=(workload_id, versions[workload_id]), daemon=True)
                wait.start()
        try:
            self._take(self._changed.get(timeout=seconds))
        except queue.Empty:
            return
        self._never.wait(PAUSE_SECONDS)
        while not self._changed.empty():
            self._take(self._changed.get_nowait())

    def _take(self, change: tuple[str, HubgovError | None]) -> None:
        workload_id, error = change
        self._waiting.discard(workload_id)
        # One that is gone from sight is no reason to stop: the list that is drawn next doesn't have it.
        if error is not None and not isinstance(error, NotFound):
            raise error

    def _wait(self, workload_id: str, version: int) -> None:
        error: HubgovError | None = None
        try:
            with self._connect() as client:
                client.wait_for_version(workload_id, version, POLL_SECONDS)
        except HubgovError as failed:
            error = failed
        self._changed.put((workload_id, error))
