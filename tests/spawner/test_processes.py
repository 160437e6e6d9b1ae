"""hubgov.processes: identity, signals, stragglers and listeners, with real processes."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

from hubgov import processes
from hubgov.wire import ProcessRef


@contextmanager
def running(*command: str, mark: str = "none") -> Iterator[tuple[subprocess.Popen[bytes], ProcessRef]]:
    """A child process and its identity; killed and reaped at the end."""
    environment = {"PATH": os.environ["PATH"], processes.ALLOCATION_VARIABLE: mark}
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)
    try:
        ref = processes.identify(child.pid)
        assert ref is not None
        yield child, ref
    finally:
        for left in processes.marked_with(mark):
            processes.send(left, signal.SIGKILL)
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


OTHERS = {
    "a pid given again: another start": {"start_ticks": 1},
    "another boot": {"boot_id": "00000000-0000-0000-0000-000000000000"},
    "a pid nobody has": {"pid": 2**22 - 1},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS.keys())
def test_another_process_is_never_taken_for_ours(change: dict[str, object]) -> None:
    with running("sleep", "60") as (child, ref):
        other = dataclasses.replace(ref, **change)  # type: ignore[arg-type]
        assert processes.is_alive(ref)
        assert not processes.is_alive(other)
        assert not processes.send(other, signal.SIGKILL)
        assert processes.pin(other) is None
        assert processes.descendants(other) == []
        assert processes.box_gone(other, other)
        assert child.poll() is None


def test_a_zombie_is_gone() -> None:
    with running("sleep", "60") as (child, ref):
        assert processes.send(ref, signal.SIGKILL)
        assert processes.wait_gone([ref], 5)
        # Not reaped: the pid is still taken.
        assert Path(f"/proc/{child.pid}/stat").exists()
        assert processes.identify(child.pid) is None
        assert not processes.is_alive(ref)
        assert not processes.send(ref, signal.SIGTERM)


def test_a_process_whose_first_thread_ended_is_alive() -> None:
    code = (
        "import ctypes, threading; threading.Thread(target=threading.Event().wait).start(); "
        "print(flush=True); ctypes.CDLL(None).pthread_exit(None)"
    )
    mark = uuid.uuid4().hex
    with running(sys.executable, "-c", code, mark=mark) as (child, ref):
        state = Path(f"/proc/{child.pid}/stat")
        until(lambda: state.read_text().rpartition(")")[2].split()[0] == "Z", 10, "the first thread ends")
        assert processes.is_alive(ref)
        assert processes.marked_with(mark) == [ref]


def test_the_name_of_a_command_may_hold_brackets_and_blanks(tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1 (b"
    odd.symlink_to("/bin/sleep")
    with running(str(odd), "60") as (child, ref):
        text = until(lambda: Path(f"/proc/{child.pid}/stat").read_text(), 5, "stat")
        assert str(ref.start_ticks) == text.rpartition(")")[2].split()[19]


def test_descendants_come_parents_first() -> None:
    with running("sh", "-c", "sh -c 'sleep 60 & wait' & wait") as (_, ref):
        until(lambda: len(processes.descendants(ref)) == 2, 5, "both")
        child, grandchild = processes.descendants(ref)
        assert processes.descendants(child) == [grandchild]


def test_a_straggler_in_its_own_session_is_found_by_its_mark_and_killed() -> None:
    mark = uuid.uuid4().hex
    with running("sh", "-c", "setsid -f sh -c 'trap \"\" TERM; sleep 60; :'; sleep 60", mark=mark) as (child, ref):
        until(lambda: len(processes.marked_with(mark)) >= 3, 5, "all")
        for below in processes.descendants(ref):
            processes.send(below, signal.SIGKILL)
        child.wait()
        left = until(lambda: processes.marked_with(mark), 5, "the straggler")
        assert processes.descendants(ref) == []
        assert processes.marked_with(mark[:-1]) == []
        assert not processes.box_gone(ref, None, mark)
        assert processes.signal_box(ref, None, kill=True, allocation_id=mark)
        assert processes.wait_gone(left, 5)
        assert processes.box_gone(ref, None, mark)


@pytest.mark.boxed
def test_another_users_process_counts_by_no_mark() -> None:
    mark = uuid.uuid4().hex
    environment = {"PATH": os.environ["PATH"], processes.ALLOCATION_VARIABLE: mark}
    with subprocess.Popen(["sleep", "60"], env=environment, user=61998, group=61998, extra_groups=[]) as other:
        try:
            assert processes.marked_with(mark) == []
            assert processes.box_gone(None, None, mark)
            assert not processes.signal_box(None, None, kill=True, allocation_id=mark)
            assert other.poll() is None
        finally:
            other.kill()


def test_one_that_is_not_ours_to_signal_keeps_nobody_else_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = uuid.uuid4().hex
    with running("sleep", "60", mark=mark) as (_, other), running("sleep", "60", mark=mark) as (child, _):
        send = processes.send

        def refuse(to: ProcessRef, number: int) -> bool:
            if to == other:
                raise PermissionError
            return send(to, number)

        with monkeypatch.context() as patched:
            patched.setattr(processes, "send", refuse)
            assert processes.signal_box(None, None, kill=True, allocation_id=mark)
        child.wait(10)
        assert processes.box_processes(None, None, mark) == [other]


@pytest.mark.parametrize(
    ("kill", "box"), [(False, False), (False, True), (True, False), (True, True)], ids=str
)  # fmt: skip
def test_what_is_not_ours_to_signal_counts_as_not_signalled(
    kill: bool, box: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_fd: int, _number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    with running("sleep", "60") as (child, ref):
        monkeypatch.setattr("signal.pidfd_send_signal", refuse)
        assert not processes.signal_box(ref, ref if box else None, kill=kill)
        monkeypatch.undo()
        assert child.poll() is None
        assert not processes.box_gone(ref, ref if box else None), "it stays seen"


HIDDEN = """
import os, sys
from hubgov import processes
init, mine = processes.identify(1), processes.identify(os.getpid())
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
try:
    open("/proc/1/stat").read()
    sys.exit("nothing is hidden here")
except PermissionError:
    pass
assert init is not None and mine is not None
assert processes.identify(1) is None and not processes.is_alive(init)
assert processes.descendants(init) == [] and processes.marked_with("nobody's") == []
assert processes.pin(init) is None and not processes.send(init, 0)
assert processes.box_gone(init, init)
assert processes.is_alive(mine)
"""


@pytest.mark.boxed
def test_where_proc_hides_other_peoples_processes_they_are_not_found() -> None:
    """`hidepid`: nothing but one's own can be read, and no function fails of that."""
    hide = 'mount -t proc -o hidepid=1 proc /proc && exec "$0" -c "$1"'
    run = subprocess.run(
        ["unshare", "-m", "sh", "-c", hide, sys.executable, HIDDEN], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_without_kill_only_the_server_is_asked_to_end() -> None:
    mark = uuid.uuid4().hex
    with running("sh", "-c", "sleep 60 & wait", mark=mark) as (child, ref):
        until(lambda: processes.descendants(ref), 5, "the child")
        assert processes.signal_box(ref, None, kill=False, allocation_id=mark)
        assert child.wait(5) == -signal.SIGTERM
        assert len(processes.marked_with(mark)) == 1


def test_waiting_for_one_that_stays_takes_no_longer_than_asked() -> None:
    with running("sleep", "60") as (_, ref):
        assert not processes.wait_gone([ref], 0.05)
        assert not processes.wait_gone([ref], -1)


def test_an_event_loop_hears_of_the_end() -> None:
    async def scenario(ref: ProcessRef) -> None:
        assert not await processes.ends_within(ref, 0.01)
        with processes.ending(ref) as ended:
            assert not ended.is_set()
            processes.send(ref, signal.SIGKILL)
            await asyncio.wait_for(ended.wait(), 5)
        assert await processes.ends_within(ref, 0)

    with running("sleep", "60") as (_, ref):
        asyncio.run(scenario(ref))


LISTENERS = {
    "the address itself": (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
    "all addresses": (socket.AF_INET, "0.0.0.0", "127.0.0.1"),
    "IPv6": (socket.AF_INET6, "::1", "::1"),
}


@pytest.mark.parametrize(("family", "bound", "asked"), LISTENERS.values(), ids=LISTENERS.keys())
def test_who_listens(family: socket.AddressFamily, bound: str, asked: str) -> None:
    with socket.socket(family) as listener:
        listener.bind((bound, 0))
        port = listener.getsockname()[1]
        assert processes.listener_of(asked, port) is None  # bound, but doesn't listen
        listener.listen()
        inode = os.fstat(listener.fileno()).st_ino
        assert processes.listener_of(asked, port) == (os.getuid(), inode)
        me = processes.identify(os.getpid())
        assert me is not None
        assert processes.owns_listener(me, inode)
        with running("sleep", "60") as (_, other):
            assert not processes.owns_listener(other, inode)


def test_a_listener_of_a_child_counts_as_the_servers() -> None:
    code = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
    code += "print(s.getsockname()[1], flush=True)"
    with running("sh", "-c", f'{sys.executable} -c "{code}; time.sleep(60)"; :') as (child, ref):
        assert child.stdout is not None
        listener = processes.listener_of("127.0.0.1", int(child.stdout.readline()))
        assert listener is not None
        assert processes.owns_listener(ref, listener[1])


IMPOSTORS = {
    "on the address": (socket.AF_INET, "127.0.0.1", "http://127.0.0.1:{port}/services/hubgov"),
    "on all addresses": (socket.AF_INET, "0.0.0.0", "http://localhost:{port}/"),
    "on all addresses of both kinds": (socket.AF_INET6, "::", "http://127.0.0.1:{port}/"),
    "on IPv6": (socket.AF_INET6, "::1", "http://[::1]:{port}/"),
}


@pytest.mark.parametrize(("family", "bound", "url"), IMPOSTORS.values(), ids=IMPOSTORS.keys())
def test_who_took_the_services_port_is_known(
    family: socket.AddressFamily, bound: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(family) as listener:
        listener.bind((bound, 0))
        address = url.format(port=listener.getsockname()[1])
        monkeypatch.setattr(processes, "_FIRST_USER", 0)
        assert processes.impostor_at(address) is None, "nobody listens"
        listener.listen()
        assert processes.impostor_at(address) is None, "we ourselves"
        assert processes.impostor_at(address, from_outside=True) is None, "we ourselves, in no box"
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        assert processes.impostor_at(address) == os.getuid()
        monkeypatch.setattr(processes, "_FIRST_USER", os.getuid() + 1)
        assert processes.impostor_at(address) is None, "a system account"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://10.0.0.1:80/", "https://hub.example:8000/", "nonsense"]
)
def test_only_this_machines_own_addresses_are_looked_up(url: str) -> None:
    assert processes.impostor_at(url) is None


LISTENS = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
input()
"""


@pytest.mark.boxed
def test_a_box_that_has_our_own_uid_is_known_by_its_process() -> None:
    """As without root, where all boxes have the hub's uid."""
    view = ["bwrap", "--unshare-user", "--uid", "61001", "--gid", "61001", "--unshare-pid", "--bind", "/", "/"]
    python = ["--proc", "/proc", "--", "/usr/bin/python3", "-c", LISTENS]
    for before, impostor in (([], None), (view, os.getuid())):
        command = [*before, *(python if before else python[3:])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/services/hubgov"
            assert processes.impostor_at(url, from_outside=True) == impostor
            assert processes.impostor_at(url) is None, "the uid alone doesn't tell"
            process.communicate(b"\n")
