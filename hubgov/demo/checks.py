"""What a first start is given, looked at before anything is written: a corrected command then works at once."""

from __future__ import annotations

import errno
import os
import zoneinfo
from pathlib import Path

from hubgov.cli.files import read_text
from hubgov.config import private_folder
from hubgov.errors import HubgovError, Invalid, Unavailable
from hubgov.policy import load

LEAST_FREE_BYTES = 32 * 2**20
"""Below that hub, ledger and logs would fail in the middle of something."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


def folder(name: str) -> Path:
    """The demo's folder, made if missing. Unavailable, with why, when it can't be one."""
    try:
        return private_folder(Path(name).expanduser().resolve())
    except (OSError, RuntimeError, ValueError) as error:  # no such home, a file, a read-only place, another user's
        if getattr(error, "errno", None) in _FULL:
            raise full(name) from error
        why = getattr(error, "strerror", None) or str(error)
        raise Unavailable(
            f"{name} can't be the demo's folder: {why}", hint="choose another folder with --state"
        ) from error


def policy(name: str) -> str:
    """The whole path of a policy file that can be applied; empty for none. Invalid with its first mistake."""
    if not name:
        return ""
    path = str(Path(name).resolve())
    try:
        loaded = load(read_text(path), name=path)
    except HubgovError as error:
        raise Invalid(error.message, hint="name a policy file with --policy, or leave it out") from error
    if loaded.policy is None:
        raise Invalid(str(loaded.errors[0]), hint=f"`hubgov policy check {path}` tells all of it")
    return path


def timezone(name: str | None) -> str:
    """The time zone asked for, else the machine's own. Invalid for one that doesn't exist."""
    if name is None:
        return _machines()
    if not _is_zone(name):
        raise Invalid(f"there is no time zone {name!r}", hint="--timezone Asia/Shanghai, for example, or UTC")
    return name


def room(state: Path) -> None:
    """Unavailable when the disk of the folder is full."""
    seen = os.statvfs(state)
    if seen.f_bavail * seen.f_frsize < LEAST_FREE_BYTES:
        raise full(str(state))


def full(state: str) -> Unavailable:
    """The disk of the folder is full."""
    least = LEAST_FREE_BYTES // 2**20
    return Unavailable(
        f"the disk of {state} is full", hint=f"make room for at least {least} MiB, or choose another --state"
    )


def is_full(error: OSError) -> bool:
    """Is this how a write ends on a full disk?"""
    return error.errno in _FULL


def _machines() -> str:
    """The machine's time zone by its name, UTC when it doesn't say one."""
    link = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
    # TZ may also hold a rule, such as CST-8, which is no name of a zone.
    names = (os.environ.get("TZ", "").removeprefix(":"), link)
    return next((name for name in names if _is_zone(name)), "UTC")


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return False
    return bool(name)
