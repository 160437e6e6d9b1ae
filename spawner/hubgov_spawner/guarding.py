"""A spawner whose server's port is kept from others (`portguard`), and that looks at once when its server ends."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

from traitlets.config import LoggingConfigurable

from hubgov import errors, processes
from hubgov.wire import ProcessRef
from hubgov_spawner import portguard
from hubgov_spawner.portguard import Held

FIXED_PORT_SECONDS = 5.0
"""How long a start waits for a port that the site fixed: after a server it is kept for a moment."""

_releases: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly

# What is called by super() is the hub's spawner.
_Base: Any = LoggingConfigurable


class Guarding(_Base):  # type: ignore[misc]
    """Put before a spawner class that sets `box_main`."""

    box_main: ProcessRef | None = None
    """The single-user server."""
    box_keeper: ProcessRef | None = None
    """Who keeps the server's port from others."""
    _child: subprocess.Popen[bytes] | None = None
    """What to reap, see `fork.Started`; None after a restart of the hub."""
    _shut = False  # nobody else can take the port any more
    _watch: asyncio.Task[None] | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._fixed_port: int = self.port
        self._has_callback = asyncio.Event()

    # --- the port ---

    async def _hold_port(self) -> Held:
        """The port that the site fixed, or a free one."""
        end = asyncio.get_running_loop().time() + (FIXED_PORT_SECONDS if self._fixed_port else 0)
        while True:
            try:
                held = portguard.hold(self.ip or "0.0.0.0", self._fixed_port)
                self.port = held.getsockname()[1]
                return held
            except errors.Unavailable:
                if asyncio.get_running_loop().time() >= end:
                    raise
            await asyncio.sleep(0.2)

    def _shut_port(self, held: Held) -> None:
        """From now on nobody but who listens already can listen there."""
        portguard.shut(held)
        self._shut = True

    def _port_again(self) -> Held:
        """The held port of a server that an earlier hub started. Unavailable when it can't be kept from others."""
        if self.box_keeper is None or not processes.is_alive(self.box_keeper):
            self.log.warning("The port of %s is kept by nobody, should its server end", self._log_name)
            self._shut = True  # by the server itself, for as long as it listens
        if self._shut or self.box_keeper is None:
            return Held()
        try:
            return portguard.held_by(self.box_keeper)
        except OSError as error:
            raise errors.Unavailable(f"its port can't be kept from others: {error}", code="port") from error

    async def _drop_port(self) -> None:
        """Let the port go at once: no route leads there."""
        keeper, self.box_keeper = self.box_keeper, None
        if keeper is not None:
            await portguard.let_go(keeper)

    # --- state ---

    def get_state(self) -> dict[str, Any]:
        """With who keeps the port."""
        state: dict[str, Any] = super().get_state()
        if keeper := self.box_keeper:
            state["keeper"] = [keeper.pid, keeper.start_ticks, keeper.boot_id, self._shut]
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up what get_state gave."""
        super().load_state(state)
        if state.get("keeper"):
            pid, ticks, boot, self._shut = state["keeper"]
            self.box_keeper = ProcessRef(pid=pid, start_ticks=ticks, boot_id=boot)

    def clear_state(self) -> None:
        """Forget the port; it is kept until no route leads there."""
        super().clear_state()
        if self.box_keeper is not None:
            release = portguard.release(self.box_keeper, self.port, self.user.settings.get("proxy"), self.log)
            task = asyncio.ensure_future(release)
            _releases.add(task)
            task.add_done_callback(_releases.discard)
        self.box_keeper, self._shut, self.port = None, False, self._fixed_port

    # --- the end of the server ---

    def add_poll_callback(self, callback: Any, *args: Any, **kwargs: Any) -> None:
        """Whom to call when the server has ended."""
        super().add_poll_callback(callback, *args, **kwargs)
        self._has_callback.set()

    def start_polling(self) -> None:
        """Also look at once when the server ends: its owner then soon gets another one."""
        super().start_polling()
        if self.box_main is not None:
            self._watch = asyncio.ensure_future(self._watched(self.box_main))

    def stop_polling(self) -> None:
        """Neither look nor wait for the server's end any more."""
        super().stop_polling()
        watch, self._watch = self._watch, None
        if watch is not None and watch is not asyncio.current_task():
            watch.cancel()

    async def _watched(self, main: ProcessRef) -> None:
        with processes.ending(main) as ended:
            await ended.wait()
        await self._outer_ends()
        if not self._callbacks:  # the hub wants to be called only when the route stands
            await self._has_callback.wait()
        await self.poll_and_notify()

    async def _outer_ends(self) -> None:
        """bwrap's outer process, which has the status, follows its box at once."""
        if self._child and self._child.poll() is None:
            if outer := processes.identify(self._child.pid):
                await processes.ends_within(outer, 1.0)
            self._child.poll()


async def released() -> None:
    """Wait until every port of the running loop that is about to be let go is."""
    loop = asyncio.get_running_loop()
    mine = [task for task in _releases if task.get_loop() is loop]
    if mine:
        await asyncio.wait(mine)
