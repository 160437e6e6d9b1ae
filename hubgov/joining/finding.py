"""Where the hub's configuration is, which hub runs with it, what groups it has, which devices there are."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import socket
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import psutil

from hubgov.clock import SystemClock
from hubgov.errors import NotFound
from hubgov.joining.looking import Seen
from hubgov.policy.sample import Device
from hubgov.telemetry.detect import choose_probe
from hubgov.telemetry.simulated import SimulatedModel

CONFIG = "jupyterhub_config.py"
_USUAL = (Path("/etc/jupyterhub"), Path("/srv/jupyterhub"))
DRIVER_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A hub that runs on this machine: its process, its folder, its interpreter and the configuration it read."""

    pid: int
    uid: int
    folder: Path
    program: str
    config: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """What there is to govern. `why` tells how it was found out."""

    found: Sequence[Device]
    simulated: bool
    why: str


def config_file(given: Path | None) -> Path:
    """The configuration: the one given, else of this folder, of /etc/jupyterhub, or of a hub that runs. NotFound
    when there is none of them; one that is given needn't be there yet."""
    if given is not None:
        return given.absolute()
    for folder in (Path.cwd(), *_USUAL):
        with contextlib.suppress(PermissionError):
            if (folder / CONFIG).is_file():
                return folder / CONFIG
    if hubs := running():
        return hubs[0].config
    raise NotFound(
        f"no {CONFIG} in this folder, in /etc/jupyterhub or of a hub that runs",
        hint=f"name it: --config FILE; a new one is made with --config ./{CONFIG}",
    )


def running(config: Path | None = None) -> list[Running]:
    """The hubs of this machine that one may look at; with `config`, those that read it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError, ValueError):
            words = process.cmdline()
            if not _is_hub(words):
                continue
            folder = Path(process.cwd())
            path = (folder / (_argument(words) or CONFIG)).resolve()
            if path.is_file() and (config is None or path == config.resolve()):
                found.append(
                    Running(pid=process.pid, uid=process.uids().real, folder=folder, program=words[0], config=path)
                )
    return found


def _is_hub(words: Sequence[str]) -> bool:
    """`jupyterhub`, `python .../jupyterhub` or `python -m jupyterhub`."""
    head = words[:3]
    return any(Path(word).name == "jupyterhub" for word in head[:2]) or list(head[1:3]) == ["-m", "jupyterhub"]


def _argument(words: Sequence[str]) -> str | None:
    for place, word in enumerate(words):
        if word in ("-f", "--config") and place + 1 < len(words):
            return words[place + 1]
        for start in ("--config=", "--JupyterHub.config_file="):
            if word.startswith(start):
                return word.removeprefix(start)
    return None


def groups_of(seen: Seen, folder: Path) -> dict[str, list[str]]:
    """The hub's groups with their members: those its configuration names, and those its database has if that is a
    file one may read. An authenticator that manages groups leaves them there."""
    found = {name: list(members) for name, members in seen.groups.items()}
    url = urlsplit(seen.db_url)
    if not url.scheme.startswith("sqlite") or not url.path.strip("/"):
        return found
    path = folder / url.path.removeprefix("/")  # sqlite:///x is x in the hub's folder, sqlite:////x is /x
    query = (
        "select g.name, u.name from groups g left join user_group_map m on m.group_id = g.id "
        "left join users u on u.id = m.user_id"
    )
    with contextlib.suppress(sqlite3.Error):
        database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=2)
        with contextlib.closing(database):
            for group, user in database.execute(query):
                members = found.setdefault(str(group), [])
                if user is not None and user not in members:
                    members.append(str(user))
    return found


def devices(wanted: str = "auto") -> Devices:
    """The devices of this machine; made-up ones where the driver lists none, or when they are asked for."""

    async def ask() -> Devices:
        probe = await choose_probe(
            socket.gethostname(),
            simulated={"auto": None, "real": False, "simulated": True}[wanted],
            clock=SystemClock(),
            model=SimulatedModel(),
            deadline=DRIVER_SECONDS,
        )
        try:
            rows = [(d.index, d.uuid, d.model, d.memory_mib) for d in probe.latest().devices]
            return Devices(found=rows, simulated=probe.simulated, why=probe.why)
        finally:
            await probe.close()

    return asyncio.run(ask())


def free_port(first: int = 8083, most: int = 50) -> int:
    """The first loopback port from `first` on that nobody listens on."""
    for port in range(first, first + most):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    return first


def unit(config: Path, folder: Path, program: str) -> str:
    """A systemd unit of this hub: printed, never installed. Servers outlive a restart of the hub."""
    return "\n".join(
        [
            "[Unit]",
            "Description=JupyterHub with hubgov",
            "After=network-online.target",
            "",
            "[Service]",
            f"ExecStart={shlex.quote(program)} -m jupyterhub -f {shlex.quote(str(config))}",
            f"WorkingDirectory={folder}",
            f"Environment=PATH={Path(program).parent}:{os.defpath.strip(':')}:/usr/local/bin",
            "Restart=on-failure",
            "KillMode=process",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )
