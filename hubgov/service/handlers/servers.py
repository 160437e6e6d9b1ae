"""Notebook servers: what the spawner and the server's own extension report, and the receipt afterwards."""

from __future__ import annotations

from typing import Any

from hubgov import processes, wire
from hubgov.clock import from_rfc3339, to_rfc3339
from hubgov.control import receipt, session
from hubgov.control.actor import Actor, check_change, check_read, may_see
from hubgov.control.save_texts import reason
from hubgov.control.unit import Unit
from hubgov.core.model import KernelSeen, ProcessId, SavedDocument, SaveRecord, Workload
from hubgov.core.policy import Kind
from hubgov.core.states import AllocationState
from hubgov.errors import Invalid, NotFound
from hubgov.ledger import reading
from hubgov.service import environment, idle_documents, spawn_options
from hubgov.service.bodies import (
    AttemptBody,
    DepartedBody,
    EndedBody,
    ProcessBody,
    ProcessesBody,
    ReadyBody,
    SaveBody,
    StoppingBody,
)
from hubgov.service.handlers.workloads import WorkloadReader


class SpawnOptions(WorkloadReader):
    async def get(self) -> None:
        """What the spawn form shows to a user: profiles with their Decision, projects, quota."""
        session.check_spawner(self.actor)
        name = self.query("user")
        if name is None:
            raise Invalid("user: missing", hint="?user=NAME")
        groups = frozenset(self.get_query_arguments("groups"))
        owner = self.known(Actor(name=name, groups=groups))
        server = self.query("server") or ""
        with self.governor.ledger.reading() as connection:
            last = reading.last_of_server(connection, name, server, owner.since)
        self.reply(spawn_options.document(self.desk(owner), owner, server, self.services.runnable, last))


class Launch(WorkloadReader):
    async def post(self, workload_id: str) -> None:
        """The spawner begins: devices, environment, device nodes."""
        body = self.body(AttemptBody)
        allocation = await self.governor.do(
            lambda unit: session.launch(unit, workload_id, body.attempt, self.actor)
        )
        workload = self.governor.state.workload_of(allocation)
        self.reply(
            wire.Launch(
                workload=self.document(workload),
                allocation=allocation.id,
                attempt=allocation.attempt,
                device_nodes=environment.device_nodes(self.governor.state, allocation),
                environment=environment.variables(
                    self.governor.state.policy,
                    workload,
                    allocation,
                    service_url=self.services.service_url,
                    site=self.services.site,
                ),
            )
        )


class Processes(WorkloadReader):
    async def post(self, workload_id: str) -> None:
        """Which processes the server is."""
        body = self.body(ProcessesBody)
        main, init = _process(body.main), _process(body.init) if body.init else None
        uid = processes.uid_of(wire.ProcessRef(pid=main.pid, start_ticks=main.start_ticks, boot_id=main.boot_id))
        await self.governor.do(
            lambda unit: session.processes(
                unit, workload_id, body.attempt, self.actor, main=main, init=init, uid=uid
            )
        )
        self.reply(None, 204)


class Ready(WorkloadReader):
    async def post(self, workload_id: str) -> None:
        """The server answers: the lease begins."""
        body = self.body(ReadyBody)
        await self.governor.do(lambda unit: session.ready(unit, workload_id, body.attempt, self.actor, body.url))
        self.reply(self.document(self.find(workload_id)))


class Stopping(WorkloadReader):
    async def post(self, workload_id: str) -> None:
        """The hub was told to stop the server. Answers with the workload, which says whether a save is awaited."""
        body = self.body(StoppingBody)
        workload = await self.governor.do(
            lambda unit: session.stopping(unit, workload_id, body.attempt, self.actor, now=body.now)
        )
        self.reply(self.document(workload))


class EndedReport(WorkloadReader):
    async def post(self, workload_id: str) -> None:
        """The server's process ended. A report that comes late or twice changes nothing."""
        body = self.body(EndedBody)
        await self.governor.do(
            lambda unit: session.ended(
                unit,
                workload_id,
                body.attempt,
                self.actor,
                code=body.code,
                signal=body.signal,
                by_owner=body.by_owner,
            )
        )
        self.reply(None, 204)


class Saves(WorkloadReader):
    async def put(self, workload_id: str, save_id: str) -> None:
        """What a save brought: from the server's own extension, for the receipt."""
        body = self.body(SaveBody)
        if body.save != save_id:
            raise Invalid("save: not the one of the address", hint="send the same id")
        workload = self.find(workload_id)
        check_change(self.actor, self.governor.state.policy, workload)
        await self.governor.do(lambda unit: self._save(unit, workload_id, body))
        self.reply(None, 204)

    def _save(self, unit: Unit, workload_id: str, body: SaveBody) -> None:
        allocation = unit.allocation(unit.workload(workload_id))
        record = SaveRecord(
            id=body.save,
            allocation=allocation.id,
            workload=allocation.workload,
            at=unit.now,
            asked_lab=body.asked_lab,
            documents=tuple(
                SavedDocument(
                    path=d.path,
                    outcome=d.outcome,
                    bytes=d.bytes,
                    sha256=d.sha256,
                    saved_at=_instant(d.saved_at),
                    copy=d.copy_,
                    error=d.error,
                )
                for d in body.documents
            ),
            kernels=tuple(KernelSeen(id=k.id, name=k.name, path=k.path, busy=k.busy) for k in body.kernels),
            terminals=body.terminals,
            error=body.error,
        )
        session.saved(unit, workload_id, self.actor, record)


class ReceiptOfWorkload(WorkloadReader):
    async def get(self, workload_id: str) -> None:
        """What was saved, lost, used and charged by a session that is over."""
        self.reply(self.receipt(self.find_own(workload_id)))

    def receipt(self, workload: Workload) -> wire.Receipt:
        if workload.live:
            allocation = self.governor.state.allocation_of(workload)
            if allocation is None or allocation.state is not AllocationState.QUARANTINED:
                raise NotFound(f"{workload.id} is not over yet", code="not_ended", hint="wait until it ended")
        with self.governor.ledger.reading() as connection:
            attempts = reading.allocations_of(connection, workload.id)
            saves = reading.saves_of(connection, workload.id)
            segments = reading.segments_of(connection, workload.id)
        facts = receipt.facts(attempts, saves, segments)
        last = attempts[-1] if attempts else None
        desk = self.desk_on(workload)
        return wire.Receipt(
            workload=desk.workload(workload, segments=tuple(segments), last=last),
            documents=tuple(_document(d, desk.lang) for d in facts.documents),
            kernels=tuple(wire.KernelReport(id=k.id, name=k.name, path=k.path, busy=k.busy) for k in facts.kernels),
            terminals=facts.terminals,
            saved_by_lab=facts.asked_lab,
            used_seconds=facts.used_ms // 1000,
            gpu_seconds=facts.milli_gpu_ms // 1_000_000,
            cost=desk.money(facts.cost_micro),
            devices_free_at=to_rfc3339(last.ended_at) if last and last.ended_at else None,
            # A job saves what it saves: nobody asked it to, and nobody knows.
            lost=facts.lost(desk.lang) if workload.kind is Kind.NOTEBOOK else (),
            evidence=idle_documents.evidence(last, desk.reader),
            timezone=desk.state.policy.timezone,
        )


class ReceiptOfServer(ReceiptOfWorkload):
    async def get(self, user: str, server: str = "") -> None:
        """The receipt of the last session of a server: for the hub's own page, and whoever may read the session."""
        since = self.governor.state.known_since(user)
        with self.governor.ledger.reading() as connection:
            workload = reading.last_of_server(connection, user, server, since)
        if workload is None or not may_see(self.actor, self.governor.state.policy, workload):
            raise NotFound("no session of this server yet", hint="start one")
        check_read(self.actor, self.governor.state.policy, workload)
        self.reply(self.receipt(workload))


class Departed(WorkloadReader):
    async def post(self, user: str) -> None:
        """The hub deleted this user: the next of that name is another."""
        ago_ms = self.body(DepartedBody).ago_seconds * 1000 * self.governor.clock.rate
        await self.governor.do(lambda unit: session.departed(unit, user, self.actor, ago_ms=ago_ms))
        self.reply(None, 204)


def _process(body: ProcessBody) -> ProcessId:
    return ProcessId(pid=body.pid, start_ticks=body.start_ticks, boot_id=body.boot_id)


def _instant(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return from_rfc3339(text)
    except (ValueError, OverflowError):
        raise Invalid(f"saved_at: {text[:40]!r} is no instant", hint="2026-03-02T18:00:00Z") from None


def _document(d: SavedDocument, lang: str) -> wire.SavedDocument:
    return wire.SavedDocument(
        path=d.path,
        outcome=d.outcome,
        bytes=d.bytes,
        sha256=d.sha256,
        saved_at=to_rfc3339(d.saved_at) if d.saved_at is not None else None,
        copy=d.copy,
        error=reason(d.error, lang),
    )
