"""The connection to SQLite or PostgreSQL, set up so that a commit that returned is on disk."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import make_url

from hubgov.errors import Invalid, Unavailable

NETWORK_FILE_SYSTEMS = frozenset(
    {"9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "gfs", "gfs2", "glusterfs"}
    | {"gpfs", "juicefs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb2"}
    | {"smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "wekafs"}
)
"""Shared between machines, also a virtual machine's view of its host's disks, and shared disks."""
LOCAL_FUSE = frozenset(
    {"fuse.bcachefs", "fuse.btrfs", "fuse.cryfs", "fuse.encfs", "fuse.exfat", "fuse.ext2", "fuse.ext3", "fuse.ext4"}
    | {"fuse.fuse-overlayfs", "fuse.gocryptfs", "fuse.mergerfs", "fuse.ntfs-3g", "fuse.securefs", "fuse.zfs"}
)
"""File systems in user space that lie on this machine's own disks; any other may be anywhere."""


_ESCAPE = re.compile(r"\\([0-7]{3})")
"""Blanks and backslashes in the names of mounts."""


def connect(url: str) -> sa.Engine:
    """An engine on the database at `url`. Invalid for an unsupported kind or SQLite on a network file system.

    SQLite runs in WAL mode with FULL sync, and every write transaction takes the write lock when it begins,
    so that two writers queue up instead of failing half-way. Errors never show the values of a statement.
    """
    kind = make_url(url).get_backend_name()
    if kind == "postgresql":
        return sa.create_engine(url, pool_pre_ping=True, isolation_level="READ COMMITTED", hide_parameters=True)
    if kind != "sqlite":
        raise Invalid(f"{kind} is not a supported database", hint="use sqlite:///PATH or postgresql+psycopg://…")
    path = make_url(url).database
    if not path or path == ":memory:":
        raise Invalid("the ledger needs a file, not SQLite in memory", hint="use sqlite:///PATH")
    _refuse_network_file_system(Path(path))
    engine = sa.create_engine(url, connect_args={"timeout": 10}, hide_parameters=True)
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin when we say so, see _begin_sqlite
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _refuse_network_file_system(path: Path) -> None:
    """WAL needs shared memory between processes, which network file systems don't give: refuse them."""
    kind = file_system_of(path.parent)
    if on_a_network(kind):
        raise Invalid(
            f"{path.parent} is on a network file system, or one that may be ({kind}); SQLite would lose data there",
            hint="put the state folder on a local disk, or use PostgreSQL",
        )


def on_a_network(kind: str) -> bool:
    """Whether a file system of that type may be shared with another machine."""
    in_user_space = kind == "fuse" or kind.startswith("fuse.")
    return kind in NETWORK_FILE_SYSTEMS or (in_user_space and kind not in LOCAL_FUSE)


def file_system_of(folder: Path) -> str:
    """The type of the file system that a folder lies on, from /proc/mounts; empty where that can't be told."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return mounted_there(mounts, os.path.realpath(folder))


def mounted_there(mounts: list[str], real: str) -> str:
    """The type of the file system that a real path lies on, by the lines of /proc/mounts: the innermost mount,
    the last where several lie on one another."""
    best, kind = "", ""
    for line in mounts:
        _, point, type_, *_ = line.split(" ")
        point = _ESCAPE.sub(lambda m: chr(int(m[1], 8)), point)
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, type_
    return kind


def file_identity(url: str) -> tuple[int, int] | None:
    """(device, inode) of a SQLite ledger's file; None when it isn't there, and on PostgreSQL."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return None
    try:
        found = os.stat(parsed.database)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def upgrade(engine: sa.Engine, revision: str = "head") -> None:
    """Bring the database's tables to the newest version. Safe to run again."""
    config = Config()
    config.set_main_option("script_location", "hubgov.ledger:migrations")
    try:
        with engine.connect().execution_options(writes=True) as connection, connection.begin():
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    except sa.exc.OperationalError as error:
        raise Unavailable(
            f"the ledger can't be opened: {error.orig}", hint="check the path and its rights"
        ) from error
