"""Govern a spawner that knows nothing of hubgov: the class of a site, as it is, with the mixin over it.

What its server runs as is found here: by the `pid` that spawners of this machine keep, else by the mark that the
grant put into the environment. A server of another machine is not seen; then the hub's word counts alone.
"""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass
from typing import Any

from traitlets.config import LoggingConfigurable

from hubgov import processes
from hubgov.wire import ProcessRef
from hubgov_spawner.governed import GovernedMixin

_Base: Any = LoggingConfigurable


def governed(spawner: type) -> type:
    """The class with the mixin over it; itself when it has it already. Sections of its own name go on to count."""
    if issubclass(spawner, GovernedMixin):
        return spawner
    return type(f"Governed{spawner.__name__}", (GovernedMixin, OverAny, spawner), {"__module__": __name__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server's own process, whose uid it has, and the mark of all that it starts."""

    main: ProcessRef
    uid: int
    mark: str

    def left(self) -> list[ProcessRef]:
        """What there is of it now: the process, those it started, and all of its uid that carry the mark."""
        return processes.box_processes(self.main, None, self.mark or None, uid=self.uid)


class OverAny(_Base):  # type: ignore[misc]
    """Put between GovernedMixin and a spawner class: knows the server's processes, and leaves none behind."""

    hubgov_server: Server | None = None

    async def start(self) -> Any:
        """Start the server as the site's spawner does; its processes are on record before it counts as up."""
        found = await super().start()
        mark = self._launch.environment.get(processes.ALLOCATION_VARIABLE, "") if self._launch else ""
        self.hubgov_server = _server(getattr(self, "pid", None), mark)
        if self.hubgov_server is not None:
            # The hub writes the state only after start(): killed before, it would lose the server.
            self.orm_spawner.state = self.get_state()
            self.user.db.commit()
            await self.report_processes(self.hubgov_server.main, None)
        return found

    def server_processes(self) -> tuple[ProcessRef, ProcessRef | None] | None:
        """The server's own process, where it runs on this machine."""
        return (self.hubgov_server.main, None) if self.hubgov_server is not None else None

    async def poll(self) -> int | None:
        """As the site's spawner sees it, but a pid that was given to another is no server of ours."""
        server = self.hubgov_server
        if server is not None and getattr(self, "proc", None) is None and not processes.is_alive(server.main):
            self.pid = 0
        status: int | None = await super().poll()
        if status is not None and server is not None:
            _end(server.left())
        return status

    async def stop(self, now: bool = False) -> None:
        """Stop the server as the site's spawner does, then end what it left: its devices must be free."""
        server = self.hubgov_server
        left = server.left() if server is not None else []  # while it lives its children are known by it
        await super().stop(now=now)
        if server is not None:
            _end([*left, *server.left()])

    def get_state(self) -> dict[str, Any]:
        """Also which process is meant: a pid alone is given again."""
        state: dict[str, Any] = super().get_state()
        if (server := self.hubgov_server) is not None:
            main = server.main
            state["hubgov_server"] = [main.pid, main.start_ticks, main.boot_id, server.uid, server.mark]
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up what get_state gave."""
        super().load_state(state)
        if state.get("hubgov_server"):
            pid, ticks, boot, uid, mark = state["hubgov_server"]
            main = ProcessRef(pid=pid, start_ticks=ticks, boot_id=boot)
            self.hubgov_server = Server(main=main, uid=uid, mark=mark)

    def clear_state(self) -> None:
        """Forget the server that ended."""
        super().clear_state()
        self.hubgov_server = None


def _server(pid: object, mark: str) -> Server | None:
    """The server by its pid, else the oldest process that carries the mark; None when it isn't on this machine."""
    main = processes.identify(pid) if isinstance(pid, int) and pid > 0 else None
    if main is None and mark:
        entry = f"{processes.ALLOCATION_VARIABLE}={mark}".encode()
        marked = processes.with_environment(lambda given: given == entry)
        main = min(marked, key=lambda ref: (ref.start_ticks, ref.pid), default=None)
    uid = processes.uid_of(main) if main is not None else None
    return Server(main=main, uid=uid, mark=mark) if main is not None and uid is not None else None


def _end(left: list[ProcessRef]) -> None:
    for ref in left:
        with contextlib.suppress(PermissionError):  # took another user's rights: the service goes on to see it
            processes.send(ref, signal.SIGKILL)
