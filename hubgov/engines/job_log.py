"""What a job wrote, read by the byte: its first 16 MiB and its last 48 MiB, with the gap told."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hubgov.engines.job_folder import JobFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """A piece of a log. `left_out` bytes are missing between what was asked for and where `data` begins."""

    data: bytes
    next_offset: int
    left_out: int
    end: bool
    """Whether the job has ended and nothing follows."""
    trouble: str = ""
    """Why bytes are missing, where the disk was the cause."""


def read(folder: Path, offset: int, limit: int) -> LogPart:
    """At most `limit` bytes from `offset` on, or from the first after it that was kept. Blocks."""
    end = JobFolder(folder).end()  # first: what is written after it is none of the job's
    trouble = end.log_trouble if end is not None else ""
    for start, name in _segments(folder):
        try:
            with open(folder / name, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if start + size <= offset:
                    continue
                begin = max(start, offset)
                file.seek(begin - start)
                data = file.read(limit)
        except FileNotFoundError:  # rotated away this instant: the next one says how much is gone
            continue
        stop = begin + len(data)
        over = end is not None and stop >= end.log_bytes
        return LogPart(data=data, next_offset=stop, left_out=begin - offset, end=over, trouble=trouble)
    if end is None:
        return LogPart(data=b"", next_offset=offset, left_out=0, end=False)
    missing = max(0, end.log_bytes - offset)
    return LogPart(data=b"", next_offset=offset + missing, left_out=missing, end=True, trouble=trouble)


def size(folder: Path) -> int:
    """Bytes that can be read up to."""
    return max((start + (folder / name).stat().st_size for start, name in _segments(folder)), default=0)


def _segments(folder: Path) -> list[tuple[int, str]]:
    """(first byte, file name), the first first."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((int(name[4:]), name) for name in names if name.startswith("log.") and name[4:].isdecimal())
