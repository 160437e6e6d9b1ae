"""The service is killed in every phase of a job, and who stands by it is: nothing is lost, begun twice or left."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import pytest
from jobs.jobs_under_test import Jobs
from waiting import until

from hubgov import processes
from hubgov.core.model import ProcessId
from hubgov.engines.job_folder import JobFolder
from hubgov.wire import ProcessRef

pytestmark = pytest.mark.boxed

PYTHON = sys.executable
COUNTS = "import os, time; open('begun', 'a').write('x'); print('up', flush=True)\n"
"""Leaves a mark each time it is started."""


def begun(jobs: Jobs) -> int:
    path = jobs.home("amy") / "begun"
    return len(path.read_text()) if path.exists() else 0


def ref(process: ProcessId | None) -> ProcessRef:
    assert process is not None
    return ProcessRef(pid=process.pid, start_ticks=process.start_ticks, boot_id=process.boot_id)


def parts(jobs: Jobs, workload: str) -> tuple[ProcessRef, ProcessRef, ProcessRef | None]:
    """Supervisor, main process and pid 1 of the box."""
    job = JobFolder(jobs.folder(workload))
    status = job.status()
    return ref(job.supervisor()), ref(status.main), ref(status.init) if status.init else None


def alive(*refs: ProcessRef | None) -> list[bool]:
    return [r is not None and processes.is_alive(r) for r in refs]


def until_up(jobs: Jobs, workload: str) -> None:
    until(lambda: "up" in jobs.output(workload), 20, f"{workload} runs")
    jobs.until(workload, "running")


def result(w: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(w[name] for name in ("state", "end_reason", "exit_code", "signal", "attempt"))


def test_a_running_job_outlives_the_service_and_is_found_again(fresh: Jobs) -> None:
    fresh.start()
    code = COUNTS + "while not os.path.exists('end'): time.sleep(0.05)\nprint('down')\nraise SystemExit(4)"
    workload = fresh.submit("amy", PYTHON, "-c", code)["id"]
    until_up(fresh, workload)
    before = parts(fresh, workload)
    fresh.kill()
    assert alive(*before) == [True, True, True]
    fresh.start()
    assert fresh.show(workload)["state"] == "running"
    assert parts(fresh, workload) == before
    (fresh.home("amy") / "end").touch()
    assert result(fresh.ended(workload)) == ("failed", "failed", 4, None, 1)
    assert fresh.output(workload) == "up\ndown\n"
    assert begun(fresh) == 1
    assert alive(*before) == [False, False, False]


def test_what_ended_while_the_service_was_down_ended_then(fresh: Jobs) -> None:
    fresh.start()
    code = COUNTS + "while not os.path.exists('end'): time.sleep(0.05)"
    workload = fresh.submit("amy", PYTHON, "-c", code)["id"]
    until_up(fresh, workload)
    supervisor, main, _ = parts(fresh, workload)
    fresh.kill()
    (fresh.home("amy") / "end").touch()
    assert processes.wait_gone([main, supervisor], 20)
    fresh.start()
    found = fresh.ended(workload)
    assert result(found) == ("succeeded", "completed", 0, None, 1)
    end = JobFolder(fresh.folder(workload)).end()
    assert end is not None
    assert begun(fresh) == 1
    assert fresh.run_("bo", "true", gpus=2)["state"] == "succeeded"


def test_a_start_that_is_cut_off_is_made_once(fresh: Jobs) -> None:
    """Killed again and again while jobs are being started: each runs exactly once, in its one attempt."""
    fresh.start()
    ids = []
    for pause in (0.0, 0.02, 0.05, 0.1, 0.15, 0.25):
        workload = fresh.submit("amy", PYTHON, "-c", COUNTS, gpus=0)["id"]
        ids.append(workload)
        assert not until_not(pause)
        fresh.kill()
        fresh.start()
    for workload in ids:
        assert result(fresh.ended(workload)) == ("succeeded", "completed", 0, None, 1), fresh.log()[-2000:]
    assert begun(fresh) == len(ids)


def until_not(seconds: float) -> bool:
    """Let so much time pass."""
    try:
        return bool(until(lambda: False, seconds, "the time"))
    except AssertionError:
        return False


def test_a_stop_goes_on_after_a_restart_with_one_signal(fresh: Jobs) -> None:
    fresh.start()
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))\n"
    deaf += "print('up', flush=True)\nwhile True: time.sleep(0.05)"
    workload = fresh.submit("amy", PYTHON, "-c", deaf)["id"]
    until_up(fresh, workload)
    before = parts(fresh, workload)
    assert fresh.call("amy", "DELETE", f"/workloads/{workload}", {}).status_code == 200
    until(lambda: "asked" in fresh.output(workload), 10, "it is asked")
    fresh.kill()
    fresh.start()
    assert result(fresh.ended(workload)) == ("cancelled", "cancelled", None, 9, 1)
    assert fresh.output(workload) == "up\nasked\n"
    assert alive(*before) == [False, False, False]


def test_without_its_supervisor_a_job_goes_on_and_how_it_ends_is_not_made_up(fresh: Jobs) -> None:
    fresh.start()
    code = COUNTS + "while not os.path.exists('end'): time.sleep(0.05)"
    workload = fresh.submit("amy", PYTHON, "-c", code, queue="train")["id"]
    until_up(fresh, workload)
    supervisor, main, init = parts(fresh, workload)
    os.kill(supervisor.pid, signal.SIGKILL)
    assert processes.wait_gone([supervisor], 10)
    until_not(2.5)
    assert (fresh.show(workload)["state"], alive(main, init)) == ("running", [True, True])
    (fresh.home("amy") / "end").touch()
    found = fresh.ended(workload)
    assert (result(found), found["failure_class"]) == (("failed", "failed", None, None, 1), "unsupervised")
    assert fresh.call("amy", "GET", f"/workloads/{workload}/logs?offset=3&wait=5").json()["end"]
    assert begun(fresh) == 1
    assert fresh.run_("bo", "true", gpus=2)["state"] == "succeeded"


def test_without_its_supervisor_a_job_can_be_stopped(fresh: Jobs) -> None:
    fresh.start()
    workload = fresh.submit("amy", PYTHON, "-c", COUNTS + "time.sleep(600)")["id"]
    until_up(fresh, workload)
    supervisor, main, init = parts(fresh, workload)
    os.kill(supervisor.pid, signal.SIGKILL)
    fresh.call("amy", "DELETE", f"/workloads/{workload}", {})
    assert fresh.ended(workload)["state"] == "cancelled"
    assert alive(main, init) == [False, False]


def test_a_job_whose_files_and_processes_are_gone_runs_again(fresh: Jobs) -> None:
    """As after a power cut that lost both: nobody can tell what became of it, and it isn't its owner's fault."""
    fresh.start()
    workload = fresh.submit(
        "amy", PYTHON, "-c", COUNTS + "time.sleep(600 if os.path.getsize('begun') == 1 else 0)"
    )["id"]
    until_up(fresh, workload)
    supervisor, main, init = parts(fresh, workload)
    fresh.kill()
    for process in (supervisor, init):
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
    assert processes.wait_gone([supervisor, main], 10)
    fresh.folder(workload).rename(fresh.state / "away")
    fresh.start()
    found = fresh.ended(workload, timeout=60)
    assert result(found) == ("succeeded", "completed", 0, None, 2)
    assert begun(fresh) == 2


def test_a_job_whose_files_are_gone_is_ended_before_its_devices_are_handed_on(fresh: Jobs) -> None:
    fresh.start()
    workload = fresh.submit("amy", PYTHON, "-c", COUNTS + "time.sleep(600)")["id"]
    until_up(fresh, workload)
    _, main, init = parts(fresh, workload)
    fresh.folder(workload).rename(fresh.state / "away")
    until_not(2.5)
    assert (fresh.show(workload)["state"], alive(main, init)) == ("running", [True, True])
    fresh.call("amy", "DELETE", f"/workloads/{workload}", {"now": True})
    assert fresh.ended(workload)["state"] == "cancelled"
    assert alive(main, init) == [False, False]


def test_a_hub_that_is_away_keeps_jobs_waiting_and_none_fails(fresh: Jobs) -> None:
    fresh.start()
    fresh.hub.quarters = lambda name: (503, {"message": "down"})
    workload = fresh.submit("amy", PYTHON, "-c", COUNTS)["id"]
    until_not(2.0)
    assert fresh.show(workload)["state"] in ("admitted", "pending")
    fresh.hub.quarters = fresh.quarters
    assert result(fresh.ended(workload)) == ("succeeded", "completed", 0, None, 1)


@pytest.mark.parametrize("status", [401, 403])
def test_a_hub_that_does_not_let_the_service_in_fails_no_job(fresh: Jobs, status: int) -> None:
    fresh.start()
    fresh.hub.quarters = lambda name: (status, {"message": "no"})
    workload = fresh.submit("amy", PYTHON, "-c", COUNTS)["id"]
    until(lambda: "event=service_not_let_in" in fresh.log(), 20, "it to be said")
    assert fresh.show(workload)["state"] == "admitted"
    fresh.hub.quarters = fresh.quarters
    assert result(fresh.ended(workload)) == ("succeeded", "completed", 0, None, 1)
    assert fresh.log().count("event=service_not_let_in") == 1


def test_an_owner_without_a_home_is_told_so(fresh: Jobs) -> None:
    fresh.start()
    fresh.hub.quarters = lambda name: (501, {"message": "this hub's spawner keeps no homes on this machine"})
    found = fresh.run_("amy", "true")
    assert (found["state"], found["end_reason"], found["failure_class"]) == ("failed", "start_failed", "no_home")
    assert found["note"].startswith("The hub gives its owner no home on this machine")


def test_the_lease_ends_a_job_by_its_signal_and_its_own_code_decides(fresh: Jobs) -> None:
    policy = fresh.state / "policy.yaml"
    policy.write_text(
        policy.read_text().replace(
            "lease: {default: 4h, max: 12h}\n    grace: 5s", "lease: {default: 3s, max: 12h}\n    grace: 5s"
        )
    )
    fresh.start()
    saves = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: (print('saved'), sys.exit(0)))\n"
    saves += "print('up', flush=True)\ntime.sleep(600)"
    assert result(fresh.run_("amy", PYTHON, "-c", saves)) == ("succeeded", "completed", 0, None, 1)
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))\n"
    deaf += "while True: time.sleep(0.05)"
    late = fresh.run_("amy", PYTHON, "-c", deaf)
    assert result(late) == ("expired", "lease", None, 9, 1)
    assert fresh.output(late["id"]) == "asked\n"
