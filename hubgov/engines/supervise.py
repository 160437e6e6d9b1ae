"""Stands by one job until its end: a process of its own, so that no restart of the service ends or forgets it.

Run as a file, by `python -I -S supervise.py FOLDER` with the order as JSON on stdin; imports little of the standard
library, since one of these lives beside every job. What it knows it writes into the folder, each time
whole or not at all: `begun` (once; who makes it first may start the job, and it is made by the engine to forbid
that), `status.json` (which processes these are, whether the command runs), `log.N` (what the job wrote, from byte
N on) and `end.json`.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # not so much as `typing` is loaded
    from typing import Any

SEGMENT_BYTES = 8 * 2**20
FIRST_SEGMENTS = 2
LAST_SEGMENTS = 6
"""A log keeps its first 16 MiB and its last 48 MiB."""
READ_BYTES = 65536
START_SECONDS = 60
"""How long a box may take to be made."""
DRAIN_SECONDS = 5
"""How long output is awaited after the end of the job: whoever holds the pipe then isn't of it any more."""
RETRY_SECONDS = 1
"""How long after a failed write the next is tried; what comes meanwhile is left out."""
ROOM_BYTES = 2048
STATUS_DRAFTS, END_DRAFT = (".status.1", ".status.2"), ".end"
"""Files of so many bytes, kept from the beginning: what becomes of the job is written on a full disk too."""
SUBREAPER = 36
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
"""By the supervisor, not by the job: only its end is worth nothing to anybody."""


def identity(pid: int) -> list[Any] | None:
    """[pid, start ticks, boot id] of a process, or None when it is gone; who adopts orphans may be slow to reap."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return [pid, int(fields[19]), file.read().strip()]


def children(pid: int) -> list[int]:
    """Its children, the eldest first."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def milliseconds() -> int:
    return int(time.time() * 1000)


class Log:
    """Segments that are named by the byte they begin with. A gap between two is what was left out."""

    def __init__(self, segment_bytes: int) -> None:
        self.segment_bytes = segment_bytes
        self.size = 0  # of all that the job wrote
        self.trouble = ""
        self._file: int | None = None
        self._room = 0
        self._kept: list[str] = []
        self._retry_at = 0.0

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            taken = self._write_some(left)
            self.size += taken
            left = left[taken:]

    def _write_some(self, data: memoryview) -> int:
        """Bytes that are dealt with: written, or left out because the disk takes none."""
        if self._file is None and time.monotonic() < self._retry_at:
            return len(data)
        try:
            file = self._file if self._file is not None and self._room else self._next()
            done = os.write(file, data[: self._room])
            self._room -= done
            return done
        except OSError as error:
            self.trouble = str(error.strerror)
            self._retry_at = time.monotonic() + RETRY_SECONDS
            self._close()
            return len(data)

    def _next(self) -> int:
        self._close()
        name = f"log.{self.size}"
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._file, self._room = file, self.segment_bytes
        self._kept.append(name)
        if len(self._kept) > FIRST_SEGMENTS + LAST_SEGMENTS:
            os.unlink(self._kept.pop(FIRST_SEGMENTS))
        return file

    def _close(self) -> None:
        if self._file is None:
            return
        if os.fstat(self._file).st_size == 0:  # of a full disk: nothing but a name
            os.unlink(self._kept.pop())
        os.close(self._file)
        self._file = None

    def finish(self) -> None:
        if self._file is not None:
            try:
                os.fsync(self._file)
            except OSError as error:
                self.trouble = str(error.strerror)


class Job:
    """One job from its start to its end."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.log = Log(order.get("segment_bytes") or SEGMENT_BYTES)
        self.drafts = list(STATUS_DRAFTS)
        self.status: dict[str, Any] = {"init": None, "main": None, "running_at": None}
        self.failure: str | None = None
        self.heard, self.pid = b"", 0
        self.code: int | None = None  # as waitpid tells it
        self.out = self.reports = self.go = self.info = -1

    # --- starting ---

    def start(self) -> None:
        self.out, out = os.pipe()
        self.reports, reports = os.pipe()
        go, self.go = os.pipe()
        self.info, info = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(out, reports, go, info)
        for fd in (out, reports, go, info):
            os.close(fd)

    def _become(self, out: int, reports: int, go: int, info: int) -> None:
        """In the child: the box, or the entry alone."""
        try:
            os.setsid()
            for number in IGNORED:
                signal.signal(number, signal.SIG_DFL)
            os.umask(0o022)
            # Out of the way of the numbers that the order names, which are below.
            named = {name: _above(fd) for name, fd in (("reports", reports), ("go", go), ("info", info))}
            null, out = os.open(os.devnull, os.O_RDONLY), _above(out)
            wanted = [(named[name], number) for name, number in self.order["fds"].items()]
            for fd, number in ((null, 0), (out, 1), (out, 2), *wanted):
                os.dup2(fd, number)
            for name, content in self.order["files"].items():
                file = _above(os.memfd_create("box"))
                os.write(file, bytes.fromhex(content))
                os.lseek(file, 0, os.SEEK_SET)
                os.dup2(file, int(name))
            os.chdir("/")
            os.execve(self.order["argv"][0], self.order["argv"], self.order["outer_env"])
        except OSError as error:
            os.write(2, f"hubgov: {self.order['argv'][0]}: {error}\n".encode())
        finally:
            os._exit(127)  # nothing may run on in a second supervisor

    def let_go(self) -> None:
        """The entry waits inside, with its owner's rights: note who it is, then hand over what to run."""
        if self.order["boxed"]:
            said = json.loads(os.read(self.info, 4096))
            self.status["init"] = identity(said["child-pid"])
            inside = children(said["child-pid"])
            self.status["main"] = identity(inside[0]) if inside else None
        else:
            self.status["main"] = identity(self.pid)
        write_whole("status.json", self.drafts.pop(0), self.status)
        inner = {name: self.order[name] for name in ("command", "env", "home", "cwd")}
        view = memoryview(json.dumps(inner).encode())
        while view:
            view = view[os.write(self.go, view) :]
        os.close(self.go)
        self.go = -1

    # --- while it runs ---

    def watch(self) -> None:
        """Take in what it writes until it has ended."""
        poll = select.poll()
        ended = os.pidfd_open(self.pid)
        for fd in (self.out, self.reports, ended):
            poll.register(fd, select.POLLIN)
        give_up_at = time.monotonic() + START_SECONDS
        while self.code is None:
            starting = self.status["running_at"] is None and self.failure is None
            # Without a box what it forgot becomes ours, and is to be reaped.
            pause = 1000 if starting or not self.order["boxed"] else None
            for fd, _ in poll.poll(pause):
                if fd == self.out and not self.take_in():
                    poll.unregister(self.out)
                if fd == self.reports and not self.listen():
                    poll.unregister(self.reports)
            if starting and time.monotonic() > give_up_at and self.status["running_at"] is None:
                self.failure = self.failure or "box_failed"
                self.kill_all()
            self.reap()
        while self.listen():
            pass
        if self.status["running_at"] is None and self.failure is None:
            self.failure = "box_failed"

    def take_in(self) -> bool:
        data = os.read(self.out, READ_BYTES)
        self.log.write(data)
        return bool(data)

    def listen(self) -> bool:
        """What the entry says; at the end of file after its last word the command runs in its place."""
        data = os.read(self.reports, 4096)
        self.heard += data
        if b"here\n" in self.heard and self.go >= 0:
            try:
                self.let_go()
            except (OSError, ValueError, KeyError):
                self.failure = "box_failed"
                self.kill_all()
        words = self.heard.decode("ascii", "replace").split("\n")
        failed = [word.partition(" ")[2] for word in words[:-1] if word.startswith("failed ")]
        if failed:
            self.failure = failed[0]
        elif not data and "running" in words[:-1] and self.status["running_at"] is None:
            self.status["running_at"] = milliseconds()
            write_whole("status.json", self.drafts.pop(0), self.status)
        return bool(data)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.code = status

    # --- its end ---

    def kill_all(self) -> None:
        """Whatever it started and left."""
        init = self.status["init"]
        if init is not None:
            kill(init)
            return
        level = children(os.getpid())
        while level:
            below = [child for pid in level for child in children(pid)]
            for pid in level:
                try:
                    os.kill(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    continue
            level = below

    def finish(self) -> None:
        """The rest of its output, and nothing of it left; then its end, durably."""
        ended_at = milliseconds()
        poll = select.poll()
        poll.register(self.out, select.POLLIN)
        if os.path.exists("asked"):
            # A script ends by its signal at once, and what it had started may still save its work.
            self.drain(poll, time.monotonic() + self.order["grace_seconds"], kill=False)
        self.drain(poll, time.monotonic() + DRAIN_SECONDS, kill=True)
        self.log.finish()
        log = {"log_bytes": self.log.size, "log_trouble": self.log.trouble}
        write_whole("end.json", END_DRAFT, {**self.told_end(), "at": ended_at, **log})

    def drain(self, poll: select.poll, deadline: float, *, kill: bool) -> None:
        """Take in what comes until nothing of it is left, or the time is over."""
        while time.monotonic() < deadline and (self.out >= 0 or self.lingers()):
            if kill:
                self.kill_all()
            self.reap()
            if poll.poll(20) and not self.take_in():
                poll.unregister(self.out)
                self.out = -1

    def lingers(self) -> bool:
        """Whether something of it is still there."""
        init = self.status["init"]
        return identity(init[0]) == init if init is not None else bool(children(os.getpid()))

    def told_end(self) -> dict[str, Any]:
        code = signal_ = None
        if self.failure is None and self.code is not None:
            code = os.waitstatus_to_exitcode(self.code)
            # All that comes out of a box is a status: of what a signal ended, 128 and its number, as in a shell.
            signal_ = -code if code < 0 else code - 128 if self.order["boxed"] and 128 < code <= 192 else None
        return {"code": code if signal_ is None else None, "signal": signal_, "failure": self.failure}


def kill(ref: list[Any]) -> None:
    """Exactly this process: the pidfd is taken first, and who it is compared then."""
    try:
        fd = os.pidfd_open(ref[0])
    except OSError:
        return
    try:
        if identity(ref[0]) == ref:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    except OSError:
        return
    finally:
        os.close(fd)


def _above(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100)


def sync_folder() -> None:
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)


def keep_room() -> None:
    """On the disk for all that is to be written yet."""
    for name in (*STATUS_DRAFTS, END_DRAFT):
        write_new(name, b" " * ROOM_BYTES)


def write_new(name: str, content: bytes) -> None:
    with open(name, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_whole(name: str, draft: str, content: object) -> None:
    """In place of what is there, all or nothing, and on the disk; the room for it was kept from the beginning."""
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT, 0o600)
    os.pwrite(fd, json.dumps(content).encode().ljust(ROOM_BYTES), 0)
    os.fsync(fd)
    os.close(fd)
    os.rename(draft, name)
    sync_folder()


def take() -> bool:
    """Whether this is the first and only one to start the job of this folder."""
    draft = f".begun.{os.getpid()}"
    write_new(draft, json.dumps(identity(os.getpid())).encode())
    try:
        os.link(draft, "begun")
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    sync_folder()
    return True


def adopt_orphans() -> None:
    """Without a box: whoever in the job loses its parent becomes our child, wherever it went."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0)


def main() -> None:
    order = json.loads(sys.stdin.buffer.read())
    os.chdir(sys.argv[1])
    os.umask(0o077)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    if not take():
        return
    keep_room()
    if not order["boxed"]:
        adopt_orphans()
    job = Job(order)
    job.start()
    job.watch()
    job.finish()


main()
