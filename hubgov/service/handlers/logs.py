"""What a job wrote, for its owner and for admins."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from hubgov import wire
from hubgov.control.actor import check_own
from hubgov.core.model import AllocationId, Workload
from hubgov.core.policy import Kind
from hubgov.engines import job_log
from hubgov.errors import NotFound
from hubgov.service.handlers.workloads import MAX_WAIT_SECONDS, WorkloadReader

MOST_BYTES = 1_000_000
LOOK_SECONDS = 0.25
"""How often a waiting reader looks: a file tells of no new bytes."""


class Logs(WorkloadReader):
    async def get(self, workload_id: str) -> None:
        """From `offset` on at most `limit` bytes of one attempt, the last by default; with `wait` once there is
        something, or the attempt or the time is over."""
        workload = self.find(workload_id)
        check_own(self.actor, self.governor.state.policy, workload)
        if workload.kind is Kind.NOTEBOOK:
            raise NotFound(
                f"{workload.id} is a notebook; it has no log here", hint="its log is in its home, in .hubgov"
            )
        offset = self.number("offset", 0, 0, 2**62)
        limit = self.number("limit", MOST_BYTES, 4, MOST_BYTES)
        wait = self.number("wait", 0, 0, MAX_WAIT_SECONDS)
        attempt = self.number("attempt", workload.attempt, 0, 10**9)
        if attempt > workload.attempt:
            raise NotFound(f"{workload.id} has no attempt {attempt}", hint=f"hubgov show {workload.id}")
        folder = self.services.log_folder(AllocationId(f"{workload.id}.{attempt}"))
        self._refuse_removed(workload, attempt, folder)
        deadline = time.monotonic() + wait
        while True:
            part = await asyncio.to_thread(job_log.read, folder, offset, limit)
            over = part.end or self._over(workload, attempt)
            data = part.data if part.end else whole(part.data) or (part.data if over else b"")
            if data or over or time.monotonic() >= deadline:
                break
            await asyncio.sleep(LOOK_SECONDS)
        begin = part.next_offset - len(part.data)
        self.reply(
            wire.Log(
                workload=workload.id,
                attempt=attempt,
                offset=begin,
                next_offset=begin + len(data),
                text=data.decode("utf-8", "replace"),
                left_out=part.left_out,
                end=part.end or (over and not part.data),
                trouble=part.trouble,
            )
        )

    def _refuse_removed(self, workload: Workload, attempt: int, folder: Path) -> None:
        """NotFound for what was kept as long as the policy says, and is gone."""
        after_ms = self.governor.state.policy.archive.get("logs_after_ms")
        if after_ms is None or workload.ended_at is None or folder.exists():
            return
        if self.governor.clock.now() - workload.ended_at >= after_ms:
            raise NotFound(
                f"the log of {workload.id}, attempt {attempt}, is removed",
                code="log_removed",
                hint="logs are kept for archive.logs_after of the policy",
            )

    def _over(self, workload: Workload, attempt: int) -> bool:
        """Whether nothing will be written any more, also where nobody was left to say so."""
        live = self.governor.state.workloads.get(workload.id)
        if live is None:
            return True
        allocation = self.governor.state.allocation_of(live)
        return live.attempt > attempt or (allocation is None and attempt > 0)


def whole(data: bytes) -> bytes:
    """Without the beginning of a last character whose rest isn't there yet."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
        if byte < 0x80:
            break
    return data
