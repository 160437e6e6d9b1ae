"""A server's port is nobody else's for as long as a route leads there, also when the server ended by itself.

All boxes share the machine's ports. Whoever took the port of a server that just ended would be sent its owner's
requests, cookies and all, until the hub has taken the route away. So a second socket is bound to the port, one that
never listens; the kernel's rules for binding do the rest:

- Without SO_REUSEADDR nobody else can bind the port, and a call to it is refused at once.
- While it has SO_REUSEADDR, the server may bind and listen beside it (every common server sets that option).
  So may others: who listens is looked up afterwards (`processes.owns_listener`).
- Once the server listens, the option is taken away. Then nobody can bind the port any more, and nobody who has
  bound it meanwhile can listen.

The socket is held by a small process of its own, the keeper, so that this survives the hub.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
import signal
import socket
import subprocess
from typing import Any
from urllib.parse import urlsplit

from hubgov import errors, processes
from hubgov.wire import ProcessRef

HOLD_SECONDS = 3600
"""How long a keeper that nobody releases holds the port once its server is gone: as long as a hub may be away."""
SETTLE_SECONDS = 2.0
"""A proxy that reads its routes from a file may follow them for a moment after they are gone."""

_KEEPER = f'tail --pid="$1" -s 1 -f /dev/null; exec sleep {HOLD_SECONDS}'
_PIDFD_GETFD = 438  # the same on every architecture

Held = socket.socket
"""A socket that is bound and never listens."""

_children: dict[int, subprocess.Popen[bytes]] = {}  # keepers that this process started, to be reaped


def hold(ip: str, port: int) -> Held:
    """A socket on ip:port, on a free port when that is 0, beside which a server can listen.

    Unavailable with the code `port` when somebody else has it.
    """
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.bind((ip, port))
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except OSError as error:
        held.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise errors.Unavailable("the server's port is held by another process", code="port") from error
    return held


def shut(held: Held) -> None:
    """From now on nobody can bind this port, or listen on it, who doesn't listen already."""
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)


def keep(held: Held, main: ProcessRef, state_dir: str) -> ProcessRef:
    """A process that holds the socket while `main` lives and `HOLD_SECONDS` longer, or until `release`.

    Its environment names the state folder in HUBGOV_PORT_OF. Unavailable when it can't be started.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), processes.PORT_VARIABLE: state_dir}
    try:
        child = subprocess.Popen(
            ["sh", "-c", _KEEPER, "hubgov-port", str(main.pid)],
            env=environment,
            cwd="/",
            stdin=held.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise errors.Unavailable(f"the port can't be kept: {error}", code="port") from error
    keeper = processes.identify(child.pid)
    if keeper is None:
        raise errors.Unavailable(f"the port can't be kept: status {child.wait()}", code="port")
    _children[child.pid] = child
    return keeper


def held_by(keeper: ProcessRef) -> Held:
    """The socket that a keeper holds, for a hub that was killed before it could `shut` it. May raise OSError."""
    pidfd = processes.pin(keeper)
    if pidfd is None:
        raise OSError(errno.ESRCH, "the keeper of the port is gone")
    try:
        fd = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, pidfd, 0, 0)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "the keeper's socket can't be reached")
        return socket.socket(fileno=fd)
    finally:
        os.close(pidfd)


async def release(keeper: ProcessRef, port: int, proxy: Any, log: logging.Logger) -> None:
    """End the keeper once no route of the hub's proxy leads to the port any more. No `proxy`: at once."""
    routed = proxy is not None
    try:
        while routed:
            routed = await _leads_to(proxy, port, log)
            await asyncio.sleep(1.0 if routed else SETTLE_SECONDS)
    finally:
        if not routed:  # else the hub itself ends, and the proxy may outlive it
            await let_go(keeper)


async def let_go(keeper: ProcessRef) -> None:
    """End a keeper to whose port no route leads."""
    for ref in (*processes.descendants(keeper), keeper):
        with contextlib.suppress(PermissionError):
            processes.send(ref, signal.SIGKILL)
    await processes.ends_within(keeper, 5.0)
    if child := _children.pop(keeper.pid, None):
        child.poll()


async def _leads_to(proxy: Any, port: int, log: logging.Logger) -> bool:
    try:
        routes = await proxy.get_all_routes()
    except Exception as error:  # noqa: BLE001 - whatever kind of proxy it is: it doesn't say, so it may
        log.warning("Port %d is kept, as the proxy doesn't tell its routes: %s", port, error)
        return True
    return any(urlsplit(route["target"]).port == port for route in routes.values())
