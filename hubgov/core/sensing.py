"""From what was read of cards, processes and the session's own reports to signals: thresholds, and nothing else.

CPU and I/O are those of everything the session runs but the server that shows it; network traffic can't be told
apart by session (all share the machine's network) and is no signal: a download shows by its CPU and its writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hubgov.clock import Instant
from hubgov.core.signals import KernelSample, Level, Signal, SignalKind

DUTY_FLOOR_PERCENT = 1
"""Above it a card works: an idle one may show a per cent now and then."""
POWER_ABOVE_IDLE_PERCENT = 15
CPU_FLOOR_MILLI = 20
"""Thousandths of one core, over a sampling period."""
IO_FLOOR_BYTES_PER_MINUTE = 1024 * 1024

_B, _I, _U = Level.BUSY, Level.IDLE, Level.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class CardUse:
    """One card of a session. `idle_power_mw` is the least it was seen to draw while nothing ran on it.

    `mine` and `others`: whether processes of this session, and of anybody else, are on it; None is not known.
    """

    index: int
    duty_percent: int | None
    power_mw: int | None = None
    idle_power_mw: int | None = None
    shared: bool = False
    mine: bool | None = None
    others: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelUse:
    """A kernel's process tree: CPU in thousandths of a core, how many processes it started that live, its pids."""

    cpu_milli: int | None
    io_bytes_per_minute: int | None
    children: int
    pids: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeUse:
    """What the processes of a session used since the last look. None is not known, `because` says why."""

    cpu_milli: int | None
    io_bytes_per_minute: int | None
    children: int | None
    """Processes that kernels started, or that outlived what started them."""
    jobs: int | None
    """Processes that shells in terminals started."""
    shells: int = 0
    kernels: Mapping[str, KernelUse] = field(default_factory=dict)
    pids: frozenset[int] = frozenset()
    tops: tuple[int, ...] = ()
    """The first process of each thing that the session runs: a kernel, a shell, a server beside it."""
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """What the session says of one kernel. `heard` is whether it could listen to it; `requests` are the code
    requests that it works on; `waits` whether all it does is wait for somebody's input."""

    id: str
    name: str
    path: str
    state: str
    requests: int
    waits: bool
    busy_at: Instant | None
    edited_at: Instant | None
    heard: bool = True

    @property
    def unknown(self) -> bool:
        """Whether nobody can tell if it works on code: it lives and can't be listened to."""
        return not self.heard and self.state != "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the session's own extension says of it: claims, all of it."""

    at: Instant
    kernels: tuple[KernelReport, ...]
    terminals: int
    jobs: int
    edited_at: Instant | None


def card_signal(cards: tuple[CardUse, ...]) -> Signal:
    """Whether a card of the session works; of one that is shared, whether its own processes may."""
    levels = [_card_level(card) for card in cards]
    if not cards:
        return Signal(kind=SignalKind.GPU, level=_I, code="no_card")
    level = _B if _B in levels else _U if _U in levels else _I
    shown = cards[levels.index(level)]
    if level is _U:
        code = "card_shared" if shown.duty_percent is not None else "card_unknown"
        return Signal(kind=SignalKind.GPU, level=level, code=code, facts={"index": shown.index})
    facts: dict[str, int | str] = {"index": shown.index, "percent": shown.duty_percent or 0}
    if level is _B and not _runs(shown):
        facts["watts"] = (shown.power_mw or 0) // 1000
        return Signal(kind=SignalKind.GPU, level=level, code="card_power", facts=facts)
    return Signal(kind=SignalKind.GPU, level=level, code="card_duty", facts=facts)


def _card_level(card: CardUse) -> Level:
    if card.duty_percent is None:
        return _U
    if not _runs(card) and not _draws(card):
        return _I
    if not card.shared or card.others is False:
        return _B
    if card.mine is False:
        return _I
    return _U  # it works, and whose work it is can't be told


def _runs(card: CardUse) -> bool:
    return card.duty_percent is not None and card.duty_percent > DUTY_FLOOR_PERCENT


def _draws(card: CardUse) -> bool:
    """More power than it was seen to take while nothing ran."""
    if card.power_mw is None or card.idle_power_mw is None:
        return False
    return card.power_mw * 100 > card.idle_power_mw * (100 + POWER_ABOVE_IDLE_PERCENT)


def tree_signals(use: TreeUse | None, report: Report | None) -> Iterator[Signal]:
    """CPU, I/O, children and terminals of the session's processes. Of terminals its own word counts too."""
    if use is None:
        for kind in (SignalKind.CPU, SignalKind.IO, SignalKind.CHILD, SignalKind.TERMINAL):
            yield Signal(kind=kind, level=_U, code="no_processes")
        return
    yield _measured(SignalKind.CPU, use.cpu_milli, CPU_FLOOR_MILLI, "cpu", "tenths", use.because)
    yield _measured(SignalKind.IO, use.io_bytes_per_minute, IO_FLOOR_BYTES_PER_MINUTE, "io", "bytes", use.because)
    yield _counted(SignalKind.CHILD, use.children, "children", use.because)
    jobs = use.jobs if report is None or use.jobs is None else max(use.jobs, report.jobs)
    if jobs == 0:
        yield Signal(kind=SignalKind.TERMINAL, level=_I, code="terminals", facts={"count": use.shells})
    else:
        yield _counted(SignalKind.TERMINAL, jobs, "jobs", use.because)


def _measured(kind: SignalKind, value: int | None, floor: int, code: str, unit: str, because: str) -> Signal:
    if value is None:
        return Signal(kind=kind, level=_U, code="not_read", facts={"because": because})
    shown = value // 1024 if unit == "bytes" else value // 10
    facts: dict[str, int | str] = {"kib" if unit == "bytes" else "percent": shown}
    return Signal(kind=kind, level=_B if value > floor else _I, code=code, facts=facts)


def _counted(kind: SignalKind, count: int | None, code: str, because: str) -> Signal:
    if count is None:
        return Signal(kind=kind, level=_U, code="not_read", facts={"because": because})
    if count == 0:
        return Signal(kind=kind, level=_I, code=f"no_{code}")
    return Signal(kind=kind, level=_B, code=code, facts={"count": count})


def reported_signals(report: Report | None) -> Iterator[Signal]:
    """Kernels and people, as the session says; unknown while it says nothing."""
    if report is None:
        for kind in (SignalKind.KERNEL, SignalKind.HUMAN):
            yield Signal(kind=kind, level=_U, code="no_report")
        return
    yield _kernel_signal(report)
    if report.edited_at is None:
        yield Signal(kind=SignalKind.HUMAN, level=_I, code="no_edit")
    else:
        # An instant, not a state: the window counts from it.
        yield Signal(kind=SignalKind.HUMAN, level=_I, code="edited", busy_at=report.edited_at)


def _kernel_signal(report: Report) -> Signal:
    kind = SignalKind.KERNEL
    busy_at = max((k.busy_at for k in report.kernels if k.busy_at is not None), default=None)
    for kernel in report.kernels:
        if claims_work(kernel):
            facts: dict[str, int | str] = {"count": kernel.requests, "path": kernel.path or kernel.name}
            return Signal(kind=kind, level=_B, code="kernel_busy", facts=facts, busy_at=busy_at)
    unheard = next((k for k in report.kernels if k.unknown), None)
    if unheard is not None:
        facts = {"path": unheard.path or unheard.name}
        return Signal(kind=kind, level=_U, code="kernel_unheard", facts=facts, busy_at=busy_at)
    waiting = [k for k in report.kernels if k.waits]
    if waiting:
        facts = {"path": waiting[0].path or waiting[0].name}
        return Signal(kind=kind, level=_I, code="kernel_waits", facts=facts, busy_at=busy_at)
    code = "kernels_idle" if report.kernels else "no_kernels"
    return Signal(kind=kind, level=_I, code=code, facts={"count": len(report.kernels)}, busy_at=busy_at)


def claims_work(kernel: KernelReport) -> bool:
    """Whether the session says that this kernel works on code. One that starts shows by what it uses: the server
    calls it starting until somebody speaks to it, which may be never."""
    return kernel.requests > 0 and not kernel.waits


def kernel_samples(
    report: Report | None, use: TreeUse | None, on_cards: frozenset[int] | None
) -> tuple[KernelSample, ...]:
    """Each kernel that lives by its own signals. `on_cards`: pids on a card that works, None where not known."""
    if report is None:
        return ()
    return tuple(_kernel_sample(k, use, on_cards) for k in report.kernels if k.state != "dead")


def _kernel_sample(kernel: KernelReport, use: TreeUse | None, on_cards: frozenset[int] | None) -> KernelSample:
    own = use.kernels.get(kernel.id) if use is not None else None
    signs = [at for at in (kernel.busy_at, kernel.edited_at) if at is not None]
    if claims_work(kernel):
        level = _B
    elif (
        kernel.unknown
        or own is None
        or own.cpu_milli is None
        or own.io_bytes_per_minute is None
        or on_cards is None
    ):
        level = _U
    else:
        works = own.cpu_milli > CPU_FLOOR_MILLI or own.io_bytes_per_minute > IO_FLOOR_BYTES_PER_MINUTE
        level = _B if works or own.children or own.pids & on_cards else _I
    return KernelSample(id=kernel.id, level=level, path=kernel.path, busy_at=max(signs, default=None))
