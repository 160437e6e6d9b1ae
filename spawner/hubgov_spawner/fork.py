"""Start a server's process, in its box if it has one, and learn which processes these are.

Blocking, so called in a thread. Everything that bwrap reads comes through open files, never through argv,
which is readable inside the box.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hubgov import errors, processes
from hubgov.wire import ProcessRef
from hubgov_spawner import isolation
from hubgov_spawner.isolation import Box, Isolation

_BOX_SECONDS = 10.0
"""Until bwrap has made the box and started the server in it: usually some hundredths of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start: `argv` in `box`, or without one when that is None."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    home: str
    log: int
    """Open file for all that the server writes."""
    isolation: Isolation
    box: Box | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The processes of a server that runs."""

    child: subprocess.Popen[bytes]
    """To reap: bwrap's outer process, which ends with the server and with its status, or the server itself.

    A signal to bwrap's outer process doesn't reach the box.
    """
    main: ProcessRef
    init: ProcessRef | None
    """Pid 1 of the box."""


def start(command: Command) -> Started:
    """Start it; Unavailable when it ended at once. Then nothing is left of it."""
    return _start_plain(command) if command.box is None else _start_boxed(command, command.box)


def _start_plain(command: Command) -> Started:
    os.makedirs(command.environment["JUPYTER_RUNTIME_DIR"], mode=0o700, exist_ok=True)
    server = _popen(command, command.argv, (), command.home)
    main = processes.identify(server.pid)
    if main is None:
        raise _ended(server)
    return Started(child=server, main=main, init=None)


def _start_boxed(command: Command, box: Box) -> Started:
    with contextlib.ExitStack() as opened:

        def as_file(content: bytes) -> int:
            fd = os.memfd_create("box")
            opened.callback(os.close, fd)
            os.write(fd, content)
            os.lseek(fd, 0, os.SEEK_SET)
            return fd

        text_fds = {path: as_file(text.encode()) for path, text in isolation.texts(box).items()}
        filter_ = isolation.seccomp_filter()
        seccomp_fd = as_file(filter_) if filter_ else None
        read_end, write_end = os.pipe()
        opened.callback(os.close, read_end)
        with os.fdopen(write_end, "wb"):  # closed here, so that the end of bwrap's own copy is the end of file
            options = isolation.options(
                box, isolation=command.isolation, text_fds=text_fds, info_fd=write_end, seccomp_fd=seccomp_fd
            )
            args_fd = as_file("".join(f"{option}\0" for option in options).encode())
            server = [*isolation.drop_rights(box, isolation=command.isolation), *command.argv]
            argv = [command.isolation.bwrap, "--args", str(args_fd), "--", *server]
            fds = [*text_fds.values(), write_end, args_fd, *([seccomp_fd] if seccomp_fd else [])]
            child = _popen(command, argv, fds, "/")
        try:
            init = _read_init(child, read_end)
            return Started(child=child, main=_first_child(child, init), init=init)
        except BaseException:
            _end(command, child)
            raise


def _popen(command: Command, argv: Sequence[str], fds: Sequence[int], folder: str) -> subprocess.Popen[bytes]:
    """A process of a session of its own, so that no terminal's signal and no hub's end reaches it."""
    try:
        return subprocess.Popen(
            argv,
            env=dict(command.environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=command.log,
            stderr=command.log,
            pass_fds=fds,
            start_new_session=True,
            umask=0o022,
        )
    except OSError as error:
        raise errors.Unavailable(f"{argv[0]} can't be started: {error}", code="exited") from error


def _read_init(child: subprocess.Popen[bytes], read_end: int) -> ProcessRef:
    """Pid 1 of the box, as bwrap tells on its --info-fd; the end of file without a word when it failed."""
    text = b""
    while select.select([read_end], [], [], _BOX_SECONDS)[0] and (piece := os.read(read_end, 4096)):
        text += piece
    if not text.rstrip().endswith(b"}"):
        raise errors.Unavailable(
            "the box couldn't be made",
            code="box",
            hint="what bwrap said is in its log, in .hubgov in the user's home",
        )
    init = processes.identify(json.loads(text)["child-pid"])
    if init is None:
        raise _ended(child)
    return init


def _first_child(child: subprocess.Popen[bytes], init: ProcessRef) -> ProcessRef:
    """The server: the process that pid 1 of the box forks first. setpriv becomes it without another fork."""
    for _ in range(int(_BOX_SECONDS / 0.01)):
        if found := processes.descendants(init):
            return found[0]
        if processes.wait_gone([init], 0.01):
            raise _ended(child)
    raise errors.Unavailable("the box didn't start its server", code="box")


def _ended(child: subprocess.Popen[bytes]) -> errors.Unavailable:
    return errors.Unavailable(
        f"the server ended while it was starting, with status {child.wait()}",
        code="exited",
        hint="its log is in .hubgov in the user's home",
    )


def _end(command: Command, child: subprocess.Popen[bytes]) -> None:
    """Leave nothing of a box that was only half made: its processes carry the mark from the first on."""
    child.kill()
    mark = command.environment[processes.ALLOCATION_VARIABLE]
    for ref in processes.marked_with(mark):
        processes.send(ref, signal.SIGKILL)
    child.wait()
