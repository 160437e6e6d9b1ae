"""From readings to signals: whose work a card does, what power tells, and what stays unknown."""

from __future__ import annotations

import pytest

from hubgov import texts
from hubgov.core.sensing import CardUse, card_signal
from hubgov.core.signals import Level

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
