"""A fast clock shortens leases, not what machines and people need."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import a_policy

from hubgov.clock import Instant
from hubgov.core.clock_rate import LEAST_GRACE_MS, LEAST_START_MS, for_clock_rate
from hubgov.core.policy import IdleRule
from hubgov.core.signals import Level, Signal, SignalKind, sample
from hubgov.core.watching import GAP_PERIODS, Standing, judge, observed

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


IDLE = IdleRule(
    kernel_after_ms=2_000, after_ms=3_000, confirm_ms=1_000, grace_ms=1_000, keep_count=1, keep_for_ms=1_000,
    max_unverified_ms=5_000,
)  # fmt: skip


@pytest.mark.parametrize("rate", [2, 60, 240])
@pytest.mark.parametrize("period_ms", [1_000, 10_000, 60_000])
def test_what_is_asked_of_people_and_samples_stays_in_real_time(rate: int, period_ms: int) -> None:
    made = a_policy().queue("quick", idle=IDLE).build()
    slow = replace(made, telemetry_period_ms=period_ms)
    rule = for_clock_rate(slow, rate).queues["quick"].idle
    assert rule is not None
    spans = (
        rule.kernel_after_ms, rule.after_ms, rule.confirm_ms, rule.grace_ms, rule.keep_for_ms,
        rule.max_unverified_ms,
    )  # fmt: skip
    for span_ms in spans:
        assert span_ms is not None
        assert span_ms // rate >= LEAST_GRACE_MS, "half a minute to read, to answer, to save"
        assert span_ms // rate >= GAP_PERIODS * period_ms, "several samples, which are taken in real time"
    assert rule.keep_count == IDLE.keep_count


def test_an_idle_rule_that_is_long_enough_stays_and_one_without_kernels_gets_none() -> None:
    patient = replace(IDLE, kernel_after_ms=None, after_ms=1_800_000, confirm_ms=900_000, grace_ms=900_000)
    patient = replace(patient, keep_for_ms=3_600_000, max_unverified_ms=14_400_000)
    fast = for_clock_rate(a_policy().queue("quick", idle=patient).build(), 30)
    assert fast.queues["quick"].idle == patient


@pytest.mark.parametrize(("rate", "asked_ms"), [(2, 30_000), (60, 30_000)])
def test_a_quiet_session_is_asked_after_a_real_half_minute(rate: int, asked_ms: int) -> None:
    """Sampled each real second, as the service does, on a fast clock."""
    made = replace(a_policy().queue("quick", idle=IDLE).build(), telemetry_period_ms=1_000)
    rule = for_clock_rate(made, rate).queues["quick"].idle
    assert rule is not None
    watched, found = None, None
    for real_ms in range(0, 120_000, 1_000):
        now = Instant(real_ms * rate)
        taken = sample(now, (Signal(kind=kind, level=Level.IDLE) for kind in SignalKind))
        watched = observed(watched, taken, 1_000 * rate)
        if found is None and judge(watched, rule, now, Instant(0)).standing is Standing.IDLE:
            found = real_ms
    assert found == asked_ms
