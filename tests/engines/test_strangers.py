"""Sessions of a ledger that was lost: nothing is given out while they run, and they don't run for ever."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import until

from hubgov import processes
from hubgov.engines.strangers import PATIENCE_SECONDS, Strangers

LOG = logging.getLogger("test")
Begin = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Starts a process with a mark."""
    children: list[subprocess.Popen[bytes]] = []

    def start(mark: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "HUBGOV_ALLOCATION_ID": mark}
        command = [sys.executable, "-c", "print(1, flush=True); input()"]
        child = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.mark.parametrize(
    ("mark", "is_stranger"),
    [
        ("nb-1.1@folder.old", True),
        ("nb-1.1@folder.new", False),
        ("nb-1.1@other.old", False),
        ("nb-1.1@folder", True),
        ("nb-1.1", False),
        ("", False),
    ],
)
def test_a_stranger_is_of_this_folder_and_of_another_ledger(mark: str, is_stranger: bool, begin: Begin) -> None:
    child = begin(mark)
    found = {ref.pid for ref in processes.marked_elsewhere("folder.new")}
    assert (child.pid in found) is is_stranger


def test_they_are_waited_for_and_then_killed(begin: Begin) -> None:
    now = 100.0
    child = begin("nb-1.1@strange.old")
    strangers = Strangers("strange.new", LOG, lambda: now)
    assert strangers.left()
    assert child.poll() is None, "the spawner ends it in order"
    now += PATIENCE_SECONDS + 1
    assert strangers.left()
    until(lambda: child.poll() is not None, 10, "it to be killed")
    assert not strangers.left()


def test_one_that_ended_is_over(begin: Begin) -> None:
    strangers = Strangers("strange.new", LOG)
    assert not strangers.left()
    begin("nb-1.1@strange.old")
    assert not strangers.left(), "no new ones come: it isn't looked for again"


SAVES = """
import signal, sys
def save(*_):
    open(sys.argv[1], "a").write("saved ")
signal.signal(signal.SIGTERM, save)
print(1, flush=True)
while True:
    signal.pause()
"""


def job_of(folder: Path, child: subprocess.Popen[bytes]) -> Path:
    """What its supervisor would have written of it."""
    ref = processes.identify(child.pid)
    assert ref is not None
    main = [ref.pid, ref.start_ticks, ref.boot_id]
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps({"init": None, "main": main, "running_at": 1}))
    return folder


def test_a_job_of_a_lost_ledger_is_asked_once_to_save_its_work_and_killed_late(tmp_path: Path) -> None:
    now, said, ours = 100.0, tmp_path / "said", tmp_path / "ours"
    children = []
    for mark, words in (("tr-1.1@lost.old", said), ("tr-1.1@lost.new", ours)):
        environment = {**os.environ, "HUBGOV_ALLOCATION_ID": mark}
        command = [sys.executable, "-c", SAVES, str(words)]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
    try:
        jobs = tmp_path / "jobs"
        job_of(jobs / "old" / "tr-1.1", children[0])
        job_of(jobs / "new" / "tr-1.1", children[1])
        for _ in range(3):  # also by a service that was started again
            strangers = Strangers("lost.new", LOG, lambda: now, jobs=jobs, own="new")
            assert strangers.left()
            assert strangers.left()
        until(said.exists, 10, "it to save")
        assert children[0].poll() is None, "it has its time"
        now += PATIENCE_SECONDS + 1
        assert strangers.left()
        until(lambda: children[0].poll() is not None, 10, "it to be killed")
        assert said.read_text() == "saved ", "asked once"
        assert (children[1].poll(), ours.exists()) == (None, False), "our own goes on"
        assert not strangers.left()
    finally:
        for child in children:
            child.kill()
            child.communicate()
