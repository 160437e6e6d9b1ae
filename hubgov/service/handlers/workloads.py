"""Workloads: submit, plan, list, show, cancel, extend, why, history."""

from __future__ import annotations

from typing import Any

from hubgov import texts, wire
from hubgov.clock import from_rfc3339, to_rfc3339
from hubgov.control import session, steer, submit
from hubgov.control.actor import Actor, check_change, check_read, check_seen
from hubgov.control.governor import cycle
from hubgov.control.unit import Unit
from hubgov.core.decision import Outcome
from hubgov.core.model import ExtensionState, Workload, WorkloadId
from hubgov.core.policy import Kind
from hubgov.core.states import WorkloadState
from hubgov.errors import Ended, Invalid, NotFound, TooMany
from hubgov.ledger import reading
from hubgov.ledger.reading import JournalLine, WorkloadFilter
from hubgov.service.base import Base
from hubgov.service.bodies import CancelBody, ExtensionBody, ReasonBody, WorkloadBody
from hubgov.service.documents import Desk

MAX_WAIT_SECONDS = 60
_STORED: dict[str, tuple[str, ...]] = {
    "live": tuple(s.value for s in WorkloadState if not s.final),
    "ended": tuple(s.value for s in WorkloadState if s.final),
    **{s.value: (s.value,) for s in WorkloadState if s.final},
    "refused": ("refused",),
}
"""Words that the ledger's own column answers; every other public word is told from the live picture."""
_STATE_WORDS = (*texts.STATES, "live", "ended")


class WorkloadReader(Base):
    """Finds workloads, live ones in memory and ended ones in the ledger, as far as the caller may see them."""

    def find(self, workload_id: str) -> Workload:
        """The workload, or NotFound, also for one that the caller may not see."""
        found = self.governor.state.workloads.get(WorkloadId(workload_id))
        if found is None:
            with self.governor.ledger.reading() as connection:
                found = reading.find_workload(connection, workload_id)
        if found is None:
            raise NotFound(f"no workload {workload_id}", hint="hubgov list")
        check_seen(self.actor, self.governor.state.policy, found)
        return found

    def find_own(self, workload_id: str) -> Workload:
        """The workload for somebody who may read what is inside: its owner, a lead of its team, an admin, and the
        spawner. NotFound as `find`, NotAllowed for team-mates."""
        found = self.find(workload_id)
        check_read(self.actor, self.governor.state.policy, found)
        return found

    def desk_on(self, workload: Workload) -> Desk:
        """For the caller; what the spawner reads it shows to the owner, so it is told no more than he is."""
        if not self.actor.spawner:
            return self.desk()
        return self.desk(self.known(Actor(name=workload.owner)), frozenset({workload.team}))

    def document(self, workload: Workload, desk: Desk | None = None) -> wire.Workload:
        """Its document with the cost so far."""
        with self.governor.ledger.reading() as connection:
            segments = reading.segments_of(connection, workload.id)
            attempts = [] if workload.live else reading.allocations_of(connection, workload.id)
        last = attempts[-1] if attempts else None
        return (desk or self.desk_on(workload)).workload(workload, segments=tuple(segments), last=last)


class Workloads(WorkloadReader):
    async def get(self) -> None:
        """The newest first; filters state, owner, team, queue; pages by `cursor`."""
        limit = self.number("limit", 100, 1, 1000)
        cursor = self.number("cursor", 0, 0, 2**62)
        state = self.query("state")
        if state is not None and state not in _STATE_WORDS:
            raise Invalid(f"state: {state[:40]!r} is no state", hint="one of " + ", ".join(_STATE_WORDS))
        everything = self.actor.admin or self.actor.spawner
        teams = self.desk().reader.teams
        wanted = WorkloadFilter(
            states=_STORED.get(state) if state else None,
            owner=self.query("owner"),
            team=self.query("team"),
            queue=self.query("queue"),
            teams=None if everything else tuple(sorted(teams)),
            viewer=self.actor.principal,
            viewer_since=self.actor.since,
        )
        with self.governor.ledger.reading() as connection:
            if state is None or state in _STORED:
                found, total = reading.list_workloads(connection, wanted, limit=limit, before_seq=cursor or None)
            else:
                found, total = self._live(state, wanted, limit, cursor)
            segments = reading.segments_of_all(connection, [w.id for w in found])
        desk = self.desk()
        current = (self.governor.state.workloads.get(w.id, w) for w in found)
        items = [desk.workload(w, segments=tuple(segments.get(w.id, ())), full=False) for w in current]
        more = str(found[-1].seq) if len(found) == limit else None
        self.reply_list(items, more, total)

    def _live(self, state: str, wanted: WorkloadFilter, limit: int, cursor: int) -> tuple[list[Workload], int]:
        """As the ledger's list, of live work by its public word, which depends on its allocation and queue."""
        desk = self.desk()
        found = [
            w
            for w in self.governor.state.workloads.values()
            if desk.state_word(w) == state
            and wanted.owner in (None, w.owner)
            and wanted.team in (None, w.team)
            and wanted.queue in (None, w.queue)
            and (wanted.teams is None or w.team in wanted.teams or self.actor.owns(w))
        ]
        page = sorted((w for w in found if not cursor or w.seq < cursor), key=lambda w: -w.seq)
        return page[:limit], len(found)

    async def post(self) -> None:
        """Take a request in line. The spawner names the user and gets the server's open ticket if there is one."""
        body = self.body(WorkloadBody)
        owner, draft = self.actor, body.draft()
        if body.user is not None:
            # First of all: who may not name a user isn't told either what that user has.
            session.check_spawner(self.actor)
            owner = self.known(Actor(name=body.user, groups=frozenset(body.groups)))

        def intent(unit: Unit) -> tuple[int, Any]:
            before = unit.state.last_seq
            if self.actor.spawner:
                workload = submit.ensure_server(
                    unit, self.resumed(draft, owner), owner, self.actor, self.services.runnable
                )
            else:
                kinds = self.services.runnable - {Kind.NOTEBOOK}
                workload = submit.submit(unit, draft, owner, self.actor, kinds)
            if self.actor.spawner:
                self.services.attachments.touch(workload.id)
            # Decide within the unit, so that the answer says whether it starts.
            cycle(unit)
            now = unit.state.workloads.get(workload.id, workload)
            return 201 if workload.seq > before else 200, self.desk_on(now).workload(now)

        await self.once(intent)

    def resumed(self, draft: submit.Draft, owner: Actor) -> submit.Draft:
        """The draft with the documents of the session that it resumes: its owner's, and nobody else's."""
        resumes = draft.request.resumes
        if resumes is None:
            return draft
        with self.governor.ledger.reading() as connection:
            earlier = reading.find_workload(connection, resumes)
            saves = reading.saves_of(connection, resumes)
        if earlier is None or not owner.owns(earlier):
            raise NotFound(f"no session {resumes} to resume", hint="start a new one")
        return submit.with_documents(draft, saves)


class Plan(WorkloadReader):
    async def post(self) -> None:
        """A dry run: the Decision, with cost; nothing is written."""
        body = self.body(WorkloadBody)
        owner = self.actor
        if body.user is not None:
            session.check_spawner(self.actor)
            owner = self.known(Actor(name=body.user, groups=frozenset(body.groups)))
        draft = body.draft()
        decision = submit.plan(self.governor.state, draft, owner, self.services.clock.now(), self.services.runnable)
        desk = self.desk(owner)
        simulated = any(draft.request.milli_gpus) and desk.simulated_in(draft.queue)
        self.reply(desk.decision(decision, simulated=simulated))


class OneWorkload(WorkloadReader):
    async def get(self, workload_id: str) -> None:
        """The workload; with `after` and `wait` only once its version is beyond, or the time is over. `attach` is
        the spawner's word that a spawn waits; nobody else's is heard."""
        workload = self.find(workload_id)
        wait = self.number("wait", 0, 0, MAX_WAIT_SECONDS)
        after = self.number("after", 0, 0, 2**62)
        if wait and workload.live:
            if self.actor.spawner and self.get_query_argument("attach", ""):
                await self._attached(workload, after, wait)
            else:
                await self.governor.until_changed(workload_id, after, wait)
        self.reply(self.document(self.find(workload_id)))

    async def _attached(self, workload: Workload, after: int, wait: int) -> None:
        """As a waiting spawn: counted, and turned away when too many are attached."""
        attachments, limit = self.services.attachments, self.governor.state.policy.max_attached
        waiting = workload.state is WorkloadState.PENDING
        if waiting and not attachments.polling(workload.id) and attachments.count() >= limit:
            raise TooMany(f"{limit} spawns wait attached already", hint="detach; the place in line is kept")
        with attachments.attach(workload.id):
            await self.governor.until_changed(workload.id, after, wait)

    async def delete(self, workload_id: str) -> None:
        """Cancel, in whatever state. What is over already answers 409."""
        body = self.body(CancelBody)
        found = self.find(workload_id)
        actor = self.actor
        if actor.spawner:
            # The hub's own word for its user: a person cancelled the spawn there.
            actor = Actor(name=found.owner)

        def intent(unit: Unit) -> tuple[int, Any]:
            workload = steer.cancel(unit, workload_id, actor, reason=body.reason, now=body.now)
            return 200, self.desk_on(workload).workload(workload)

        await self.once(intent)


class Extensions(WorkloadReader):
    async def post(self, workload_id: str) -> None:
        """More time: 201 granted, 202 needs approval, 422 denied with the Decision. Recorded, unless beyond all
        bounds."""
        body = self.body(ExtensionBody)
        workload = self.find(workload_id)

        def intent(unit: Unit) -> tuple[int, Any]:
            # The span to an `until` is measured here, from the end as it is when the request is judged.
            by_ms = self._span(body, unit.workload(workload_id))
            request, decision = steer.extend(
                unit,
                workload_id,
                self.actor,
                by_ms=by_ms,
                reason=body.reason,
                lease_version=body.lease_version,
            )
            desk = self.desk()
            if request.state is ExtensionState.DENIED:
                document = desk.decision(decision, workload)
                hint = "; ".join(document.next_steps)
                error = {"code": decision.code, "message": document.headline, "details": document, "hint": hint}
                return 422, {"error": error}
            status = 201 if decision.outcome is Outcome.GRANTED else 202
            return status, desk.extension(request, decision)

        await self.once(intent)

    def _span(self, body: ExtensionBody, workload: Workload) -> int:
        if (body.by_seconds is None) == (body.until is None):
            raise Invalid("give either by_seconds or until", hint='{"by_seconds": 3600}')
        if body.by_seconds is not None:
            return body.by_seconds * 1000
        allocation = self.governor.state.allocation_of(workload)
        if allocation is None or allocation.lease.expires_at is None:
            raise Ended(f"{workload.id} has no end that could move", hint=f"hubgov show {workload.id}")
        try:
            until = from_rfc3339(body.until or "")
        except (ValueError, OverflowError):
            raise Invalid(
                f"until: {(body.until or '')[:40]!r} is no instant", hint="2026-03-02T18:00:00+08:00"
            ) from None
        if until <= allocation.lease.expires_at:
            raise Invalid("until: not after the present end", hint=to_rfc3339(allocation.lease.expires_at))
        return until - allocation.lease.expires_at


class Why(WorkloadReader):
    async def get(self, workload_id: str) -> None:
        """The current Decision: every blocker with its numbers, who holds it, until when."""
        workload = self.find(workload_id)
        live = self.governor.state.workloads.get(workload.id)
        if live is None:
            raise Ended(
                f"{workload.id} is over: {self.document(workload).headline}",
                hint=f"hubgov show {workload.id}",
            )
        desk = self.desk_on(live)
        self.reply(desk.decision(desk.explained(live), live))


class Events(WorkloadReader):
    async def get(self, workload_id: str) -> None:
        """The journal of one workload, newest first."""
        self.find_own(workload_id)
        with self.governor.ledger.reading() as connection:
            lines = reading.journal(connection, workload=workload_id, limit=self.number("limit", 100, 1, 1000))
        self.reply_list([journal_line(line) for line in lines])


class Claim(WorkloadReader):
    async def post(self, workload_id: str) -> None:
        """Somebody opened the notebook."""
        self.body(ReasonBody)
        workload = self.find(workload_id)
        check_change(self.actor, self.governor.state.policy, workload)
        await self.governor.do(lambda unit: session.claim(unit, workload_id, self.actor))
        self.reply(None, 204)


def journal_line(line: JournalLine) -> dict[str, Any]:
    """A line of the journal as a document."""
    return {
        "seq": line.seq,
        "at": to_rfc3339(line.at),
        "event": line.event,
        "kind": line.kind,
        "record": line.record,
        "workload": line.workload,
        "actor": line.actor,
        "reason": line.reason,
        "from": line.was,
        "to": line.became,
        "changed": line.detail,
    }
