"""A policy under a clock that runs faster than real time."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from hubgov.core.policy import IdleRule, Policy
from hubgov.core.watching import GAP_PERIODS

LEAST_GRACE_MS = 30_000
LEAST_START_MS = 120_000


def _idle(rule: IdleRule | None, rate: int, period_ms: int) -> IdleRule | None:
    """A window needs several samples, which are taken in real time, and somebody who is asked the time to read and
    to answer; what he keeps, and what his session says of itself, holds as long at least."""
    if rule is None:
        return None
    least = max(LEAST_GRACE_MS, GAP_PERIODS * period_ms) * rate
    kernel_after = max(rule.kernel_after_ms, least) if rule.kernel_after_ms is not None else None
    return replace(
        rule,
        kernel_after_ms=kernel_after,
        after_ms=max(rule.after_ms, least),
        confirm_ms=max(rule.confirm_ms, least),
        grace_ms=max(rule.grace_ms, least),
        keep_for_ms=max(rule.keep_for_ms, least),
        max_unverified_ms=max(rule.max_unverified_ms, least),
    )


def for_clock_rate(policy: Policy, rate: int) -> Policy:
    """The policy for a clock that runs `rate` times as fast: what machines and people need stays in real time.

    A lease of an hour may pass in a minute of a demonstration; a server still needs seconds to stop, a browser
    to save, somebody to open what was started for him.
    """
    if rate == 1:
        return policy
    reclaim = replace(
        policy.reclaim,
        term_ms=policy.reclaim.term_ms * rate,
        save_ms=policy.reclaim.save_ms * rate,
        stop_timeout_ms=policy.reclaim.stop_timeout_ms * rate,
        lost_after_ms=policy.reclaim.lost_after_ms * rate,
    )
    queues = {
        name: replace(
            queue,
            grace_ms=max(queue.grace_ms, LEAST_GRACE_MS * rate),
            start_deadline_ms=max(queue.start_deadline_ms, LEAST_START_MS * rate),
            claim_ms=max(queue.claim_ms, LEAST_START_MS * rate),
            idle=_idle(queue.idle, rate, policy.telemetry_period_ms),
        )
        for name, queue in policy.queues.items()
    }
    return replace(policy, reclaim=reclaim, queues=MappingProxyType(queues))
