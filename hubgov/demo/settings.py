"""What a demo keeps between its runs: ports, secrets, who may sign in. One private file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import random
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from hubgov.errors import Unavailable

PEOPLE = ("amy", "bo", "lena", "admin")
_LOWEST_INNER_PORT = 700
"""Below lie most ports that services of a machine are known by."""
GROUPS = {"vision": ["amy"], "nlp": ["bo"]}
_WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "hazel", "iris", "jade", "kite", "lunar"),
    *("maple", "noble", "ocean", "pearl", "quartz", "river", "slate", "tulip", "umber", "violet", "willow"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that must stay the same from one start to the next."""

    port: int
    hub_port: int
    proxy_port: int
    service_port: int
    proxy_token: str
    control_token: str
    devices: str
    clock_rate: int
    timezone: str
    policy_file: str
    passwords: dict[str, str]
    """User -> salted hash. The passwords themselves are printed once and kept nowhere."""


def load(state: Path) -> Settings | None:
    """The settings of an earlier run, or None. Unavailable when the file can't be used."""
    path = state / "demo.json"
    if not path.exists():
        return None
    try:
        return Settings(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise Unavailable(
            f"{path} can't be read: {error}", hint="move it away; ports and passwords are then made anew"
        ) from error


def save(state: Path, settings: Settings) -> None:
    """Write the settings, readable by their owner only, all or nothing."""
    draft = state / ".demo.json"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(dataclasses.asdict(settings), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, state / "demo.json")


def fresh(
    *, port: int, devices: str, clock_rate: int, timezone: str, policy_file: str
) -> tuple[Settings, dict[str, str]]:
    """New settings on free ports, and the passwords to print. Unavailable when `port` is taken."""
    refuse_taken(port, f"--port {port + 10}")
    hub_port, proxy_port, service_port = _inner_ports(3)
    shown = {name: password() for name in PEOPLE}
    settings = Settings(
        port=port,
        hub_port=hub_port,
        proxy_port=proxy_port,
        service_port=service_port,
        proxy_token=secrets.token_hex(16),
        control_token=secrets.token_hex(32),
        devices=devices,
        clock_rate=clock_rate,
        timezone=timezone,
        policy_file=policy_file,
        passwords={name: hashed(text) for name, text in shown.items()},
    )
    return settings, shown


def refuse_taken(port: int, hint: str) -> None:
    """Unavailable when something listens on the port: it would be sent our users' passwords."""
    if not _free(port):
        raise Unavailable(f"port {port} of this machine is in use by something else", hint=hint)


def password() -> str:
    """A random password that is easy to type: three words and a number, about 26 bits guessed online."""
    return "-".join([*(secrets.choice(_WORDS) for _ in range(3)), str(secrets.randbelow(9000) + 1000)])


def hashed(text: str, salt: bytes | None = None) -> str:
    """The password as `salt$hash` (scrypt)."""
    salt = salt if salt is not None else secrets.token_bytes(16)
    digest = hashlib.scrypt(text.encode(), salt=salt, n=2**14, r=8, p=1)
    return f"{salt.hex()}${digest.hex()}"


def matches(text: str, stored: str) -> bool:
    """Whether a password is the one that was hashed."""
    salt, _, _ = stored.partition("$")
    return secrets.compare_digest(hashed(text, bytes.fromhex(salt)), stored)


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _inner_ports(count: int) -> list[int]:
    """Ports for what only this machine's processes call: hub, proxy and service.

    As root they are ports that only root may take: the boxes share the machine's loopback, and whoever took
    the service's port while it restarts would be sent its callers' tokens.
    """
    if os.geteuid() != 0:
        return _free_ports(count)
    reserved = range(_LOWEST_INNER_PORT, _first_open_port())
    found = [port for port in random.sample(reserved, len(reserved)) if _free(port)][:count]
    return found if len(found) == count else _free_ports(count)


def _first_open_port() -> int:
    """The first port that needs no right; containers often have none that does."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 1024


def _free_ports(count: int) -> list[int]:
    """Ports nobody listens on now, held open together so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in sockets]
    finally:
        for probe in sockets:
            probe.close()
