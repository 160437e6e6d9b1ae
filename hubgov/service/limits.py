"""How often one principal may ask for changes: a bucket each, so that no notebook's token fills the ledger."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hubgov.control.actor import Actor
from hubgov.errors import TooMany

KEPT = 1000
"""How many buckets are kept before those that are full again are forgotten."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


@dataclass(slots=True)
class Limits:
    """`burst` changes at once and `per_second` of them in the long run, for each principal.

    In real seconds, however fast the policy's clock runs: it is the machine that is kept from work. A server's
    token has a bucket of its own, so that what runs in a notebook never keeps its owner from the button that
    ends it. The spawner and admins' services speak for everybody and have none.
    """

    burst: int
    per_second: float
    seconds: Callable[[], float] = time.monotonic
    _buckets: dict[tuple[str, bool], _Bucket] = field(default_factory=dict)

    def spend(self, actor: Actor) -> None:
        """Take one token; TooMany when there is none, with the whole seconds until there is one."""
        if actor.spawner or (actor.kind == "service" and actor.admin):
            return
        now = self.seconds()
        bucket = self._bucket((actor.principal, actor.from_server), now)
        if bucket.left < 1:
            wait = max(1, math.ceil((1 - bucket.left) / self.per_second))
            raise TooMany(
                "too many changes at once",
                code="too_fast",
                hint=f"try again in {wait} s",
                details={"retry_after_seconds": wait, "burst": self.burst, "per_second": self.per_second},
            )
        bucket.left -= 1

    def _bucket(self, name: tuple[str, bool], now: float) -> _Bucket:
        if name not in self._buckets and len(self._buckets) >= KEPT:
            self._buckets = {n: b for n, b in self._buckets.items() if self._filled(b, now) < self.burst}
        bucket = self._buckets.setdefault(name, _Bucket(self.burst, now))
        bucket.left, bucket.at = self._filled(bucket, now), now
        return bucket

    def _filled(self, bucket: _Bucket, now: float) -> float:
        return min(self.burst, bucket.left + (now - bucket.at) * self.per_second)
