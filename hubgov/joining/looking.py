"""What a jupyterhub_config.py sets: found by running it as the hub does, in a process of its own.

Such a file is a program. It is run with the rights of who asks, as it is at the hub's next start; nothing of
hubgov's is done in it: a call of `hubgov.setup(c)` is noted, not followed.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hubgov.errors import Invalid

LOOK_SECONDS = 60.0

_CULLERS = ("cull_idle_servers", "jupyterhub_idle_culler", "jupyterhub-idle-culler")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a configuration sets, as far as joining has to know. `trouble` says why it can't be run."""

    trouble: str = ""
    line: int = 0
    setups: int = 0
    """How often it calls `hubgov.setup(c)`."""
    spawner: str = ""
    """The spawner class by its full name; empty where it can't be loaded."""
    spawner_set: bool = False
    boxed: bool = False
    authenticator: str = ""
    base_url: str = "/"
    port: int = 8000
    hub_port: int = 8081
    proxy: str = ""
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    manage_groups: bool = False
    admins: Sequence[str] = ()
    services: Sequence[str] = ()
    cullers: Sequence[str] = ()
    """What ends idle servers or kernels besides hubgov, by name."""
    concurrent_spawns: int = 100
    named_servers: int = 0
    db_url: str = "sqlite:///jupyterhub.sqlite"
    internal_ssl: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Those of `c.HubGov`, defaults filled in."""


def look(config: Path, folder: Path | None = None) -> Seen:
    """Run a configuration in a process of its own, in the hub's folder, and tell what it sets."""
    command = [sys.executable, "-m", __name__, str(config.resolve())]
    try:
        ran = subprocess.run(
            command,
            cwd=folder or config.resolve().parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LOOK_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Seen(trouble=f"it is not read within {LOOK_SECONDS:.0f} s")
    try:
        found = json.loads(ran.stdout.rpartition("\n")[2] or ran.stdout)
    except ValueError:
        return Seen(trouble=(ran.stderr.strip().splitlines() or ["it ends the process that reads it"])[-1])
    return Seen(**found)


# --- in the process of its own ----------------------------------------------------------------------------------


def main(path: str) -> None:
    """Print what the file sets as one line of JSON; what the file itself prints goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        seen = _run(Path(path))
    print(json.dumps({f.name: _plain(getattr(seen, f.name)) for f in fields(seen)}), end="")


def _run(path: Path) -> Seen:
    from traitlets.config.loader import PyFileConfigLoader

    with _noted() as calls:
        try:
            config: Any = PyFileConfigLoader(path.name, path=str(path.parent)).load_config()
        except BaseException as error:  # noqa: BLE001  it may raise whatever it likes, also SystemExit
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
            line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else 0
            return Seen(trouble=f"{type(error).__name__}: {error}"[:500], line=line or 0)
    return _seen(config, len(calls))


@contextlib.contextmanager
def _noted() -> Iterator[list[object]]:
    from hubgov import hub

    calls: list[object] = []
    real = hub.setup
    hub.setup = lambda c, **asked: calls.append(asked)
    try:
        yield calls
    finally:
        hub.setup = real


def _seen(config: Any, setups: int) -> Seen:
    from hubgov_spawner.boxed import BoxedSpawner
    from hubgov_spawner.pages import configured

    from hubgov.config import HubGov
    from hubgov.hub import site_spawner

    hub = config.JupyterHub

    def given(name: str, default: Any) -> Any:
        return configured(hub, name, default)

    try:
        spawner = site_spawner(hub)
    except Invalid as error:
        return Seen(trouble=error.message, setups=setups)
    bind, inner = urlsplit(given("bind_url", "")), urlsplit(given("hub_bind_url", ""))
    services = given("services", [])
    path = given("base_url", "") or bind.path
    settings = HubGov(config=config)
    return Seen(
        setups=setups,
        spawner=f"{spawner.__module__}.{spawner.__name__}",
        spawner_set="spawner_class" in hub,
        boxed=issubclass(spawner, BoxedSpawner),
        authenticator=_name(given("authenticator_class", "jupyterhub.auth.PAMAuthenticator")),
        base_url=f"/{path.strip('/')}/" if path.strip("/") else "/",
        port=int(bind.port or given("port", 8000)),
        hub_port=int(inner.port or given("hub_port", 8081)),
        proxy=_name(given("proxy_class", "jupyterhub.proxy.ConfigurableHTTPProxy")),
        groups={str(name): _members(members) for name, members in given("load_groups", {}).items()},
        manage_groups=any(bool(configured(part, "manage_groups", False)) for part in _sections(config)),
        admins=sorted({str(u) for part in _sections(config) for u in configured(part, "admin_users", set())}),
        services=[str(service.get("name", "")) for service in services],
        cullers=[*_culling_services(services), *_culling_kernels(config)],
        concurrent_spawns=int(given("concurrent_spawn_limit", 100)),
        named_servers=_whole(given("named_server_limit_per_user", 0)),
        db_url=str(given("db_url", "sqlite:///jupyterhub.sqlite")),
        internal_ssl=bool(given("internal_ssl", False)),
        settings={name: getattr(settings, name) for name in settings.trait_names(config=True)},
    )


def _sections(config: Any) -> list[Any]:
    return [part for part in config.values() if isinstance(part, dict)]


def _members(members: Any) -> list[str]:
    """Of a group: a list of names, or since JupyterHub 4 a mapping with `users`."""
    users = members.get("users", []) if isinstance(members, dict) else members
    return [str(user) for user in users]


def _culling_services(services: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        str(service.get("name"))
        for service in services
        if any(word in str(part) for part in service.get("command", ()) for word in _CULLERS)
    ]


def _culling_kernels(config: Any) -> list[str]:
    """Cullers of kernels and servers: set for single-user servers by argument or by this very file."""
    from hubgov_spawner.pages import configured

    names = ("cull_idle_timeout", "shutdown_no_activity_timeout")
    found = [
        f"{section}.{name}"
        for section, part in config.items()
        for name in names
        if isinstance(part, dict) and configured(part, name, 0)
    ]
    arguments = [str(a) for part in _sections(config) for a in (configured(part, "args", None) or ())]
    return found + [argument for argument in arguments if any(name in argument for name in names)]


def _name(given: Any) -> str:
    return f"{given.__module__}.{given.__name__}" if isinstance(given, type) else str(given)


def _whole(given: Any) -> int:
    return given if isinstance(given, int) else 0


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


if __name__ == "__main__":
    main(sys.argv[1])
