"""What `hubgov doctor` looks at, as plain facts: gathered once, with no change to anything.

The checks (`checks`) are functions of these facts alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory
from hubgov_spawner import isolation
from sqlalchemy.engine import make_url

from hubgov.core.policy import Policy
from hubgov.demo.proxy import chp, traefik
from hubgov.errors import HubgovError, Unavailable
from hubgov.joining import finding
from hubgov.joining.finding import Devices, Running
from hubgov.joining.looking import Seen, look
from hubgov.ledger.database import file_system_of, on_a_network
from hubgov.policy import load

ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSeen:
    """The ledger's database. `trouble` says why it can't be read; the revisions are Alembic's."""

    shown: str = ""
    """Its address without a password."""
    there: bool = False
    trouble: str = ""
    revision: str = ""
    head: str = ""
    damage: str = ""
    policy_text: str = ""
    newest_at: int | None = None
    """The newest entry of the journal, in milliseconds of this epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen:
    """A file or folder and who may read it; `mode` is None where it isn't there."""

    path: str
    mode: int | None = None
    uid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything that the checks are about."""

    python: tuple[int, int] = (3, 11)
    jupyterhub: str = ""
    hubgov: str = ""
    config: str = ""
    config_trouble: str = ""
    seen: Seen = field(default_factory=Seen)
    hub: Running | None = None
    hub_answers: bool = False
    health: Mapping[str, Any] | None = None
    """What the service says of itself; None while none answers."""
    port_holder: str = ""
    """What listens on the service's port in its place."""
    ledger: LedgerSeen = field(default_factory=LedgerSeen)
    policy: Policy | None = None
    policy_problems: Sequence[str] = ()
    devices: Devices | None = None
    nvidia_nodes: int = 0
    """How many /dev/nvidiaN there are."""
    isolation: str = ""
    isolation_why: str = ""
    proxy: str = ""
    """The version of the proxy that is installed, as it says it; empty for none."""
    token: FileSeen = field(default_factory=lambda: FileSeen(path=""))
    folder: FileSeen = field(default_factory=lambda: FileSeen(path=""))
    me: int = 0
    lab: str = ""
    """What is missing for JupyterLab; empty when all is there."""
    now_ms: int = 0
    free_mib: int = 10**6
    network_disk: str = ""
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    users: Sequence[str] = ()


def gather(given: Path | None) -> Scene:
    """Look at everything. What isn't there is told by the checks, never raised."""
    try:
        config = finding.config_file(given)
    except HubgovError as error:
        return _of_this_machine(config_trouble=error.message)
    if not config.is_file():
        return _of_this_machine(config=str(config), config_trouble=f"{config} isn't there")
    hubs = finding.running(config)
    hub = hubs[0] if hubs else None
    folder = hub.folder if hub else config.resolve().parent
    seen = look(config, folder)
    if seen.trouble:
        where = f"line {seen.line}: " if seen.line else ""
        return _of_this_machine(config=str(config), config_trouble=f"{where}{seen.trouble}", hub=hub)
    state = folder / str(seen.settings.get("state_dir", ""))
    ledger = _ledger(str(seen.settings.get("database_url", "")))
    policy, problems = _policy(ledger, str(seen.settings.get("policy_file", "")))
    port = int(seen.settings.get("service_port", 8083))
    health = _health(port, seen.base_url)
    mode, why = _isolation(str(seen.settings.get("isolation", "auto"))) if seen.boxed else ("", "")
    return _of_this_machine(
        config=str(config),
        seen=seen,
        hub=hub,
        hub_answers=_hub_answers(seen),
        health=health,
        port_holder="" if health is not None else _listener(port),
        ledger=ledger,
        policy=policy,
        policy_problems=problems,
        devices=finding.devices(str(seen.settings.get("devices", "auto"))),
        isolation=mode,
        isolation_why=why,
        token=_file(state / "spawner.token"),
        folder=_file(state),
        free_mib=_free_mib(state),
        network_disk=_network_disk(state),
        groups=finding.groups_of(seen, folder),
        users=_users(seen, folder),
    )


def _of_this_machine(**facts: Any) -> Scene:
    return Scene(
        python=sys.version_info[:2],
        jupyterhub=_version("jupyterhub"),
        hubgov=_version("hubgov"),
        proxy=_proxy(),
        lab=_lab(),
        nvidia_nodes=len([name for name in os.listdir("/dev") if name.removeprefix("nvidia").isdigit()]),
        me=os.geteuid(),
        now_ms=round(time.time() * 1000),
        **facts,
    )


def _isolation(wanted: str) -> tuple[str, str]:
    """(mode, why): tried as the spawner tries it. The mode is `broken` where no server could start."""
    try:
        found = isolation.detect(wanted)
    except Unavailable as error:
        return "broken", error.message
    return found.mode.value, found.reason


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _proxy() -> str:
    if node := chp():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=False)
            return f"configurable-http-proxy {said.stdout.strip()}"
    if old := shutil.which("configurable-http-proxy"):
        return f"old {old}"
    return "traefik" if traefik() else ""


def _lab() -> str:
    """What a single-user server lacks in this environment."""
    if importlib.util.find_spec("hubgov_lab") is None:
        return "hubgov_lab"
    if not Path(sys.prefix, "share", "jupyter", "labextensions", "hubgov-lab", "package.json").exists():
        return "share/jupyter/labextensions/hubgov-lab"
    if not Path(sys.prefix, "etc", "jupyter", "jupyter_server_config.d", "hubgov_lab.json").exists():
        return "etc/jupyter/jupyter_server_config.d/hubgov_lab.json"
    return ""


def _hub_answers(seen: Seen) -> bool:
    for port in (seen.hub_port, seen.port):
        with contextlib.suppress(httpx.HTTPError, ValueError):
            url = f"http://127.0.0.1:{port}{seen.base_url}hub/api/"
            if httpx.get(url, timeout=ANSWER_SECONDS, trust_env=False).status_code == 200:
                return True
    return False


def _health(port: int, base_url: str) -> Mapping[str, Any] | None:
    with contextlib.suppress(httpx.HTTPError, ValueError):
        url = f"http://127.0.0.1:{port}{base_url}services/hubgov/health"
        found = httpx.get(url, timeout=ANSWER_SECONDS, trust_env=False).json()
        return found if isinstance(found, dict) and "version" in found else None
    return None


def _listener(port: int) -> str:
    with socket.socket() as probe:
        probe.settimeout(1)
        return "" if probe.connect_ex(("127.0.0.1", port)) else f"127.0.0.1:{port}"


def _file(path: Path) -> FileSeen:
    try:
        seen = path.lstat()
    except OSError:
        return FileSeen(path=str(path))
    return FileSeen(path=str(path), mode=stat.S_IMODE(seen.st_mode), uid=seen.st_uid)


def _free_mib(path: Path) -> int:
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    seen = os.statvfs(there)
    return seen.f_bavail * seen.f_frsize // 2**20


def _network_disk(path: Path) -> str:
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    kind = file_system_of(there)
    return kind if on_a_network(kind) else ""


def _ledger(url: str) -> LedgerSeen:
    """The database, read only: nothing is made, migrated or locked."""
    try:
        parsed = make_url(url)
    except sa.exc.ArgumentError:
        return LedgerSeen(trouble="c.HubGov.database_url is no address")
    shown, kind = parsed.render_as_string(hide_password=True), parsed.get_backend_name()
    if kind == "sqlite":
        path = Path(parsed.database or "")
        if not path.is_file():
            return LedgerSeen(shown=shown, head=_head())
        # Without a log beside it nobody has it open: read so, SQLite makes no file of its own either.
        still = "" if Path(f"{path}-wal").exists() else "&immutable=1"
        url = f"sqlite:///file:{quote(str(path))}?mode=ro{still}&uri=true"
    try:
        engine = sa.create_engine(url, hide_parameters=True)
        with contextlib.closing(engine.connect()) as connection:
            return LedgerSeen(shown=shown, there=True, head=_head(), **_contents(connection, kind))
    except (sa.exc.SQLAlchemyError, ImportError, sqlite3.Error) as error:
        why = str(getattr(error, "orig", None) or error).splitlines()[0]
        return LedgerSeen(shown=shown, there=True, head=_head(), trouble=why)


def _contents(connection: sa.Connection, kind: str) -> dict[str, Any]:
    tables = sa.inspect(connection).get_table_names()
    if "alembic_version" not in tables:
        return {}
    damage = connection.scalar(sa.text("PRAGMA quick_check(1)")) if kind == "sqlite" else "ok"
    text = newest = None
    if "policy" in tables:
        text = connection.scalar(sa.text("select text from policy order by version desc limit 1"))
    if "journal" in tables:
        newest = connection.scalar(sa.text("select at from journal order by seq desc limit 1"))
    return {
        "revision": str(connection.scalar(sa.text("select version_num from alembic_version")) or ""),
        "damage": "" if damage == "ok" else str(damage),
        "policy_text": str(text or ""),
        "newest_at": int(newest) if newest is not None else None,
    }


def _head() -> str:
    config = Config()
    config.set_main_option("script_location", "hubgov.ledger:migrations")
    return ScriptDirectory.from_config(config).get_current_head() or ""


def _policy(ledger: LedgerSeen, file: str) -> tuple[Policy | None, Sequence[str]]:
    """The policy in force, else the one to begin with; its errors."""
    text, name = ledger.policy_text, "the policy in force"
    if not text and file:
        name = file
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return None, [f"{file}: {error}"]
    if not text:
        return None, ()
    loaded = load(text, name=name)
    return loaded.policy, [str(problem) for problem in loaded.errors]


def _users(seen: Seen, folder: Path) -> list[str]:
    """The hub's users as its database has them, where that is a file one may read."""
    url = urlsplit(seen.db_url)
    if not url.scheme.startswith("sqlite") or not url.path.strip("/"):
        return []
    path = folder / url.path.removeprefix("/")
    with contextlib.suppress(sqlite3.Error):
        database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=2)
        with contextlib.closing(database):
            return sorted(str(row[0]) for row in database.execute("select name from users"))
    return []
