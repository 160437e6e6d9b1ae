"""Join a JupyterHub: everything that `jupyterhub_config.py` needs, in one call.

    import hubgov
    hubgov.setup(c)

What the config holds already stays: services, roles, scopes and template paths are added to it, and whatever
spawner it names is governed as it is.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hubgov_spawner import HubGovSpawner, pages, quarters_api
from hubgov_spawner.boxed import BoxedSpawner
from hubgov_spawner.over_any import governed
from jupyterhub.spawner import Spawner
from traitlets.utils.importstring import import_item

from hubgov.config import DATABASE_VARIABLE, HubGov, private_folder
from hubgov.errors import HubgovError, Invalid, Unavailable

log = logging.getLogger(__name__)

SERVICE = "hubgov"
SPAWNER = "hubgov-spawner"
CUSTOM_SCOPES = {
    "custom:hubgov:admin": {"description": "Govern GPUs: policy, queues, nodes, everybody's workloads."},
    "custom:hubgov:approve": {"description": "Decide on extensions and exceptions of the teams one leads."},
    "custom:hubgov:metrics": {"description": "Read hubgov's metrics."},
    "custom:hubgov:spawn": {"description": "Report notebook servers to hubgov. For the spawner only."},
}
SERVICE_SCOPES = [
    "list:users",
    "read:users:activity",
    "read:servers",
    "start:servers",
    "delete:servers",
    "list:groups",
    "read:groups",
]
SERVER_SCOPES = ["users:activity!user", "access:servers!server", f"access:services!service={SERVICE}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What a call of `setup` asks for: who gets hubgov's scopes, and further variables of the service."""

    admins: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def setup(
    c: Any,
    *,
    admins: tuple[str, ...] = (),
    approvers: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> None:
    """Make this hub governed. `admins` and `approvers` are users who get hubgov's scopes; `environment` holds
    further variables of the service's process.

    Where in the file the call stands doesn't matter: the hub is joined once all of its configuration is read,
    its command line too. The stock idle cullers must stay off: hubgov is the only one that ends servers, and it
    tells before it does.
    """
    joining = Joining(admins=tuple(admins), approvers=tuple(approvers), environment=dict(environment or {}))
    app = _hub_that_reads()
    if app is None:  # read by something else than a starting hub: a test, `jupyterhub token`
        join(c, joining, log)
    else:
        _join_when_read(app, joining)


def _hub_that_reads() -> Any:
    """The hub of this process, whose configuration is being read; None where there is none."""
    from jupyterhub.app import JupyterHub

    return JupyterHub.instance() if JupyterHub.initialized() else None


def _join_when_read(app: Any, joining: Joining) -> None:
    """Join when the hub takes its configuration over: all files of it at once, with its command line.

    traitlets hands it to `update_config`, and tells nobody afterwards. A second call, of a file that is read twice,
    takes the first one's place.
    """

    def take(config: Any) -> None:
        del app.update_config  # the class's own again
        whole = copy.deepcopy(app.config)
        whole.merge(config)
        try:
            join(whole, joining, app.log)
        except HubgovError as error:  # a hub that comes up ungoverned would be worse than none
            app.log.critical("hubgov: %s", error.message)
            app.log.critical("hint: %s", error.hint)
            app.exit(1)
        app.update_config(whole)

    app.update_config = take


def join(c: Any, joining: Joining, log: Any) -> None:
    """Add what a governed hub needs to its whole configuration. Done twice is done once."""
    config = HubGov(config=c)
    hub = c.JupyterHub
    if pages.configured(hub, "internal_ssl", False):
        raise Invalid("c.JupyterHub.internal_ssl can't be used with hubgov", hint="set it to False")
    spawner = governed(site_spawner(hub))
    if not issubclass(spawner, BoxedSpawner):
        config.isolation = "none"  # nobody makes boxes here, and nothing may claim that they are there
        log.warning("hubgov: %s makes no boxes: devices are advisory, told but not enforced", spawner.__name__)
    state_dir = _state_folder(config)
    log.info("hubgov: ledger and tokens are in %s (c.HubGov.state_dir)", state_dir)
    token = _token(state_dir / "spawner.token")
    service_url = f"http://127.0.0.1:{config.service_port}"
    _add_named(hub, "services", _services(config, service_url, token, joining.environment))
    _add_named(hub, "load_roles", _roles(joining))
    hub.custom_scopes = {**pages.configured(hub, "custom_scopes", {}), **CUSTOM_SCOPES}
    _add(hub, "extra_user_scopes", [f"access:services!service={SERVICE}"])
    pages.install(c)
    _add(hub, "extra_handlers", [(quarters_api.ADDRESS, quarters_api.QuartersHandler)])
    hub.spawner_class = spawner
    _add_token_scopes(_section(c, spawner, "server_token_scopes"))
    for name, value in (("default_url", "/lab"), ("poll_interval", 5)):
        section = _section(c, spawner, name)
        if name not in section:
            section[name] = value
    # A hub that is restarted leaves the servers alone: each keeps its devices and its lease.
    if pages.configured(hub, "cleanup_servers", False):
        log.warning("hubgov: c.JupyterHub.cleanup_servers = True is not followed: sessions outlive a restart")
    hub.cleanup_servers = False
    if "allow_named_servers" not in hub:
        hub.allow_named_servers = True
    base = _base_url(hub)
    c.GovernedMixin.hubgov_url = f"{service_url}{base}services/{SERVICE}"
    c.GovernedMixin.hubgov_token = token
    c.GovernedMixin.waiting_url = f"{base}services/{SERVICE}/wait"
    c.BoxedSpawner.state_dir = str(state_dir)
    c.BoxedSpawner.isolation = config.isolation
    _add(c.BoxedSpawner, "private_paths", _private_files(config, hub))


def _state_folder(config: HubGov) -> Path:
    """The state folder, made if missing. Unavailable, with why, when the hub's user can't have it."""
    try:
        return private_folder(Path(config.state_dir))
    except OSError as error:
        raise Unavailable(
            f"c.HubGov.state_dir: {config.state_dir} can't be used: {error.strerror or error}",
            hint=f"name a folder that uid {os.geteuid()} may make and owns",
        ) from error


def site_spawner(hub: Any) -> type:
    """The spawner class that a hub's section names: a class, an entry point or a dotted name; hubgov's own boxed
    one where it names none. Invalid for what is no spawner."""
    given = pages.configured(hub, "spawner_class", None)
    if given is None:
        return HubGovSpawner
    found = given if isinstance(given, type) else _named_spawner(str(given))
    if not (isinstance(found, type) and issubclass(found, Spawner)):
        raise Invalid(f"c.JupyterHub.spawner_class: {given!r} is no spawner class", hint=_SPAWNERS)
    return found


_SPAWNERS = "name a class, such as jupyterhub.spawner.LocalProcessSpawner, or an entry point, such as simple"


def _named_spawner(name: str) -> Any:
    points = [point for point in entry_points(group="jupyterhub.spawners") if point.name.lower() == name.lower()]
    try:
        return points[0].load() if points else import_item(name)
    except (ImportError, ValueError) as error:
        raise Invalid(f"c.JupyterHub.spawner_class: {name!r} can't be loaded: {error}", hint=_SPAWNERS) from error


def _section(c: Any, spawner: type, name: str) -> Any:
    """The section that decides about a trait of the spawner: the most special that sets it, else Spawner's."""
    for cls in spawner.__mro__:
        if cls.__name__ in c and name in c[cls.__name__]:
            return c[cls.__name__]
    return c.Spawner


def _add_token_scopes(section: Any) -> None:
    """Let each server's token reach the service; a list that the site computes is computed first."""
    computed = pages.configured(section, "server_token_scopes", [])
    if callable(computed):
        section.server_token_scopes = TokenScopes(computed)
    else:
        _add(section, "server_token_scopes", SERVER_SCOPES)


@dataclass(frozen=True, slots=True)
class TokenScopes:
    """The site's own computed scopes of a server's token, and hubgov's."""

    of_site: Callable[[Any], Any]

    def __call__(self, spawner: Any) -> list[str]:
        return [*self.of_site(spawner), *SERVER_SCOPES]


def _base_url(hub: Any) -> str:
    """Where the hub is below its host, with slashes at both ends."""
    path = pages.configured(hub, "base_url", "") or urlsplit(pages.configured(hub, "bind_url", "")).path
    return f"/{path.strip('/')}/" if path.strip("/") else "/"


def _private_files(config: HubGov, hub: Any) -> list[str]:
    """What no box may show and what doesn't lie in the state folder anyway: the ledger, the hub's cookie secret."""
    kind, _, path = config.database_url.partition(":///")
    secret = pages.configured(hub, "cookie_secret_file", "jupyterhub_cookie_secret")
    ledger = [path.partition("?")[0]] if kind.partition("+")[0] == "sqlite" else []
    return [os.path.abspath(name) for name in (*ledger, secret) if name]


def _services(config: HubGov, service_url: str, token: str, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "name": SERVICE,
            "url": service_url,
            "command": [sys.executable, "-m", "hubgov.cli", "service", *config.arguments()],
            "environment": {**environment, DATABASE_VARIABLE: config.database_url},
            "oauth_no_confirm": True,
            "oauth_client_allowed_scopes": ["custom:hubgov:admin", "custom:hubgov:approve"],
            "display": True,
        },
        {"name": SPAWNER, "api_token": token, "display": False},
    ]


def _roles(joining: Joining) -> list[dict[str, Any]]:
    roles: list[dict[str, Any]] = [
        {"name": "hubgov-service", "services": [SERVICE], "scopes": SERVICE_SCOPES},
        {
            "name": "hubgov-spawner",
            "services": [SPAWNER],
            "scopes": ["custom:hubgov:spawn", f"access:services!service={SERVICE}"],
        },
    ]
    if joining.admins:
        scopes = ["custom:hubgov:admin", "custom:hubgov:approve"]
        roles.append({"name": "hubgov-admin", "users": list(joining.admins), "scopes": scopes})
    if joining.approvers:
        scopes = ["custom:hubgov:approve"]
        roles.append({"name": "hubgov-approver", "users": list(joining.approvers), "scopes": scopes})
    return roles


def _add(section: Any, name: str, items: list[Any]) -> None:
    """Put items at the end of a list of the section, those that aren't in it."""
    known = pages.configured(section, name, [])
    section[name] = [*known, *(item for item in items if item not in known)]


def _add_named(section: Any, name: str, items: list[dict[str, Any]]) -> None:
    """Put items at the end of a list of the section; ours of an earlier call go. Invalid for a name that the site
    has given to something of its own."""
    ours = {item["name"] for item in items}
    known = pages.configured(section, name, [])
    for item in known:
        if item.get("name") in ours and not _is_ours(item):
            raise Invalid(
                f"c.JupyterHub.{name} has a {item['name']} already, which isn't hubgov's",
                hint="give it another name; this one is hubgov's",
            )
    section[name] = [*(item for item in known if item.get("name") not in ours), *items]


def _is_ours(item: Mapping[str, Any]) -> bool:
    return bool(
        "hubgov.cli" in item.get("command", ())
        or item.get("name") == SPAWNER
        or {SERVICE, SPAWNER} & set(item.get("services", ()))
        or any(str(scope).startswith("custom:hubgov:") for scope in item.get("scopes", ()))
    )


def _token(path: Path) -> str:
    """The spawner's own token, made once and readable by the hub's user only.

    Written beside and linked into place, so that a kill in between leaves no empty file.
    """
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    token = path.read_text().strip()
    if len(token) != 64:
        raise ValueError(f"{path} doesn't hold a token; remove it and start again")
    return token
