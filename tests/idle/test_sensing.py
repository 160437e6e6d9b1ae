"""From readings to signals: whose work a card does, what power tells, and what stays unknown."""

from __future__ import annotations

import pytest

from hubgov import texts
from hubgov.clock import Instant
from hubgov.core.policy import IdleRule
from hubgov.core.sensing import (
    CardUse,
    KernelReport,
    KernelUse,
    Report,
    TreeUse,
    card_signal,
    kernel_samples,
    reported_signals,
    tree_signals,
)
from hubgov.core.signals import Level, SignalKind, sample
from hubgov.core.watching import Standing, judge, observed

IDLE_MW = 100_000


def card(duty: int | None, **more: object) -> CardUse:
    return CardUse(index=0, duty_percent=duty, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("use", "level", "code"),
    [
        (card(0), Level.IDLE, "card_duty"),
        (card(1), Level.IDLE, "card_duty"),
        (card(2), Level.BUSY, "card_duty"),
        (card(None), Level.UNKNOWN, "card_unknown"),
        (card(0, power_mw=115_000, idle_power_mw=IDLE_MW), Level.IDLE, "card_duty"),
        (card(0, power_mw=116_000, idle_power_mw=IDLE_MW), Level.BUSY, "card_power"),
        (card(0, power_mw=300_000), Level.IDLE, "card_duty"),
        (card(None, power_mw=300_000, idle_power_mw=IDLE_MW), Level.UNKNOWN, "card_unknown"),
        (card(80, shared=True, mine=True, others=False), Level.BUSY, "card_duty"),
        (card(80, shared=True, mine=False, others=True), Level.IDLE, "card_duty"),
        (card(80, shared=True, mine=True, others=True), Level.UNKNOWN, "card_shared"),
        (card(80, shared=True), Level.UNKNOWN, "card_shared"),
        (card(0, shared=True), Level.IDLE, "card_duty"),
    ],
)
def test_what_a_card_says(use: CardUse, level: Level, code: str) -> None:
    signal = card_signal((use,))
    assert (signal.level, signal.code) == (level, code)
    assert "—" not in texts.word(texts.EVIDENCE, signal.code, "en", **signal.facts)


def test_one_busy_card_is_enough_and_one_unknown_is_not_idle() -> None:
    assert card_signal((card(0), card(None), card(50))).level is Level.BUSY
    assert card_signal((card(0), card(None))).level is Level.UNKNOWN
    assert card_signal(()).code == "no_card"


# --- a kernel that can't be listened to -------------------------------------------------------------------


def kernel(**more: object) -> KernelReport:
    given: dict[str, object] = {
        "id": "k",
        "name": "python3",
        "path": "a.ipynb",
        "state": "alive",
        "requests": 0,
        "waits": False,
    }
    return KernelReport(busy_at=None, edited_at=None, **{**given, **more})  # type: ignore[arg-type]


def report(*kernels: KernelReport) -> Report:
    return Report(at=Instant(0), kernels=kernels, terminals=0, jobs=0, edited_at=None)


QUIET = KernelUse(cpu_milli=0, io_bytes_per_minute=0, children=0, pids=frozenset())


def use(*kernels: str) -> TreeUse:
    return TreeUse(cpu_milli=0, io_bytes_per_minute=0, children=0, jobs=0, kernels=dict.fromkeys(kernels, QUIET))


@pytest.mark.parametrize(
    ("kernels", "level", "code"),
    [
        ((kernel(), kernel(id="d", heard=False)), Level.UNKNOWN, "kernel_unheard"),
        ((kernel(heard=False, waits=True),), Level.UNKNOWN, "kernel_unheard"),
        ((kernel(heard=False, state="starting"),), Level.UNKNOWN, "kernel_unheard"),
        ((kernel(heard=False), kernel(id="b", requests=1)), Level.BUSY, "kernel_busy"),
        ((kernel(heard=False, state="dead"),), Level.IDLE, "kernels_idle"),
        ((kernel(),), Level.IDLE, "kernels_idle"),
    ],
)
def test_a_kernel_that_is_not_heard_is_unknown(kernels: tuple[KernelReport, ...], level: Level, code: str) -> None:
    signal = next(s for s in reported_signals(report(*kernels)) if s.kind is SignalKind.KERNEL)
    assert (signal.level, signal.code) == (level, code)
    for lang in ("en", "zh"):
        assert "—" not in texts.word(texts.EVIDENCE, signal.code, lang, **signal.facts)


def test_unheard_for_a_day_it_is_neither_given_back_nor_shut_down() -> None:
    """Everything that is measured is idle all the while; the same session with a listener is idle."""
    period_ms, day_ms = 60_000, 24 * 3_600_000
    rule = IdleRule(
        kernel_after_ms=600_000, after_ms=600_000, confirm_ms=60_000, grace_ms=60_000, keep_count=0, keep_for_ms=0,
        max_unverified_ms=4 * 3_600_000,
    )  # fmt: skip
    seen: dict[bool, set[Standing]] = {True: set(), False: set()}
    for heard, standings in seen.items():
        watched = None
        said = report(kernel(heard=heard))
        for at in range(0, day_ms, period_ms):
            now = Instant(at)
            signals = [card_signal((card(0),)), *tree_signals(use("k"), said), *reported_signals(said)]
            kernels = kernel_samples(said, use("k"), frozenset())
            watched = observed(watched, sample(now, signals, kernels), period_ms)
            standings.add(judge(watched, rule, now, Instant(0)).standing)
            assert heard or watched.kernels["k"].level is Level.UNKNOWN
            assert heard or watched.kernels["k"].quiet_since == now
    assert Standing.IDLE in seen[True]
    assert seen[False] == {Standing.UNKNOWN}
