"""Folders of jobs that ended long ago, of whatever ledger: removed, so that logs fill no disk."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Set
from pathlib import Path

from hubgov import processes
from hubgov.core.model import ProcessId
from hubgov.engines.job_folder import JobFolder
from hubgov.wire import ProcessRef

MOST_AT_ONCE = 50


def remove_old(jobs: Path, own: str, live: Set[str], after_seconds: float) -> int:
    """Remove at most `MOST_AT_ONCE` folders of jobs that ended `after_seconds` ago; how many. Blocks.

    `own` is the folder of our ledger; its `live` allocations stay, and so does whatever still runs.
    """
    removed = 0
    for path in _folders(jobs):
        if removed >= MOST_AT_ONCE:
            break
        if path.parent.name == own and path.name in live:
            continue
        if time.time() - _touched_at(path) >= after_seconds and not _runs(path):
            shutil.rmtree(path, ignore_errors=True)
            removed += not path.exists()
    return removed


def _folders(jobs: Path) -> Iterator[Path]:
    """One for each allocation. No links: none of them is ours."""
    for ledger in sorted(jobs.iterdir()) if jobs.is_dir() else ():
        if ledger.is_dir() and not ledger.is_symlink():
            yield from (path for path in sorted(ledger.iterdir()) if path.is_dir() and not path.is_symlink())


def _touched_at(path: Path) -> float:
    """When it ended, or was last heard of, in seconds since 1970."""
    try:
        end = path / "end.json"
        return (end if end.exists() else path).stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _runs(path: Path) -> bool:
    job = JobFolder(path)
    return any(_lives(process) for process in (job.supervisor(), job.status().main, job.status().init))


def _lives(process: ProcessId | None) -> bool:
    if process is None:
        return False
    return processes.is_alive(ProcessRef(pid=process.pid, start_ticks=process.start_ticks, boot_id=process.boot_id))
