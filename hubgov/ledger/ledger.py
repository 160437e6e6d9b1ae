"""The ledger as the rest sees it: open, lead, commit a unit of changes, read."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from hubgov.clock import Instant
from hubgov.core.metering import Entry
from hubgov.core.model import PolicyText
from hubgov.core.state import State
from hubgov.errors import Unavailable
from hubgov.ledger import database, leadership, reading
from hubgov.ledger.leadership import FileLock
from hubgov.ledger.reading import PolicyReader
from hubgov.ledger.writing import forget, remember, write


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The answer to a keyed request, to be given again when the key comes back."""

    principal: str
    route: str
    key: str
    digest: str
    result: str


class Ledger:
    """One database. Reading needs nothing; writing needs `lead()` first."""

    def __init__(self, url: str, read_policy: PolicyReader) -> None:
        self.url = url
        self.engine = database.connect(url)
        self._read_policy = read_policy
        path = leadership.lock_path(url)
        self._lock = FileLock(path) if path is not None else None
        self.epoch = 0
        self.seq = 0
        self.id = ""
        """What tells this ledger from every other one; known once it leads."""
        self._file: tuple[int, int] | None = None

    def upgrade(self) -> None:
        """Make or migrate the tables."""
        database.upgrade(self.engine)

    def lead(self) -> None:
        """Become the one writer, with a new epoch and tables of this version. Unavailable while another leads."""
        if self._lock is not None:
            self._lock.acquire()
        try:
            self.upgrade()  # under the lock: never while an older version still writes
            with self._writing() as connection:
                self.epoch = leadership.take_lead(connection, f"{socket.gethostname()}:{os.getpid()}")
                self.seq = leadership.last_seq(connection)
                self.id = leadership.ledger_id(connection)
            self._file = database.file_identity(self.url)
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise

    def renew(self) -> None:
        """Prolong the lead; needed on PostgreSQL at least every few seconds.

        StaleLeader too when the SQLite file is gone or another lies in its place: what is written goes nowhere.
        """
        if database.file_identity(self.url) != self._file:
            raise leadership.StaleLeader(
                "the ledger's file was removed or replaced while it was open",
                hint="put the ledger or its backup back in place, then start the service again",
            )
        with self._writing() as connection:
            leadership.renew(connection, self.epoch)

    def close(self) -> None:
        """Give the lead up and close the connections."""
        if self.epoch:
            try:
                with self._writing() as connection:
                    leadership.resign(connection, self.epoch)
            except (leadership.StaleLeader, Unavailable):
                pass  # somebody else leads already, or nobody can be told: the term runs out by itself
            self.epoch = 0
        self.engine.dispose()
        if self._lock is not None:
            self._lock.release()

    def commit(self, entries: Sequence[Entry], now: Instant, answers: Sequence[Remembered] = ()) -> None:
        """Write one unit, all or nothing, on disk when this returns. StaleLeader: nothing was written."""
        if not entries and not answers:
            return
        new_seq = self.seq + len(entries)
        with self._writing() as connection:
            leadership.fence(connection, self.epoch, self.seq, new_seq)
            write(connection, entries, epoch=self.epoch, now=now)
            for answer in answers:
                remember(connection, answer.principal, answer.route, answer.key, answer.digest, answer.result, now)
        self.seq = new_seq

    def forget_answers(self, before: Instant) -> int:
        """Remove answers kept under idempotency keys since before then, some hundred at a time; how many it were.

        For the leader: StaleLeader when another leads, and nothing is removed.
        """
        with self.reading() as connection:
            if not reading.has_answers_before(connection, before):
                return 0
        with self._writing() as connection:
            leadership.renew(connection, self.epoch)
            return forget(connection, before)

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        try:
            with self.engine.connect().execution_options(writes=True) as connection, connection.begin():
                yield connection
        except sa.exc.SQLAlchemyError as error:
            # What the database says may hold statements and other people's records: it is the cause, for the log.
            raise Unavailable("the ledger can't be written now", hint="nothing was changed; try again") from error

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A consistent view for the functions of `ledger.reading`."""
        try:
            with self.engine.connect() as connection, connection.begin():
                yield connection
        except sa.exc.SQLAlchemyError as error:
            raise Unavailable("the ledger can't be read now", hint="try again") from error

    def policy(self, version: int | None = None) -> PolicyText | None:
        """An applied policy, the newest without `version`."""
        with self.reading() as connection:
            if version is None:
                return reading.current_policy(connection, self._read_policy)
            return reading.policy_version(connection, version, self._read_policy)

    def drift(self, state: State, *, ended_since: Instant | None = None) -> dict[str, tuple[int, int]]:
        """Where the books and the live picture differ: allocation -> (Σ of its charges, what it is charged).

        Empty when all is well; totals are derived from charges and never stored, so this is their only check. It
        sums up the whole history, or with `ended_since` what lives or ended since then.
        """
        live = {str(a.id): a.milli_gpus for a in state.allocations.values() if a.charged and a.flavor is not None}
        with self.reading() as connection:
            books = reading.charge_totals(connection, ended_since=ended_since)
        both = {name: (books.get(name, 0), live.get(name, 0)) for name in books.keys() | live.keys()}
        return {name: pair for name, pair in sorted(both.items()) if pair[0] != pair[1]}

    def load(self, text: PolicyText, now: Instant) -> State:
        """The live picture, rebuilt; from here on this leader's sequence is the ledger's."""
        with self.reading() as connection:
            self.seq = leadership.last_seq(connection)
            return reading.load_state(connection, text, now)
