"""hubgov_spawner.owners: whose home is which, over deletions, renames, lost databases and older folders."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hubgov_spawner import accounts, owners
from hubgov_spawner.owners import HubUser, Owner, Register

from hubgov import errors


class Hub:
    """The users of a hub's database, numbered as SQLite does: the highest number is given again."""

    def __init__(self, state: Path, uid_base: int = 61000) -> None:
        self.register = Register(state_dir=str(state), uid_base=uid_base, log=logging.getLogger("test"))
        self.users: dict[str, HubUser] = {}
        self._made = datetime.now(UTC).replace(tzinfo=None)

    def make(self, *names: str) -> None:
        for name in names:
            number = max((user.id for user in self.users.values()), default=0) + 1
            self._made += timedelta(microseconds=1)
            self.users[name] = HubUser(id=number, name=name, created=self._made.isoformat())

    def rename(self, old: str, new: str) -> None:
        user = self.users.pop(old)
        self.users[new] = HubUser(id=user.id, name=new, created=user.created)

    def delete(self, name: str, *, told: bool = True) -> None:
        if told:
            self.register.retire(self.users[name], self.living())
        del self.users[name]

    def lose(self) -> None:
        """The database is gone; the next one begins with nobody."""
        self.users = {}

    def living(self) -> set[owners.Key]:
        return {user.key for user in self.users.values()}

    def starts(self, name: str) -> Owner:
        """The user's server starts: whose home it gets."""
        owner = self.register.owner_of(self.users[name], self.living())
        uid, gid = os.getuid(), os.getgid()
        accounts.prepare_home(self.register.state_dir, owner.home, uid=uid, gid=gid)
        return owner


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path)


def same(one: Owner, other: Owner) -> bool:
    return (one.number, one.uid, one.home) == (other.number, other.uid, other.home)


def apart(*found: Owner) -> bool:
    """Neither number nor uid nor home is in there twice."""
    return all(len({getattr(owner, what) for owner in found}) == len(found) for what in ("number", "uid", "home"))


def test_a_user_keeps_home_and_uid(hub: Hub) -> None:
    hub.make("amy", "bo")
    bo, amy = hub.starts("bo"), hub.starts("amy")
    assert apart(amy, bo)
    assert (bo.home, bo.uid, bo.account.name) == ("hgu1", 61001, "hgu1")
    assert hub.starts("amy") == amy
    assert hub.starts("bo") == bo


def test_who_gets_a_deleted_users_number_gets_nothing_else_of_it(hub: Hub) -> None:
    hub.make("amy", "bo")
    amy, bo = hub.starts("amy"), hub.starts("bo")
    hub.delete("bo")
    hub.make("lena")
    assert hub.users["lena"].id == 2
    assert apart(amy, bo, hub.starts("lena"))


@pytest.mark.parametrize("told", [True, False])
def test_a_deleted_user_of_the_same_name_is_another(told: bool, hub: Hub) -> None:
    hub.make("amy", "bo")
    amy, bo = hub.starts("amy"), hub.starts("bo")
    hub.delete("bo", told=told)
    hub.make("bo")
    second = hub.starts("bo")
    assert apart(amy, bo, second)
    assert same(hub.starts("bo"), second)


def test_a_lost_database_gives_each_the_home_of_the_name_and_no_other(hub: Hub) -> None:
    hub.make("amy", "bo", "lena")
    before = {name: hub.starts(name) for name in hub.users}
    hub.lose()
    hub.make("lena", "zed", "bo", "amy")
    after = {name: hub.starts(name) for name in ("zed", "amy", "lena", "bo")}
    for name, owner in before.items():
        assert same(after[name], owner)
    assert apart(*after.values())


def test_a_name_that_was_deleted_is_nobodys_after_the_loss_of_the_database(hub: Hub) -> None:
    hub.make("amy", "bo")
    amy, bo = hub.starts("amy"), hub.starts("bo")
    hub.delete("bo")
    hub.lose()
    hub.make("bo", "amy")
    assert apart(amy, bo, hub.starts("bo"))
    assert same(hub.starts("amy"), amy)


def test_deleted_in_a_new_database_before_the_first_start_there(hub: Hub) -> None:
    hub.make("amy", "bo")
    bo = hub.starts("bo")
    hub.lose()
    hub.make("bo", "amy")
    hub.delete("bo")
    hub.make("bo")
    assert apart(bo, hub.starts("bo"))


def test_a_database_from_a_backup_brings_all_back(hub: Hub) -> None:
    hub.make("amy", "bo")
    amy, bo = hub.starts("amy"), hub.starts("bo")
    kept = dict(hub.users)
    hub.lose()
    hub.make("bo", "amy", "lena")
    assert same(hub.starts("amy"), amy)
    lena = hub.starts("lena")
    hub.delete("bo")
    hub.users = kept
    assert same(hub.starts("amy"), amy)
    assert same(hub.starts("bo"), bo)
    assert apart(amy, bo, lena)


def test_a_renamed_user_keeps_the_home_and_the_next_of_the_name_gets_none(hub: Hub) -> None:
    hub.make("amy")
    amy = hub.starts("amy")
    hub.rename("amy", "amelie")
    hub.make("amy")
    second = hub.starts("amy")
    assert apart(amy, second)
    assert same(hub.starts("amelie"), amy)
    hub.lose()
    hub.make("amy", "amelie")
    assert same(hub.starts("amelie"), amy)
    assert same(hub.starts("amy"), second)


def test_a_deletion_that_failed_takes_nothing_away(hub: Hub) -> None:
    hub.make("amy")
    amy = hub.starts("amy")
    hub.register.retire(hub.users["amy"], hub.living())
    assert same(hub.starts("amy"), amy)


# --- folders from before there was a register ----------------------------------------------------------------


def older(state: Path, *numbers: int) -> None:
    for number in numbers:
        (state / "homes" / str(number)).mkdir(parents=True, mode=0o700)


@pytest.fixture
def born(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """When homes were made, for file systems that don't tell or where it can't be set."""

    def at(seconds: int | None) -> None:
        monkeypatch.setattr(owners, "_born", lambda path: seconds)

    return at


@pytest.mark.parametrize("seconds", [None, 2**33])
def test_an_older_home_stays_with_its_owner(
    seconds: int | None, tmp_path: Path, hub: Hub, born: Callable[[int | None], None]
) -> None:
    born(seconds)
    older(tmp_path, 2, 9)
    hub.make("amy", "bo")
    amy, bo = hub.starts("amy"), hub.starts("bo")
    assert (bo.home, bo.uid) == ("2", 61002)
    assert amy.home == f"hgu{amy.number}"
    assert amy.number > 9
    hub.delete("bo")
    hub.make("lena")
    assert apart(amy, bo, hub.starts("lena"))
    assert same(hub.starts("amy"), amy)


def test_an_older_home_is_nobodys_who_came_after_it(
    tmp_path: Path, hub: Hub, born: Callable[[int | None], None]
) -> None:
    born(10**9)
    older(tmp_path, 1)
    hub.make("lena")
    assert hub.starts("lena").home.startswith("hgu")


def test_an_older_home_is_nobodys_once_the_database_is_lost(
    tmp_path: Path, hub: Hub, born: Callable[[int | None], None]
) -> None:
    born(None)
    older(tmp_path, 1, 2)
    hub.make("amy", "bo")
    amy = hub.starts("amy")
    hub.lose()
    hub.make("zed", "lena", "amy")
    assert apart(amy, hub.starts("lena"), hub.starts("zed"))
    assert hub.starts("lena").home.startswith("hgu")
    assert same(hub.starts("amy"), amy)


def test_deleting_the_owner_of_an_older_home_leaves_it_to_nobody(
    tmp_path: Path, hub: Hub, born: Callable[[int | None], None]
) -> None:
    born(None)
    older(tmp_path, 1)
    hub.make("amy")
    hub.delete("amy")
    hub.make("lena")
    assert hub.users["lena"].id == 1
    assert hub.starts("lena").home.startswith("hgu")


def test_when_a_folder_was_made(tmp_path: Path) -> None:
    born = owners._born(str(tmp_path))
    assert born is None or abs(born - tmp_path.stat().st_mtime) < 3600
    assert owners._born(str(tmp_path / "none")) is None


# --- numbers -------------------------------------------------------------------------------------------------


def test_the_count_goes_on_when_the_register_is_lost(tmp_path: Path, hub: Hub) -> None:
    hub.make("amy", "bo")
    found = [hub.starts("amy"), hub.starts("bo")]
    (tmp_path / "homes" / owners.REGISTER).unlink()
    assert apart(*found, hub.starts("bo"), hub.starts("amy"))


def test_numbers_whose_uid_is_special_or_anothers_are_left_out(tmp_path: Path) -> None:
    hub = Hub(tmp_path, uid_base=60000)
    (tmp_path / "homes" / "hgu5533").mkdir(parents=True)
    hub.make("amy", "bo")
    given = [hub.starts("amy").uid, hub.starts("bo").uid]
    assert given == [65536, 65537]
    other = Hub(tmp_path, uid_base=59999)  # another base must not give out what was given
    other.users = hub.users
    assert other.starts("amy").uid == 65536
    other.make("lena")
    assert other.starts("lena").uid not in given
    with pytest.raises(errors.Invalid, match="uid"):
        Hub(tmp_path / "other", uid_base=5).register.owner_of(hub.users["amy"], set())


def test_many_at_once_get_a_number_each(hub: Hub) -> None:
    names = [f"u{number}" for number in range(24)]
    hub.make(*names)
    with ThreadPoolExecutor(8) as pool:
        assert apart(*pool.map(hub.starts, names))


# --- the file ------------------------------------------------------------------------------------------------


def test_the_register_is_ours_alone_and_forgets_nothing(tmp_path: Path, hub: Hub) -> None:
    hub.make("amy", "bo")
    hub.starts("amy")
    hub.starts("bo")
    hub.starts("bo")
    hub.delete("bo")
    path = tmp_path / "homes" / owners.REGISTER
    assert path.stat().st_mode & 0o7777 == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["name"], line["retired"]) for line in lines] == [("amy", False), ("bo", False), ("bo", True)]
    assert sorted(os.listdir(tmp_path / "homes")) == [owners.REGISTER, "hgu1", "hgu2"]


BROKEN = {
    "cut off": lambda path: path.write_text(path.read_text()[:-9]),
    "of something else": lambda path: path.write_text('{"number": 1}\n'),
    "with a home elsewhere": lambda path: path.write_text(path.read_text().replace('"hgu1"', '"../x"')),
    "with a wrong kind": lambda path: path.write_text(path.read_text().replace("61001", '"61001"')),
    "open to others": lambda path: path.chmod(0o644),
    "a folder": lambda path: (path.unlink(), path.mkdir(mode=0o700)),
}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN.keys())
def test_a_register_that_cant_be_trusted_opens_no_home(
    damage: Callable[[Path], object], tmp_path: Path, hub: Hub
) -> None:
    hub.make("amy")
    hub.starts("amy")
    damage(tmp_path / "homes" / owners.REGISTER)
    with pytest.raises(errors.Unavailable, match="register"):
        hub.starts("amy")
    with pytest.raises(errors.Unavailable, match="register"):
        hub.delete("amy")


def test_what_an_ended_write_left_is_no_hindrance(tmp_path: Path, hub: Hub) -> None:
    hub.make("amy")
    (tmp_path / "homes").mkdir()
    (tmp_path / "homes" / ".owners.new").write_text('{"number"')
    amy = hub.starts("amy")
    assert same(hub.starts("amy"), amy)
