"""The demo's proxy, a process of its own so that open notebooks survive a restart of the hub.

Node's configurable-http-proxy where a usable one is installed, else traefik from PyPI. (The PyPI package called
configurable-http-proxy holds back event streams, so that the pending page dies; its versions are below 4.)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubgov.demo.settings import Settings
from hubgov.errors import Unavailable

USER = "hubgov"


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, with which variables on top of PATH."""

    arguments: Sequence[str]
    environment: dict[str, str]


def chp() -> str | None:
    """A configurable-http-proxy of version 4 or newer on PATH."""
    path = shutil.which("configurable-http-proxy")
    if path is None:
        return None
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    major = said.stdout.strip().partition(".")[0]
    return path if major.isdigit() and int(major) >= 4 else None


def traefik() -> str | None:
    """The traefik binary beside this Python, or on PATH."""
    return shutil.which("traefik", path=str(Path(sys.executable).parent)) or shutil.which("traefik")


def command(state: Path, settings: Settings) -> Command:
    """How to start the proxy. Unavailable when there is none."""
    node = chp()
    if node is not None:
        arguments = [node, "--ip", "127.0.0.1", "--port", str(settings.port), "--api-ip", "127.0.0.1"]
        arguments += ["--api-port", str(settings.proxy_port)]
        arguments += ["--error-target", f"http://127.0.0.1:{settings.hub_port}/hub/error"]
        return Command(arguments, {"CONFIGPROXY_AUTH_TOKEN": settings.proxy_token})
    binary = traefik()
    if binary is None:
        raise Unavailable("there is no proxy for the hub", hint='pip install "hubgov[demo]" brings traefik')
    static = state / "traefik.toml"
    static.write_text(_static_config(state, settings))
    rules = state / "traefik-rules.toml"
    if not rules.exists():
        rules.write_text("[jupyterhub.routes]\n")  # traefik watches only what is there when it starts
    return Command([binary, "--configfile", str(static)], {})


def configure(c: Any, state: Path, settings: Settings) -> None:
    """Tell the hub which proxy runs already and where its API is."""
    if chp() is not None:
        c.ConfigurableHTTPProxy.should_start = False
        c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{settings.proxy_port}"
        c.ConfigurableHTTPProxy.auth_token = settings.proxy_token
        return
    c.JupyterHub.proxy_class = "traefik_file"
    c.TraefikFileProviderProxy.should_start = False
    c.TraefikFileProviderProxy.dynamic_config_file = str(state / "traefik-rules.toml")
    c.TraefikProxy.traefik_api_url = f"http://127.0.0.1:{settings.proxy_port}"
    c.TraefikProxy.traefik_api_username = USER
    c.TraefikProxy.traefik_api_password = settings.proxy_token


def _static_config(state: Path, settings: Settings) -> str:
    """Traefik's own settings. No read timeout: an upload or a kernel's socket may take hours."""
    return f"""\
[global]
checkNewVersion = false
sendAnonymousUsage = false

[log]
level = "ERROR"
noColor = true

[api]

[providers]
providersThrottleDuration = "0s"

[providers.file]
filename = "{state / "traefik-rules.toml"}"
watch = true

[entryPoints.http]
address = "127.0.0.1:{settings.port}"

[entryPoints.http.transport.respondingTimeouts]
readTimeout = "0s"

[entryPoints.auth_api]
address = "127.0.0.1:{settings.proxy_port}"
"""
