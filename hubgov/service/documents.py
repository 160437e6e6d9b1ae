"""Records of the core as documents of the wire, as far as the reader may see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any
from urllib.parse import quote

from hubgov import texts, wire
from hubgov.clock import Instant, from_rfc3339, to_rfc3339
from hubgov.control.actor import Actor, approvers, may_read, may_see
from hubgov.control.approvals import delayed_by, teams_delayed_by
from hubgov.core import explain
from hubgov.core.amounts import money_text, rounded
from hubgov.core.decision import Blocker, Decision, HeldBy
from hubgov.core.entitlement import walk
from hubgov.core.lease import extensions_left, grace_until
from hubgov.core.metering import UsageSegment, cost_of, segments_until
from hubgov.core.model import Allocation, ExtensionRequest, ExtensionState, Workload
from hubgov.core.ranking import lines
from hubgov.core.state import State
from hubgov.core.states import METERED, AllocationState, public_state
from hubgov.core.transitions import stop_due_at
from hubgov.service import idle_documents
from hubgov.service.sentences import Reader

SHARED_MS = 1000
"""For how long, in real milliseconds, a judgement answers for the same picture."""


def server_url(base_url: str, owner: str, server: str | None) -> str:
    """Where a notebook server is behind the hub's proxy, escaped as the hub escapes names."""
    path = "/".join(quote(part, safe="@~") for part in (owner, server) if part)
    return f"{base_url}user/{path}/"


def _time(at: Instant | None) -> str | None:
    return to_rfc3339(at) if at is not None else None


@dataclass(slots=False)
class Desk:
    """Writes documents for one reader from the picture at one instant."""

    state: State
    now: Instant
    actor: Actor
    lang: str
    clock_rate: int = 1
    base_url: str = "/"
    teams: frozenset[str] = frozenset()
    """Teams that the reader sees by name on top of those that follow from his groups."""
    reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = Reader(self.actor, self.state.policy, self.lang, self.now, self.teams)

    @cached_property
    def judged_at(self) -> Instant:
        """The instant that waits are judged at: the same for everybody who asks about one picture within
        `SHARED_MS`, so that a crowd that looks after each commit is ranked once and not once for each."""
        known = self.state.memo()
        at: Instant = known.setdefault("judged at", self.now)
        if not 0 <= self.now - at < SHARED_MS * self.clock_rate:
            at = known["judged at"] = self.now
        return at

    def explained(self, live: Workload) -> Decision:
        """The full Decision on live work, with the latest start: worked out once for all who ask."""
        known = self.state.memo(self.judged_at)
        if ("decision", live.id) not in known:
            known["decision", live.id] = explain.explain(self.state, live, self.judged_at)
        found: Decision = known["decision", live.id]
        return found

    # --- workloads -----------------------------------------------------------------------------------

    def workload(
        self,
        workload: Workload,
        *,
        segments: tuple[UsageSegment, ...] = (),
        last: Allocation | None = None,
        full: bool = True,
    ) -> wire.Workload:
        """The document of a workload. `segments` is its usage in closed spans, `last` its last allocation when
        it is over; without `full` the latest start, which costs most, is left out (lists). A team-mate, who sees
        the work by name, isn't shown what is inside: documents, labels, warnings, notes."""
        policy = self.state.policy
        queue = policy.queues.get(workload.queue)
        live = self.state.allocation_of(workload) if workload.live else None
        allocation = live or last
        decision = self._decision_on(workload, full)
        if live is not None:
            segments += segments_until(self.state, workload, live, max(self.now, live.since))
        cost = sum((cost_of(s) for s in segments), start=Fraction(0))
        request = workload.request
        inside = may_read(self.actor, policy, workload)
        return wire.Workload(
            id=workload.id,
            version=workload.version,
            now=to_rfc3339(self.now),
            clock_rate=self.clock_rate,
            timezone=policy.timezone,
            name=workload.name,
            kind=workload.kind.value,
            owner=workload.owner,
            team=workload.team,
            project=workload.project,
            environment=workload.environment,
            queue=workload.queue,
            class_=queue.class_.value if queue else "standard",
            priority=workload.priority,
            model=request.model,
            labels=request.labels if inside else {},
            state=self.state_word(workload),
            why=decision.code if decision and live is None else None,
            headline=self._headline(workload, decision),
            end_reason=workload.end_reason,
            exit_code=workload.exit_code,
            signal=workload.signal,
            failure_class=workload.failure_class if inside else None,
            note=self._note(workload) if inside else "",
            ended_by=workload.ended_by if inside else "",
            gpus=wire.gpus(allocation.milli_gpus if allocation else request.smallest),
            flavor=allocation.flavor if allocation else next(iter(request.flavors), None),
            nodes=request.nodes or "any",
            memory_mib=request.memory_mib,
            cpus=request.cpus,
            ram_mib=request.ram_mib,
            devices=_device_refs(allocation),
            simulated=self._simulated(workload, allocation),
            entitled=self._entitled(live),
            preemptible=request.preemptible,
            submitted_at=to_rfc3339(workload.submitted_at),
            started_at=_time(workload.started_at),
            ended_at=_time(workload.ended_at),
            **self._lease(workload, allocation),
            **idle_documents.fields(self.state, live, self.now),
            position=lines(self.state, self.judged_at).get(workload.id, (None, None))[0],
            latest_start=_time(decision.latest_start) if decision and live is None else None,
            latest_start_basis=decision.latest_start_basis if decision and live is None else "none",
            wait_seconds=self._waited(workload) // 1000,
            attach_seconds=queue.attach_ms // 1000 if queue else None,
            cost=self.money(rounded(cost)),
            attempt=workload.attempt,
            evictions=workload.evictions,
            url=self._url(workload, live),
            server=request.server,
            notices=self._notices(live) if inside else (),
            extension=self._last_extension(workload) if inside else None,
            save_requested=live.save if inside and live and self._saving(live) else None,
            resume_documents=request.resume_documents if inside else (),
            command=request.command if inside else (),
            cwd=request.cwd if inside else "",
            env=request.env if self.actor.owns(workload) or self.actor.admin else {},
        )

    def _note(self, workload: Workload) -> str:
        """What is to be said of it besides its state: a word that was noted, else what went wrong."""
        failure = workload.failure_class
        if workload.note or failure not in texts.FAILURES:
            return texts.word(texts.NOTES, workload.note, self.lang)
        facts = {"command": next(iter(workload.request.command), ""), "cwd": workload.request.cwd or "~"}
        return texts.word(texts.FAILURES, str(failure), self.lang, **facts, signal=workload.signal or 0)

    def _saving(self, live: Allocation) -> bool:
        """Whether its session is asked to save and hasn't answered; no longer once its stop is sent."""
        asked = live.state in METERED or (live.state is AllocationState.STOPPING and self.now < stop_due_at(live))
        return asked and live.save != live.save_answered

    def _decision_on(self, workload: Workload, full: bool) -> Decision | None:
        if not workload.live or workload.id not in self.state.workloads:
            return None
        if self.state.allocation_of(workload) is not None or full:
            return self.explained(workload)
        return explain.waiting(self.state, workload, self.judged_at)

    def _headline(self, workload: Workload, decision: Decision | None) -> str:
        if decision is not None:
            return self.reader.headline(decision, workload)
        reason = texts.word(texts.END_REASONS, workload.end_reason or "completed", self.lang)
        if workload.ended_by and may_read(self.actor, self.state.policy, workload):
            why = self._note(workload)
            reason += texts.word(texts.WORDS, "stopped_by", self.lang, who=workload.ended_by, why=why)
        return texts.say("ended", self.lang, reason=reason)

    def state_word(self, workload: Workload) -> str:
        """The public word for where the workload stands."""
        live = self.state.allocation_of(workload) if workload.live else None
        held = workload.queue in self.state.holds
        return public_state(workload.state, live.state if live else None, held)

    def _simulated(self, workload: Workload, allocation: Allocation | None) -> bool:
        """Whether its devices are made up; of one that waits, whether those it waits for are."""
        if allocation is not None:
            return any(share.simulated for share in allocation.devices)
        return self.simulated_in(workload.queue) if workload.request.smallest else False

    def simulated_in(self, queue: str) -> bool:
        """Whether a device that work of this queue may get is made up."""
        found = self.state.policy.queues.get(queue)
        return found is not None and any(self.simulated_pool(pool) for pool in found.pools)

    def simulated_pool(self, pool: str) -> bool:
        """Whether a device of this pool is made up; a pool never has both."""
        return any(d.simulated for node in self.state.nodes.values() for d in node.devices if d.pool == pool)

    def _entitled(self, allocation: Allocation | None) -> bool | None:
        if allocation is None or allocation.charge_key is None:
            return None
        return walk(self.state, allocation.charge_key, self.judged_at).get(allocation.id)

    def _lease(self, workload: Workload, allocation: Allocation | None) -> dict[str, Any]:
        queue = self.state.policy.queues.get(workload.queue)
        if allocation is None or queue is None:
            length = workload.request.lease_ms
            if length is None and queue is not None:
                length = queue.lease.default_ms
            return {"lease_seconds": length // 1000 if length is not None else None}
        lease = allocation.lease
        step = queue.extension.step_ms // 1000 if queue.extension else None
        return {
            "expires_at": _time(lease.expires_at),
            "grace_until": _time(grace_until(allocation)),
            "hard_end_at": _time(lease.hard_end_at),
            "binding_rule": lease.rule,
            "lease_seconds": lease.length_ms // 1000 if lease.length_ms is not None else None,
            "lease_version": lease.version,
            "extensions_left": extensions_left(queue, workload),
            "extension_step_seconds": step,
        }

    def _waited(self, workload: Workload) -> int:
        current = self.now - workload.pending_since if workload.pending_since is not None else 0
        return workload.waited_ms + current

    def _url(self, workload: Workload, live: Allocation | None) -> str | None:
        if live is None or live.url is None or not self.actor.owns(workload):
            return None
        return server_url(self.base_url, workload.owner, workload.request.server)

    def _notices(self, live: Allocation | None) -> tuple[wire.Notice, ...]:
        if live is None:
            return ()
        found = [n for n in self.state.notices.values() if n.allocation == live.id]
        return tuple(
            wire.Notice(
                id=n.id,
                kind=n.kind,
                threshold_seconds=n.threshold_ms // 1000,
                deadline=to_rfc3339(n.deadline),
                issued_at=to_rfc3339(n.issued_at),
                quiet_seconds=n.quiet_ms // 1000,
                subject=n.subject,
                by=n.by,
                reason=n.reason,
            )
            for n in sorted(found, key=lambda n: (n.issued_at, n.id))
            if n.lease_version == live.lease.version or n.threshold_ms == 0  # decisions are of no lease version
        )

    # --- for pages: what the templates format ---

    def clock(self, text: str) -> str:
        """An RFC 3339 time of a document as local wall clock."""
        return self.reader.clock(from_rfc3339(text))

    def scope(self, scope: str) -> str:
        """A place of the quota tree, or a rule, in words."""
        return self.reader.scope(scope)

    def word(self, key: str) -> str:
        """One of the words between sentences."""
        return texts.word(texts.WORDS, key, self.lang)

    def span(self, seconds: int | None) -> str:
        """A duration of a document; a dash for one without an end."""
        return wire.format_span(seconds * 1000) if seconds is not None else "—"

    # --- decisions -----------------------------------------------------------------------------------

    def decision(
        self, decision: Decision, workload: Workload | None = None, *, simulated: bool = False
    ) -> wire.Decision:
        """The Decision with its sentence, its numbers in the wire's units, holders as far as may be seen.

        `simulated` tells of a request that is no workload yet whether the devices it asks for are made up.
        """
        live = self.state.allocation_of(workload) if workload is not None and workload.live else None
        if workload is not None:
            simulated = self._simulated(workload, live)
        inside = workload is not None and may_read(self.actor, self.state.policy, workload)
        return wire.Decision(
            outcome=decision.outcome.value,
            code=decision.code,
            headline=self.reader.headline(decision, workload),
            rule=decision.rule,
            blockers=tuple(self._blocker(b) for b in decision.blockers),
            latest_start=_time(decision.latest_start),
            latest_start_basis=decision.latest_start_basis,
            position=decision.position,
            rank=dict(decision.rank),
            cost=self.money(decision.cost_micro) if decision.cost_micro is not None else None,
            evaluated_at=to_rfc3339(decision.evaluated_at),
            policy_version=decision.policy_version,
            next_steps=self.reader.steps(decision),
            simulated=simulated,
            signals=idle_documents.signals(self.state, live, self.reader) if inside else (),
        )

    def _blocker(self, b: Blocker) -> wire.Blocker:
        unit, scale = _WIRE_UNITS.get(b.unit, (b.unit, 1))
        return wire.Blocker(
            code=b.code,
            need=_scaled(b.need, scale),
            have=_scaled(b.have, scale),
            limit=_scaled(b.limit, scale) if b.limit is not None else None,
            unit=unit,
            scope=b.scope,
            node=b.node,
            pool=b.pool,
            flavor=b.flavor,
            held_by=tuple(self._holder(h) for h in b.held_by),
            frees_at=_time(b.frees_at),
        )

    def _holder(self, holder: HeldBy) -> wire.Holder:
        """Other teams' work is counted, not named."""
        times = {"until": _time(holder.until), "ends_at": _time(holder.ends_at)}
        if self.reader.sees(holder.owner, holder.team):
            return wire.Holder(workload=holder.workload, owner=holder.owner, **times)
        return wire.Holder(workload="-", owner=self.scope(f"team {holder.team}"), **times)

    def _last_extension(self, workload: Workload) -> wire.Extension | None:
        mine = [e for e in self.state.extensions.values() if e.workload == workload.id]
        last = max(mine, key=lambda e: (e.requested_at, e.id), default=None)
        return self.extension(last) if last is not None else None

    def delays(self, request: ExtensionRequest) -> tuple[wire.Delay, ...]:
        """Whom an open request would delay; other teams' work by its team alone."""
        found = []
        for delay in delayed_by(self.state, request, self.now):
            seen = may_see(self.actor, self.state.policy, self.state.workloads[delay.workload])
            by_seconds = delay.by_ms // 1000 if delay.by_ms is not None else None
            found.append(
                wire.Delay(workload=delay.workload if seen else "-", team=delay.team, by_seconds=by_seconds)
            )
        return tuple(found)

    def extension(
        self,
        request: ExtensionRequest,
        decision: Decision | None = None,
        *,
        delays: tuple[wire.Delay, ...] = (),
    ) -> wire.Extension:
        """The document of a request for more time, with the Decision it got when that is at hand."""
        return wire.Extension(
            id=request.id,
            workload=request.workload,
            state=request.state.value,
            by_seconds=request.by_ms // 1000,
            expires_at=_time(request.expires_at),
            delays=delays,
            needs=self._approvers(request),
            requested_by=request.requested_by,
            reason=request.reason,
            decided_by=request.decided_by,
            decided_at=_time(request.decided_at),
            decision_reason=request.decision_reason,
            decision=self.decision(decision) if decision is not None else None,
        )

    def _approvers(self, request: ExtensionRequest) -> tuple[str, ...]:
        """Who is to be asked, by name, while the request waits for a yes."""
        workload = self.state.workloads.get(request.workload)
        if workload is None or request.state is not ExtensionState.NEEDS_APPROVAL:
            return ()
        delayed = teams_delayed_by(self.state, request, self.now)
        return approvers(self.state.policy, workload, request.requested_by, delayed)

    def money(self, micro: int) -> wire.Money:
        return wire.Money(amount=money_text(micro), currency=self.state.policy.currency)


_WIRE_UNITS = {"milli_gpus": ("gpus", 1000), "ms": ("seconds", 1000)}


def _scaled(value: int, scale: int) -> int | float:
    return value // scale if value % scale == 0 else value / scale


def _device_refs(allocation: Allocation | None) -> tuple[wire.DeviceRef, ...]:
    if allocation is None:
        return ()
    return tuple(
        wire.DeviceRef(
            node=s.node,
            index=s.index,
            uuid=s.uuid,
            slice=f"{s.milli / 1000:g}" if s.milli < 1000 else None,
            simulated=s.simulated,
        )
        for s in allocation.devices
    )
