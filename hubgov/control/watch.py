"""Looks at every running session once a telemetry period: cards, processes, and what the session says of itself.

What is seen becomes signals and is handed to the writer, which judges it; samples are never written down. A
source that doesn't answer is unknown, never idle.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from hubgov.control.governor import Governor
from hubgov.control.unit import Unit
from hubgov.core import idle
from hubgov.core.model import Allocation, AllocationId, DeviceShare
from hubgov.core.policy import Kind
from hubgov.core.sensing import (
    DUTY_FLOOR_PERCENT,
    CardUse,
    Report,
    TreeUse,
    card_signal,
    kernel_samples,
    reported_signals,
    tree_signals,
)
from hubgov.core.signals import Level, Sample, Signal, SignalKind, sample
from hubgov.core.states import AllocationState
from hubgov.core.watching import GAP_PERIODS, observed
from hubgov.engines.base import mark
from hubgov.telemetry.host import HostMeter, Root
from hubgov.telemetry.probe import DeviceReading, Probe

_WATCHED = (AllocationState.RUNNING, AllocationState.EXPIRING)
LEAST_SECONDS = 1.0
"""The least real time between two looks, also when a session asks for one by what it says."""


class Watch:
    """Samples the sessions of one governor on this machine."""

    def __init__(
        self,
        governor: Governor,
        probes: Mapping[str, Probe],
        site: str,
        log: logging.Logger,
        meter: HostMeter | None = None,
    ) -> None:
        self._governor, self._probes, self._site, self._log = governor, probes, site, log
        self._meter = meter or HostMeter()
        self._reports: dict[AllocationId, Report] = {}
        self._idle_power: dict[tuple[str, bool], int] = {}
        self._uses: Mapping[str, TreeUse] = {}
        self._devices: Mapping[str, DeviceReading] = {}
        self._looked = 0.0
        self._looking = asyncio.Lock()
        self._failing = False

    @property
    def period_seconds(self) -> float:
        """Real seconds between two samples: today's policy says."""
        return self._governor.state.policy.telemetry_period_ms / 1000

    def working(self, allocation: AllocationId) -> tuple[int, ...] | None:
        """The first processes of what a session runs, as last seen; None before it was."""
        use = self._uses.get(allocation)
        return use.tops if use is not None else None

    async def take(self, allocation: Allocation, report: Report) -> None:
        """What a session says of itself. One that is about to be taken back is looked at again at once."""
        self._reports[allocation.id] = report
        if allocation.idle.until is not None or idle.in_grace(allocation):
            await self.look(LEAST_SECONDS)

    async def tick(self) -> None:
        """Look if a period has passed. What fails is said once, and nothing counts as idle by it."""
        try:
            await self.look(self.period_seconds)
        except Exception:  # noqa: BLE001  whatever it is: the next look comes, and until then nothing is known
            if not self._failing:
                self._log.exception("event=watch_failed")
            self._failing = True
        else:
            self._failing = False

    async def look(self, after_seconds: float = 0.0) -> None:
        """One sample of every session, unless the last is less than `after_seconds` old."""
        async with self._looking:
            began = time.monotonic()
            if began - self._looked < after_seconds:
                return
            roots = self._roots()
            uses = await asyncio.to_thread(self._meter.measure, roots, began)
            self._looked, self._uses = began, uses
            self._devices = {d.uuid: d for probe in self._probes.values() for d in probe.latest().devices}
            self._learn_idle_power()
            await self._governor.do(lambda unit: self._sampled(unit, uses))

    def _sampled(self, unit: Unit, uses: Mapping[str, TreeUse]) -> None:
        period_ms = round(self.period_seconds * 1000) * unit.clock_rate
        live = unit.state.allocations
        self._reports = {key: report for key, report in self._reports.items() if key in live}
        for allocation in live.values():
            if allocation.state in _WATCHED and idle.rule_of(unit.state, allocation) is not None:
                taken = self._sample(unit, allocation, uses.get(allocation.id), period_ms)
                before = unit.state.watched.get(allocation.id)
                unit.state.watch(allocation.id, observed(before, taken, period_ms))

    def _sample(self, unit: Unit, allocation: Allocation, use: TreeUse | None, period_ms: int) -> Sample:
        report = self._reports.get(allocation.id)
        if report is not None and unit.now - report.at > GAP_PERIODS * period_ms:
            report = None
        cards = tuple(self._card(unit, allocation, share, use) for share in allocation.devices)
        signals = [card_signal(cards), *tree_signals(use, report)]
        if unit.state.workload_of(allocation).kind is Kind.NOTEBOOK:
            signals += reported_signals(report)
        else:
            signals += [_not_of_jobs(SignalKind.KERNEL), _not_of_jobs(SignalKind.HUMAN)]
        return sample(unit.now, signals, kernel_samples(report, use, self._on_cards(allocation, cards)))

    # --- cards ---------------------------------------------------------------------------------------

    def _card(self, unit: Unit, allocation: Allocation, share: DeviceShare, use: TreeUse | None) -> CardUse:
        reading = self._devices.get(share.uuid)
        if reading is None:
            return CardUse(index=share.index, duty_percent=None)
        pids = None if reading.processes is None else {p.pid for p in reading.processes}
        return CardUse(
            index=share.index,
            duty_percent=reading.utilisation_percent,
            power_mw=reading.power_mw,
            idle_power_mw=self._idle_power.get((share.uuid, bool(pids))),
            shared=share.milli < 1000,
            mine=None if pids is None or use is None else bool(pids & use.pids),
            others=None if pids is None or use is None else bool(pids - use.pids),
        )

    def _learn_idle_power(self) -> None:
        """The least that a card draws while nothing runs on it; more once a process holds memory there."""
        for uuid, reading in self._devices.items():
            duty, power = reading.utilisation_percent, reading.power_mw
            if duty is not None and duty <= DUTY_FLOOR_PERCENT and power is not None:
                key = (uuid, bool(reading.processes))
                self._idle_power[key] = min(power, self._idle_power.get(key, power))

    def _on_cards(self, allocation: Allocation, cards: tuple[CardUse, ...]) -> frozenset[int] | None:
        """The pids on cards of the session that work; None where that isn't known."""
        found: set[int] = set()
        for share, card in zip(allocation.devices, cards, strict=True):
            if card_signal((card,)).level is not Level.IDLE:
                reading = self._devices.get(share.uuid)
                if reading is None or reading.processes is None:
                    return None
                found |= {p.pid for p in reading.processes}
        return frozenset(found)

    # --- processes -----------------------------------------------------------------------------------

    def _roots(self) -> dict[str, Root]:
        state = self._governor.state
        return {
            allocation.id: Root(
                main=allocation.main.pid,
                init=allocation.init.pid if allocation.init is not None else None,
                mark=mark(self._site, allocation),
                server=state.workload_of(allocation).kind is Kind.NOTEBOOK,
            )
            for allocation in state.allocations.values()
            if allocation.state in _WATCHED and allocation.main is not None
        }


def _not_of_jobs(kind: SignalKind) -> Signal:
    return Signal(kind=kind, level=Level.IDLE, code="not_of_jobs")
