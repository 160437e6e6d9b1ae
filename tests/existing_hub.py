"""A hub as a site has it before hubgov comes: its own authenticator, spawner, users, groups, services and hooks."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from hub_under_test import run_cell
from service_under_test import PREFIX, free_port
from waiting import until

TOKEN = "fedcba9876543210" * 4
PASSWORD = "correct-horse-battery-staple-for-all"

CONFIG = '''\
"""The hub of a site."""
import os
from jupyterhub.proxy import Proxy

c = get_config()  # noqa


class NoProxy(Proxy):
    """The tests talk to hub and servers directly."""
    should_start = False
    routes = {}
    async def add_route(self, routespec, target, data):
        self.routes[routespec] = {"routespec": routespec, "target": target, "data": data}
    async def delete_route(self, routespec):
        self.routes.pop(routespec, None)
    async def get_all_routes(self):
        return dict(self.routes)


def note(what):
    with open(os.path.join(FOLDER, "hooks"), "a") as file:
        file.write(what + "\\n")


def auth_state(spawner, state):
    note("auth_state")


def pre_spawn(spawner):
    note("pre_spawn " + str(spawner.user_options.get("image")))


c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.bind_url = "http://127.0.0.1:PORT/site/"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:HUB"
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = "PASSWORD"
c.Authenticator.allowed_users = {PEOPLE}
c.JupyterHub.load_groups = {"vision": {"users": [FIRST]}}
c.JupyterHub.spawner_class = "SPAWNER"
c.Spawner.cmd = COMMAND
c.Spawner.environment = ENVIRONMENT
c.Spawner.options_form = "<label>Image <input name='image' value='small'></label>"
c.Spawner.options_from_form = lambda data: {"image": data["image"][0]}
c.Spawner.pre_spawn_hook = pre_spawn
c.Spawner.post_stop_hook = lambda spawner: note("post_stop")
c.Spawner.auth_state_hook = auth_state
c.JupyterHub.services = [{"name": "tests", "api_token": "TOKEN"}]
c.JupyterHub.load_roles = [{
    "name": "tests", "services": ["tests"],
    "scopes": ["admin:users", "admin:servers", "access:servers", "admin:server_state", "admin:groups", "tokens"],
}]
'''


class ExistingHub:
    """One hub process in a folder; `start` and `end` it as often as needed."""

    def __init__(self, folder: Path, people: list[str], spawner: str, more: str = "") -> None:
        self.folder, self.people = folder, people
        self.port, self.hub_port, self.service_port = free_port(), free_port(), free_port()
        self.config = folder / "jupyterhub_config.py"
        command, environment = single_user()
        if spawner == "simple" and os.geteuid() == 0:
            command.append("--allow-root")
        facts: dict[str, object] = {
            "FOLDER": repr(str(folder)),
            "PORT": self.port,
            "HUB": self.hub_port,
            "PASSWORD": PASSWORD,
            "PEOPLE": ", ".join(map(repr, people)),
            "FIRST": repr(people[0]),
            "SPAWNER": spawner,
            "COMMAND": command,
            "ENVIRONMENT": environment,
            "TOKEN": TOKEN,
        }
        text = CONFIG
        for name, value in facts.items():
            text = text.replace(name, str(value))
        self.config.write_text(text + more)
        self.process: subprocess.Popen[bytes] | None = None
        self.root = f"http://127.0.0.1:{self.hub_port}/site/hub"
        self.http = httpx.Client(headers={"Authorization": f"token {TOKEN}"}, timeout=60, trust_env=False)

    def start(self) -> None:
        """Start the hub and wait until it answers."""
        with open(self.folder / "hub.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(self.config)],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._answers, 60, "the hub answers")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log()[-4000:]
        with contextlib.suppress(httpx.TransportError):
            return self.http.get(f"{self.root}/api/").status_code == 200
        return False

    def log(self) -> str:
        return (self.folder / "hub.log").read_text()

    def api(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Ask the hub's REST interface as the site's own service."""
        return self.http.request(method, f"{self.root}/api{path}", json=body)

    def server(self, user: str) -> dict[str, Any]:
        """The hub's view of the user's server; empty when there is none."""
        found: dict[str, Any] = self.api("GET", f"/users/{user}").json()["servers"].get("", {})
        return found

    def ready(self, user: str) -> dict[str, Any]:
        """The user's server once it is up."""
        return dict(until(lambda: (s := self.server(user)).get("ready") and s, 90, f"the server of {user} is up"))

    def stop(self, user: str) -> None:
        assert self.api("DELETE", f"/users/{user}/server").status_code in (202, 204)
        until(lambda: not self.server(user), 60, f"the server of {user} has stopped")

    def run(self, user: str, code: str) -> str:
        """What a cell prints in a new kernel of the user's server."""
        environment = Path(f"/proc/{self.server(user)['state']['pid']}/environ").read_text()
        base = next(e for e in environment.split("\0") if e.startswith("JUPYTERHUB_SERVICE_URL="))
        url = base.partition("=")[2].rstrip("/")
        kernel = self.http.post(f"{url}/api/kernels", json={}).raise_for_status().json()["id"]
        return run_cell(f"{url}/api/kernels/{kernel}/channels", self.http.headers["Authorization"], code)

    def service(self, user: str) -> httpx.Client:
        """hubgov's REST interface as this user."""
        token = self.api("POST", f"/users/{user}/tokens", {"note": "test"}).json()["token"]
        url = f"http://127.0.0.1:{self.service_port}/site{PREFIX}api/v1"
        return httpx.Client(base_url=url, headers={"Authorization": f"token {token}"}, timeout=60, trust_env=False)

    def service_pid(self) -> int | None:
        """The process that answers as hubgov's service; None while none does."""
        with contextlib.suppress(httpx.TransportError):
            return int(
                httpx.get(f"http://127.0.0.1:{self.service_port}/site{PREFIX}health", trust_env=False).json()["pid"]
            )
        return None

    def browser(self, user: str) -> httpx.Client:
        """A browser of somebody who signed in."""
        browser = httpx.Client(base_url=self.root, timeout=60, follow_redirects=True, trust_env=False)
        browser.get("/login")
        form = {"username": user, "password": PASSWORD, "_xsrf": browser.cookies["_xsrf"]}
        answer = browser.post("/login", data=form, follow_redirects=False)
        assert answer.status_code == 302, answer.text
        return browser

    def hooks(self) -> list[str]:
        path = self.folder / "hooks"
        return path.read_text().splitlines() if path.exists() else []

    def end(self) -> None:
        """Stop the hub; what it runs goes on where it is told so."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def close(self) -> None:
        """Stop all servers and the hub."""
        if self.process is not None and self.process.poll() is None:
            for user in self.api("GET", "/users").json():
                for _ in user["servers"]:
                    self.api("DELETE", f"/users/{user['name']}/server")
            self.end()
        self.http.close()


def single_user() -> tuple[list[str], dict[str, str]]:
    """How a system user starts a server: by this interpreter, or the system's where this one isn't open to all."""
    packages = sysconfig.get_path("purelib")
    folder = Path(sys.prefix)
    environment = {
        "PYTHONPATH": os.pathsep.join(
            path
            for path in sys.path
            if path and Path(path).is_dir() and "lib-dynload" not in path and not path.startswith(sys.base_prefix)
        ),
        "JUPYTER_PATH": str(folder / "share" / "jupyter"),
        "JUPYTER_CONFIG_PATH": str(folder / "etc" / "jupyter"),
    }
    code = f"import site; site.addsitedir({packages!r}); from jupyterhub.singleuser import main; main()"
    return [interpreter(), "-c", code], environment


def interpreter() -> str:
    """A Python of our version that every user may run."""
    own = os.path.realpath(sys.executable)
    open_to_all = all(parent.stat().st_mode & 0o001 for parent in Path(own).parents)
    return own if open_to_all else f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"


@contextlib.contextmanager
def system_users(names: list[str], homes: Path) -> Iterator[None]:
    """Real users of this machine with homes of their own; needs root. Gone afterwards."""
    for parent in (homes, *homes.parents):
        if parent != Path("/tmp") and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    try:
        for name in names:
            subprocess.run(["useradd", "--home-dir", str(homes / name), "--create-home", name], check=True)
        yield
    finally:
        for name in names:
            subprocess.run(["userdel", name], check=False, capture_output=True)


def uid(name: str) -> int:
    return pwd.getpwnam(name).pw_uid
