"""What ends with the server: its kernels with their notebooks, and its terminals."""

from __future__ import annotations

import sqlite3
from typing import Any

from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import ensure_async
from tornado import web

from hubgov.wire import KernelReport


async def _sessions(server: ServerApp) -> list[dict[str, Any]]:
    try:
        return list(await ensure_async(server.session_manager.list_sessions()))
    except (KeyError, web.HTTPError, sqlite3.Error) as error:
        # A kernel that dies while it is listed does this. What Lab has open is still saved.
        server.log.warning("hubgov: the sessions were not listed: %s", error)
        return []


async def kernel_paths(server: ServerApp) -> dict[str, str]:
    """The document of each kernel that has one, by the kernel's id."""
    sessions = await _sessions(server)
    return {found["kernel"]["id"]: found["path"] for found in sessions if found.get("kernel")}


async def running_kernels(server: ServerApp) -> tuple[KernelReport, ...]:
    """Every kernel that runs, with the document it belongs to; an empty path for one that has none."""
    paths = await kernel_paths(server)
    manager: Any = server.kernel_manager
    kernels: list[dict[str, Any]] = await ensure_async(manager.list_kernels())
    return tuple(
        KernelReport(
            id=kernel["id"],
            name=kernel["name"],
            path=paths.get(kernel["id"], ""),
            busy=kernel.get("execution_state") == "busy",
        )
        for kernel in kernels
    )


async def session_documents(server: ServerApp) -> tuple[str, ...]:
    """The notebooks and files that have a kernel, as paths below the server's folder."""
    sessions = await _sessions(server)
    return tuple(found["path"] for found in sessions if found.get("type") in ("notebook", "file"))


def running_terminals(server: ServerApp) -> int:
    """How many terminals are open; none where they are switched off."""
    manager = server.web_app.settings.get("terminal_manager")
    return len(manager.list()) if manager is not None else 0
