"""A submitted job: wait for its end, read what it writes, stop it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hubgov import wire

if TYPE_CHECKING:
    from hubgov.client.http import Client

POLL_SECONDS = 25


class Job:
    """One job of the service. `workload` is its document as it was last seen."""

    def __init__(self, client: Client, workload: wire.Workload) -> None:
        self._client = client
        self.workload = workload

    @property
    def id(self) -> str:
        """Its id, such as tr-7."""
        return self.workload.id

    @property
    def over(self) -> bool:
        """Whether nothing more can happen to it, as of `workload`."""
        return self.workload.state in wire.FINAL_STATES

    def refresh(self) -> wire.Workload:
        """Its document as it is now."""
        self.workload = self._client.workload(self.id)
        return self.workload

    def wait(self, seconds: float | None = None) -> wire.Workload:
        """Its document once it is over, or as it is when the time is: look at `over`. None waits for ever."""
        deadline = time.monotonic() + seconds if seconds is not None else None
        while not self.over:
            left = POLL_SECONDS if deadline is None else min(POLL_SECONDS, deadline - time.monotonic())
            if left <= 0:
                break
            self.workload = self._client.wait_for_version(self.id, self.workload.version, max(1, round(left)))
        return self.workload

    def logs(self, *, follow: bool = False) -> Iterator[str]:
        """What it wrote, in pieces; with `follow` until it is over, over all of its attempts."""
        for piece in self.log_pieces(follow=follow):
            yield piece.text

    def log_pieces(self, *, follow: bool = False, attempt: int | None = None) -> Iterator[wire.Log]:
        """As `logs`, with what was left out; of one attempt, the last by default."""
        current = attempt if attempt is not None else self.workload.attempt
        while True:
            yield from self._of_attempt(current, follow)
            if not follow or not self._until_attempt(current + 1):
                return
            current += 1

    def cancel(self, *, reason: str = "", now: bool = False) -> wire.Workload:
        """Stop it: a signal and its queue's grace at most, or `now`."""
        self.workload = self._client.cancel(self.id, reason=reason, now=now)
        return self.workload

    def _of_attempt(self, attempt: int, follow: bool) -> Iterator[wire.Log]:
        offset = 0
        while attempt:
            wait = POLL_SECONDS if follow else 0
            piece = self._client.logs(self.id, offset=offset, attempt=attempt, wait_seconds=wait)
            offset = piece.next_offset
            if piece.text or piece.left_out:
                yield piece
            if piece.end or (not follow and not piece.text):
                return

    def _until_attempt(self, attempt: int) -> bool:
        """Wait until it is started so many times; False when it is over before."""
        self.refresh()
        while self.workload.attempt < attempt and not self.over:
            self.workload = self._client.wait_for_version(self.id, self.workload.version, POLL_SECONDS)
        return self.workload.attempt >= attempt
