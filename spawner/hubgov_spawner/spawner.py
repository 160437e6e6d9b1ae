"""The spawner that a hub is configured with: governed, and every server in a box."""

from __future__ import annotations

from hubgov.wire import ProcessRef
from hubgov_spawner.boxed import BoxedSpawner
from hubgov_spawner.governed import GovernedMixin
from hubgov_spawner.quarters import Quarters


class HubGovSpawner(GovernedMixin, BoxedSpawner):
    """A governed server in a box of its own, with the devices that were granted and no others."""

    async def quarters(self) -> Quarters:
        """As of every box. No job runs in this user's home before the service knows that another of the same name
        left: what it was asked for by him would run here."""
        await self.tell_departures()
        return await super().quarters()

    def box_device_nodes(self) -> tuple[str, ...]:
        """The device nodes of the grant."""
        return tuple(self._launch.device_nodes) if self._launch is not None else ()

    async def processes_started(self, main: ProcessRef, init: ProcessRef | None) -> None:
        """Told to the service before the server can be used, so that none is ever unknown to it."""
        await self.report_processes(main, init)

    def server_processes(self) -> tuple[ProcessRef, ProcessRef | None] | None:
        """Those of the box."""
        return (self.box_main, self.box_init) if self.box_main is not None else None

    def exit_of(self, status: int | None) -> tuple[int | None, int | None]:
        """Not known for a server that an earlier hub started; 128 and above is bubblewrap's word for a signal."""
        if self._child is None:
            return None, None
        if status is not None and status > 128:
            return None, status - 128
        return super().exit_of(status)
