"""Logs don't stay for ever, and nothing that is needed goes with them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import httpx
import pytest
from jobs.jobs_under_test import POLICY, Jobs
from waiting import until

from hubgov import processes
from hubgov.engines import job_sweep

DAY = 86_400


def folder(jobs: Path, name: str, *, days: float, ended: bool = True, alive: bool = False) -> Path:
    path = jobs / name
    (path / "told").mkdir(parents=True)
    (path / "log.0").write_text("x")
    if alive:
        ref = processes.identify(os.getpid())
        assert ref is not None
        (path / "begun").write_text(json.dumps([ref.pid, ref.start_ticks, ref.boot_id]))
    if ended:
        (path / "end.json").write_text("{}")
    for touched in (path, *path.iterdir()):
        os.utime(touched, (time.time() - days * DAY,) * 2)
    return path


def test_what_ended_long_ago_goes_of_every_ledger(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    gone = [folder(jobs, name, days=31) for name in ("own/tr-1.1", "lost/tr-1.1")]
    gone.append(folder(jobs, "lost/tr-3.1", days=31, ended=False))
    kept = [
        folder(jobs, "own/tr-2.1", days=29),
        folder(jobs, "own/tr-4.1", days=31),
        folder(jobs, "lost/tr-4.1", days=31, ended=False, alive=True),
    ]
    elsewhere = folder(tmp_path, "elsewhere", days=31)
    (jobs / "own" / "tr-5.1").symlink_to(elsewhere)
    assert job_sweep.remove_old(jobs, "own", {"tr-4.1"}, 30 * DAY) == 3
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in (*kept, elsewhere))
    assert job_sweep.remove_old(jobs, "own", {"tr-4.1"}, 30 * DAY) == 0


def test_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_sweep, "MOST_AT_ONCE", 2)
    for number in range(3):
        folder(tmp_path, f"own/tr-{number}.1", days=31)
    assert [job_sweep.remove_old(tmp_path, "own", set(), 30 * DAY) for _ in range(3)] == [2, 1, 0]


def test_where_there_were_no_jobs_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert job_sweep.remove_old(tmp_path / "none", "own", set(), 1) == 0


@pytest.mark.boxed
def test_a_log_that_was_removed_is_said_to_be(tmp_path: Path) -> None:
    short = POLICY + "archive: {logs_after: 2s, checkpoints_after: 14d, to: archive}\n"
    jobs = Jobs(tmp_path / "state", policy=short)
    try:
        jobs.start()
        workload = jobs.run_("amy", "echo", "hello")["id"]
        job_sweep.remove_old(jobs.state / "jobs", "", set(), 0)
        assert not jobs.folder(workload).exists()

        def answer() -> httpx.Response | None:
            found = jobs.call("amy", "GET", f"/workloads/{workload}/logs")
            return found if found.status_code == 404 else None

        error = until(answer, 20, "it to be told").json()["error"]
        assert error["code"] == "log_removed"
        assert "archive.logs_after" in error["hint"]
    finally:
        jobs.close()
