"""Which process is meant, does it still live, and how to end it and all that it started.

A pid alone names nothing: it is given again, and it means another process after a reboot. So a process is
known by its pid, the tick of its start and the boot it belongs to (`wire.ProcessRef`), and a signal goes
through a pidfd that pins the process before the tick is compared. The spawner (in the hub) and the service
use the same functions, so that both mean the same by "gone". Linux only; standard library only; no function
sleeps but `wait_gone`, which takes its limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from hubgov.wire import ProcessRef

ALLOCATION_VARIABLE = "HUBGOV_ALLOCATION_ID"
"""Environment variable that every process of an allocation inherits; `marked_with` looks for it."""

PORT_VARIABLE = "HUBGOV_PORT_OF"
"""Environment variable of the processes that keep servers' ports from others: the state folder they belong to."""

_LISTENING = "0A"
_FIRST_USER = 1000
"""Uids below are the system's own accounts."""


@functools.cache
def boot_id() -> str:
    """The kernel's name of this boot: pids and ticks of another boot mean nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


# --- who -----------------------------------------------------------------------------------------------


def identify(pid: int) -> ProcessRef | None:
    """The process that has this pid now; None when there is none or only a zombie is left of it."""
    seen = _stat(pid)
    return seen[0] if seen else None


def is_alive(ref: ProcessRef) -> bool:
    """Does exactly this process still run? A zombie, a reused pid and another boot all count as gone."""
    return ref.boot_id == boot_id() and identify(ref.pid) == ref


def descendants(ref: ProcessRef) -> list[ProcessRef]:
    """Children, their children and so on, parents first and older before younger; empty when it is gone.

    A process whose parent ended belongs to pid 1 of its namespace and is no longer found here: see
    `marked_with`.
    """
    if not is_alive(ref):
        return []
    children: dict[int, list[ProcessRef]] = {}
    for pid in _pids():
        if seen := _stat(pid):
            children.setdefault(seen[1], []).append(seen[0])
    found: list[ProcessRef] = []
    level = [ref]
    while level:
        below = [child for parent in level for child in children.get(parent.pid, [])]
        level = sorted(below, key=lambda child: (child.start_ticks, child.pid))
        found += level
    return found


def marked_with(allocation_id: str, uid: int | None = None) -> list[ProcessRef]:
    """Every process of our own uid that was started with HUBGOV_ALLOCATION_ID=`allocation_id`, wherever it moved,
    and every one of `uid`: whom the allocation's server belongs to where it has no box.

    Finds stragglers that left their session, their group and their parent. Others' processes don't count, since
    anybody may set the variable: as root these are a box's own two of bubblewrap, whose end is the end of all in
    the box. A process that overwrites its own environment hides from this; only a box holds such a one.
    """
    return _marked(lambda mark: mark == allocation_id, uid)


def marked_elsewhere(site: str) -> list[ProcessRef]:
    """Every process of our own uid that carries a mark of this state folder and another ledger than `site`'s:
    `site` is FOLDER.LEDGER, a mark ALLOCATION@FOLDER.LEDGER."""
    folder = site.partition(".")[0]

    def is_elsewhere(mark: str) -> bool:
        place = mark.partition("@")[2]
        return place != site and place.partition(".")[0] == folder

    return _marked(is_elsewhere)


def _marked(wanted: Callable[[str], bool], uid: int | None = None) -> list[ProcessRef]:
    """Every process of our own uid, or of `uid`, whose HUBGOV_ALLOCATION_ID is wanted."""
    name = f"{ALLOCATION_VARIABLE}=".encode()
    found, uids = [], {os.geteuid(), uid}
    for pid in _pids():
        # Identify first: should the pid be given again in between, the older identity signals nobody.
        ref = identify(pid)
        if ref and _real_uid(pid) in uids:
            entries = (entry for entry in _environment(pid).split(b"\0") if entry.startswith(name))
            if any(wanted(entry.removeprefix(name).decode(errors="replace")) for entry in entries):
                found.append(ref)
    return found


def uid_of(ref: ProcessRef) -> int | None:
    """Whose process it is; None when it is gone."""
    uid = _real_uid(ref.pid)
    return uid if is_alive(ref) else None


def with_environment(wanted: Callable[[bytes], bool]) -> list[ProcessRef]:
    """Every process that was started with a `NAME=value` entry that is wanted.

    Sees only what the caller may read: all when root, else the processes of its own uid.
    """
    found = []
    for pid in _pids():
        ref = identify(pid)
        if ref and any(wanted(entry) for entry in _environment(pid).split(b"\0")):
            found.append(ref)
    return found


# --- signals -------------------------------------------------------------------------------------------


def pin(ref: ProcessRef) -> int | None:
    """A pidfd of exactly this process, readable once it ends; None when it is gone. The caller closes it."""
    if ref.boot_id != boot_id():
        return None
    try:
        fd = os.pidfd_open(ref.pid)
    except ProcessLookupError:
        return None
    # Only now compare: the pidfd holds whoever has the pid, so it can't be given again under our hands.
    if identify(ref.pid) != ref:
        os.close(fd)
        return None
    return fd


def send(ref: ProcessRef, signal_number: int) -> bool:
    """Signal exactly this process; False when it is gone. PermissionError when it isn't ours to signal."""
    fd = pin(ref)
    if fd is None:
        return False
    try:
        signal.pidfd_send_signal(fd, signal_number)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


def wait_gone(refs: Iterable[ProcessRef], timeout_seconds: float) -> bool:
    """Wait until all of them are gone, at most so long; were they? Blocks, so not for an event loop."""
    deadline = time.monotonic() + timeout_seconds
    for ref in refs:
        fd = pin(ref)
        if fd is None:
            continue
        try:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                return False
        finally:
            os.close(fd)
    return True


@contextlib.contextmanager
def ending(ref: ProcessRef) -> Iterator[asyncio.Event]:
    """An event of the running loop that is set as soon as the process ends; set at once when it is gone."""
    ended = asyncio.Event()
    fd = pin(ref)
    if fd is None:
        ended.set()
        yield ended
        return
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.remove_reader(fd)
        ended.set()

    loop.add_reader(fd, end)
    try:
        yield ended
    finally:
        loop.remove_reader(fd)
        os.close(fd)


async def ends_within(ref: ProcessRef, timeout_seconds: float) -> bool:
    """`wait_gone` for one process in an event loop: wait for its end, at most so long; did it come?"""
    with ending(ref) as ended:
        if timeout_seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), timeout_seconds)
        return ended.is_set() or not is_alive(ref)


# --- a server and its box --------------------------------------------------------------------------------
#
# `main` is the server, `init` pid 1 of its box. Without a box, or when the hub died before it could write
# the two down, they are None and the mark in the environment finds what was started.


def signal_box(
    main: ProcessRef | None,
    init: ProcessRef | None,
    *,
    kill: bool,
    allocation_id: str | None = None,
    uid: int | None = None,
) -> bool:
    """Ask the server to end (SIGTERM), or with `kill` end everything of its box; was anyone there to signal?

    SIGKILL to pid 1 of a box makes the kernel end all in it, also what ignores every other signal. Without a
    box the server, its descendants and everything marked get it; what forks meanwhile is missed, so call
    again until `box_gone`. What isn't ours to signal counts as not signalled. OSError when no pidfd is to be had.
    """
    if not kill:
        refs = [main] if main is not None else []
    else:
        refs = [init] if init is not None else box_processes(main, None, allocation_id, uid=uid)
    signalled = False
    for ref in refs:
        # One that took another user's rights (sudo) isn't ours to end: it stays seen, and the others must go.
        with contextlib.suppress(PermissionError):
            signalled |= send(ref, signal.SIGKILL if kill else signal.SIGTERM)
    return signalled


def box_processes(
    main: ProcessRef | None,
    init: ProcessRef | None,
    allocation_id: str | None = None,
    *,
    uid: int | None = None,
) -> list[ProcessRef]:
    """The processes that have to end before the allocation is over; empty when none of them lives.

    With a box that is its pid 1: it ends last, after the kernel has ended the others. Without one the
    server, its descendants and everything marked, of our own uid or of `uid`, whose the server is.
    """
    if init is not None:
        return [init] if is_alive(init) else []
    found = [main, *descendants(main)] if main and is_alive(main) else []
    if allocation_id:
        found += [ref for ref in marked_with(allocation_id, uid) if ref not in found]
    return [ref for ref in found if ref.pid != os.getpid()]


def box_gone(
    main: ProcessRef | None,
    init: ProcessRef | None,
    allocation_id: str | None = None,
    *,
    uid: int | None = None,
) -> bool:
    """Is nothing left that could still use the allocation's devices?"""
    return not box_processes(main, init, allocation_id, uid=uid)


# --- sockets -------------------------------------------------------------------------------------------


def is_address(text: str) -> bool:
    """Is this an IP address in figures, as `listener_of` needs it?"""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def listener_of(ip: str, port: int) -> tuple[int, int] | None:
    """(uid, inode) of the socket that answers on ip:port in our network namespace; None when none listens.

    A socket bound to the address itself comes before one bound to all addresses, as in the kernel.
    """
    address = ipaddress.ip_address(ip)
    wildcard = ipaddress.ip_address("0.0.0.0" if address.version == 4 else "::")
    owners = _listeners(address.version)
    for candidate in (address, wildcard):
        if owner := owners.get(f"{_as_in_proc_net(candidate)}:{port:04X}"):
            return owner
    return None


def impostor_at(url: str, *, from_outside: bool = False) -> int | None:
    """The uid of an ordinary user's process that answers at a loopback `url` in another's place; None for nobody.

    All boxes share the machine's loopback: while the service is away any of them may take its port, and
    would be sent the token of whoever calls. So a caller looks here before it sends one. Root and system
    accounts count as the service, and so do we ourselves; but for a caller outside of all boxes
    (`from_outside`) only as long as the process isn't in a box: without root these have our uid.
    """
    parts = urlsplit(url)
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
    if parts.port is None or not is_address(host) or not ipaddress.ip_address(host).is_loopback:
        return None
    found = listener_of(host, parts.port)
    if found is None and ipaddress.ip_address(host).version == 4:
        # A socket of IPv6 takes calls of IPv4 as well.
        found = listener_of(f"::ffff:{host}", parts.port)
    if found is None:
        return None
    uid, inode = found
    if uid == os.geteuid():
        return uid if from_outside and not _is_held_outside(inode) else None
    return uid if uid >= _FIRST_USER else None


_held_outside: set[int] = set()  # sockets once seen there: the look at all open files is made once for each


def _is_held_outside(inode: int) -> bool:
    """Is the socket open in a process of our own uid and process namespace, so in none of a box?"""
    if inode in _held_outside:
        return True
    ours, link = os.readlink("/proc/self/ns/pid"), f"socket:[{inode}]"
    for pid in _pids():
        with contextlib.suppress(*_UNREADABLE):
            if os.readlink(f"/proc/{pid}/ns/pid") == ours and link in _open_files(pid):
                _held_outside.add(inode)
                return True
    return False


def owns_listener(ref: ProcessRef, inode: int) -> bool:
    """Is the socket with this inode open in the process or one of its descendants?"""
    link = f"socket:[{inode}]"
    return any(link in _open_files(owner.pid) for owner in (ref, *descendants(ref)) if is_alive(owner))


def _listeners(version: int) -> dict[str, tuple[int, int]]:
    """Every listening socket of IPv4 or IPv6: address and port as in /proc/net, and its (uid, inode)."""
    table = Path("/proc/net/tcp" if version == 4 else "/proc/net/tcp6")
    if not table.exists():  # a kernel without IPv6
        return {}
    rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
    return {row[1]: (int(row[7]), int(row[9])) for row in rows if row[3] == _LISTENING}


def _as_in_proc_net(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """The address in the notation of /proc/net/tcp: 32-bit words in the machine's byte order."""
    words = [address.packed[i : i + 4] for i in range(0, len(address.packed), 4)]
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


# --- /proc ---------------------------------------------------------------------------------------------
#
# A process may end between any two reads, and another user's may not be readable: both mean "not found".

_UNREADABLE = (FileNotFoundError, ProcessLookupError, PermissionError)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _stat(pid: int) -> tuple[ProcessRef, int] | None:
    """Identity and parent's pid of a live process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The command's name may hold blanks and brackets: the fields are counted from its last bracket.
        fields = text.rpartition(")")[2].split()
        # A process whose first thread ended shows as a zombie while its other threads run on.
        if fields[0] in "ZX" and len(os.listdir(f"/proc/{pid}/task")) < 2:
            return None
    except _UNREADABLE:
        return None
    return ProcessRef(pid=pid, start_ticks=int(fields[19]), boot_id=boot_id()), int(fields[1])


def _real_uid(pid: int) -> int | None:
    """Whose process it is. The owner of its /proc folder is root when it forbids to be looked at."""
    with contextlib.suppress(*_UNREADABLE):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[1])
    return None


def _environment(pid: int) -> bytes:
    """The environment the process was started with; of any of its threads, as the first may have ended."""
    with contextlib.suppress(*_UNREADABLE):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(*_UNREADABLE):
                if text := Path(f"/proc/{pid}/task/{thread}/environ").read_bytes():
                    return text
    return b""


def _open_files(pid: int) -> set[str]:
    """What the process's file descriptors point at."""
    found = set()
    with contextlib.suppress(*_UNREADABLE):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(*_UNREADABLE):  # one file closed meanwhile must not hide the others
                found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found
