"""`hubgov login` against a real JupyterHub: what the token it gives can and can't do is the hub's word."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from service_under_test import free_port
from waiting import until

from hubgov.client import connection

CONFIG = """
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    should_start = False
    async def add_route(self, routespec, target, data): pass
    async def delete_route(self, routespec): pass
    async def get_all_routes(self): return {{}}

c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.ip = "127.0.0.1"
c.JupyterHub.port = 1
c.JupyterHub.hub_port = {port}
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "the secret word"
c.Authenticator.allowed_users = {{"ann", "wei", "eve"}}
c.JupyterHub.token_expires_in_max_seconds = 86400
c.JupyterHub.services = [{{"name": "hubgov", "url": "http://127.0.0.1:1", "api_token": "a-token-of-the-service"}}]
c.JupyterHub.custom_scopes = {{"custom:hubgov:admin": {{"description": "all of hubgov"}}}}
c.JupyterHub.load_roles = [
    {{"name": "gov-user", "users": ["ann", "wei"], "scopes": ["access:services!service=hubgov"]}},
    {{"name": "gov-admin", "users": ["wei"], "scopes": ["custom:hubgov:admin", "list:users"]}},
]
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A hub without proxy and servers; gives its address."""
    folder, port = tmp_path_factory.mktemp("hub"), free_port()
    (folder / "jupyterhub_config.py").write_text(CONFIG.format(port=port))
    with open(folder / "hub.log", "wb") as log:
        program = Path(sys.executable).with_name("jupyterhub")
        process = subprocess.Popen([program, "-f", "jupyterhub_config.py"], cwd=folder, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None, (folder / "hub.log").read_text()[-3000:]
        try:
            return httpx.get(f"{address}/hub/api/", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    try:
        until(answers, 60, "the hub answers")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _login(hub: str, home: Path, user: str, password: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hubgov.cli", "login", "--url", hub, "--user", user, "--password-stdin"],
        input=password,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_token_can_do_with_hubgov_what_its_owner_may_and_nothing_else(hub: str, tmp_path: Path) -> None:
    for user, expected in (("ann", ()), ("wei", ("custom:hubgov:admin",))):
        home = tmp_path / user
        home.mkdir()
        ran = _login(hub, home, user, "the secret word")
        assert (ran.returncode, ran.stderr) == (0, "")
        file = home / ".config" / "hubgov" / "login.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        login = connection.read_login(file)
        assert login is not None
        assert login.token not in ran.stdout
        assert login.expires_at is not None
        with httpx.Client(headers={"Authorization": f"token {login.token}"}, trust_env=False) as http:
            model = http.get(f"{hub}/hub/api/user").json()
            # Every token may say who its owner is; beyond that there is nothing of the hub in it.
            own = {scope for scope in model["scopes"] if not scope.startswith("read:users:")}
            assert (model["name"], own) == (user, {"access:services!service=hubgov", *expected})
            assert http.post(f"{hub}/hub/api/users/{user}/server").status_code == 403
            assert http.get(f"{hub}/hub/api/users").status_code == 403


def test_who_may_not_sign_in_gets_no_token(hub: str, tmp_path: Path) -> None:
    assert _login(hub, tmp_path, "ann", "wrong").returncode == 3
    assert _login(hub, tmp_path, "stranger", "the secret word").returncode == 3
    without_access = _login(hub, tmp_path, "eve", "the secret word")
    assert without_access.returncode == 3
    assert "access:services" in without_access.stderr
    assert list(tmp_path.iterdir()) == []
