"""Requests for more time: who waits for a decision, and deciding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hubgov.control import approvals
from hubgov.control.actor import may_change
from hubgov.control.unit import Unit
from hubgov.core.model import ExtensionRequest, ExtensionState
from hubgov.errors import Invalid
from hubgov.service.bodies import ApprovalBody, ReasonBody
from hubgov.service.handlers.workloads import WorkloadReader


class AllExtensions(WorkloadReader):
    async def get(self) -> None:
        """Requests for more time of the live workloads that the caller may steer, oldest first. Open ones say whom
        they would delay; `state` shows those in one state only."""
        wanted = self.query("state")
        if wanted is not None and wanted not in set(ExtensionState):
            raise Invalid(f"state: {wanted[:40]} is no state", hint=", ".join(ExtensionState))
        state, now = self.governor.state, self.services.clock.now()
        found: list[ExtensionRequest] = []
        for request in state.extensions.values():
            workload = state.workloads.get(request.workload)
            if workload is None or (wanted is not None and request.state.value != wanted):
                continue
            if may_change(self.actor, state.policy, workload) or approvals.decides(self.actor, state, request, now):
                found.append(request)
        desk = self.desk()
        self.reply_list(
            [desk.extension(r, delays=desk.delays(r)) for r in sorted(found, key=lambda r: (r.requested_at, r.id))]
        )


class _Decide(WorkloadReader):
    async def decide(self, intent: Callable[[Unit], ExtensionRequest]) -> None:
        def decided(unit: Unit) -> tuple[int, Any]:
            return 200, self.desk().extension(intent(unit))

        await self.once(decided)


class Approve(_Decide):
    async def post(self, extension_id: str) -> None:
        """Grant an open request, all of it or `seconds`."""
        body = self.body(ApprovalBody)
        by_ms = body.seconds * 1000 if body.seconds is not None else None
        await self.decide(
            lambda unit: approvals.approve(unit, extension_id, self.actor, by_ms=by_ms, reason=body.reason)
        )


class Deny(_Decide):
    async def post(self, extension_id: str) -> None:
        """Refuse an open request, with the reason."""
        body = self.body(ReasonBody)
        await self.decide(lambda unit: approvals.deny(unit, extension_id, self.actor, reason=body.reason))


class Withdraw(_Decide):
    async def post(self, extension_id: str) -> None:
        """Take back one's own open request."""
        self.body(ReasonBody)
        await self.decide(lambda unit: approvals.withdraw(unit, extension_id, self.actor))
