"""A neighbour who wants the port of a server that ended never gets a byte of its owner's; with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hubgov_spawner import guarding, portguard
from jupyterhub.spawner import SpawnException
from spawner.boxing import LISTEN, MODES, Recording, a_spawner, started
from waiting import until, until_async

from hubgov import processes
from hubgov.wire import ProcessRef

NEIGHBOUR = 61999
COOKIE = b"hubgov-cookie-of-amy"
ENDS_WHEN_ASKED = """
import http.server, os, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    def do_DELETE(self):
        os._exit(3)
address = urllib.parse.urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
http.server.HTTPServer((address.hostname, address.port), Handler).serve_forever()
"""
THIEF = """
import itertools, os, socket, sys
port, early = int(sys.argv[1]), []
ways = [("127.0.0.1", socket.AF_INET), ("0.0.0.0", socket.AF_INET), ("::", socket.AF_INET6),
        ("::ffff:127.0.0.1", socket.AF_INET6)]
print("tries", flush=True)
options = (socket.SO_REUSEADDR, socket.SO_REUSEPORT)
for (address, family), reuse in itertools.cycle(itertools.product(ways, options)):
    thief = socket.socket(family)
    thief.setsockopt(socket.SOL_SOCKET, reuse, 1)
    try:
        thief.bind((address, port))
        thief.listen()
    except OSError:
        thief.close()
        continue
    print("listens", flush=True)
    print(thief.accept()[0].recv(1000), flush=True)
"""


class Proxy:
    """Knows where the hub leads requests to."""

    def __init__(self) -> None:
        self.routes: dict[str, dict[str, str]] = {}

    async def get_all_routes(self) -> dict[str, dict[str, str]]:
        return dict(self.routes)


class Owner:
    """Her browser, through the proxy: sends her cookie to the port again and again, as long as a route stands."""

    def __init__(self, proxy: Proxy, port: int) -> None:
        self.refused = self.sent = 0
        self._proxy, self._port = proxy, port
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while self._proxy.routes:
            try:
                with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                    connection.sendall(b"GET / HTTP/1.0\r\nCookie: " + COOKIE + b"\r\n\r\n")
                    self.sent += 1
            except OSError:
                self.refused += 1

    def join(self) -> None:
        self._thread.join(10)
        assert not self._thread.is_alive()


@contextmanager
def thief(port: int, uid: int) -> Iterator[Path]:
    """A neighbour who tries to take the port, in a loop without a pause; yields the file of what he reports."""
    log = Path(f"/tmp/hubgov-thief-{os.getpid()}-{port}")
    drop = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []
    with open(log, "wb") as report:
        process = subprocess.Popen([*drop, "/usr/bin/python3", "-c", THIEF, str(port)], stdout=report)
    try:
        until(lambda: "tries" in log.read_text(), 10, "the thief is at it")
        yield log
    finally:
        process.kill()
        process.wait()
        log.unlink()


@asynccontextmanager
async def served(spawner: Recording, proxy: Proxy) -> AsyncIterator[asyncio.Event]:
    """Her server is up and has a route; the event is set once the hub took the route away, as the hub does it:
    it is told of the end, takes its time, deletes the route, forgets the server."""
    spawner.user.settings = {"proxy": proxy}
    spawner.poll_interval = 600
    proxy.routes = {"/user/amy/": {"target": f"http://127.0.0.1:{spawner.port}"}}
    over = asyncio.Event()
    owner = Owner(proxy, spawner.port)

    async def stopped() -> None:
        await until_async(_more(owner, owner.refused + 300), 30, "the route leads to an ended server for a while")
        proxy.routes = {}
        owner.join()
        over.set()
        spawner.clear_state()

    spawner.start_polling()
    spawner.add_poll_callback(stopped)
    try:
        await until_async(_more(owner, 0, "sent"), 10, "her requests arrive")
        yield over
    finally:
        spawner.stop_polling()
        proxy.routes = {}
        owner.join()


def _more(owner: Owner, count: int, what: str = "refused") -> Callable[[], Any]:
    async def check() -> bool:
        return bool(getattr(owner, what) > count)

    return check


async def end(how: str, spawner: Recording) -> None:
    if how == "killed":
        assert spawner.box_main
        processes.send(spawner.box_main, signal.SIGKILL)
    else:
        reader, writer = await asyncio.open_connection("127.0.0.1", spawner.port)
        writer.write(b"DELETE / HTTP/1.0\r\n\r\n")
        await reader.read()
        writer.close()


WHO = {"root": NEIGHBOUR, "userns": 0, "none": 0}
"""The neighbour's uid by mode: without a system uid for each user he has the owner's and the hub's own."""


@pytest.mark.parametrize("restarted", [False, True], ids=["", "hub restarted"])
@pytest.mark.parametrize("how", ["killed", "by itself"])
@pytest.mark.parametrize("mode", MODES)
def test_a_neighbour_never_gets_the_port_while_a_route_leads_there(
    mode: str, how: str, restarted: bool, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with started(a_spawner(tmp_path, mode, ENDS_WHEN_ASKED)) as first:
            spawner, port = first, first.port
            if restarted:
                spawner = a_spawner(tmp_path, mode)
                spawner.load_state(first.get_state())
            with thief(port, WHO[mode]) as log:
                async with served(spawner, Proxy()) as over:
                    await end(how, spawner)
                    await asyncio.wait_for(over.wait(), 40)
                    assert log.read_text().split() == ["tries"]
                # And that he did try all the time: once nothing leads there the port is anybody's.
                await until_async(_says(log, "listens"), 20, "the thief gets the free port")
                with socket.create_connection(("127.0.0.1", port)) as connection:
                    connection.sendall(b"nobody's")
                await until_async(_says(log, "nobody's"), 10, "he reads")
                assert COOKIE.decode() not in log.read_text()

    asyncio.run(scenario())


def _says(log: Path, word: str) -> Callable[[], Any]:
    async def check() -> bool:
        return word in log.read_text()

    return check


def test_who_bound_the_port_before_the_server_listened_gets_nothing_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        spawner = a_spawner(tmp_path, "none", "import sys; sys.stdin.read()\n" + LISTEN)
        with socket.socket() as early:
            early.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

            class Binds(type(spawner)):  # type: ignore[misc]
                async def processes_started(self, main: ProcessRef, init: ProcessRef | None) -> None:
                    early.bind(("127.0.0.1", self.port))

            spawner.__class__ = Binds
            async with started(spawner):
                with pytest.raises(OSError, match="in use"):
                    early.listen()
                assert spawner.box_main
                processes.send(spawner.box_main, signal.SIGKILL)
                assert await processes.ends_within(spawner.box_main, 5)
                with pytest.raises(OSError, match="in use"):
                    early.listen()

    asyncio.run(scenario())


def test_a_hub_killed_before_the_port_was_shut_shuts_it_when_it_is_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(a_spawner(tmp_path, "none")) as first:
            assert first.box_keeper
            with portguard.held_by(first.box_keeper) as held:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                state = first.get_state()
                state["keeper"][3] = False
                second = _after_restart(tmp_path, state)
                assert await second.get_url() == f"http://127.0.0.1:{first.port}/user/amy/"
                assert held.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 0
                assert second.get_state()["keeper"][3]

    asyncio.run(scenario())


def test_a_server_whose_port_cant_be_kept_any_more_is_ended_while_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with started(a_spawner(tmp_path, "none")) as first:
            state = first.get_state()
            state["keeper"][3] = False
            monkeypatch.setattr(portguard, "_PIDFD_GETFD", 100_000)  # no such call
            second = _after_restart(tmp_path, state)
            await second.get_url()
            assert await second.poll() is not None

    asyncio.run(scenario())


def _after_restart(state_dir: Path, state: dict[str, Any]) -> Recording:
    spawner = a_spawner(state_dir, "none")
    spawner.load_state(state)
    spawner.orm_spawner = None

    class Server:
        url, base_url = "http://127.0.0.1:1/user/amy/", "/user/amy/"

    spawner._server = Server()
    return spawner


def test_a_start_that_fails_keeps_no_port(tmp_path: Path) -> None:
    async def scenario() -> None:
        spawner = a_spawner(tmp_path, "none", "import sys; sys.exit(1)")
        with pytest.raises(SpawnException):
            await spawner.start()
        assert spawner.box_keeper is None
        assert _keepers(tmp_path) == []

    asyncio.run(scenario())


def test_a_port_is_let_go_when_the_hub_ends_and_no_route_leads_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(a_spawner(tmp_path, "none")) as spawner:
            assert _keepers(tmp_path)
            await spawner.stop()
            spawner.user.settings = {"proxy": Proxy()}
            spawner.clear_state()
            await asyncio.sleep(0)  # its release has begun; then the loop is cancelled, as at the hub's end

    asyncio.run(scenario())
    until(lambda: _keepers(tmp_path) == [], 10, "nobody keeps the port")


def _keepers(state: Path) -> list[ProcessRef]:
    mark = f"{processes.PORT_VARIABLE}={state}".encode()
    return processes.with_environment(lambda entry: entry == mark)


def test_a_port_that_a_site_fixed_can_be_used_again_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        spawner = a_spawner(tmp_path, "none", port=port)
        for _ in range(2):
            spawner.user.settings = {"proxy": Proxy()}
            assert await spawner.start() == f"http://127.0.0.1:{port}"
            await spawner.stop()
            spawner.clear_state()
        await guarding.released()

    asyncio.run(scenario())
