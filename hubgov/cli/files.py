"""Reading a file that somebody names on the command line."""

from __future__ import annotations

import sys
from typing import BinaryIO

from hubgov.errors import HubgovError, Invalid

_MOST_BYTES = 1_100_000
"""A little more than a policy may have, so that the check can say that it is too large."""


def read_text(path: str) -> str:
    """The text of a file, or of stdin for `-`. HubgovError when it can't be read, Invalid when it isn't UTF-8."""
    try:
        if path == "-":
            content = _read(sys.stdin.buffer)
        else:
            with open(path, "rb") as stream:
                content = _read(stream)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise HubgovError(
            f"{path} can't be read: {why}", code="no_file", details={"file": path, "why": why}
        ) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Invalid(
            f"{path}:{line}: not_utf8: the file is not UTF-8 text; save it as UTF-8",
            code="not_utf8",
            details={"file": path, "line": line},
        ) from error


def _read(stream: BinaryIO) -> bytes:
    return stream.read(_MOST_BYTES)
