"""A job in the demo as its users get it: submitted, followed, ended; with few devices and with many."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_under_test import DemoUnderTest
from waiting import until

from hubgov import processes
from hubgov.policy import load, sample_policy

pytestmark = pytest.mark.boxed


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoUnderTest]:
    """With the sample policy, which is cut for six devices."""
    devices = [(index, f"SIM-{index}", "SIMULATED A100-80GB", 81920) for index in range(6)]
    policy = sample_policy(devices, hostname=socket.gethostname(), timezone="UTC", simulated=True)
    under_test = DemoUnderTest(tmp_path_factory.mktemp("demo") / "state", policy)
    try:
        under_test.up()
        yield under_test
    finally:
        under_test.down()
        under_test.http.close()
    assert under_test.left() == []


def hubgov(demo: DemoUnderTest, user: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line with the user's own token."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(demo.state), "LANG": "C.UTF-8"}
    environment |= {"HUBGOV_URL": f"{demo.url}/services/hubgov", "HUBGOV_TOKEN": demo.token(user)}
    command = [sys.executable, "-m", "hubgov.cli", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_somebody_who_never_had_a_notebook_submits_a_job(demo: DemoUnderTest) -> None:
    show = "id -un; pwd; echo devices $CUDA_VISIBLE_DEVICES; touch here; sleep 1; echo end"
    made = hubgov(
        demo,
        "amy",
        "submit",
        "-q",
        "--queue",
        "training",
        "--project",
        "seg",
        "--gpus",
        "1",
        "--",
        "sh",
        "-c",
        show,
    )
    assert (made.returncode, made.stderr) == (0, "")
    workload = made.stdout.strip()
    followed = hubgov(demo, "amy", "logs", workload, "-f")
    lines = followed.stdout.splitlines()
    assert lines[0].startswith("hgu")
    assert lines[1] == f"/home/{lines[0]}"
    assert lines[2].startswith("devices SIM-")
    assert lines[3:] == ["end"]
    until(lambda: demo.workload("amy")["state"] == "succeeded", 20, "it is over")
    assert hubgov(demo, "bo", "logs", workload).returncode == 1
    assert hubgov(demo, "admin", "logs", workload).stdout == followed.stdout


def test_a_job_and_a_notebook_share_one_home(demo: DemoUnderTest) -> None:
    demo.spawn("amy", "cpu-only")
    demo.until_state("amy", "running", 90)
    [home] = [h for h in (demo.state / "homes").iterdir() if (h / "here").exists()]
    assert (home / ".hubgov").exists(), "the server's log lies where the job left its file"
    demo.call("amy", "DELETE", f"/workloads/{demo.workload('amy')['id']}", {"now": True})


def test_where_somebody_lives_is_told_to_nobody_else(demo: DemoUnderTest) -> None:
    people = ("amy", "bo", "lena", "admin")
    asked = {who: demo.hub(who, "POST", "/hubgov/quarters/amy").status_code for who in people}
    # The hub says 404 of what one may not see.
    assert (asked["amy"], asked["admin"]) == (403, 403), "only a service is told"
    assert {asked["bo"], asked["lena"]} <= {403, 404}


def test_every_batch_queue_of_the_sample_takes_its_kind(demo: DemoUnderTest) -> None:
    for queue, gpus in (("training", "1"), ("batch", "1"), ("evaluation", "0.5"), ("data", "0")):
        done = hubgov(
            demo,
            "amy",
            "submit",
            "--queue",
            queue,
            "--project",
            "seg",
            "--gpus",
            gpus,
            "--wait",
            "60s",
            "--",
            "true",
        )
        assert done.returncode == 0, (queue, done.stdout, done.stderr)


@pytest.mark.parametrize("count", range(1, 8))
def test_with_few_devices_the_training_queue_has_one(count: int) -> None:
    devices = [(index, f"SIM-{index}", "SIMULATED A100-80GB", 81920) for index in range(count)]
    loaded = load(sample_policy(devices, hostname="box", timezone="UTC", simulated=True))
    assert loaded.policy is not None
    assert [r for r in loaded.policy.quotas if r.pool == "train" and r.team == "research"]


def test_the_hub_is_killed_and_the_job_goes_on(demo: DemoUnderTest, tmp_path: Path) -> None:
    wait = "while [ ! -e go ]; do sleep 0.1; done; echo done"
    made = hubgov(demo, "bo", "submit", "-q", "--queue", "training", "--gpus", "1", "--", "sh", "-c", wait)
    workload = made.stdout.strip()
    until(lambda: demo.workload("bo")["state"] == "running", 30, "it runs")
    for part in ("hub", "service"):
        demo.kill(part)
    demo.up()
    assert demo.workload("bo")["state"] == "running"
    [home] = [h for h in (demo.state / "homes").iterdir() if h.name.startswith("hgu") and not (h / "here").exists()]
    (home / "go").touch()
    assert hubgov(demo, "bo", "logs", workload, "-f").stdout == "done\n"
    until(lambda: demo.workload("bo")["state"] == "succeeded", 30, "it is over")


def test_down_ends_jobs_too(demo: DemoUnderTest) -> None:
    hubgov(demo, "bo", "submit", "--queue", "training", "--gpus", "1", "--retry", "0", "--", "sleep", "600")
    running = demo.until_state("bo", "running", 30)
    demo.down()
    assert demo.left() == []
    demo.up()
    ended = demo.until_state("bo", "failed", 30)
    assert (ended["id"], ended["signal"]) == (running["id"], signal.SIGTERM)
    assert processes.with_environment(lambda entry: entry == f"HUBGOV_WORKLOAD_ID={running['id']}".encode()) == []
