"""The few lines of hubgov at the end of a jupyterhub_config.py: put there, found again, taken away to the byte.

Files are read and written as bytes. A write is a file beside it, with the same owner and mode, that takes its
place in one step; what was there is kept beside it under another name.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from hubgov.errors import Conflict, Invalid, NotAllowed

BEGIN, END = b"# >>> hubgov >>>\n", b"# <<< hubgov <<<\n"
_UNBROKEN = b"# The line before this block had no line break.\n"
_MOST_BYTES = 4 * 2**20


def read(path: Path) -> bytes:
    """The file's bytes. NotAllowed for a link, what is no file, and what belongs to another user."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise NotAllowed(
            f"{path} is a link; it is not written through", hint=f"name its target: --config {path.resolve()}"
        )
    if not stat.S_ISREG(found.st_mode):
        raise NotAllowed(f"{path} is no file", hint="name a file with --config")
    if found.st_uid != os.geteuid():
        raise NotAllowed(
            f"{path} belongs to uid {found.st_uid}, not to you", hint="run this as its owner, or name another file"
        )
    if found.st_size > _MOST_BYTES:
        raise Invalid(f"{path} is larger than 4 MiB", hint="name the hub's configuration with --config")
    return path.read_bytes()


def block_of(content: bytes) -> bytes | None:
    """The block with its marks; None without one. Invalid where the marks don't pair."""
    begins, ends = content.count(BEGIN), content.count(END)
    if begins == ends == 0:
        return None
    begin, end = content.find(BEGIN), content.find(END)
    if (begins, ends) != (1, 1) or end < begin:
        raise Invalid(
            "the marks # >>> hubgov >>> and # <<< hubgov <<< don't pair", hint="leave one of each, or none"
        )
    return content[begin : end + len(END)]


def joined(content: bytes, lines: str) -> bytes:
    """The content with a block of these lines at its end."""
    broken = content.endswith(b"\n") or not content
    mark = b"" if broken else _UNBROKEN
    return content + (b"" if broken else b"\n") + b"\n" + BEGIN + mark + lines.encode() + END


def parted(content: bytes) -> bytes:
    """The content without the block, as it was before; the content itself where there is none."""
    block = block_of(content)
    if block is None:
        return content
    before, _, after = content.partition(block)
    before = before.removesuffix(b"\n")  # the empty line that `joined` put
    if block.startswith(BEGIN + _UNBROKEN):
        before = before.removesuffix(b"\n")
    return before + after


def backup_of(path: Path) -> Path:
    """A name beside the file that is free now."""
    name = f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.before-hubgov"
    found, number = path.with_name(name), 2
    while os.path.lexists(found):
        found, number = path.with_name(f"{name}-{number}"), number + 1
    return found


def draft(path: Path, content: bytes, like: Path | None = None, mode: int = 0o640) -> Path:
    """A file beside `path` with this content, on disk, with owner and mode of `like`. The caller renames it or
    removes it. Its name ends in .py, so that it can be tried."""
    name = path.with_name(f".{path.stem}.{os.getpid()}.hubgov.py")
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if like is not None:
                seen = like.lstat()
                os.fchown(file.fileno(), seen.st_uid, seen.st_gid)
                mode = stat.S_IMODE(seen.st_mode)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        name.unlink(missing_ok=True)
        raise
    return name


def put(drafted: Path, path: Path, before: bytes | None) -> None:
    """Let the draft take the file's place in one step. Conflict when the file isn't as it was read."""
    now = read(path) if os.path.lexists(path) else None
    if now != before:
        raise Conflict(f"{path} was changed meanwhile", hint="call this again")
    os.replace(drafted, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def keep(path: Path, content: bytes) -> Path:
    """A copy of the file as it was, beside it, with its owner and mode."""
    kept = backup_of(path)
    drafted = draft(kept, content, like=path)
    try:
        os.link(drafted, kept)  # never over another file
    finally:
        drafted.unlink()
    return kept
