"""Join a JupyterHub: everything that `jupyterhub_config.py` needs, in one call.

    import hubgov
    c.HubGov.state_dir = "/var/lib/hubgov"
    hubgov.setup(c)

What the config holds already stays: services, roles, scopes and template paths are added to it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from pathlib import Path
from typing import Any

from hubgov_spawner import pages, quarters_api

from hubgov.config import DATABASE_VARIABLE, HubGov, private_folder
from hubgov.errors import Invalid

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


def setup(c: Any, *, admins: tuple[str, ...] = (), approvers: tuple[str, ...] = ()) -> None:
    """Make this hub governed. `admins` and `approvers` are users who get hubgov's scopes.

    `c.HubGov` must be set before. The stock idle cullers must stay off: hubgov is the only one that ends
    servers, and it tells before it does.
    """
    config = HubGov(config=c)
    state_dir = private_folder(Path(config.state_dir))
    token = _token(state_dir / "spawner.token")
    service_url = f"http://127.0.0.1:{config.service_port}"
    hub = c.JupyterHub
    _add(hub, "services", _services(config, service_url, token))
    _add(hub, "load_roles", _roles(admins, approvers))
    hub.custom_scopes = {**pages.configured(hub, "custom_scopes", {}), **CUSTOM_SCOPES}
    _add(hub, "extra_user_scopes", [f"access:services!service={SERVICE}"])
    pages.install(c)
    _add(hub, "extra_handlers", [(quarters_api.ADDRESS, quarters_api.QuartersHandler)])
    if "spawner_class" not in hub:
        hub.spawner_class = "hubgov_spawner.HubGovSpawner"
    if callable(pages.configured(c.Spawner, "server_token_scopes", [])):
        raise Invalid("c.Spawner.server_token_scopes must be a list", hint="hubgov.setup(c) adds its scopes to it")
    _add(c.Spawner, "server_token_scopes", SERVER_SCOPES)
    if "default_url" not in c.Spawner:
        c.Spawner.default_url = "/lab"
    if "poll_interval" not in c.Spawner:
        c.Spawner.poll_interval = 5
    # A hub that is restarted leaves the servers alone: each keeps its devices and its lease.
    hub.cleanup_servers = False
    if "allow_named_servers" not in hub:
        hub.allow_named_servers = True
    base = pages.configured(hub, "base_url", "/")
    c.GovernedMixin.hubgov_url = f"{service_url}{base}services/{SERVICE}"
    c.GovernedMixin.hubgov_token = token
    c.GovernedMixin.waiting_url = f"{base}services/{SERVICE}/wait"
    c.BoxedSpawner.state_dir = str(state_dir)
    c.BoxedSpawner.isolation = config.isolation
    _add(c.BoxedSpawner, "private_paths", _private_files(config, hub))


def _private_files(config: HubGov, hub: Any) -> list[str]:
    """What no box may show and what doesn't lie in the state folder anyway: the ledger, the hub's cookie secret."""
    kind, _, path = config.database_url.partition(":///")
    secret = pages.configured(hub, "cookie_secret_file", "jupyterhub_cookie_secret")
    ledger = [path.partition("?")[0]] if kind.partition("+")[0] == "sqlite" else []
    return [os.path.abspath(name) for name in (*ledger, secret) if name]


def _services(config: HubGov, service_url: str, token: str) -> list[dict[str, Any]]:
    return [
        {
            "name": SERVICE,
            "url": service_url,
            "command": [sys.executable, "-m", "hubgov.cli", "service", *config.arguments()],
            "environment": {DATABASE_VARIABLE: config.database_url},
            "oauth_no_confirm": True,
            "oauth_client_allowed_scopes": ["custom:hubgov:admin", "custom:hubgov:approve"],
            "display": True,
        },
        {"name": SPAWNER, "api_token": token, "display": False},
    ]


def _roles(admins: tuple[str, ...], approvers: tuple[str, ...]) -> list[dict[str, Any]]:
    roles: list[dict[str, Any]] = [
        {"name": "hubgov-service", "services": [SERVICE], "scopes": SERVICE_SCOPES},
        {
            "name": "hubgov-spawner",
            "services": [SPAWNER],
            "scopes": ["custom:hubgov:spawn", f"access:services!service={SERVICE}"],
        },
    ]
    if admins:
        scopes = ["custom:hubgov:admin", "custom:hubgov:approve"]
        roles.append({"name": "hubgov-admin", "users": list(admins), "scopes": scopes})
    if approvers:
        roles.append({"name": "hubgov-approver", "users": list(approvers), "scopes": ["custom:hubgov:approve"]})
    return roles


def _add(section: Any, name: str, items: list[Any]) -> None:
    section[name] = [*pages.configured(section, name, []), *items]


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
