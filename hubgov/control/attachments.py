"""Which waiting spawns are attached right now: in memory only, since the wait itself is in the ledger (§7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from hubgov.clock import Clock, Instant

LINGER_MS = 3_000
"""A spawner polls again at once; between two polls it still counts as attached."""


class Attachments:
    """Counts open polls of spawners by workload."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: Counter[str] = Counter()
        self._left: dict[str, Instant] = {}

    @contextmanager
    def attach(self, workload: str) -> Iterator[None]:
        """Attached while inside."""
        self._open[workload] += 1
        try:
            yield
        finally:
            self._open[workload] -= 1
            self._left[workload] = self._clock.now()

    def touch(self, workload: str) -> None:
        """The spawner has just spoken for this workload: it is about to poll, or to launch."""
        self._left[workload] = self._clock.now()

    def detach(self, workload: str) -> None:
        """The spawner said that it leaves."""
        self._left.pop(workload, None)

    def attached(self, workload: str) -> bool:
        """Whether a spawner waits for this workload, or did until a moment ago."""
        return self._open[workload] > 0 or self._recent(workload)

    def count(self) -> int:
        """How many workloads have an attached spawner."""
        names = set(self._left) | set(self._open)
        present = {name for name in names if self.attached(name)}
        for name in names - present:
            self._left.pop(name, None)
            del self._open[name]
        return len(present)

    def _recent(self, workload: str) -> bool:
        left = self._left.get(workload)
        return left is not None and self._clock.now() - left < LINGER_MS
