"""However a job ends, its end is known, nothing of it is left and its devices are free: real processes in boxes."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
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
MODES = ["root", "userns", "none"]


@pytest.fixture(scope="module", params=MODES)
def anywhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A service with each way to keep people apart."""
    under_test = Jobs(tmp_path_factory.mktemp("jobs") / "state", request.param)
    try:
        under_test.start()
        yield under_test
    finally:
        under_test.close()


def ref(process: ProcessId | None) -> ProcessRef:
    assert process is not None
    return ProcessRef(pid=process.pid, start_ticks=process.start_ticks, boot_id=process.boot_id)


def marked(jobs: Jobs, workload: str) -> list[ProcessRef]:
    """Everything on the machine that was started with the mark of this workload."""
    mark = f"HUBGOV_WORKLOAD_ID={workload}".encode()
    url = f"HUBGOV_URL=http://127.0.0.1:{jobs.port}/".encode()
    mine = processes.with_environment(lambda entry: entry.startswith(url))
    return [found for found in processes.with_environment(lambda entry: entry == mark) if found in mine]


def test_a_code_and_a_signal_are_told(anywhere: Jobs) -> None:
    assert _told(anywhere.run_("amy", "true")) == ("succeeded", "completed", 0, None, None)
    assert _told(anywhere.run_("amy", "sh", "-c", "exit 7")) == ("failed", "failed", 7, None, "exit_code")
    killed = anywhere.run_("amy", PYTHON, "-c", "import os; os.kill(os.getpid(), 11)")
    # Pid 1 of a box takes the signals of others; what ends of one by itself is told by bwrap as by a shell.
    assert _told(killed) == ("failed", "failed", None, 11, "signal")


def _told(w: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(w[name] for name in ("state", "end_reason", "exit_code", "signal", "failure_class"))


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        (["no-such-program"], "command_not_found"),
        (["./no-such-file"], "command_not_found"),
        (["./plain.sh"], "command_not_executable"),
        (["./folder"], "command_not_executable"),
        (["./odd.sh"], "command_not_executable"),
    ],
)
def test_what_cannot_be_run_is_named_and_costs_nothing(anywhere: Jobs, command: list[str], failure: str) -> None:
    home = anywhere.home("amy")
    (home / "plain.sh").write_text("#!/bin/sh\n")
    (home / "plain.sh").chmod(0o644)
    (home / "folder").mkdir(exist_ok=True)
    (home / "odd.sh").write_text("#!/no/such/interpreter\n")
    (home / "odd.sh").chmod(0o755)
    # The queue tries failures again: not this one, which would fail the same way.
    found = anywhere.run_("amy", *command, queue="retried")
    assert _told(found) == ("failed", "environment_unavailable", None, None, failure)
    assert (found["attempt"], found["started_at"], found["cost"]["amount"]) == (1, None, "0.000000")
    assert command[0] in found["note"]
    assert command[0] in anywhere.output(found["id"])
    in_chinese = anywhere.call("amy", "GET", f"/workloads/{found['id']}", headers={"Accept-Language": "zh"}).json()
    assert "命令" in in_chinese["note"] or "无法" in in_chinese["note"]


def test_the_folder_is_in_the_home_and_reached_over_no_link(anywhere: Jobs) -> None:
    home = anywhere.home("amy")
    owner = home.stat()
    (home / "a b" / "c").mkdir(parents=True, exist_ok=True)
    for folder in (home / "a b", home / "a b" / "c"):
        os.chown(folder, owner.st_uid, owner.st_gid)
    for name, target in (("out", "/etc"), ("to", "a b")):
        if not (home / name).is_symlink():
            (home / name).symlink_to(target)
    (home / "shut").mkdir(exist_ok=True)
    found = anywhere.run_("amy", "pwd", cwd="a b/c")
    assert anywhere.output(found["id"]).strip().endswith("/a b/c")
    assert anywhere.output(anywhere.run_("amy", "pwd", cwd="~/a b")["id"]).strip().endswith("/a b")
    for cwd, failure in (
        ("nowhere", "directory_missing"),
        ("out", "directory_closed"),
        ("to/c", "directory_closed"),
        ("/etc", "directory_closed"),
        ("a b/../../x", None),
    ):
        if failure is None:
            answer = anywhere.call(
                "amy", "POST", "/workloads", {"queue": "train", "gpus": 1, "command": ["pwd"], "cwd": cwd}
            )
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
            continue
        failed = anywhere.run_("amy", "pwd", cwd=cwd)
        assert _told(failed) == ("failed", "environment_unavailable", None, None, failure), cwd
    assert not (home / "nowhere").exists()


def test_what_a_job_leaves_behind_ends_with_it(anywhere: Jobs) -> None:
    forgets = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        open("orphan", "w").write("here")
        time.sleep(600)
    os._exit(0)
while not os.path.exists("orphan"):
    time.sleep(0.01)
"""
    (anywhere.home("amy") / "orphan").unlink(missing_ok=True)
    found = anywhere.run_("amy", PYTHON, "-c", forgets)
    assert _told(found)[:3] == ("succeeded", "completed", 0)
    assert marked(anywhere, found["id"]) == []
    assert anywhere.run_("bo", "true", gpus=2)["state"] == "succeeded", "its devices are free for the next"


def test_one_that_ignores_its_signal_is_killed_when_its_grace_is_over(anywhere: Jobs) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True)); print('up')\n"
    )
    deaf += "while True: time.sleep(0.1)"
    workload = anywhere.submit("amy", PYTHON, "-c", deaf)["id"]
    until(lambda: "up" in anywhere.output(workload), 20, "it runs")
    assert anywhere.call("amy", "DELETE", f"/workloads/{workload}", {}).status_code == 200
    found = anywhere.ended(workload)
    assert _told(found) == ("cancelled", "cancelled", None, 9, None)
    assert anywhere.output(workload) == "up\nasked\n", "asked once"
    assert marked(anywhere, workload) == []


def test_one_that_is_cancelled_cleans_up_within_its_grace(anywhere: Jobs) -> None:
    polite = "import signal, sys, time\n"
    polite += (
        "signal.signal(signal.SIGTERM, lambda *_: (print('saved'), sys.exit(3)))\nprint('up')\ntime.sleep(600)"
    )
    workload = anywhere.submit("amy", "sh", "-c", f"{PYTHON} -u -c '{_in_sh(polite)}'")["id"]
    until(lambda: "up" in anywhere.output(workload), 20, "it runs")
    assert anywhere.call("amy", "DELETE", f"/workloads/{workload}", {}).status_code == 200
    assert anywhere.ended(workload)["state"] == "cancelled"
    assert anywhere.output(workload) == "up\nsaved\n", "the shell's child is asked as well"


def _in_sh(text: str) -> str:
    return text.replace("'", "'\\''")


def test_now_leaves_no_time(anywhere: Jobs) -> None:
    said = (
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True)); print('up')\n"
    )
    said += "while True: time.sleep(0.1)"
    workload = anywhere.submit("amy", PYTHON, "-u", "-c", said)["id"]
    until(lambda: "up" in anywhere.output(workload), 20, "it runs")
    assert anywhere.call("amy", "DELETE", f"/workloads/{workload}", {"now": True}).status_code == 200
    assert _told(anywhere.ended(workload))[:4] == ("cancelled", "cancelled", None, 9)
    assert anywhere.output(workload) == "up\n"


@pytest.mark.parametrize("name", ["x'\"; touch pwned; $(touch pwned)", "名字 🚀", "a\nb\tc", "-rf", "x" * 7_500])
def test_odd_words_are_words(anywhere: Jobs, name: str) -> None:
    show = "import json, os, sys; print(json.dumps([sys.argv[1], os.environ['ODD']]))"
    found = anywhere.run_("amy", PYTHON, "-c", show, name, env={"ODD": name})
    assert json.loads(anywhere.output(found["id"])) == [name, name]
    assert anywhere.call("amy", "GET", f"/workloads/{found['id']}").json()["env"] == {"ODD": name}
    assert not list(anywhere.home("amy").glob("pwned*"))


def test_what_the_owner_sets_reaches_nothing_with_more_rights(jobs: Jobs) -> None:
    spy = jobs.home("amy") / "spy.so"
    spy.write_bytes(b"not a library")
    env = {"LD_PRELOAD": "/home/hgu4101/spy.so", "PATH": "/home/hgu4101", "PYTHONPATH": "/home/hgu4101"}
    found = jobs.run_("amy", "/bin/sh", "-c", "echo $LD_PRELOAD", env=env)
    assert found["state"] == "succeeded"
    text = jobs.output(found["id"])
    assert text.splitlines()[-1] == "/home/hgu4101/spy.so"
    # The loader complains once for each process that it was set for: the shell, and nobody before it.
    assert text.count("cannot be preloaded") == 1


def test_a_gigabyte_of_output_is_kept_within_its_bound(jobs: Jobs) -> None:
    code = "import sys\nline = b'x' * 1048575 + b'\\n'\nfor _ in range(1024): sys.stdout.buffer.write(line)\n"
    code += "sys.stdout.buffer.write(b'last words\\n')"
    workload = jobs.submit("amy", PYTHON, "-c", code)["id"]
    most = 0

    def over() -> bool:
        nonlocal most
        supervisor = JobFolder(jobs.folder(workload)).supervisor() if jobs.show(workload)["attempt"] else None
        if supervisor is not None and processes.is_alive(ref(supervisor)):
            most = max(most, _resident_kib(supervisor.pid))
        return jobs.show(workload)["state"] == "succeeded"

    until(over, 60, "the job ends")
    assert 0 < most < 20_000, f"{most} KiB"
    kept = sum(path.stat().st_size for path in jobs.folder(workload).glob("log.*"))
    assert 56 * 2**20 < kept <= 64 * 2**20
    first = jobs.call("amy", "GET", f"/workloads/{workload}/logs?limit=10").json()
    assert (first["text"], first["left_out"]) == ("x" * 10, 0)
    after = jobs.call("amy", "GET", f"/workloads/{workload}/logs?limit=10&offset={16 * 2**20}").json()
    assert after["left_out"] == after["offset"] - 16 * 2**20 > 900 * 2**20
    whole = 1024 * 2**20 + len("last words\n")
    last = jobs.call("amy", "GET", f"/workloads/{workload}/logs?offset={whole - 11}").json()
    assert (last["text"], last["end"], last["next_offset"]) == ("last words\n", True, whole)


def _resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def test_bytes_that_are_no_text_are_replaced_and_characters_stay_whole(jobs: Jobs) -> None:
    code = "import os; os.write(1, b'\\xff\\x00' + '中'.encode() * 5)"
    found = jobs.run_("amy", PYTHON, "-c", code)
    pieces, offset = [], 0
    while True:
        piece = jobs.call("amy", "GET", f"/workloads/{found['id']}/logs?limit=4&offset={offset}").json()
        pieces.append(piece["text"])
        offset = piece["next_offset"]
        if piece["end"]:
            break
    assert "".join(pieces) == "\ufffd\x00" + "中" * 5


def test_nobody_else_gets_at_it(jobs: Jobs) -> None:
    secret = "import os, time; open('secret', 'w').write(os.environ['TOKEN']); print('up', flush=True)"
    secret += "; time.sleep(600)"
    workload = jobs.submit("amy", PYTHON, "-c", secret, env={"TOKEN": "s3cret"})["id"]
    until(lambda: "up" in jobs.output(workload), 20, "it runs")
    for method, path, body in (
        ("GET", "logs", None), ("DELETE", "", {}), ("POST", "extensions", {"by_seconds": 60}), ("GET", "", None),
    ):  # fmt: skip
        assert jobs.call("bo", method, f"/workloads/{workload}/{path}".rstrip("/"), body).status_code == 404
    for who in ("ava", "lena"):
        assert jobs.call(who, "GET", f"/workloads/{workload}/logs").status_code == 403
        assert "s3cret" not in jobs.call(who, "GET", f"/workloads/{workload}").text
    assert "s3cret" not in jobs.call("admin", "GET", f"/audit?workload={workload}&all=1").text
    assert jobs.call("admin", "GET", f"/workloads/{workload}").json()["env"] == {"TOKEN": "s3cret"}

    # And from another's job, as that one's uid, whatever it tries.
    main = JobFolder(jobs.folder(workload)).status().main
    assert main is not None
    assert os.stat(f"/proc/{main.pid}").st_uid != os.getuid()
    targets = [
        f"/proc/{main.pid}/environ",
        f"{jobs.home('amy')}/secret",
        f"{jobs.folder(workload)}/log.0",
        jobs.state,
    ]
    prying = f"""
import os, signal
for path in {[str(t) for t in targets]!r}:
    try:
        print(os.listdir(path) if os.path.isdir(path) else open(path).read())
    except OSError as error:
        print(type(error).__name__)
try:
    os.kill({main.pid}, signal.SIGKILL)
    print("killed")
except OSError as error:
    print(type(error).__name__)
print(sorted(p for p in os.listdir("/proc") if p.isdecimal())[:1], [p for p in os.listdir("/home")])
"""
    seen = jobs.output(jobs.run_("bo", PYTHON, "-c", prying)["id"])
    assert "s3cret" not in seen
    assert "killed" not in seen
    assert "hgu4101" not in seen
    assert seen.count("FileNotFoundError") == 4, seen
    assert jobs.show(workload)["state"] == "running"
    for path in (jobs.state / "jobs", jobs.folder(workload)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    jobs.call("amy", "DELETE", f"/workloads/{workload}", {"now": True})
    jobs.ended(workload)


def test_its_files_are_its_owners_and_its_devices_are_named(jobs: Jobs) -> None:
    found = jobs.run_(
        "amy", "sh", "-c", "touch made; echo $CUDA_VISIBLE_DEVICES; echo $HUBGOV_WORKLOAD_ID; ls /dev"
    )
    lines = jobs.output(found["id"]).splitlines()
    assert lines[0].startswith("SIM-")
    assert "," not in lines[0]
    assert lines[1] == found["id"]
    assert not [name for name in lines[2:] if name.startswith("nvidia")]
    assert (jobs.home("amy") / "made").stat().st_uid == jobs.home("amy").stat().st_uid
    none = jobs.run_("amy", "sh", "-c", "echo [$CUDA_VISIBLE_DEVICES]", gpus=0)
    assert jobs.output(none["id"]) == "[]\n"


def test_the_deadline_moves_with_the_lease(jobs: Jobs) -> None:
    follow = "while sleep 0.1; do cat $HUBGOV_DEADLINE_FILE; echo; done"
    workload = jobs.submit("amy", "sh", "-c", follow)["id"]
    first = jobs.until(workload, "running")["expires_at"]
    until(lambda: first in jobs.output(workload), 10, "it reads its end")
    assert jobs.call("amy", "POST", f"/workloads/{workload}/extensions", {"by_seconds": 3600}).status_code == 201
    moved = jobs.show(workload)["expires_at"]
    assert moved > first
    until(lambda: moved in jobs.output(workload), 10, "it reads its new end")
    assert set(jobs.output(workload).split()) == {"", first, moved} - {""}, "and never half of one"
    jobs.call("amy", "DELETE", f"/workloads/{workload}", {"now": True})
    jobs.ended(workload)


def test_a_job_is_tried_again_as_often_as_its_queue_says(jobs: Jobs) -> None:
    found = jobs.run_("amy", "sh", "-c", "echo try; exit 1", queue="retried")
    assert (found["state"], found["attempt"]) == ("failed", 2)
    assert [jobs.output(found["id"], attempt=n) for n in (1, 2)] == ["try\n", "try\n"]
    receipt = jobs.call("amy", "GET", f"/workloads/{found['id']}/receipt").json()
    assert (receipt["lost"], receipt["workload"]["exit_code"]) == ([], 1)
    assert jobs.call("amy", "GET", f"/workloads/{found['id']}/logs?attempt=3").status_code == 404


def test_every_kind_of_work_goes_the_same_way(jobs: Jobs) -> None:
    for kind in ("training", "batch_inference", "evaluation", "data"):
        assert jobs.run_("amy", "true", queue="any", kind=kind, gpus=0)["state"] == "succeeded"
    refused = jobs.call("amy", "POST", "/workloads", {"queue": "any", "kind": "training", "gpus": 0})
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, "training work needs a command")
    assert jobs.call("amy", "POST", "/plan", {"queue": "train", "gpus": 1}).json()["outcome"] == "granted"


def test_a_full_disk_neither_ends_nor_holds_up_the_job(fresh: Jobs, tmp_path: Path) -> None:
    jobs_folder = fresh.state / "jobs"
    jobs_folder.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs", jobs_folder], check=True)
    try:
        fresh.start()
        code = "import sys\nfor n in range(4000): print(n, 'x' * 1000)\nprint('done', file=sys.stderr)\nsys.exit(5)"
        found = fresh.run_("amy", PYTHON, "-c", code)
        assert _told(found) == ("failed", "failed", 5, None, "exit_code")
        assert fresh.output(found["id"]).startswith("0 xxx")
        end = fresh.call("amy", "GET", f"/workloads/{found['id']}/logs?offset={10**6}").json()
        assert end["end"]
        assert end["left_out"] > 10**6
        assert end["trouble"] == os.strerror(28)
    finally:
        fresh.kill(signal.SIGTERM)
        subprocess.run(["umount", jobs_folder], check=True)
