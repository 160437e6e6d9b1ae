"""How single values are written: local times, what is left, amounts of money and memory, devices, ages."""

from __future__ import annotations

from datetime import datetime

from hubgov import texts, wire
from hubgov.cli.cli_texts import text
from hubgov.cli.screen import NONE, Cell
from hubgov.texts import DEVICE_STATES, STATES, word

FRESH_SECONDS, STALE_SECONDS = 15, 120
_EXACT_BELOW_SECONDS = 600
_STYLES = {
    "running": "green", "pending": "yellow", "held": "yellow", "expiring": "red", "preempting": "red",
    "failed": "red", "lost": "red", "quarantined": "red", "suspect": "red", "sick": "red", "fenced": "red",
    "free": "green", "refused": "red",
}  # fmt: skip


def clock(at: str | None, now: str | None = None) -> str:
    """Local wall clock, `18:30`; with the day where it isn't that of `now` (by default this machine's)."""
    moment = _moment(at)
    if moment is None:
        return NONE
    today = _moment(now) or datetime.now().astimezone()
    return moment.strftime("%H:%M" if moment.date() == today.date() else "%Y-%m-%d %H:%M")


def left(until: str | None, now: str) -> str:
    """What is left, by the service's own clock: to the minute above ten minutes, else to the second."""
    end, start = _moment(until), _moment(now)
    if end is None or start is None:
        return NONE
    return span(max(0, int((end - start).total_seconds())))


def span(seconds: int | None) -> str:
    """A duration as people say it."""
    if seconds is None:
        return NONE
    return wire.format_span((seconds - seconds % 60 if seconds >= _EXACT_BELOW_SECONDS else seconds) * 1000)


def until(at: str | None, now: str, lang: str, grace: str | None = None) -> str:
    """Wall clock first, what is left second: `18:30, grace to 18:35 · 1h42m left`."""
    if at is None:
        return NONE
    facts = {"at": clock(at, now), "left": left(at, now)}
    if grace is None:
        return text("until", lang, **facts)
    return text("until_with_grace", lang, grace=clock(grace, now), **facts)


def money(amount: wire.Money | None) -> str:
    """An amount to the cent with its currency's sign."""
    return NONE if amount is None else texts.money(amount.amount, amount.currency)


def memory(mib: int | None) -> str:
    """A size: whole MiB below one GiB, else GiB with a digit."""
    if mib is None:
        return NONE
    return f"{mib}MiB" if mib < 1024 else f"{mib / 1024:.1f}GiB".replace(".0GiB", "GiB")


def number(value: float | int | None) -> str:
    """A number without a useless fraction; a dash for one that isn't known."""
    return NONE if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def plain(value: object) -> str:
    """A value that may be missing."""
    return NONE if value is None or value == "" else str(value)


def percent(value: int | None) -> str:
    """A share of a hundred; a dash for one that isn't known, never 0."""
    return NONE if value is None else f"{value}%"


def state(name: str, lang: str) -> Cell:
    """A workload's state in words."""
    return Cell(word(STATES, name, lang), _STYLES.get(name, ""))


def device_state(name: str, lang: str) -> Cell:
    """A device's state in words."""
    return Cell(word(DEVICE_STATES, name, lang), _STYLES.get(name, ""))


def marked(name: str, simulated: bool, lang: str) -> Cell:
    """The name of a pool or device, and in words if there is no real one behind it."""
    return Cell(f"{name} {text('simulated', lang)}".strip(), "magenta") if simulated else Cell(name)


def device(ref: wire.DeviceRef | wire.Device, lang: str) -> Cell:
    """A device: its node and index, the share of it, and whether it is only simulated."""
    share = f" ({ref.slice})" if isinstance(ref, wire.DeviceRef) and ref.slice else ""
    return marked(f"{ref.node}/{ref.index}{share}", ref.simulated, lang)


def devices(workload: wire.Workload, lang: str) -> Cell:
    """All devices of a workload; of one that has none now, whether those it waits for or had are simulated."""
    names = ", ".join(device(ref, lang).text for ref in workload.devices)
    if not names:
        return marked("", True, lang) if workload.simulated else Cell(NONE)
    return Cell(names, "magenta" if any(ref.simulated for ref in workload.devices) else "")


def age(seconds: int | None, lang: str) -> str:
    """How old a reading is: nothing while it is fresh, a word when it is too old to go by."""
    if seconds is None or seconds <= FRESH_SECONDS:
        return ""
    return text("stale" if seconds > STALE_SECONDS else "ago", lang, span=span(seconds))


def _moment(at: str | None) -> datetime | None:
    """The instant in local time; None for none, and for a text that isn't one."""
    if at is None:
        return None
    try:
        return datetime.fromisoformat(at).astimezone()
    except (ValueError, OverflowError):
        return None
