"""Idle sessions: what they say of themselves, and their owner's Keep."""

from __future__ import annotations

from typing import Any

from hubgov import wire
from hubgov.clock import Instant
from hubgov.control import keeping, session
from hubgov.control.unit import Unit
from hubgov.core import kernels
from hubgov.core.model import Workload
from hubgov.core.sensing import KernelReport, Report
from hubgov.errors import NotAllowed
from hubgov.service.bodies import ActivityBody, ReasonBody
from hubgov.service.handlers.workloads import WorkloadReader


class Keep(WorkloadReader):
    async def post(self, workload_id: str) -> None:
        """Keep an idle session for a while: the answer to being asked. 422 with the Decision when it is used up."""
        self.body(ReasonBody)
        self.find(workload_id)

        def intent(unit: Unit) -> tuple[int, Any]:
            workload = keeping.keep(unit, workload_id, self.actor)
            return 200, self.desk_on(workload).workload(workload)

        await self.once(intent)


class Activity(WorkloadReader):
    async def put(self, workload_id: str) -> None:
        """What a server's own extension says of its session. Claims: they count for `max_unverified` at most."""
        body = self.body(ActivityBody)
        workload = self.find(workload_id)
        self._check_own_server(workload)
        state, watch = self.governor.state, self.services.watch
        allocation = state.allocation_of(workload)
        if allocation is not None:
            if any(ending.id == end.id for end in body.ended for ending in allocation.kernels_ending):
                await self.governor.do(lambda unit: self._ended(unit, workload_id, body))
            now = self.services.clock.now()
            await watch.take(allocation, report_of(body, now, self.services.clock.rate))
            allocation = state.allocations.get(allocation.id)
        ending = tuple(e.id for e in kernels.to_end(allocation)) if allocation is not None else ()
        self.reply(wire.ActivityAnswer(period_seconds=max(1, round(watch.period_seconds)), end_kernels=ending))

    def _ended(self, unit: Unit, workload_id: str, body: ActivityBody) -> None:
        for end in body.ended:
            session.kernel_ended(unit, workload_id, self.actor, end.id, end.failed)

    def _check_own_server(self, workload: Workload) -> None:
        """Only the server itself reports on itself: its owner's other servers don't, nor does a person's token."""
        if self.actor.server != f"{workload.owner}/{workload.request.server}":
            raise NotAllowed(f"only the server of {workload.id} reports on it", hint="this is no call for people")


def report_of(body: ActivityBody, now: Instant, clock_rate: int) -> Report:
    """The report with instants of the service's clock in place of ages in real seconds."""

    def before(seconds: int | None) -> Instant | None:
        return None if seconds is None else Instant(max(0, now - seconds * 1000 * clock_rate))

    return Report(
        at=now,
        kernels=tuple(
            KernelReport(
                id=k.id,
                name=k.name,
                path=k.path,
                state=k.state,
                heard=k.heard,
                requests=k.requests,
                waits=k.waits,
                busy_at=before(k.busy_seconds_ago),
                edited_at=before(k.edited_seconds_ago),
            )
            for k in body.kernels
        ),
        terminals=body.terminals,
        jobs=body.jobs,
        edited_at=before(body.edited_seconds_ago),
    )
