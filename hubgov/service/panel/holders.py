"""Who holds what: a row for each device and each of its holders, and for work that runs without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hubgov import texts, wire
from hubgov.clock import to_rfc3339
from hubgov.control.actor import may_change
from hubgov.core.lease import grace_until
from hubgov.core.model import Allocation
from hubgov.core.policy import Kind
from hubgov.core.states import GRACE, AllocationState
from hubgov.service.documents import Desk
from hubgov.service.inventory import device_rows
from hubgov.telemetry.probe import Probe

FRESH_SECONDS, STALE_SECONDS = 15, 120
"""A number younger than the first is shown without its age; one older than the second is called stale."""
_ENDING = (AllocationState.STOPPING, AllocationState.RELEASING, AllocationState.QUARANTINED, AllocationState.LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One holder, as far as the reader may know: of another team's work its team alone."""

    workload: str | None
    name: str
    owner: str | None
    team: str
    project: str | None
    job: str | None
    """The kind of a job; None for a notebook, and for what the reader may not see."""
    state: str
    share: str
    """What it holds of a card, as a number of cards; empty for a whole one."""
    since: str
    until: str | None
    """When its stop is sent while it is in its grace, else its lease's end."""
    left_seconds: int | None
    in_grace: bool
    mine: bool
    may_stop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderRow:
    """A device and one of its holders; without a device for work that needs none, without a holder when free."""

    id: str
    node: str
    device: wire.Device | None
    memory_mib: int | None
    age_seconds: int | None
    """Of the use shown, in real seconds, where it is worth saying."""
    stale: bool
    held: Held | None


def holder_rows(desk: Desk, probes: Mapping[str, Probe], isolation: str) -> list[HolderRow]:
    """By node and index; what runs without a device comes last. The order never depends on who holds what."""
    state = desk.state
    sizes = {d.uuid: (d.key, d.memory_mib) for node in state.nodes.values() for d in node.devices}
    rows: list[HolderRow] = []
    devices = sorted(device_rows(desk, probes, isolation), key=lambda d: (d.node, d.index))
    for device in devices:
        key, memory_mib = sizes[device.uuid]
        holders: list[Allocation | None] = [state.allocations[a] for a in state.on_device.get(key, ())]
        for allocation in holders or [None]:
            share = _share(allocation, device.uuid) if allocation is not None else ""
            held = _held(desk, allocation, share) if allocation is not None else None
            rows.append(_row(desk, device, memory_mib, held))
    without = [a for a in state.allocations.values() if not a.devices]
    for allocation in sorted(without, key=lambda a: (a.node, a.id)):
        held = _held(desk, allocation, "")
        rows.append(
            HolderRow(
                id=f"{allocation.node}-{held.workload or 'other'}-{len(rows)}", node=allocation.node, device=None,
                memory_mib=None, age_seconds=None, stale=False, held=held,
            )
        )  # fmt: skip
    return rows


def _row(desk: Desk, device: wire.Device, memory_mib: int, held: Held | None) -> HolderRow:
    age = device.age_seconds // desk.clock_rate if device.age_seconds is not None else None
    return HolderRow(
        id=f"{device.node}-{device.index}" + (f"-{held.workload or held.team}" if held else ""),
        node=device.node,
        device=device,
        memory_mib=memory_mib,
        age_seconds=age if age is not None and age > FRESH_SECONDS else None,
        stale=age is not None and age > STALE_SECONDS,
        held=held,
    )


def _share(allocation: Allocation, uuid: str) -> str:
    milli = next(s.milli for s in allocation.devices if s.uuid == uuid)
    return f"{wire.gpus(milli)}" if milli < 1000 else ""


def _held(desk: Desk, allocation: Allocation, share: str) -> Held:
    workload = desk.state.workload_of(allocation)
    seen = desk.reader.sees(workload.owner, workload.team)
    in_grace = allocation.state in GRACE
    until = grace_until(allocation) if in_grace else allocation.lease.expires_at
    steers = may_change(desk.actor, desk.state.policy, workload)
    return Held(
        workload=workload.id if seen else None,
        name=workload.name if seen else "",
        owner=workload.owner if seen else None,
        team=workload.team,
        project=workload.project if seen else None,
        job=workload.kind.value if seen and workload.kind is not Kind.NOTEBOOK else None,
        state=desk.state_word(workload),
        share=share,
        since=to_rfc3339(allocation.started_at or allocation.reserved_at),
        until=to_rfc3339(until) if until is not None else None,
        left_seconds=max(0, until - desk.now) // 1000 if until is not None else None,
        in_grace=in_grace,
        mine=desk.actor.owns(workload),
        may_stop=steers and allocation.state not in _ENDING,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the address asks for; None for no condition."""

    team: str | None = None
    pool: str | None = None
    node: str | None = None
    state: str | None = None
    text: str | None = None

    def fits(self, row: HolderRow) -> bool:
        """Whether a row is asked for; only what the reader sees of it is looked at."""
        device, held = row.device, row.held
        team = held.team if held else device.team if device else None
        states = {device.state if device else None, held.state if held else None}
        return (
            self.team in (None, team)
            and self.pool in (None, device.pool if device else None)
            and self.node in (None, row.node)
            and (self.state is None or self.state in states)
            and (self.text is None or self.text.casefold() in _words(row))
        )


def _words(row: HolderRow) -> str:
    device, held = row.device, row.held
    words: list[str | None] = [row.node]
    if device is not None:
        words += [f"{device.node}/{device.index}", device.uuid, device.flavor, device.pool, device.team]
    if held is not None:
        words += [held.workload, held.name, held.owner, held.team, held.project, held.job]
    return " ".join(word for word in words if word).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What can be chosen in the filters."""

    teams: tuple[str, ...]
    pools: tuple[str, ...]
    nodes: tuple[str, ...]
    states: tuple[tuple[str, str], ...]


def choices(rows: Iterable[HolderRow], lang: str) -> Choices:
    """The values that occur in the rows; states with their words."""
    found = list(rows)
    devices = [r.device for r in found if r.device is not None]
    helds = [r.held for r in found if r.held is not None]
    states = {d.state: texts.word(texts.DEVICE_STATES, d.state, lang) for d in devices}
    states |= {h.state: texts.word(texts.STATES, h.state, lang) for h in helds}
    return Choices(
        teams=tuple(sorted({h.team for h in helds} | {d.team for d in devices if d.team})),
        pools=tuple(sorted({d.pool for d in devices if d.pool})),
        nodes=tuple(sorted({r.node for r in found})),
        states=tuple(sorted(states.items())),
    )
