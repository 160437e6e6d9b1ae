"""Jobs as people use them: `hubgov submit`, `logs`, `cancel` and the Python client, against the real service."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Program, Ran
from jobs.jobs_under_test import Jobs
from service_under_test import PREFIX
from waiting import until

from hubgov import Client, PolicyDenied

pytestmark = pytest.mark.boxed
Call = Callable[..., Ran]


class _Nowhere:
    """The program's environment names the service itself."""

    url = "http://127.0.0.1:9"


@pytest.fixture
def program(jobs: Jobs, tmp_path: Path) -> Program:
    made = Program(_Nowhere(), tmp_path)  # type: ignore[arg-type]
    made.environment |= {"HUBGOV_URL": f"http://127.0.0.1:{jobs.port}{PREFIX}", "HUBGOV_TOKEN": "amy-token"}
    return made


@pytest.fixture
def client(jobs: Jobs) -> Client:
    return Client(f"http://127.0.0.1:{jobs.port}{PREFIX}", "amy-token")


def test_submitted_waited_for_and_read(program: Program) -> None:
    flags = (
        "--queue train --project seg --gpus 1 --name first --cwd ~ --env EMPTY= --label paper=x --lease 1h --wait"
    )
    show = 'echo "$A" "[$EMPTY]" --lang zh'
    done = program("submit", "--env", "A=b c", *flags.split(), "--", "sh", "-c", show)
    assert (done.code, done.err) == (0, "")
    workload = done.out.split(":")[0]
    assert program("logs", workload).out == "b c [] --lang zh\n"
    shown = program("show", workload, "--json").document
    assert (shown["name"], shown["labels"], shown["lease_seconds"]) == ("first", {"paper": "x"}, 3600)
    assert program("submit", "-q", "--queue", "train", "--gpus", "1", "--", "true").out.startswith("tr-")


def test_exit_codes_tell_how_it_went(program: Program) -> None:
    failed = program("submit", "--queue", "train", "--gpus", "1", "--wait", "30s", "--", "sh", "-c", "exit 3")
    assert (failed.code, failed.err) == (1, "")
    waits = program("submit", "--queue", "train", "--gpus", "0", "--wait=1s", "--json", "--", "sleep", "60")
    assert (waits.code, waits.document["state"] in ("starting", "running", "admitted")) == (4, True)
    assert "is not over after 1s" in waits.err
    assert program("cancel", waits.document["id"], "--now").code == 0
    assert program("submit", "--queue", "train", "--gpus", "9", "--", "true").code == 3
    assert program("submit", "--queue", "train", "--gpus", "1").code == 2
    assert program("submit", "--queue", "train", "--gpus", "1", "--kind", "notebook", "--", "true").code == 2
    ours = program("submit", "--queue", "train", "--gpus", "1", "--env", "HUBGOV_URL=x", "--", "true")
    assert (ours.code, "HUBGOV_URL is set by hubgov" in ours.err) == (1, True)
    chinese = program("submit", "--queue", "train", "--gpus", "1", "--env", "HOME=x", "--lang", "zh", "--", "true")
    assert "由 hubgov 为每个任务设置" in chinese.err
    assert program("logs", waits.document["id"], HUBGOV_TOKEN="bo-token").code == 1


def test_a_log_is_followed_over_all_attempts_to_the_end(program: Program) -> None:
    code = "import time\nfor n in range(3): print(n, flush=True); time.sleep(0.2)\nraise SystemExit(1)"
    made = program("submit", "-q", "--queue", "retried", "--gpus", "1", "--", sys.executable, "-c", code)
    followed = program("logs", made.out.strip(), "-f")
    assert followed.code == 0
    assert [line for line in followed.out.splitlines() if line.isdigit()] == ["0", "1", "2"] * 2
    assert "attempt 2" in followed.err


def test_on_a_terminal_nothing_of_it_steers(program: Program) -> None:
    code = r"print('\x1b[31mred\x1b[0m \x1b]0;owned\x07 end')"
    made = program("submit", "-q", "--queue", "train", "--gpus", "0", "--wait", "--", sys.executable, "-c", code)
    workload = made.out.splitlines()[0]
    assert program("logs", workload).out == "\x1b[31mred\x1b[0m \x1b]0;owned\x07 end\n", (
        "a file gets what was written"
    )
    terminal = program.on_terminal("logs", workload)
    exit_code, seen = terminal.end()
    assert exit_code == 0
    assert "\x1b[31mred\x1b[0m \\x1b]0;owned\\x07 end" in seen


def test_the_python_client_does_the_same(jobs: Jobs, client: Client) -> None:
    with client:
        job = client.submit(queue="train", gpus=1, command=["sh", "-c", "echo one; sleep 0.3; echo two"])
        assert "".join(job.logs(follow=True)) == "one\ntwo\n"
        assert job.wait(30).state == "succeeded"
        assert job.over
        assert "".join(client.job(job.id).logs()) == "one\ntwo\n"
        endless = client.submit({"queue": "train", "gpus": 1, "command": ["sleep", "600"]})
        until(lambda: endless.refresh().state == "running", 20, "it runs")
        assert endless.wait(0.1).state == "running"
        assert endless.cancel(now=True).state in ("stopping", "cancelled")
        assert endless.wait(30).state == "cancelled"
        with pytest.raises(PolicyDenied):
            client.submit(queue="train", gpus=64, command=["true"])
