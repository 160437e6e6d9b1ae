"""What is there and who may use it: queues, quotas, pools, devices, policy, audit."""

from __future__ import annotations

from typing import Any

from hubgov.clock import to_rfc3339
from hubgov.control import observe, policies, steer
from hubgov.control.actor import check_admin
from hubgov.control.unit import Unit
from hubgov.core.events import ACTS
from hubgov.errors import Invalid, NotAllowed
from hubgov.event_texts import EVENTS
from hubgov.ledger import reading
from hubgov.ledger.reading import JournalLine
from hubgov.service.base import Base
from hubgov.service.bodies import HoldBody, PolicyBody, ReasonBody
from hubgov.service.costs import moment
from hubgov.service.handlers.workloads import WorkloadReader, journal_line
from hubgov.service.inventory import device_rows, free_cards, quota_rows


class Queues(Base):
    async def get(self) -> None:
        """Every queue with its rules and how many wait and run; other teams' work as counts."""
        state = self.governor.state
        waiting: dict[str, int] = {}
        running: dict[str, int] = {}
        for workload in state.workloads.values():
            count = running if workload.allocation else waiting
            count[workload.queue] = count.get(workload.queue, 0) + 1
        self.reply_list(
            [
                {
                    "name": queue.name,
                    "kinds": [kind.value for kind in queue.kinds],
                    "pools": queue.pools,
                    "class": queue.class_.value,
                    "priority": queue.priority,
                    "order": queue.order.value,
                    "lease_default_seconds": _seconds(queue.lease.default_ms),
                    "lease_max_seconds": _seconds(queue.lease.max_ms),
                    "held": queue.name in state.holds,
                    "hold_reason": state.holds[queue.name].reason if queue.name in state.holds else None,
                    "closed": queue.name in state.holds and state.holds[queue.name].closed,
                    "pending": waiting.get(queue.name, 0),
                    "running": running.get(queue.name, 0),
                }
                for queue in state.policy.queues.values()
            ]
        )


class HoldQueue(Base):
    async def post(self, queue: str) -> None:
        """Nothing of this queue starts any more; `closed` also refuses new work."""
        body = self.body(HoldBody)

        def intent(unit: Unit) -> tuple[int, Any]:
            done = steer.hold(unit, queue, self.actor, held=True, closed=body.closed, reason=body.reason)
            return 200, {"queue": queue, "held": True, "closed": done.closed, "reason": done.reason}

        await self.once(intent)


class ReleaseQueue(Base):
    async def post(self, queue: str) -> None:
        """The queue goes on."""
        body = self.body(ReasonBody)

        def intent(unit: Unit) -> tuple[int, Any]:
            steer.hold(unit, queue, self.actor, held=False, closed=False, reason=body.reason)
            return 200, {"queue": queue, "held": False, "closed": False, "reason": body.reason}

        await self.once(intent)


class Quotas(Base):
    async def get(self) -> None:
        """Quota and use by team, project, pool, card type; what the caller's own places are comes first."""
        desk = self.desk()
        rows = quota_rows(desk)
        team, pool = self.query("team"), self.query("pool")
        rows = [r for r in rows if team in (None, r.team) and pool in (None, r.pool)]
        mine = desk.reader.teams
        self.reply_list(sorted(rows, key=lambda r: r.team not in mine))


class Devices(Base):
    async def get(self) -> None:
        """Every device: to whom it belongs, who holds it since when and until when, its state and use."""
        self.reply_list(device_rows(self.desk(), self.services.probes, self.services.isolation))


class Pools(Base):
    async def get(self) -> None:
        """Every pool with its ownership and on how many of its devices a whole one could start now."""
        state = self.governor.state
        items = []
        for pool in state.policy.pools.values():
            devices = [d for n in state.nodes.values() for d in n.devices if d.pool == pool.name]
            items.append(
                {
                    "name": pool.name,
                    "engine": pool.engine,
                    "team": pool.ownership.team,
                    "project": pool.ownership.project,
                    "environment": pool.ownership.environment,
                    "owner": pool.ownership.owner,
                    "placement": pool.placement.value,
                    "devices": len(devices),
                    "free": free_cards(state, devices),
                    "isolation": self.services.isolation,
                    "simulated": any(d.simulated for d in devices),
                }
            )
        self.reply_list(items)


class AuditReader(WorkloadReader):
    """Reads the journal as far as the caller may: admins all, leads what concerns their teams' work, everybody what
    concerns one workload that he owns."""

    def journal_lines(self, limit: int, workload: str | None = None) -> tuple[list[JournalLine], str | None]:
        """(the lines that the query asks for, newest first; where the next page begins)."""
        before = self.number("cursor", 0, 0, 2**62) or None
        workload = workload or self.query("workload")
        event = self.query("event")
        if event is not None and event not in EVENTS:
            raise Invalid(f"event: there is no {event[:40]!r}", hint="hubgov audit --json names them")
        events = sorted(ACTS) if self.get_query_argument("all", "") == "" else None
        start, end = self.query("from"), self.query("to")
        zone = self.governor.state.policy.timezone
        if workload is not None:
            self.find_own(workload)
        with self.governor.ledger.reading() as connection:
            lines = reading.journal(
                connection,
                workload=workload,
                events=(event,) if event is not None else events,
                limit=limit,
                before=before,
                actor=self.query("actor"),
                since=moment("from", start, zone) if start is not None else None,
                until=moment("to", end, zone) if end is not None else None,
                teams=self._teams() if workload is None else None,
            )
        return lines, str(lines[-1].seq) if len(lines) == limit else None

    def _teams(self) -> tuple[str, ...] | None:
        """Whose work it may read of, None for everything."""
        if self.actor.admin:
            return None
        policy = self.governor.state.policy
        led = tuple(sorted(team for team in policy.teams if self.actor.leads(policy, team)))
        if not led:
            raise NotAllowed("the whole audit is for admins", hint="?workload=ID shows that of one workload")
        return led


class Audit(AuditReader):
    async def get(self) -> None:
        """Who did what, why, and what it was before: newest first. Admins see all, leads their teams', others
        that of one workload which they own."""
        lines, more = self.journal_lines(self.number("limit", 100, 1, 1000))
        self.reply_list([journal_line(line) for line in lines], more)


class PolicyDocument(Base):
    async def get(self) -> None:
        """The policy in force as it was written, with its version as ETag."""
        check_admin(self.actor)
        text = self.governor.state.policy_text
        assert text is not None
        self.set_header("ETag", f'"{text.version}"')
        self.reply(
            {
                "version": text.version,
                "text": text.text,
                "applied_at": to_rfc3339(text.applied_at),
                "applied_by": text.applied_by,
            }
        )

    async def put(self) -> None:
        """Apply a new policy, all of it or nothing; `If-Match` names the version that the edit began with."""
        check_admin(self.actor)
        body = self.body(PolicyBody)
        based_on = self.request.headers.get("If-Match", "").strip('" ')
        if not (based_on.isascii() and based_on.isdigit() and len(based_on) < 19):
            raise Invalid(
                "If-Match: the version that the edit began with is missing", hint='If-Match: "3"', code="no_version"
            )

        def intent(unit: Unit) -> tuple[int, Any]:
            done = policies.apply(unit, body.text, int(based_on), self.actor, body.name)
            return 200, {"version": done.version, "applied_at": to_rfc3339(done.applied_at)}

        await self.once(intent)


class PolicyCheck(Base):
    async def post(self) -> None:
        """Every problem of a policy text; nothing is applied."""
        check_admin(self.actor)
        body = self.body(PolicyBody)
        loaded = policies.load(body.text, name=body.name)
        self.reply(
            {
                "ok": loaded.policy is not None,
                "problems": [
                    {
                        "line": p.line,
                        "path": p.path,
                        "code": p.code,
                        "severity": p.severity,
                        "text": p.told(self.lang),
                    }
                    for p in loaded.problems
                ],
            }
        )


class PolicyDiff(Base):
    async def post(self) -> None:
        """What a policy text would change of the one in force."""
        check_admin(self.actor)
        body = self.body(PolicyBody)
        state = self.governor.state
        edits, warnings = policies.compare(state, body.text, body.name)
        self.reply(
            {
                "version": state.policy.version,
                "edits": [{"path": e.path, "before": e.before, "after": e.after} for e in edits],
                "warnings": [problem.told(self.lang) for problem in warnings],
            }
        )


class DrainNode(Base):
    async def post(self, node: str) -> None:
        """No new work on this node; what runs goes on."""
        await self._set(node, drained=True)

    async def _set(self, node: str, *, drained: bool) -> None:
        body = self.body(ReasonBody)

        def intent(unit: Unit) -> tuple[int, Any]:
            done = observe.drain(unit, node, self.actor, drained=drained, reason=body.reason)
            return 200, {"node": done.name, "drained": done.drained}

        await self.once(intent)


class UndrainNode(DrainNode):
    async def post(self, node: str) -> None:
        """The node takes work again."""
        await self._set(node, drained=False)


def _seconds(span_ms: int | None) -> int | None:
    return span_ms // 1000 if span_ms is not None else None
