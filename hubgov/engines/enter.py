"""The last step into a job: inside its box, with its owner's rights, until the command takes its place.

Run as a file, by `python -I -S enter.py REPORTS GO` (open files): says `here`, waits for what to run, goes to the
working directory without following a link, and executes. What fails is said by name, since from the outside one
couldn't tell it from a command that ends with the same status.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NOT_EXECUTABLE = (errno.EACCES, errno.ENOEXEC, errno.EISDIR, errno.EPERM, errno.ETXTBSY, errno.ELIBBAD)


def failed(reports: int, why: str, told: str) -> None:
    """Leave a name for programs and a line in the log for people."""
    os.write(reports, f"failed {why}\n".encode())
    os.write(2, f"hubgov: {told}\n".encode("utf-8", "backslashreplace"))
    os._exit(127)


def go_to(home: str, cwd: str) -> None:
    """Into the folder, one step after the other: a link on the way would lead out of the home."""
    parts = cwd.removeprefix("~").split("/") if cwd == "~" or cwd.startswith("~/") else cwd.split("/")
    if cwd.startswith("/"):
        if cwd != home and not cwd.startswith(f"{home}/"):
            raise PermissionError(errno.EPERM, "it is not in your home", cwd)
        parts = cwd[len(home) :].split("/")
    fd = os.open(home, FOLDER)
    for part in parts:
        if part in ("", "."):
            continue
        if part == "..":
            raise PermissionError(errno.EPERM, "it must not have ..", cwd)
        below = os.open(part, FOLDER, dir_fd=fd)
        os.close(fd)
        fd = below
    os.fchdir(fd)
    os.close(fd)


def main() -> None:
    reports, go = int(sys.argv[1]), int(sys.argv[2])
    for fd in (reports, go):
        os.set_inheritable(fd, False)
    os.write(reports, b"here\n")
    with open(go, "rb") as file:
        said = file.read()
    if not said:
        os._exit(127)  # who was to watch over it is gone
    order = json.loads(said)
    home, cwd, command = order["home"], order["cwd"], order["command"]
    try:
        go_to(home, cwd)
    except FileNotFoundError:
        failed(reports, "directory_missing", f"there is no folder {cwd!r} in your home")
    except OSError as error:
        failed(reports, "directory_closed", f"the folder {cwd!r} can't be entered: {error.strerror}")
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a command would inherit that
        signal.signal(number, signal.SIG_DFL)
    os.write(reports, b"running\n")
    try:
        os.execvpe(command[0], command, order["env"])
    except FileNotFoundError as error:
        # Also of a script whose interpreter isn't there: the file itself is.
        if "/" in command[0] and os.path.exists(command[0]):
            failed(reports, "command_not_executable", f"{command[0]!r} asks for an interpreter that isn't there")
        failed(reports, "command_not_found", f"{command[0]!r}: {error.strerror}")
    except OSError as error:
        why = "command_not_executable" if error.errno in NOT_EXECUTABLE else "command_failed"
        failed(reports, why, f"{command[0]!r} can't be run: {error.strerror}")


main()
