"""Two users of a real hub, as root: what amy's notebook can and can't do, and who survives what."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import signal
import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hub_under_test import HubUnderTest
from waiting import until

from hubgov import processes
from hubgov.wire import ProcessRef

pytestmark = pytest.mark.boxed

GRANTED, OTHER = "/dev/hubgov-test-granted", "/dev/hubgov-test-other"


@pytest.fixture(scope="module")
def devices() -> Iterator[None]:
    """Two devices of the machine, both like /dev/zero; open to everybody, so that only the view decides."""
    mask = os.umask(0)
    try:
        for node in (GRANTED, OTHER):
            Path(node).unlink(missing_ok=True)
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        yield
    finally:
        os.umask(mask)
        for node in (GRANTED, OTHER):
            Path(node).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def hub(devices: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubUnderTest]:
    """A hub with the servers of amy, who has a device, and bo up."""
    hub = HubUnderTest(tmp_path_factory.mktemp("state"), "root", {"TEST_NODE_OF_AMY": GRANTED})
    try:
        hub.start()
        for user in ("amy", "bo"):
            assert hub.launch(user).status_code in (201, 202), (hub.state / "hub.log").read_text()[-3000:]
        yield hub
    finally:
        hub.close()


def processes_of(hub: HubUnderTest, user: str) -> tuple[ProcessRef, ProcessRef]:
    """(server, pid 1 of its box)."""
    state = hub.server(user)["state"]

    def ref(pair: list[int]) -> ProcessRef:
        return ProcessRef(pid=pair[0], start_ticks=pair[1], boot_id=state["boot"])

    return ref(state["main"]), ref(state["init"])


def home_of(hub: HubUnderTest, user: str) -> Path:
    return hub.state / "homes" / {"amy": "hgu1", "bo": "hgu2"}[user]


# --- what a cell can do ---------------------------------------------------------------------------------

PROBES = """
import ctypes, errno, getpass, json, os, pathlib, pty, signal, socket, subprocess, urllib.error, urllib.request

def ask(url, **headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5).status
    except urllib.error.HTTPError as error:
        return error.code

def attempt(text):
    try:
        return eval(text)
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))

print(json.dumps({name: attempt(text) for name, text in json.loads(PROBES).items()}))
"""

FAILS = {
    "read the hub's database": ("open('{state}/jupyterhub.sqlite')", "ENOENT"),
    "read the cookie secret": ("open('{state}/jupyterhub_cookie_secret')", "ENOENT"),
    "list the state folder": ("os.listdir('{state}')", "ENOENT"),
    "bo's home on the host": ("os.listdir('{state}/homes/hgu2')", "ENOENT"),
    "bo's home in a box": ("os.listdir('/home/hgu2')", "ENOENT"),
    "other homes": ("os.listdir('/home')", ["hgu1"]),
    "the hub's environment": ("open('/proc/{hub}/environ')", "ENOENT"),
    "the hub's files": ("os.listdir('/proc/{hub}/root')", "ENOENT"),
    "bo's environment": ("open('/proc/{bo}/environ')", "ENOENT"),
    "bo's files": ("os.listdir('/proc/{bo}/root')", "ENOENT"),
    "signal bo's server": ("os.kill({bo}, 9)", "ESRCH"),
    "read the memory of the box's pid 1": ("open('/proc/1/mem')", "EACCES"),
    "see the files of the box's pid 1": ("os.listdir('/proc/1/root')", "EACCES"),
    "a device that wasn't granted": ("os.open('{other}', 0)", "ENOENT"),
    "a disk": ("os.open('/dev/vda', 0)", "ENOENT"),
    "make a device": ("os.mknod('node', 0o20666, os.makedev(1, 5))", "EPERM"),
    "write to the system": ("open('/usr/x', 'w')", "EROFS"),
    "write to Python's packages": ("open('{package}/x', 'w')", "EROFS"),
    "add to the root folder": ("os.mkdir('/x')", "EROFS"),
    "a user namespace": ("subprocess.run(['unshare', '-Ur', 'true'], stderr=-3).returncode", 1),
    "one through clone": ("ctypes.CDLL(None).syscall({clone}, 0x10000011, 0, 0, 0, 0)", -1),
    "become root": ("os.setuid(0)", "EPERM"),
    "a low port": ("socket.create_server(('127.0.0.1', 80))", "EACCES"),
    "bo's contents without a token": ("ask('{bo_url}/api/contents')", 403),
    "bo's contents with amy's token": (
        "ask('{bo_url}/api/contents', Authorization='token ' + os.environ['JUPYTERHUB_API_TOKEN'])",
        403,
    ),
    "bo at the hub": (
        "ask(os.environ['JUPYTERHUB_API_URL'] + '/users/bo', "
        "Authorization='token ' + os.environ['JUPYTERHUB_API_TOKEN'])",
        404,
    ),
}
WORKS = {
    "the granted device": ("os.read(os.open('{granted}', 0), 1).hex()", "00"),
    "the user's name": ("getpass.getuser()", "hgu1"),
    "the user's own uid": ("[os.getuid(), os.getgid(), os.getgroups()]", [61001, 61001, []]),
    "no capability": ("[l for l in open('/proc/self/status') if l[:6] in 'CapEff CapBnd'][0].split()[1]", "0" * 16),
    "the home": ("pathlib.Path.home().joinpath('x').write_text('kept')", 4),
    "/tmp": ("pathlib.Path('/tmp/x').write_text('1')", 1),
    "shared memory": ("pathlib.Path('/dev/shm/x').write_text('1')", 1),
    "a terminal": ("len(pty.openpty())", 2),
    "the resolver's settings": ("len(open('/etc/resolv.conf').read()) >= 0", True),
    "localhost": ("socket.gethostbyname('localhost')", "127.0.0.1"),
    "the hub's packages": ("__import__('hubgov').__name__", "hubgov"),
    "only own processes": ("max(int(n) for n in os.listdir('/proc') if n.isdecimal()) < 100", True),
    "amy's own server": ("os.environ['JUPYTERHUB_USER']", "amy"),
    "no secret of the hub": ("[n for n in os.environ if n.startswith('TEST_')]", []),
    "kernels aren't on the network": ("'ipc' in open(__import__('ipykernel').get_connection_file()).read()", True),
}


@pytest.fixture(scope="module")
def cell(hub: HubUnderTest) -> dict[str, Any]:
    """What amy's notebook got for each of the attempts: a value or the name of the error."""
    assert hub.process is not None
    facts = {
        "state": hub.state,
        "clone": {"x86_64": 56, "aarch64": 220}[platform.machine()],
        "hub": hub.process.pid,
        "bo": processes_of(hub, "bo")[0].pid,
        "bo_url": hub.base("bo"),
        "granted": GRANTED,
        "other": OTHER,
        "package": Path(processes.__file__).parent,
    }
    probes = {name: text.format(**facts) for name, (text, _) in (FAILS | WORKS).items()}
    code = f"PROBES = {json.dumps(probes)!r}\n{PROBES}"
    answers: dict[str, Any] = json.loads(hub.run("amy", hub.kernel("amy"), code))
    return answers


@pytest.mark.parametrize("name", FAILS)
def test_a_cell_cant(name: str, cell: dict[str, Any]) -> None:
    assert cell[name] == FAILS[name][1]


@pytest.mark.parametrize("name", WORKS)
def test_a_cell_has(name: str, cell: dict[str, Any]) -> None:
    assert cell[name] == WORKS[name][1]


def test_files_belong_to_the_user(hub: HubUnderTest, cell: dict[str, Any]) -> None:
    home = home_of(hub, "amy")
    assert (home / "x").stat().st_uid == 61001
    assert home.stat().st_mode & 0o7777 == 0o700
    assert (home / ".hubgov" / "server.log").stat().st_uid == 61001


def test_a_terminal_answers(hub: HubUnderTest) -> None:
    hub.terminal("amy", "echo $((6*7))-$USER", "42-hgu1")


def test_a_server_that_cant_start_is_told_at_once(hub: HubUnderTest) -> None:
    answer = hub.launch("carl")
    assert answer.status_code == 500
    assert "The server ended while it was starting" in answer.json()["message"]
    assert not hub.server("carl").get("ready")


# --- who survives what: each leaves the hub and amy's server up --------------------------------------------

STRAGGLER = """
import subprocess
stubborn = "trap '' TERM INT HUP; touch straggler; while :; do sleep 1000; done"
subprocess.Popen(["setsid", "-f", "bash", "-c", stubborn])
"""


def test_a_killed_hub_finds_kernels_and_variables_again(hub: HubUnderTest) -> None:
    kernel = hub.kernel("amy")
    hub.run("amy", kernel, "kept = 6 * 7")
    before = processes_of(hub, "amy")
    hub.end(signal.SIGKILL)
    assert all(processes.is_alive(ref) for ref in before)
    hub.start()
    until(lambda: hub.server("amy").get("ready"), 30, "amy's server is known again")
    assert processes_of(hub, "amy") == before
    assert hub.run("amy", kernel, "print(kept)") == "42\n"


def test_a_hub_killed_while_a_server_starts_takes_it_up(hub: HubUnderTest) -> None:
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(hub.launch, "dora")
        state = until(functools.partial(stored_state, hub, "dora"), 20, "the hub's database has the box")
        hub.end(signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            asked.result()
    hub.start()
    until(lambda: hub.server("dora").get("ready"), 30, "dora's server is known")
    assert hub.server("dora")["state"]["main"] == state["main"]
    assert hub.run("dora", hub.kernel("dora"), "print(1)") == "1\n"


def stored_state(hub: HubUnderTest, user: str) -> dict[str, Any]:
    """What the hub would know of the user's server after a restart."""
    query = "select s.state from spawners s join users u on s.user_id = u.id where u.name = ?"
    with contextlib.closing(sqlite3.connect(hub.state / "jupyterhub.sqlite")) as database:
        row = database.execute(query, (user,)).fetchone()
    return json.loads(row[0] or "{}") or {} if row else {}


def test_stop_ends_what_ignores_every_signal(hub: HubUnderTest) -> None:
    mark = hub.server("bo")["state"]["mark"]
    hub.run("bo", hub.kernel("bo"), STRAGGLER)
    until((home_of(hub, "bo") / "straggler").exists, 10, "the straggler")
    assert hub.api("DELETE", "/users/bo/server").status_code in (202, 204)
    until(lambda: not hub.server("bo"), 30, "bo's server has stopped")
    assert processes.with_environment(lambda entry: entry == f"HUBGOV_ALLOCATION_ID={mark}".encode()) == []


def test_a_killed_server_takes_its_box_along(hub: HubUnderTest) -> None:
    main, init = processes_of(hub, "amy")
    hub.run("amy", hub.kernel("amy"), STRAGGLER)
    until((home_of(hub, "amy") / "straggler").exists, 10, "the straggler")
    assert processes.send(main, signal.SIGKILL)
    until(functools.partial(processes.box_gone, main, init), 10, "the box is empty")
    until(lambda: not hub.server("amy"), 10, "the hub knows")
