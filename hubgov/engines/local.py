"""Jobs on this machine: each beside a supervisor of its own, which outlives the service and writes down the end.

The engine starts supervisors, reads what they wrote and signals processes by identity; which account and box a job
gets is the launcher's to say. A job is started at most once per attempt: whoever makes the file `begun` in its
folder first has it, and an engine that hands devices on makes it itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hubgov import processes
from hubgov.clock import Clock, Instant, to_rfc3339
from hubgov.core.model import Allocation, AllocationId, ProcessId, Workload
from hubgov.core.policy import Kind
from hubgov.core.states import GRACE
from hubgov.engines.base import Ended, Engine, Knows, Report, Seen, mark, meant_to_live
from hubgov.engines.job_folder import JobFolder
from hubgov.errors import Unavailable
from hubgov.wire import ProcessRef

JOBS = frozenset({Kind.TRAINING, Kind.BATCH_INFERENCE, Kind.EVALUATION, Kind.DATA})
REPORTS_FD, GO_FD, INFO_FD, FIRST_FREE_FD = 3, 4, 5, 6
"""Open files of a starting job: what its entry says, what it is to run, what bwrap says, and those of the box."""
LOOK_SECONDS, STARTS_WITHIN_LOOKS = 0.05, 40
"""How often and how many times a start is looked at before the reconciler goes on with others."""
ENTRY = str(Path(__file__).with_name("enter.py"))
_SUPERVISOR = str(Path(__file__).with_name("supervise.py"))
PLAIN_PYTHON = ("-I", "-S")
"""Nothing of the environment, no site-packages: quick to start, and nobody's code but its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How one job is started: the `argv` that makes its box and ends in the entry, which then runs `command`.

    What the owner chose reaches no process that has more rights than he: it is handed over inside.
    """

    argv: tuple[str, ...]
    outer_env: Mapping[str, str]
    """Of what makes the box; nothing of the owner's."""
    files: Mapping[int, bytes] = field(default_factory=dict)
    """What is handed to the box by open file, by number."""
    boxed: bool
    command: tuple[str, ...]
    env: Mapping[str, str]
    home: str
    """As the job sees it."""
    cwd: str


class Launcher(Protocol):
    """Who knows accounts, homes and boxes."""

    async def prepare(self, owner: str) -> None:
        """Find out where the owner's jobs live. Unavailable: ask again; CannotStart: don't."""

    def order(self, workload: Workload, allocation: Allocation, told: Path) -> Order:
        """How to start it; `told` is the folder with what it may read. After `prepare`."""

    async def answers(self) -> bool:
        """Whether it could prepare something now."""


class LocalEngine(Engine):
    """Runs jobs on this machine. `folder` is this ledger's own in the state folder."""

    kinds = JOBS
    reports = True

    def __init__(
        self,
        folder: Path,
        launcher: Launcher,
        site: str,
        clock: Clock,
        log: logging.Logger,
        *,
        wake: Callable[[], None] = lambda: None,
        segment_bytes: int | None = None,
    ) -> None:
        """`wake` is called when a job has ended, for somebody to look."""
        self._folder, self._launcher, self._site = folder, launcher, site
        self._clock, self._log = clock, log
        self._wake, self._segment_bytes = wake, segment_bytes
        self._awaited: set[AllocationId] = set()
        self._supervisors: list[subprocess.Popen[bytes]] = []
        self._deadlines: dict[AllocationId, str] = {}
        self._asked: dict[AllocationId, str] = {}
        self._reported: dict[AllocationId, Report] = {}
        """Of what runs: nothing of it changes before its supervisor has ended, which the kernel tells."""
        self._unreadable: set[Path] = set()

    def folder_of(self, allocation: AllocationId) -> Path:
        """Where the files of an allocation are."""
        return self._folder / allocation

    # --- starting ---

    async def prepare(self, workload: Workload) -> None:
        await self._launcher.prepare(workload.owner)

    async def start(self, workload: Workload, allocation: Allocation) -> None:
        """A supervisor for it, unless one has it. What became of it is in the next reports."""
        job = self._job(allocation)
        if job.begun:
            return
        try:
            job.make()
            self._tell_deadline(job, allocation)
        except OSError as error:
            raise Unavailable(f"the job's folder can't be made: {error}", hint="it is asked again") from error
        order = self._launcher.order(workload, allocation, job.told)
        grace_seconds = allocation.lease.grace_ms / 1000 / self._clock.rate
        await asyncio.to_thread(self._spawn, job, order, grace_seconds)
        for _ in range(STARTS_WITHIN_LOOKS):  # usually some hundredths of a second: so it is known at once
            if self.report(allocation).stage() in ("running", "ended"):
                break
            await asyncio.sleep(LOOK_SECONDS)

    def _spawn(self, job: JobFolder, order: Order, grace_seconds: float) -> None:
        """Start the supervisor. The order is handed over by an open file: a command line is for all to read."""
        fds = {"reports": REPORTS_FD, "go": GO_FD} | ({"info": INFO_FD} if order.boxed else {})
        text = json.dumps(
            {
                "argv": order.argv,
                "outer_env": dict(order.outer_env),
                "files": {number: content.hex() for number, content in order.files.items()},
                "fds": fds,
                "boxed": order.boxed,
                "command": order.command,
                "env": dict(order.env),
                "home": order.home,
                "cwd": order.cwd,
                "grace_seconds": grace_seconds,
                "segment_bytes": self._segment_bytes,
            }
        )
        with os.fdopen(os.memfd_create("order"), "w+b") as file:
            file.write(text.encode())
            file.flush()
            file.seek(0)
            command = [sys.executable, *PLAIN_PYTHON, _SUPERVISOR, str(job.path)]
            with open(job.path / "supervisor.log", "ab") as log:
                supervisor = subprocess.Popen(
                    command, stdin=file, stdout=log, stderr=log, env={}, cwd="/", start_new_session=True
                )
        self._supervisors.append(supervisor)

    # --- seeing ---

    def report(self, allocation: Allocation) -> Report:
        known = self._reported.get(allocation.id)
        if known is not None:
            return known
        report = self._read(allocation)
        if report.stage() == "running" and report.main is not None and allocation.id in self._awaited:
            self._reported[allocation.id] = report
        return report

    def forget_all_but(self, live: Set[AllocationId]) -> None:
        self._supervisors = [s for s in self._supervisors if s.poll() is None]
        for memory in (self._deadlines, self._asked, self._reported):
            for gone in memory.keys() - live:
                del memory[gone]
        self._unreadable = {path for path in self._unreadable if path.parent.name in live}

    def _read(self, allocation: Allocation) -> Report:
        job = self._job(allocation)
        if not job.begun:
            # With processes on record it had begun: somebody took its folder away.
            return Report(lost=allocation.main is not None and self.look(allocation) is Seen.GONE)
        # Before the end is looked for: one that dies in between has written its end.
        alive = _lives(job.supervisor())
        status, end = job.status(), job.end()
        running_at = self._instant(status.running_at_ms) if status.running_at_ms is not None else None
        known = Report(begun=True, main=status.main, init=status.init, running_at=running_at)
        if end is not None:
            ended = Ended(at=self._instant(end.at_ms), code=end.code, signal=end.signal, failure=end.failure)
            return Report(begun=True, main=status.main, init=status.init, running_at=running_at, ended=ended)
        if alive:
            self._await_end(allocation.id, job.supervisor())
        if alive or self.look(allocation) is not Seen.GONE:
            return known
        return self._without_word(known, job.supervisor())

    def _await_end(self, allocation: AllocationId, supervisor: ProcessId | None) -> None:
        """Have the kernel tell when a supervisor has written its last word."""
        ref = _ref(supervisor)
        if ref is None or allocation in self._awaited or (fd := processes.pin(ref)) is None:
            return
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(fd)
            os.close(fd)
            self._awaited.discard(allocation)
            self._reported.pop(allocation, None)
            self._wake()

        self._awaited.add(allocation)
        loop.add_reader(fd, ended)

    def _without_word(self, known: Report, supervisor: ProcessId | None) -> Report:
        """Of a job whose supervisor is gone without a word, and all of the job: the machine went down, so it is to
        run again; or somebody killed it, and how the job ended nobody knows."""
        if supervisor is not None and supervisor.boot_id == processes.boot_id():
            ended = Ended(at=self._clock.now(), failure="unsupervised")
            return Report(begun=True, main=known.main, init=known.init, running_at=known.running_at, ended=ended)
        return Report(begun=True, main=known.main, init=known.init, running_at=known.running_at, lost=True)

    def look(self, allocation: Allocation) -> Seen:
        job, over = self._job(allocation), not meant_to_live(allocation)
        never = over and job.close()
        main, init = self._processes(allocation, job)
        if main is not None and processes.is_alive(main):
            return Seen.ALIVE
        if main is None and not over and (not job.begun or _lives(job.supervisor())):
            return Seen.UNSEEN
        if not never and _lives(job.supervisor()):
            return Seen.ENDED
        return Seen.GONE if processes.box_gone(main, init, mark(self._site, allocation)) else Seen.ENDED

    async def answers(self) -> bool:
        return await self._launcher.answers()

    async def knows(self, workload: Workload) -> Knows:
        if workload.allocation is None:
            return Knows.NO
        return Knows.YES if JobFolder(self.folder_of(workload.allocation)).begun else Knows.NO

    # --- ending ---

    def attend(self, allocation: Allocation) -> None:
        job = self._job(allocation)
        if allocation.id not in self._reported and not job.begun:
            return
        self._tell_deadline(job, allocation)
        if allocation.state in GRACE:
            self._ask_to_end(job, allocation)
        elif self._asked.pop(allocation.id, None) is not None:
            job.forget_signal()

    async def stop(self, workload: Workload, allocation: Allocation) -> None:
        """SIGTERM to the job and all that it started, unless it had it since its grace began."""
        self._ask_to_end(self._job(allocation), allocation)

    def _ask_to_end(self, job: JobFolder, allocation: Allocation) -> None:
        occasion = f"{allocation.id} {allocation.asked_at}"
        if self._asked.get(allocation.id) == occasion:
            return
        main, _ = self._processes(allocation, job)
        if main is None:
            return
        self._asked[allocation.id] = occasion
        try:
            if not job.note_signal(occasion):
                return  # by an earlier process of this service
        except OSError as error:  # a full disk: it is to be told all the same, and this process remembers
            self._log.warning("event=signal_not_noted allocation=%s error=%s", allocation.id, error)
        for ref in [main, *processes.descendants(main)]:
            try:
                processes.send(ref, signal.SIGTERM)
            except PermissionError:  # it took another user's rights; the others are to go all the same
                self._log.warning("event=not_signalled allocation=%s pid=%s", allocation.id, ref.pid)

    def kill(self, allocation: Allocation) -> None:
        job = self._job(allocation)
        job.close()
        main, init = self._processes(allocation, job)
        processes.signal_box(main, init, kill=True, allocation_id=mark(self._site, allocation))

    # --- inside ---

    def _job(self, allocation: Allocation) -> JobFolder:
        return JobFolder(self.folder_of(allocation.id), self._tell_trouble)

    def _tell_trouble(self, path: Path, error: Exception) -> None:
        if path not in self._unreadable:
            self._unreadable.add(path)
            self._log.error("event=job_file_unreadable path=%s error=%s", path, error)

    def _processes(self, allocation: Allocation, job: JobFolder) -> tuple[ProcessRef | None, ProcessRef | None]:
        """Main process and pid 1 of the box: as the supervisor wrote, else as the ledger has them."""
        status = job.status()
        if status.main is None:
            return _ref(allocation.main), _ref(allocation.init)
        return _ref(status.main), _ref(status.init)

    def _tell_deadline(self, job: JobFolder, allocation: Allocation) -> None:
        expires_at = allocation.lease.expires_at
        text = to_rfc3339(expires_at) if expires_at is not None else ""
        if self._deadlines.get(allocation.id) == text:
            return
        self._deadlines[allocation.id] = text
        try:
            job.tell_deadline(text)
        except OSError as error:  # a full disk: what it was told before stands until the end moves again
            self._log.warning("event=deadline_not_told allocation=%s error=%s", allocation.id, error)

    def _instant(self, wall_ms: int) -> Instant:
        """An instant of the wall clock on the policy's, which may run faster."""
        ago_ms = max(0, round(time.time() * 1000) - wall_ms)
        return Instant(self._clock.now() - ago_ms * self._clock.rate)


def _lives(process: ProcessId | None) -> bool:
    ref = _ref(process)
    return ref is not None and processes.is_alive(ref)


def _ref(process: ProcessId | None) -> ProcessRef | None:
    if process is None:
        return None
    return ProcessRef(pid=process.pid, start_ticks=process.start_ticks, boot_id=process.boot_id)
