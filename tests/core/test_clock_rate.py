"""A fast clock shortens leases, not what machines and people need."""

from __future__ import annotations

from builders import a_policy

from hubgov.core.clock_rate import LEAST_GRACE_MS, LEAST_START_MS, for_clock_rate

RATE = 60


def test_at_rate_one_nothing_changes() -> None:
    policy = a_policy().build()
    assert for_clock_rate(policy, 1) is policy


def test_leases_stand_and_real_needs_are_stretched() -> None:
    policy = a_policy().build()
    fast = for_clock_rate(policy, RATE)
    for name, queue in policy.queues.items():
        assert fast.queues[name].lease == queue.lease
        assert fast.queues[name].warn_ms == queue.warn_ms
        assert fast.queues[name].grace_ms >= LEAST_GRACE_MS * RATE
        assert fast.queues[name].start_deadline_ms >= LEAST_START_MS * RATE
        assert fast.queues[name].claim_ms >= LEAST_START_MS * RATE
    assert fast.reclaim.term_ms == policy.reclaim.term_ms * RATE
    assert fast.reclaim.stop_timeout_ms == policy.reclaim.stop_timeout_ms * RATE


def test_what_is_longer_already_stays() -> None:
    longer, shorter = 2 * LEAST_START_MS + 1, 2 * LEAST_START_MS - 1
    policy = a_policy().queue("patient", start_deadline_ms=longer).queue("hasty", start_deadline_ms=shorter)
    twice = for_clock_rate(policy.build(), 2)
    assert twice.queues["patient"].start_deadline_ms == longer
    assert twice.queues["hasty"].start_deadline_ms == 2 * LEAST_START_MS
