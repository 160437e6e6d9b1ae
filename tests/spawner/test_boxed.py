"""BoxedSpawner in its three modes: start, find again, end; with a small server and stand-ins for the hub.

The real hub and the real single-user server are in test_boxed_hub.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hubgov_spawner import accounts, boxed, isolation
from hubgov_spawner.boxed import BoxedSpawner
from jupyterhub import orm
from jupyterhub.spawner import SpawnException
from spawner.boxing import LISTEN, MODES, USER, Recording, a_spawner, started
from waiting import until_async

from hubgov import errors, processes
from hubgov.wire import ProcessRef

STRAGGLER = """
import subprocess
stubborn = "trap '' TERM INT HUP; touch straggler; while :; do sleep 1000; done"
subprocess.Popen(["setsid", "-f", "bash", "-c", stubborn])
"""
IGNORE_TERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


def home_of(spawner: Recording) -> Path:
    return Path(spawner.state_dir, "homes", f"hgu{USER}")


def left_of(spawner: Recording, mark: str) -> list[ProcessRef]:
    """Also what runs as the user: `marked_with` counts only what is the hub's."""
    return processes.with_environment(lambda entry: entry == f"HUBGOV_ALLOCATION_ID={mark}".encode())


def run(scenario: Callable[[], Any]) -> None:
    asyncio.run(scenario())


@pytest.mark.parametrize("mode", MODES)
def test_a_server_starts_is_polled_and_stops(mode: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(a_spawner(tmp_path, mode)) as spawner:
            mark = spawner.box_mark
            assert spawner.told == [(spawner.box_main, spawner.box_init)]
            assert (spawner.box_init is None) is (mode == "none")
            assert await spawner.poll() is None
            await spawner.stop()
            assert await spawner.poll() is not None
            assert left_of(spawner, mark) == []

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_stop_leaves_nothing_even_of_what_ignores_it(mode: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        program = STRAGGLER + IGNORE_TERM + LISTEN
        async with started(a_spawner(tmp_path, mode, program, term_timeout=0.3)) as spawner:
            mark = spawner.box_mark
            await until_async(_is_there(home_of(spawner) / "straggler"), 10, "the straggler")
            assert len(left_of(spawner, mark)) > 1
            await spawner.stop()
            assert left_of(spawner, mark) == []

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_what_a_dead_server_left_is_killed_at_the_next_poll(mode: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(a_spawner(tmp_path, mode, STRAGGLER + LISTEN)) as spawner:
            mark = spawner.box_mark
            await until_async(_is_there(home_of(spawner) / "straggler"), 10, "the straggler")
            assert spawner.box_main
            assert processes.send(spawner.box_main, signal.SIGKILL)
            assert await processes.ends_within(spawner.box_main, 5)
            assert left_of(spawner, mark)
            assert await spawner.poll() is not None
            await until_async(_empty(spawner, mark), 5, "the box is empty")

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_a_restarted_hub_finds_the_server_and_can_stop_it(mode: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(a_spawner(tmp_path, mode)) as first:
            second = a_spawner(tmp_path, mode)
            second.load_state(first.get_state())
            assert second.get_state() == first.get_state()
            assert await second.poll() is None
            await second.stop()
            assert await second.poll() == 0
            assert left_of(first, first.box_mark) == []
            second.clear_state()
            assert second.get_state() == {}

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_ends_while_starting_fails_at_once(mode: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        spawner = a_spawner(tmp_path, mode, "import sys; sys.exit('no such luck')")
        with pytest.raises(SpawnException, match="ended") as caught:
            await asyncio.wait_for(spawner.start(), 10)
        assert caught.value.reason == "exited"
        assert await spawner.poll() is not None
        assert "no such luck" in (home_of(spawner) / ".hubgov" / "server.log").read_text()

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_a_port_taken_by_another_is_no_server_of_ours(mode: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as thief:
            program = "import signal; signal.pause()"
            spawner = a_spawner(tmp_path, mode, program, port=thief.getsockname()[1])
            with pytest.raises(SpawnException, match="another process") as caught:
                await asyncio.wait_for(spawner.start(), 10)
        assert caught.value.reason == "port"
        assert left_of(spawner, spawner.box_mark) == []

    run(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_start_leaves_nothing(mode: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        spawner = a_spawner(tmp_path, mode, STRAGGLER + IGNORE_TERM + "signal.pause()")
        start = asyncio.ensure_future(spawner.start())
        await until_async(_is_there(home_of(spawner) / "straggler"), 10, "the straggler")
        assert await spawner.poll() is None
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(start, 0.9)  # the hub waits one second
        assert left_of(spawner, spawner.box_mark) == []

    run(scenario)


def test_a_start_cancelled_while_it_forks_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        spawner = a_spawner(tmp_path, "none", "import signal; signal.pause()")
        start = asyncio.ensure_future(spawner.start())
        await until_async(_has_mark(spawner), 5, "about to fork")
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        assert left_of(spawner, spawner.box_mark) == []

    run(scenario)


def test_an_address_by_name_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(SpawnException, match="no IP address"):
            await a_spawner(tmp_path, "none", ip="localhost").start()

    run(scenario)


def test_after_a_restart_a_thief_on_the_port_is_not_the_server(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(a_spawner(tmp_path, "none")) as first:
            with socket.create_server(("127.0.0.1", 0)) as thief:
                state = {**first.get_state(), "port": thief.getsockname()[1]}
                second = a_spawner(tmp_path, "none")
                second.load_state(state)
                second.orm_spawner = None
                second._server = SimpleNamespace(url="http://127.0.0.1:1/user/amy/", base_url="/user/amy/")
                assert await second.get_url() == "http://127.0.0.1:1/user/amy/"
                assert await second.poll() is not None

    run(scenario)


def test_nothing_of_the_hubs_environment_reaches_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        environment = {"SITE": "named", "CUDA_VISIBLE_DEVICES": "GPU-1", "ASCEND_RT_VISIBLE_DEVICES": "2"}
        environment["HUBGOV_ALLOCATION_ID"] = "allocation-of-this-test"
        async with started(a_spawner(tmp_path, "none", environment=environment)) as spawner:
            assert spawner.box_main
            text = Path(f"/proc/{spawner.box_main.pid}/environ").read_text()
            seen = dict(pair.split("=", 1) for pair in text.split("\0") if pair)
            assert environment.items() <= seen.items()
            assert seen["JUPYTERHUB_API_TOKEN"] == "secret"
            assert seen["HOME"] == str(home_of(spawner))
            assert spawner.box_mark == "allocation-of-this-test"
            prefixes = ("JUPYTER", "JPY_", "HUBGOV_", "SITE")
            known = {"HOME", "USER", "LOGNAME", "SHELL", "LANG", "PATH", *environment}
            assert {name for name in seen if not name.startswith(prefixes)} <= known | {"LC_CTYPE"}

    monkeypatch.setenv("CONFIGPROXY_AUTH_TOKEN", "a secret of the hub")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/hub")
    run(scenario)


def test_no_device_is_visible_when_none_is_granted(tmp_path: Path) -> None:
    spawner = a_spawner(tmp_path, "none")
    environment = spawner._environment(accounts.own_account(), "/home/x", "/tmp/x")
    assert environment["CUDA_VISIBLE_DEVICES"] == ""


def test_a_second_user_isnt_served_without_a_box_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        with pytest.raises(SpawnException, match="can't be kept apart") as caught:
            await a_spawner(tmp_path, "auto").start()
        assert caught.value.reason == "isolation"
        async with started(a_spawner(tmp_path, "none")):
            pass

    monkeypatch.setattr(boxed, "_detect", lambda _: isolation.detect("none"))
    run(scenario)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such device": ({}, "device"),
    "the state would show": ({"read_only_paths": ["/"]}, "invalid"),
    "the ledger would show": ({"read_only_paths": ["/srv"], "private_paths": ["/srv/hubgov.sqlite"]}, "invalid"),
    "the ledger lies in /usr": ({"private_paths": ["/usr/local/hubgov.sqlite"]}, "invalid"),
    "the hub's database would show": ({"read_only_paths": ["/opt"]}, "invalid"),
}


@pytest.mark.boxed
@pytest.mark.parametrize(("change", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_box_that_would_be_wrong_isnt_made(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    class WithDevice(Recording):
        def box_device_nodes(self) -> tuple[str, ...]:
            return ("/dev/hubgov-none",) if reason == "device" else ()

        def hub_files(self) -> list[str]:
            return ["/opt/hub/jupyterhub.sqlite"]

    async def scenario() -> None:
        plain = a_spawner(tmp_path, "root", **change)
        spawner = WithDevice(parent=None, **{n: getattr(plain, n) for n in _GIVEN})
        with pytest.raises(SpawnException) as caught:
            await spawner.start()
        assert caught.value.reason == reason

    run(scenario)


FILES = {"sqlite:///{0}/hub.sqlite": ["{0}/hub.sqlite"], "sqlite://": [], "sqlite:///:memory:": []}


@pytest.mark.parametrize("url", FILES)
def test_the_hubs_database_is_known_where_it_is_a_file(url: str, tmp_path: Path) -> None:
    spawner = a_spawner(tmp_path, "none")
    spawner.user.db = orm.new_session_factory(url.format(tmp_path))()
    try:
        assert BoxedSpawner.hub_files(spawner) == [path.format(tmp_path) for path in FILES[url]]
    finally:
        spawner.user.db.close()
        spawner.user.db.get_bind().dispose()


def test_stop_fails_when_something_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with started(a_spawner(tmp_path, "none", kill_timeout=0.1)) as spawner:
            with monkeypatch.context() as patched:
                patched.setattr(processes, "send", lambda ref, number: True)
                with pytest.raises(errors.Unavailable, match="still there") as caught:
                    await spawner.stop(now=True)
                assert caught.value.code == "box_alive"
            spawner.kill_timeout = 5.0

    run(scenario)


def test_a_log_that_cant_be_made_doesnt_lock_the_user_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        spawner = a_spawner(tmp_path, "none")
        home = Path(accounts.prepare_home(str(tmp_path), f"hgu{USER}", uid=os.getuid(), gid=os.getgid()))
        (home / "elsewhere").mkdir()
        (home / ".hubgov").symlink_to(home / "elsewhere")
        async with started(spawner):
            assert list((home / "elsewhere").glob("*.log")) == []

    run(scenario)


_GIVEN = (
    "user",
    "hub",
    "orm_spawner",
    "api_token",
    "state_dir",
    "isolation",
    "cmd",
    "read_only_paths",
    "private_paths",
)


def _is_there(path: Path) -> Callable[[], Any]:
    async def check() -> bool:
        return path.exists()

    return check


def _empty(spawner: Recording, mark: str) -> Callable[[], Any]:
    async def check() -> bool:
        return not left_of(spawner, mark)

    return check


def _has_mark(spawner: Recording) -> Callable[[], Any]:
    async def check() -> bool:
        return bool(spawner.box_mark)

    return check
