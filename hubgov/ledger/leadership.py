"""Who may write: one leader at a time, with an epoch that grows (semantics §12, 15).

On SQLite the right to write is an OS lock on a file beside the database, gone with the process. On PostgreSQL
it is the `leader` row, renewed on the database's own clock. On both, every commit checks epoch and sequence,
so a leader that was passed over writes nothing, whatever it believes.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from hubgov.errors import Conflict, Unavailable
from hubgov.ledger import schema

NAME = "hubgov"
LEAD_MS = 15_000
"""How long a PostgreSQL leader holds without renewing."""


class StaleLeader(Conflict):
    """This process is no longer the leader, or its picture of the ledger is behind."""

    code = "stale_leader"


class FileLock:
    """The OS lock beside a SQLite file. Held until closed, or until the process is gone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock, or Unavailable with who holds it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(fd, 64).decode(errors="replace").strip()
            os.close(fd)
            raise Unavailable(
                f"another hubgov service (process {holder or 'unknown'}) writes to this ledger",
                hint="stop it, or wait until it stands down",
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def lock_path(url: str) -> Path | None:
    """Where the OS lock of a SQLite ledger lies; None on PostgreSQL."""
    parsed = make_url(url)
    return Path(f"{parsed.database}.lock") if parsed.get_backend_name() == "sqlite" else None


def take_lead(connection: sa.Connection, holder: str) -> int:
    """The new epoch of this leader. Unavailable while another one's term runs (PostgreSQL only)."""
    table = schema.leader
    if connection.dialect.name == "postgresql":
        # Two candidates on an empty table: one inserts, the other waits here and then reads its row.
        connection.execute(sa.text("LOCK TABLE leader IN EXCLUSIVE MODE"))
    row = connection.execute(sa.select(table).where(table.c.name == NAME)).one_or_none()
    now = database_now(connection)
    if row is None:
        last = connection.execute(sa.select(sa.func.max(schema.journal.c.seq))).scalar() or 0
        first: dict[str, int | str] = {
            "name": NAME,
            "epoch": 1,
            "holder": holder,
            "until": now + LEAD_MS,
            "last_seq": last,
        }
        first["ledger_id"] = secrets.token_hex(4)
        connection.execute(table.insert(), first)
        return 1
    if connection.dialect.name == "postgresql" and row.until > now and row.holder != holder:
        raise Unavailable(f"{row.holder} leads until its term is over", hint="wait, or stop it")
    epoch: int = row.epoch + 1
    connection.execute(
        table.update().where(table.c.name == NAME).values(epoch=epoch, holder=holder, until=now + LEAD_MS)
    )
    return epoch


def renew(connection: sa.Connection, epoch: int) -> None:
    """Prolong the term; StaleLeader when another epoch leads."""
    _fenced(connection, epoch, {"until": database_now(connection) + LEAD_MS})


def resign(connection: sa.Connection, epoch: int) -> None:
    """End the term now, so that a standby need not wait for it to run out."""
    _fenced(connection, epoch, {"until": 0})


def fence(connection: sa.Connection, epoch: int, expected_seq: int, new_seq: int) -> None:
    """Move the sequence on, or StaleLeader where epoch or sequence are not what this leader knows."""
    _fenced(connection, epoch, {"last_seq": new_seq}, schema.leader.c.last_seq == expected_seq)


def ledger_id(connection: sa.Connection) -> str:
    """What tells this ledger from every other, also from one that takes its place."""
    table = schema.leader
    return str(connection.execute(sa.select(table.c.ledger_id).where(table.c.name == NAME)).scalar_one())


def last_seq(connection: sa.Connection) -> int:
    """The ledger's sequence as the last commit left it."""
    table = schema.leader
    return int(connection.execute(sa.select(table.c.last_seq).where(table.c.name == NAME)).scalar_one())


def _fenced(connection: sa.Connection, epoch: int, values: dict[str, int], *where: sa.ColumnElement[bool]) -> None:
    table = schema.leader
    statement = table.update().where(table.c.name == NAME, table.c.epoch == epoch, *where).values(**values)
    if connection.execute(statement).rowcount != 1:
        raise StaleLeader("another leader has written since", hint="rebuild from the ledger, or stand down")


def database_now(connection: sa.Connection) -> int:
    """Milliseconds by the database's own clock, so that replicas with wrong clocks agree."""
    if connection.dialect.name == "postgresql":
        query = sa.text("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)")
    else:
        query = sa.text("SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)")
    return int(connection.execute(query).scalar_one())
