"""A governor over a real ledger, a fake clock and a scripted engine: the control layer without its service.

async with a_house(tmp_path) as house:
    nb = await house.ask("amy")
    await house.run(nb)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from builders import snapshot

from hubgov.app import read_policy
from hubgov.clock import FakeClock
from hubgov.control import policies, session, steer, submit
from hubgov.control.actor import ADMIN, APPROVE, SPAWN, Actor
from hubgov.control.attachments import Attachments
from hubgov.control.governor import Governor
from hubgov.control.reconcile import Reconciler
from hubgov.control.unit import Unit
from hubgov.core.decision import Decision
from hubgov.core.devices import SeenDevice, SeenNode
from hubgov.core.metering import Entry
from hubgov.core.model import (
    Allocation,
    Change,
    ExtensionRequest,
    ProcessId,
    Request,
    SaveRecord,
    Workload,
    WorkloadId,
)
from hubgov.core.policy import Kind
from hubgov.engines.scripted import ScriptedEngine
from hubgov.ledger import reading
from hubgov.ledger.ledger import Ledger

POLICY = """\
version: 1
timezone: UTC
currency: CNY
defaults: {environment: experiment, owner: ops, team: platform}
flavors:
  a100: {vendor: nvidia, model: Card A, memory: 80GiB, price_per_hour: 18.5}
pools:
  dev: {engine: local, team: platform, owner: ops}
nodes:
  box: {match: {hostname: box}, flavor: a100, pools: {dev: [0, 1]}}
teams:
  platform: {}
  vision: {groups: [vision], leads: [lena]}
  nlp: {groups: [nlp]}
projects:
  seg: {team: vision, owner: amy}
  chat: {team: nlp, owner: bo}
queues:
  experiment:
    kinds: [notebook]
    pools: [dev]
    lease: {default: 1h, max: 4h}
    warn: [10m, 2m]
    grace: 5m
    claim: 15m
    start_deadline: 10m
    extension: {self_serve: {count: 3, step: 1h}, approvers: [team-lead], max_total: 8h, reason: required}
"""
GROUPS = {"amy": "vision", "ava": "vision", "bo": "nlp"}
SPAWNER = Actor(name="hubgov-spawner", kind="service", scopes=frozenset({SPAWN}))
ADMINISTRATOR = Actor(name="root", scopes=frozenset({ADMIN, APPROVE}))
LOG = logging.getLogger("hubgov.test")


def person(name: str) -> Actor:
    return Actor(name=name, groups=frozenset({GROUPS[name]}) if name in GROUPS else frozenset())


class House:
    """What a service is made of, driven by hand: nothing happens unless the test says so."""

    def __init__(self, url: str, clock: FakeClock, engine: ScriptedEngine, policy: str = POLICY) -> None:
        self.clock, self.engine = clock, engine
        self.held: set[str] = set()
        """Workloads on whose devices a probe sees somebody."""
        self.ledger = Ledger(url, read_policy)
        self.ledger.upgrade()
        self.ledger.lead()
        text = self.ledger.policy()
        if text is None:
            change, text = policies.first(policy, "policy.yaml", clock.now(), clock.rate)
            self.ledger.commit([Entry(change=change)], clock.now())
        self.governor = Governor(self.ledger, self.ledger.load(text, clock.now()), clock, LOG)
        self.attachments = Attachments(clock)
        self.reconciler = Reconciler(
            self.governor, (engine,), self.attachments, LOG, lambda allocation: allocation.workload in self.held
        )
        self.commits = 0
        self._count_commits()

    def _count_commits(self) -> None:
        commit = self.ledger.commit

        def counted(entries: Any, *rest: Any) -> None:
            commit(entries, *rest)
            self.commits += bool(entries) or any(rest[1:])

        self.ledger.commit = counted  # type: ignore[method-assign]

    # --- driving -------------------------------------------------------------------------------------

    async def do(self, intent: Callable[[Unit], Any]) -> Any:
        return await self.governor.do(intent)

    async def tick(self, ms: int = 0) -> None:
        """Time passes, the sweep comes, the reconciler looks and what it started is carried out."""
        self.clock.advance(ms)
        await self.governor.tick()
        self.reconciler.look()
        await self.reconciler.settled()

    async def pass_time(self, ms: int, step: int = 1000) -> None:
        """As the service would live through it: a sweep and a look every `step`."""
        end = self.clock.now() + ms
        while self.clock.now() < end:
            await self.tick(min(step, end - self.clock.now()))

    def check(self) -> None:
        """The picture in memory is exactly what a restart would read from the ledger; charges add up."""
        text = self.ledger.policy()
        assert text is not None
        with self.ledger.reading() as connection:
            stored = reading.load_state(connection, text, self.clock.now())
            totals = reading.charge_totals(connection)
        mine, read = snapshot(self.governor.state), snapshot(stored)
        for name in read:
            assert mine[name] == read[name], name
        assert totals == {a.id: a.milli_gpus for a in self.governor.state.allocations.values() if a.charged}

    # --- people --------------------------------------------------------------------------------------

    async def ask(
        self,
        user: str,
        gpus: int = 1,
        server: str = "",
        *,
        name: str | None = None,
        kind: str | None = None,
        **request: Any,
    ) -> str:
        """The spawner asks for a notebook server; the workload's id."""
        asked = Request(milli_gpus=(gpus * 1000,), server=server, **request)
        wanted = submit.Draft(queue="experiment", request=asked, name=name, kind=kind)
        workload: Workload = await self.do(
            lambda unit: submit.ensure_server(unit, wanted, person(user), SPAWNER, frozenset({Kind.NOTEBOOK}))
        )
        return workload.id

    async def launch(self, workload: str) -> Allocation:
        """The spawner takes the grant, and its processes live."""
        attempt = self.show(workload).attempt
        allocation: Allocation = await self.do(lambda unit: session.launch(unit, workload, attempt, SPAWNER))
        self.engine.launch(allocation)
        main = ProcessId(pid=10_000 + self.show(workload).seq, start_ticks=1, boot_id="b")
        await self.do(lambda unit: session.processes(unit, workload, attempt, SPAWNER, main=main, init=None))
        return self.allocation(workload)

    async def run(self, workload: str) -> Allocation:
        """Launched and ready."""
        await self.launch(workload)
        attempt = self.show(workload).attempt
        await self.do(lambda unit: session.ready(unit, workload, attempt, SPAWNER, "http://x/"))
        return self.allocation(workload)

    async def cancel(self, workload: str, *, by: str | None = None, now: bool = False) -> Workload:
        actor = person(by or self.show(workload).owner)
        done: Workload = await self.do(lambda unit: steer.cancel(unit, workload, actor, reason="", now=now))
        return done

    async def saves(self, workload: str) -> None:
        """The session saves what it was asked for and says so."""
        allocation = self.allocation(workload)
        record = SaveRecord(
            id=str(allocation.save), allocation=allocation.id, workload=allocation.workload, at=self.clock.now(),
            asked_lab=True, documents=(), kernels=(), terminals=0, error="",
        )  # fmt: skip
        owner = person(self.show(workload).owner)
        await self.do(lambda unit: session.saved(unit, workload, owner, record))

    async def extend(self, workload: str, by_ms: int, reason: str = "eval") -> tuple[ExtensionRequest, Decision]:
        actor = person(self.show(workload).owner)
        done: tuple[ExtensionRequest, Decision] = await self.do(
            lambda unit: steer.extend(unit, workload, actor, by_ms=by_ms, reason=reason, lease_version=None)
        )
        return done

    # --- reading -------------------------------------------------------------------------------------

    def show(self, workload: str) -> Workload:
        """Live or ended."""
        live = self.governor.state.workloads.get(WorkloadId(workload))
        if live is not None:
            return live
        with self.ledger.reading() as connection:
            found = reading.find_workload(connection, workload)
        assert found is not None, workload
        return found

    def allocation(self, workload: str) -> Allocation:
        found = self.governor.state.allocation_of(self.show(workload))
        assert found is not None, f"{workload} holds nothing"
        return found

    def state(self, workload: str) -> str:
        """The allocation's state while there is one, else the workload's."""
        shown = self.show(workload)
        allocation = self.governor.state.allocation_of(shown) if shown.live else None
        return allocation.state.value if allocation is not None else shown.state.value

    def journal(self, workload: str) -> list[str]:
        """Events of a workload, oldest first."""
        with self.ledger.reading() as connection:
            lines = reading.journal(connection, workload=workload, limit=1000)
        return [line.event for line in reversed(lines)]


def _the_box() -> SeenNode:
    devices = tuple(SeenDevice(index=i, uuid=f"GPU-{i}", model="Card A", memory_mib=80 * 1024) for i in range(2))
    return SeenNode(name="box", hostname="box", cpus=64, ram_mib=512 * 1024, devices=devices)


@asynccontextmanager
async def a_house(
    where: Path | str,
    *,
    policy: str = POLICY,
    clock: FakeClock | None = None,
    engine: ScriptedEngine | None = None,
) -> AsyncIterator[House]:
    """Two cards in one box, its writer running, on SQLite in a folder or on the database of an address. With the
    clock and engine of an earlier one it is a restart."""
    clock = clock or FakeClock()
    house = House(
        where if isinstance(where, str) else f"sqlite:///{where}/ledger.sqlite",
        clock,
        engine or ScriptedEngine(clock),
        policy,
    )
    house.governor.fallen = asyncio.get_running_loop().create_future()
    writer = asyncio.create_task(house.governor.run())
    try:
        if not house.governor.state.seen:
            seen = Change(event="node_seen", before=None, after=_the_box(), actor="probe")
            await house.do(lambda unit: unit.write([seen]))
        yield house
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
        await house.reconciler.settled()
        house.ledger.close()
