"""Every setting of the service in one place. What the rules are is not here but in the policy file."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path
from typing import Any

from traitlets import Enum, Float, Integer, Unicode, default
from traitlets.config import Configurable

DATABASE_VARIABLE = "HUBGOV_DATABASE_URL"


class HubGov(Configurable):
    """Settings of hubgov, as `c.HubGov.… = …` in jupyterhub_config.py or `--HubGov.…=…` of `hubgov service`."""

    state_dir = Unicode(
        help="""Folder of the ledger, the tokens and the homes of boxed users: /var/lib/hubgov as root, else
        hubgov-state in the folder that the hub runs in, beside its own database. Owned by the hub's user, mode
        0700, on a local disk: SQLite is refused on network file systems.""",
    ).tag(config=True)

    database_url = Unicode(
        help="""The ledger: `sqlite:///PATH` (default: hubgov.sqlite in the state folder) or
        `postgresql+psycopg://…`.""",
    ).tag(config=True)

    policy_file = Unicode(
        help="""Policy to begin with, read once when the ledger has none yet; later edits go through
        `hubgov policy apply`. Empty: a sample policy cut out of this box's devices.""",
    ).tag(config=True)

    devices = Enum(
        ("auto", "real", "simulated"),
        "auto",
        help="""auto: the real ones where the driver lists any, else simulated ones. A box with real cards should
        say `real`, so that a broken driver never turns into made-up devices.""",
    ).tag(config=True)

    simulated_count = Integer(6, min=0, max=1024, help="How many devices to make up when they are simulated.").tag(
        config=True
    )

    node_name = Unicode(help="Name of this machine as a node; its host name by default.").tag(config=True)

    service_port = Integer(
        8083, min=1, max=65535, help="Loopback port that the service listens on; the hub's proxy leads there."
    ).tag(config=True)

    clock_rate = Integer(
        1,
        min=1,
        max=600,
        help="""How many seconds of policy time pass in one real second. Above 1 for demonstrations only: every
        surface says so.""",
    ).tag(config=True)

    changes_at_once = Integer(
        60,
        min=1,
        help="""How many changes one user may ask for at once. Those of his notebooks' tokens count for themselves;
        the spawner and services of admins are not limited.""",
    ).tag(config=True)

    changes_per_second = Float(5.0, min=0.01, help="How many changes one user may ask for in the long run.").tag(
        config=True
    )

    timezone = Unicode(
        "UTC", help="Time zone of the sample policy, such as Asia/Shanghai. A policy file names its own."
    ).tag(config=True)

    isolation = Enum(
        ("auto", "root", "userns", "none"),
        "auto",
        help="How users' servers are kept apart; see BoxedSpawner.isolation.",
    ).tag(config=True)

    log_level = Enum(("DEBUG", "INFO", "WARNING", "ERROR"), "INFO", help="What the service logs.").tag(config=True)

    @default("state_dir")
    def _default_state_dir(self) -> str:
        return "/var/lib/hubgov" if os.geteuid() == 0 else os.path.abspath("hubgov-state")

    @default("database_url")
    def _default_database_url(self) -> str:
        given = os.environ.get(DATABASE_VARIABLE)
        return given or f"sqlite:///{Path(self.state_dir).resolve() / 'hubgov.sqlite'}"

    @default("node_name")
    def _default_node_name(self) -> str:
        return socket.gethostname()

    def arguments(self) -> list[str]:
        """The settings as arguments of `hubgov service`: all but the database's address, which may hold a
        password and goes through the environment (`DATABASE_VARIABLE`)."""
        names = [name for name in self.trait_names(config=True) if name != "database_url"]
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        return [f"--HubGov.{name}={value}" for name, value in sorted(given.items())]


def private_folder(path: Path) -> Path:
    """The folder, made with mode 0700 if it wasn't there; PermissionError when it is somebody else's."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to another user; hubgov keeps its ledger and tokens there")
    path.chmod(0o700)
    return path


def site_of(state_dir: str) -> str:
    """What tells the services of one state folder from others', without telling where it is."""
    return hashlib.sha256(os.path.realpath(state_dir).encode()).hexdigest()[:16]
