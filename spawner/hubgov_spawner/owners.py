"""Whose home and uid is which: a register, beside the homes, of every user that a hub ever had here.

The hub's numbers and names are no identity. SQLite gives the highest number again once its user is deleted, a
lost database deals the numbers anew in another order, and names may be changed. So each user gets a number of
its own here, from a count that never goes back; account, uid and home follow from it and stay.

A user is known by number and time of creation in the hub's database: that record may be renamed and is the same
user. A record that isn't known gets the home of its name only when the database that knew this name is gone (none
of the users known from it is left) and the name was not deleted through the hub. Otherwise it is a new user with
a home of its own, and the old one stays for the administrator.

Homes from before there was a register have the hub's number as their name; each stays with the user who has this
number now, unless that user came after the home, or the database was lost since.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import logging
import os
import pwd
import re
import stat
import subprocess
from collections.abc import Iterator, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from hubgov import errors
from hubgov_spawner import accounts

HOMES = "homes"
REGISTER = ".owners"
_DRAFT = ".owners.new"
_NUMBERED = re.compile(r"(?:hgu)?([1-9][0-9]*)", re.ASCII)

Key = tuple[int, str]
"""Number and time of creation of a user in the hub's database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubUser:
    """A user as the hub's database has it; `created` is naive UTC in ISO 8601."""

    id: int
    name: str
    created: str

    @property
    def key(self) -> Key:
        """What stays when the user is renamed."""
        return self.id, self.created

    @property
    def created_seconds(self) -> float:
        """The time of creation in seconds since 1970."""
        return datetime.fromisoformat(self.created).replace(tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One line of the register. Of the lines with one `number` the last counts."""

    number: int
    uid: int
    home: str
    """Name of the folder below STATE/homes."""
    name: str
    user_id: int
    created: str
    database: int
    """Which of the hub's databases knew the user: 1, and one more for each that was lost."""
    retired: bool = False
    """The user was deleted: the name alone opens this home to nobody any more."""

    @property
    def key(self) -> Key:
        """The user's record in the hub's database."""
        return self.user_id, self.created

    @property
    def account(self) -> accounts.Account:
        """The account of this number."""
        return accounts.Account(name=f"hgu{self.number}", uid=self.uid, gid=self.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """The register of one state folder. Its calls block for some milliseconds and may raise OSError."""

    state_dir: str
    uid_base: int
    log: logging.Logger

    def owner_of(self, user: HubUser, living: Set[Key]) -> Owner:
        """The owner that this user is, entered if new. `living`: all users that the hub has now.

        Unavailable when the register can't be read, Invalid when there is no uid left to give.
        """
        with self._held() as folder:
            lines = _read(folder)
            now = _database_now(lines, living)
            known = self._known(lines, user, living) or self._from_before(folder, lines, user, now)
            if known is None:
                number = self._next_number(folder, lines)
                uid = accounts.account_of(number, self.uid_base).uid
                known = _owner(user, now, number=number, uid=uid, home=f"hgu{number}")
                self.log.info("Home %s is made for user %s", known.home, user.name)
            elif known.key == user.key:
                now = known.database
            else:
                self.log.warning(
                    "The hub's database was made anew: user %s gets the home %s of this name back",
                    user.name,
                    known.home,
                )
            entry = _owner(user, now, number=known.number, uid=known.uid, home=known.home)
            if _latest(lines).get(entry.number) != entry:
                _write(folder, [*lines, entry])
            return entry

    def follows_another(self, user: HubUser, living: Set[Key]) -> bool:
        """Whether this user is new here and another had the name, who was deleted or is seen to be missing."""
        with self._held() as folder:
            lines = _read(folder)
        if any(line.key == user.key for line in lines):
            return False
        named = [x for x in _latest(lines).values() if x.name == user.name and x.key not in living]
        return any(x.retired or _others_live(lines, x, living) for x in named)

    def retire(self, user: HubUser, living: Set[Key]) -> None:
        """The hub deletes this user: whoever gets the name next is somebody else, and gets another home."""
        with self._held() as folder:
            lines = _read(folder)
            now = _database_now(lines, living)
            known = self._known(lines, user, living) or self._from_before(folder, lines, user, now)
            if known is None:
                return
            entry = _owner(user, known.database, number=known.number, uid=known.uid, home=known.home, retired=True)
            _write(folder, [*lines, entry])
            self.log.warning(
                "User %s is deleted; the files stay in %s, and their uid %d is given to nobody else",
                user.name,
                os.path.join(self.state_dir, HOMES, known.home),
                known.uid,
            )

    @contextlib.contextmanager
    def _held(self) -> Iterator[int]:
        """The folder of the homes, open; one at a time, also between processes."""
        homes = os.path.join(self.state_dir, HOMES)
        os.makedirs(homes, mode=0o711, exist_ok=True)
        folder = os.open(homes, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(folder)

    def _known(self, lines: list[Owner], user: HubUser, living: Set[Key]) -> Owner | None:
        """The line of this user, or of the same name in a database that is gone; None for a new user."""
        # Also when deleted: the same record is there again only if the deletion failed or a backup was put back.
        for line in lines:
            if line.key == user.key:
                return line
        latest = _latest(lines).values()
        named = [x for x in latest if x.name == user.name and not x.retired and x.key not in living]
        if not named:
            return None
        last = max(named, key=lines.index)
        if _others_live(lines, last, living):
            self.log.warning(
                "User %s is not who had this name before: the home is a new one, the former files stay in %s",
                user.name,
                os.path.join(self.state_dir, HOMES, last.home),
            )
            return None
        return last

    def _from_before(self, folder: int, lines: list[Owner], user: HubUser, database: int) -> Owner | None:
        """The home that this user had before there was a register, as a line to be written."""
        home = str(user.id)
        taken = any(line.home == home or line.number == user.id for line in lines)
        if taken or database > 1 or home not in os.listdir(folder):
            return None
        path = os.path.join(self.state_dir, HOMES, home)
        born = _born(path)
        if born is not None and user.created_seconds > born + 1:
            self.log.warning("The home %s is older than user %s, so it is another's and stays", path, user.name)
            return None
        self.log.info("The home %s is entered for user %s", path, user.name)
        uid = accounts.account_of(user.id, self.uid_base).uid
        return _owner(user, database, number=user.id, uid=uid, home=home)

    def _next_number(self, folder: int, lines: list[Owner]) -> int:
        """A number that nobody had: not in the register, not of a home, its uid neither used nor another's."""
        found = [int(match[1]) for name in os.listdir(folder) if (match := _NUMBERED.fullmatch(name))]
        if any(name.isdecimal() for name in os.listdir(folder)):
            # From before the register: an account may be left whose home was moved away.
            found += _numbers_of_accounts(self.uid_base)
        number = max([0, *found, *(line.number for line in lines)]) + 1
        used = {line.uid for line in lines}
        while accounts.is_taken(number, self.uid_base) or self.uid_base + number in used:
            number += 1
        return number


def _owner(user: HubUser, database: int, *, number: int, uid: int, home: str, retired: bool = False) -> Owner:
    facts = {"name": user.name, "user_id": user.id, "created": user.created}
    return Owner(number=number, uid=uid, home=home, database=database, retired=retired, **facts)  # type: ignore[arg-type]


def _others_live(lines: list[Owner], missing: Owner, living: Set[Key]) -> bool:
    """Whether the database that knew the missing one is still the hub's: then he was taken out of it."""
    return any(line.database == missing.database and line.key in living for line in lines)


def _latest(lines: list[Owner]) -> dict[int, Owner]:
    return {line.number: line for line in lines}


def _database_now(lines: list[Owner], living: Set[Key]) -> int:
    """Which database the hub has: the last of which it has a user; one more than ever when it has none."""
    seen = [line.database for line in lines if line.key in living]
    return max(seen) if seen else max((line.database for line in lines), default=0) + 1


def _numbers_of_accounts(uid_base: int) -> list[int]:
    found = ((re.fullmatch(r"hgu([1-9][0-9]*)", entry.pw_name), entry.pw_uid) for entry in pwd.getpwall())
    return [int(match[1]) for match, uid in found if match and uid == uid_base + int(match[1])]


def _born(path: str) -> int | None:
    """When the folder was made, in seconds since 1970; None where the file system doesn't tell."""
    try:
        said = subprocess.run(["stat", "-c", "%W", path], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = said.stdout.strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None


# --- the file --------------------------------------------------------------------------------------------


def _read(folder: int) -> list[Owner]:
    """All lines; Unavailable when they can't be trusted: better no server than another's home."""
    try:
        fd = os.open(REGISTER, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return []
    seen = os.fstat(fd)
    if not stat.S_ISREG(seen.st_mode) or seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
        os.close(fd)
        raise _unusable("it is no file of ours alone")
    with os.fdopen(fd, encoding="utf-8") as file:
        try:
            return [_line(text) for text in file]
        except (ValueError, TypeError) as error:
            raise _unusable(str(error)) from error


def _line(text: str) -> Owner:
    found = Owner(**json.loads(text))
    kinds = {"number": int, "uid": int, "user_id": int, "database": int, "retired": bool}
    if any(type(getattr(found, n)) is not kinds.get(n, str) for n in Owner.__slots__):
        raise ValueError(f"not an owner: {text.strip()}")
    if not _NUMBERED.fullmatch(found.home):
        raise ValueError(f"not a home: {found.home}")
    return found


def _unusable(why: str) -> errors.Unavailable:
    return errors.Unavailable(
        f"the register of homes, {HOMES}/{REGISTER} in the state folder, can't be used: {why}",
        code="owners",
        hint="bring it back from a backup; without it nobody can tell whose home is which",
    )


def _write(folder: int, lines: list[Owner]) -> None:
    """The lines in place of those that are there: all or nothing, and on the disk when this returns."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_DRAFT, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(_DRAFT, flags, 0o600, dir_fd=folder), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(dataclasses.asdict(line)) + "\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
    os.rename(_DRAFT, REGISTER, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)
