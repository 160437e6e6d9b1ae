"""The engine with jobs of its own, without a service: what it asks of them, and what it reads of their folders."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import Play, a_policy
from waiting import until, until_async

from hubgov import processes
from hubgov.clock import FakeClock, Instant
from hubgov.core.model import Allocation, Workload
from hubgov.core.states import AllocationState
from hubgov.engines import job_log
from hubgov.engines.base import Seen, mark
from hubgov.engines.local import ENTRY, GO_FD, PLAIN_PYTHON, REPORTS_FD, LocalEngine, Order

LOG = logging.getLogger("hubgov.test")
SITE = "engine-under-test"
COUNTS = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: print("asked", flush=True))
print("up", flush=True)
while True:
    time.sleep(0.05)
"""


class Plain:
    """Starts what the request says, without account or box."""

    async def prepare(self, owner: str) -> None:
        pass

    def order(self, workload: Workload, allocation: Allocation, told: Path) -> Order:
        return Order(
            argv=(sys.executable, *PLAIN_PYTHON, ENTRY, str(REPORTS_FD), str(GO_FD)),
            outer_env={processes.ALLOCATION_VARIABLE: mark(SITE, allocation), "PATH": "/usr/bin:/bin"},
            boxed=False,
            command=workload.request.command,
            env={"PATH": "/usr/bin:/bin", processes.ALLOCATION_VARIABLE: mark(SITE, allocation)},
            home=str(told.parent),
            cwd="",
        )

    async def answers(self) -> bool:
        return True


class Bench:
    """One engine over one folder; `restart` makes another, as a service that was started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.play = Play(a_policy().team("A").node("box", devices=8).queue("train"))
        self.live: list[Allocation] = []
        self.engines: list[LocalEngine] = []
        self.restart()

    def restart(self) -> None:
        self.engine = LocalEngine(self.folder, Plain(), SITE, FakeClock(), LOG)
        self.engines.append(self.engine)

    def start(self, name: str, *command: str) -> Allocation:
        """Started, and running, by an engine whose loop is over."""
        allocation = asyncio.run(self.started(name, *command))
        self.restart()
        return allocation

    async def started(self, name: str, *command: str) -> Allocation:
        """Started, and running."""
        self.play.submit(name, command=command)
        allocation = self.play.bound(name)
        self.live.append(allocation)
        await self.engine.start(self.play.workload(name), allocation)
        return allocation

    def output(self, allocation: Allocation) -> str:
        return job_log.read(self.engine.folder_of(allocation.id), 0, 1 << 20).data.decode()

    def says(self, allocation: Allocation, text: str) -> None:
        until(lambda: self.output(allocation) == text, 20, f"{text!r}, and not {self.output(allocation)!r}")

    def in_loop(self, call: Callable[[], Any]) -> Any:
        async def called() -> Any:
            return call()

        return asyncio.run(called())

    def close(self) -> None:
        for allocation in self.live:
            over = replace(allocation, state=AllocationState.LOST)
            self.engine.kill(over)
            until(lambda a=over: self.engine.look(a) is Seen.GONE, 20, "all to be gone")  # type: ignore[misc]
        for supervisor in [s for engine in self.engines for s in engine._supervisors]:
            supervisor.wait(20)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    try:
        yield made
    finally:
        made.close()


def expiring(allocation: Allocation, asked_at: int) -> Allocation:
    return replace(allocation, state=AllocationState.EXPIRING, asked_at=Instant(asked_at))


def test_each_grace_asks_once_and_a_stop_after_it_not_again(bench: Bench) -> None:
    job = bench.start("w", sys.executable, "-c", COUNTS)
    running = replace(job, state=AllocationState.RUNNING)
    bench.says(job, "up\n")
    for _ in range(2):
        bench.engine.attend(expiring(job, 1))
    bench.says(job, "up\nasked\n")
    bench.engine.attend(running)
    assert not (bench.engine.folder_of(job.id) / "asked").exists(), "at its own end nothing is waited for"
    bench.engine.attend(expiring(job, 2))
    bench.says(job, "up\nasked\nasked\n")
    bench.restart()
    bench.engine.attend(expiring(job, 2))
    stopping = replace(expiring(job, 2), state=AllocationState.STOPPING)
    asyncio.run(bench.engine.stop(bench.play.workload("w"), stopping))
    bench.engine.attend(expiring(job, 3))
    bench.says(job, "up\nasked\nasked\nasked\n")


def test_what_runs_is_read_once_and_again_when_it_has_ended(bench: Bench) -> None:
    woken: list[bool] = []
    bench.engine._wake = lambda: woken.append(True)

    async def story() -> None:
        job = await bench.started("w", sys.executable, "-c", COUNTS)
        first = bench.engine.report(job)
        assert first.stage() == "running"
        (bench.engine.folder_of(job.id) / "status.json").rename(bench.folder / "kept")
        assert bench.engine.report(job) is first, "no file was read"
        (bench.folder / "kept").rename(bench.engine.folder_of(job.id) / "status.json")
        bench.engine.kill(job)

        async def ended() -> bool:
            return bool(woken)

        await until_async(ended, 20, "the kernel to tell of its end")
        found = bench.engine.report(job).ended
        assert found is not None
        assert found.signal == 9

    asyncio.run(story())


def test_nothing_is_remembered_of_what_is_no_longer_there(bench: Bench) -> None:
    job = bench.start("w", sys.executable, "-c", COUNTS)
    (bench.engine.folder_of(job.id) / "end.json").write_bytes(b"{")

    async def story() -> None:
        assert bench.engine.report(job).stage() == "running"
        bench.engine.attend(expiring(job, 1))
        bench.engine.forget_all_but({job.id})
        memories = (bench.engine._deadlines, bench.engine._asked, bench.engine._reported, bench.engine._unreadable)
        assert all(memories)
        bench.engine.forget_all_but(set())
        assert not any(memories[:3])
        assert not bench.engine._unreadable

    asyncio.run(story())


def test_one_whose_end_can_not_be_read_ended_without_a_word(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    job = bench.start("w", "true")
    folder = bench.engine.folder_of(job.id)
    until((folder / "end.json").exists, 20, "its end")
    (folder / "end.json").write_bytes(b"{")
    until(lambda: bench.in_loop(lambda: bench.engine.report(job)).ended is not None, 20, "it to be over")
    for _ in range(3):
        ended = bench.in_loop(lambda: bench.engine.report(job)).ended
        assert ended.failure == "unsupervised"
    said = [r for r in caplog.records if "job_file_unreadable" in r.getMessage()]
    assert len(said) == 1
