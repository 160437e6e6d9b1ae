"""APScheduler wiring, and nothing else: no deadline lives in a job.

Each job only says "look again". Missed or doubled wake-ups change nothing, since what is due is read from the
ledger: coalesce, no misfire limit, one instance at a time, in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from apscheduler.schedulers.asyncio import AsyncIOScheduler

SWEEP_SECONDS = 1.0


class Alarm:
    """Wakes things on this process's event loop. Only the leader starts one."""

    def __init__(self) -> None:
        self._scheduler = AsyncIOScheduler(
            timezone="UTC", job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        )

    def every(self, seconds: float, name: str, job: Callable[[], Awaitable[None]]) -> None:
        """Run `job` every so many seconds."""
        self._scheduler.add_job(job, "interval", seconds=seconds, id=name, replace_existing=True)

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
