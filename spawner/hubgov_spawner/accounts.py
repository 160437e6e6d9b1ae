"""Under which uid a hub user's code runs, and the user's home with the server's log in it.

Both come from the user's number in the register (`owners`), never from the name: names may be e-mail addresses,
may be renamed, and may differ only in case. A uid is never given back: files of a deleted user must not fall to
the next one.
"""

from __future__ import annotations

import contextlib
import grp
import hashlib
import os
import pwd
import re
import stat
import subprocess
import threading
from dataclasses import dataclass

from hubgov import errors

_OVERFLOW_UIDS = (65534, 65535)  # nobody, and -1 in sixteen bits
_accounts_lock = threading.Lock()  # two servers of one new user may start at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Name and numbers that a user's processes have."""

    name: str
    uid: int
    gid: int


def account_of(number: int, uid_base: int) -> Account:
    """The account of the user with this number: `hgu7` with uid and gid 61007. Invalid when that can't be."""
    uid = uid_base + number
    if number < 1 or uid_base < 1000 or uid in _OVERFLOW_UIDS or uid >= 2**31:
        raise errors.Invalid(
            f"user number {number} can't have uid {uid}",
            hint="choose another uid_base: from 1000 on, and so that no user gets 65534 or 65535",
        )
    return Account(name=f"hgu{number}", uid=uid, gid=uid)


def is_taken(number: int, uid_base: int) -> bool:
    """Does name, uid or gid of this number belong to somebody else? Invalid as `account_of`."""
    if uid_base + number in _OVERFLOW_UIDS:
        return True
    try:
        _exists(account_of(number, uid_base))
    except errors.Conflict:
        return True
    return False


def own_account() -> Account:
    """The account that we ourselves run as, for a server without a box."""
    uid, gid = os.getuid(), os.getgid()
    try:
        return Account(name=pwd.getpwuid(uid).pw_name, uid=uid, gid=gid)
    except KeyError:  # usual in containers
        return Account(name=f"uid{uid}", uid=uid, gid=gid)


def ensure_system_account(account: Account) -> None:
    """Make the system account if it is missing; Conflict if its name or number belongs to another.

    A box would run without it. It reserves the number, so that nobody else is given the user's files, and
    gives `ps` and `ls -l` a name to show. Needs root. Blocks for some tens of milliseconds the first time.
    """
    with _accounts_lock:
        if _exists(account):
            return
        number = ["--gid", str(account.gid), account.name]
        _run(["groupadd", *number])
        shell = [
            "--shell",
            "/usr/sbin/nologin",
            "--home-dir",
            "/nonexistent",
            "--no-create-home",
            "--no-log-init",
        ]
        # Numbers above UID_MAX only bring a warning; this says that we know.
        quiet = ["--key", f"UID_MAX={max(account.uid, 60000)}"]
        _run(["useradd", *quiet, "--uid", str(account.uid), *shell, *number])
        if not _exists(account):
            raise errors.Unavailable(f"the system account {account.name} was made but isn't there")


def _exists(account: Account) -> bool:
    """Is the account there as it should be? Conflict if its name or a number is taken otherwise."""
    with contextlib.suppress(KeyError):
        there = pwd.getpwnam(account.name)
        if (there.pw_uid, there.pw_gid) != (account.uid, account.gid):
            raise _clash(account, f"{account.name} has uid {there.pw_uid} and gid {there.pw_gid}")
        return True
    with contextlib.suppress(KeyError):
        raise _clash(account, f"uid {account.uid} belongs to {pwd.getpwuid(account.uid).pw_name}")
    with contextlib.suppress(KeyError):
        group = grp.getgrgid(account.gid)
        if group.gr_name != account.name:
            raise _clash(account, f"gid {account.gid} belongs to {group.gr_name}")
    return False


def _clash(account: Account, what: str) -> errors.Conflict:
    return errors.Conflict(
        f"the system account {account.name} with uid and gid {account.uid} can't be used: {what}",
        code="account",
        hint="set uid_base so that the range from there on is free, before the first server starts",
    )


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise errors.Unavailable(f"{command[0]} didn't run: {error}", code="account") from error
    # 9: it is there already, from an earlier try that ended halfway or from another hub just now.
    if done.returncode not in (0, 9):
        raise errors.Unavailable(f"{command[0]} failed: {done.stderr.strip()}", code="account")


# --- homes ---------------------------------------------------------------------------------------------


def prepare_home(state_dir: str, name: str, *, uid: int, gid: int) -> str:
    """The user's home, STATE/homes/NAME: made with mode 0700 if missing, else checked and never changed.

    Conflict unless it is a folder itself (not a link to one), of this uid, open to nobody else.
    """
    homes = os.path.join(state_dir, "homes")
    os.makedirs(homes, mode=0o711, exist_ok=True)
    home = os.path.join(homes, name)
    try:
        os.mkdir(home, 0o700)
    except FileExistsError:
        pass
    else:
        os.chown(home, uid, gid, follow_symlinks=False)
    seen = os.lstat(home)
    if not stat.S_ISDIR(seen.st_mode):
        raise errors.Conflict(f"the home {home} is not a folder", code="home", hint="move it away")
    if seen.st_uid != uid or stat.S_IMODE(seen.st_mode) != 0o700:
        raise errors.Conflict(
            f"the home {home} has owner {seen.st_uid} and mode {stat.S_IMODE(seen.st_mode):04o}, "
            f"not {uid} and 0700",
            code="home",
            hint=f"look why, then: chown {uid}:{gid} {home}; chmod 0700 {home}",
        )
    return home


def has_other_homes(state_dir: str, name: str) -> bool:
    """Did another hub user ever have a home here?"""
    try:
        there = os.listdir(os.path.join(state_dir, "homes"))
    except FileNotFoundError:
        return False
    return any(other != name and not other.startswith(".") for other in there)


# --- the server's log, in the home -------------------------------------------------------------------------
#
# A pipe through the hub would break with the hub, and a file in the state folder would hand the box a
# writable hole in it. The folder is the user's, so nothing in it is trusted: every step goes through an open
# folder and follows no link.

LOG_LIMIT = 8 * 2**20
"""Bytes after which a server's log starts anew. It lies in the user's home and on the user's quota."""

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def log_name(server_name: str) -> str:
    """File name of a server's log: `server.log`, for a named server `server-NAME.log`, with a digest in the place
    of a name that is no file's."""
    if not server_name:
        return "server.log"
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", server_name)
    # A dot keeps the digests apart from names that look like one.
    name = server_name if plain else "." + hashlib.sha256(server_name.encode()).hexdigest()[:16]
    return f"server-{name}.log"


def open_log(home: str, name: str, *, uid: int, gid: int) -> int:
    """A new, empty log ~/.hubgov/NAME, open for appending; the old one becomes NAME.1. May raise OSError."""
    home_fd = os.open(home, os.O_RDONLY | _FOLDER)
    try:
        made = False
        with contextlib.suppress(FileExistsError):
            os.mkdir(".hubgov", 0o700, dir_fd=home_fd)
            made = True
        folder = os.open(".hubgov", os.O_RDONLY | _FOLDER, dir_fd=home_fd)
    finally:
        os.close(home_fd)
    try:
        if made and os.fstat(folder).st_uid == os.getuid():
            os.fchown(folder, uid, gid)
        with contextlib.suppress(FileNotFoundError):
            os.rename(name, f"{name}.1", src_dir_fd=folder, dst_dir_fd=folder)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(name, flags, 0o600, dir_fd=folder)
        os.fchown(log, uid, gid)
        return log
    finally:
        os.close(folder)


def cap_log(home: str, name: str, *, uid: int, limit: int = LOG_LIMIT) -> bool:
    """Empty the log if it outgrew its limit; was it? The server appends, so it goes on writing from there."""
    try:
        home_fd = os.open(home, os.O_RDONLY | _FOLDER)
    except OSError:
        return False
    try:
        folder = os.open(".hubgov", os.O_RDONLY | _FOLDER, dir_fd=home_fd)
        try:
            # Non-blocking: the user may have put a FIFO there.
            flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            log = os.open(name, flags, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError:  # the user moved it away: theirs to move
        return False
    finally:
        os.close(home_fd)
    try:
        seen = os.fstat(log)
        ours = stat.S_ISREG(seen.st_mode) and seen.st_uid == uid and seen.st_nlink == 1
        if not ours or seen.st_size <= limit:
            return False
        os.ftruncate(log, 0)
        return True
    finally:
        os.close(log)
