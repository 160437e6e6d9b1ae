"""Past use that the ranking weighs (semantics §4): one number per place and half-life, however much has been.

Time is cut into half-lives, the k-th from k·h on. What a span weighed when the one in which it ended began is a
constant of the span: milli × (2^((end − k·h)/h) − 2^((start − k·h)/h)), in fixed point. Later it has decayed by
`halving(now − k·h)`, with all others that ended in the same half-life: their sum is enough. Whole numbers add up
to the same in any order, so what is taken back leaves no trace, and a restart finds the same sums to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hubgov.clock import Instant
from hubgov.core.amounts import halving
from hubgov.core.model import AllocationId
from hubgov.core.quota import Place


@dataclass(frozen=True, slots=True)
class Segment:
    """How long an allocation held its share: from its reservation on, `end` None while it is charged."""

    allocation: AllocationId
    place: Place
    milli_gpus: int
    start: Instant
    end: Instant | None


class PastUse:
    """The segments that still weigh, and what they sum up to."""

    def __init__(self, half_life_ms: int, segments: Iterable[Segment] = ()) -> None:
        self.half_life_ms = half_life_ms
        self.segments: dict[AllocationId, Segment] = {}
        self.sums: dict[tuple[Place, int], int] = {}
        """By place and half-life: the weight of what ended in it, as it began, in milli-GPUs scaled 2^64."""
        self._open: dict[AllocationId, Segment] = {}
        for segment in segments:
            self.put(segment)

    def put(self, segment: Segment) -> None:
        """Keep the segment of an allocation, in the place of the one known so far."""
        if self.segments.get(segment.allocation) == segment:
            return
        self.drop(segment.allocation)
        self.segments[segment.allocation] = segment
        if segment.end is None:
            self._open[segment.allocation] = segment
        else:
            self._add(segment, segment.end, 1)

    def drop(self, allocation: AllocationId) -> None:
        """Forget the segment of an allocation, if there is one."""
        known = self.segments.pop(allocation, None)
        if known is None:
            return
        if known.end is None:
            del self._open[allocation]
        else:
            self._add(known, known.end, -1)

    def forget_until(self, instant: Instant) -> None:
        """Forget what ended at `instant` or before."""
        for segment in list(self.segments.values()):
            if segment.end is not None and segment.end <= instant:
                self.drop(segment.allocation)

    def at(self, now: Instant) -> Mapping[Place, int]:
        """The exponentially weighted average of GPUs held at each place, in milli-GPUs scaled 2^128.

        Somebody who held 4 GPUs for ever has 4, who held them for the last half-life alone has 2.
        """
        total: dict[Place, int] = {}
        sums = list(self.sums.items())
        for segment in self._open.values():
            period, weight = self._weight(segment, now)
            sums.append(((segment.place, period), weight))
        left: dict[int, int] = {}
        for (place, period), weight in sums:
            if period not in left:
                left[period] = halving(max(0, now - period * self.half_life_ms), self.half_life_ms)
            total[place] = total.get(place, 0) + weight * left[period]
        return total

    def _add(self, segment: Segment, end: Instant, sign: int) -> None:
        period, weight = self._weight(segment, end)
        key = (segment.place, period)
        total = self.sums.pop(key, 0) + sign * weight
        if total:
            self.sums[key] = total

    def _weight(self, segment: Segment, end: Instant) -> tuple[int, int]:
        """(the half-life in which it ends, its weight at the beginning of that)."""
        period = end // self.half_life_ms
        edge = (period + 1) * self.half_life_ms
        from_end, from_start = (halving(edge - at, self.half_life_ms) for at in (end, min(segment.start, end)))
        return period, 2 * segment.milli_gpus * (from_end - from_start)
