"""Where a user's server lives: account, home and log of the user, by the register of homes (`owners`)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

from jupyterhub import orm
from traitlets import Enum, Integer, Unicode
from traitlets.config import LoggingConfigurable

from hubgov import errors
from hubgov_spawner import accounts, owners
from hubgov_spawner.isolation import Isolation, Mode
from hubgov_spawner.standing import goes_with_user

# What is called by super() is the hub's spawner.
_Base: Any = LoggingConfigurable


class Housing(_Base):  # type: ignore[misc]
    """Put before a spawner class: it then knows which account and home its user has."""

    state_dir = Unicode(
        "/var/lib/hubgov",
        help="""Folder of hubgov's own files; the users' homes are made in it as homes/hguN.

        With isolation=root it may and should be open to root only: a box binds the home from within.
        """,
    ).tag(config=True)

    uid_base = Integer(
        61000,
        help="""A user's uid is this plus the user's number in the register of homes, and so is the gid.

        Choose it before the first server starts and so that the range above is free, also of uids that
        systemd gives out (61184-65519); files keep their owner's number. With isolation=root the accounts
        hguN are made as needed; with userns the numbers are seen inside the box only.
        """,
    ).tag(config=True)

    isolation = Enum(
        ("auto", "root", "userns", "none"),
        "auto",
        help="""How users are kept apart.

        root: bubblewrap, and a system uid for each user; needs the hub to be root. userns: bubblewrap with
        user namespaces; needs no root, but all users share the hub's uid, so that namespaces are the only
        wall. none: no box; code has all the rights of the hub. auto: the first of these that works; if that
        is none, only one hub user is served, for which no box is needed.
        """,
    ).tag(config=True)

    home_dir = ""
    """The home on the host; empty before the first start. In the hub's database, as it is looked at while the
    server runs."""

    def hub_users(self) -> dict[int, tuple[str, str]]:
        """All users of the hub: number -> (name, time of creation), as its database has them.

        Asked for by columns: an object that this process made keeps what it was made with.
        """
        rows = self.user.db.query(orm.User.id, orm.User.name, orm.User.created)
        return {row.id: (row.name, row.created.isoformat() if row.created else "") for row in rows}

    def hub_files(self) -> list[str]:
        """The file of the hub's database, where it is one."""
        url = self.user.db.get_bind().url
        is_file = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
        return [os.path.abspath(url.database)] if is_file else []

    async def _account_and_home(self, found: Isolation) -> tuple[accounts.Account, str]:
        """The account that the server has and the home it gets, both made if missing."""
        # Read here: the hub's database session must not be touched from another thread.
        register, user, living = self._register(), *self._hub_user()
        account, self.home_dir = await asyncio.to_thread(self._housed, found, register, user, living)
        return account, self.home_dir

    def _housed(
        self, found: Isolation, register: owners.Register, user: owners.HubUser, living: set[owners.Key]
    ) -> tuple[accounts.Account, str]:
        owner = register.owner_of(user, living)
        account = owner.account
        if found.mode is Mode.SINGLE_USER:
            account = accounts.own_account()
            if self.isolation == "auto" and accounts.has_other_homes(self.state_dir, owner.home):
                raise errors.Unavailable(
                    f"users can't be kept apart on this machine: {found.reason}",
                    code="isolation",
                    hint="install bubblewrap, or accept it with isolation='none'",
                )
        uid, gid = os.getuid(), os.getgid()
        if found.mode is Mode.ROOT:
            accounts.ensure_system_account(account)
            uid, gid = account.uid, account.gid
        return account, accounts.prepare_home(self.state_dir, owner.home, uid=uid, gid=gid)

    async def delete_forever(self) -> None:
        """With the user's first server goes the user: the home is kept, and falls to nobody. Not while another
        server of his is active: the hub then keeps the user."""
        if goes_with_user(self):
            register, user, living = self._register(), *self._hub_user()
            await asyncio.to_thread(register.retire, user, living)
        removed = super().delete_forever()
        if removed is not None:
            await removed

    async def predecessor_left_at(self) -> float | None:
        """When somebody else of this name was gone at the latest, in seconds since 1970: for who has it now, and
        hasn't been here yet. None for everybody else."""
        register, user, living = self._register(), *self._hub_user()
        follows = await asyncio.to_thread(register.follows_another, user, living)
        return user.created_seconds if follows else None

    def _register(self) -> owners.Register:
        return owners.Register(state_dir=self.state_dir, uid_base=self.uid_base, log=self.log)

    def _hub_user(self) -> tuple[owners.HubUser, set[owners.Key]]:
        """This user, and all that the hub has, as the register needs them."""
        users = self.hub_users()
        name, created = users.get(self.user.id, ("", ""))
        if not created:
            raise errors.Unavailable(
                f"the hub's database doesn't say when user {self.user.name} was made",
                code="owners",
                hint="restart the hub: it fills that in",
            )
        living = {(number, made) for number, (_, made) in users.items()}
        return owners.HubUser(id=self.user.id, name=name, created=created), living

    # --- state ---

    def get_state(self) -> dict[str, Any]:
        """With the home, for a hub that was restarted."""
        state: dict[str, Any] = super().get_state()
        return state | ({"home": self.home_dir} if self.home_dir else {})

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up what get_state gave."""
        super().load_state(state)
        self.home_dir = state.get("home", "")

    def clear_state(self) -> None:
        """Forget the home of the server that ended."""
        super().clear_state()
        self.home_dir = ""

    # --- the log ---

    def _open_log(self, home: str) -> int:
        owner = os.stat(home)
        try:
            return accounts.open_log(home, accounts.log_name(self.name), uid=owner.st_uid, gid=owner.st_gid)
        except OSError as error:  # the user put something there; not a reason to lock them out
            self.log.warning("Server of %s runs without a log: %s", self._log_name, error)
            return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def _cap_log(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            uid = os.stat(self.home_dir).st_uid
            if accounts.cap_log(self.home_dir, accounts.log_name(self.name), uid=uid):
                self.log.info("Server of %s: its log was full and starts anew", self._log_name)
