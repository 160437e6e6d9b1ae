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
        self._spoken: dict[str, Instant] = {}

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
        self._spoken = {name: at for name, at in self._spoken.items() if self._recent(at)}
        self._spoken[workload] = self._clock.now()

    def attached(self, workload: str) -> bool:
        """Whether a spawner waits for this workload, did until a moment ago, or is about to."""
        return self.polling(workload) or self._recent(self._spoken.get(workload))

    def polling(self, workload: str) -> bool:
        """Whether it has a place among those that wait attached; having spoken alone gives none."""
        return self._open[workload] > 0 or self._recent(self._left.get(workload))

    def count(self) -> int:
        """How many workloads have a polling spawner."""
        names = set(self._left) | set(self._open)
        present = {name for name in names if self.polling(name)}
        for name in names - present:
            self._left.pop(name, None)
            del self._open[name]
        return len(present)

    def _recent(self, at: Instant | None) -> bool:
        return at is not None and self._clock.now() - at < LINGER_MS * self._clock.rate
