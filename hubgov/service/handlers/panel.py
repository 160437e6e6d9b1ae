"""The panel: pages that work without scripts, forms that are POSTs with a redirect behind them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from hubgov import texts
from hubgov.clock import Instant
from hubgov.control import approvals, observe, steer
from hubgov.control.actor import check_change
from hubgov.core.events import ACTS
from hubgov.core.model import WorkloadId
from hubgov.core.policy import Kind
from hubgov.core.states import AllocationState
from hubgov.errors import Ended, Invalid
from hubgov.event_texts import event_word
from hubgov.insight.costs import DIMENSIONS
from hubgov.ledger import reading
from hubgov.service import costs
from hubgov.service.base import Page
from hubgov.service.handlers.governance import AuditReader
from hubgov.service.handlers.workloads import WorkloadReader
from hubgov.service.panel import holders, inbox, journal, line, nodes
from hubgov.service.panel_texts import PANEL

MAX_REASON = 2000
SAID = frozenset({"stop", "hold", "release", "approve", "deny", "drain", "undrain"})
"""What a page may say was done, by the last part of its text's name."""


class PanelPage(WorkloadReader, Page):
    """A page of the panel. Everybody may open it; what it shows and offers follows the reader's rights."""

    def field(self, name: str, most: int = MAX_REASON) -> str:
        """A field of the form as it was sent, without blanks at its ends; Invalid when it is too long."""
        text: str = self.get_body_argument(name, "")
        if len(text) > most:
            raise Invalid(f"{name}: too long", hint=f"at most {most} characters")
        return text

    def render_panel(self, template: str, section: str, **facts: Any) -> None:
        """The page with what every one of them needs."""
        said = self.query("said")
        desk = facts.pop("desk", None) or self.desk()
        self.render_page(
            template,
            section=section,
            desk=desk,
            said=said if said in SAID else None,
            what=self.query("what") or "",
            at=desk.reader.clock(desk.now),
            **facts,
        )

    def done(self, page: str, said: str, what: str) -> None:
        """To the page that shows what was done: loading it again repeats nothing."""
        query = urlencode({"said": said, "what": what})
        self.redirect(f"{self.services.prefix}panel{page}?{query}", status=303)


class Holders(PanelPage):
    async def get(self) -> None:
        """Who holds what, filtered as the address says; `stop` also shows the form that stops a session."""
        desk = self.desk()
        rows = holders.holder_rows(desk, self.services.probes, self.services.isolation)
        wanted = holders.Wanted(
            team=self.query("team"), pool=self.query("pool"), node=self.query("node"), state=self.query("state"),
            text=self.query("q"),
        )  # fmt: skip
        stop = self.query("stop")
        self.render_panel(
            "panel_holders.html",
            "holders",
            desk=desk,
            rows=[row for row in rows if wanted.fits(row)],
            any_rows=bool(rows),
            wanted=wanted,
            choices=holders.choices(rows, self.lang),
            stopping=self._to_stop(stop) if stop else None,
        )

    def _to_stop(self, workload_id: str) -> dict[str, Any]:
        """What the form says of the session that is to be stopped."""
        workload = self.find(workload_id)
        check_change(self.actor, self.governor.state.policy, workload)
        live = self.governor.state.workloads.get(WorkloadId(workload_id))
        if live is None:
            raise Ended(f"{workload_id} is over", hint=f"hubgov show {workload_id}")
        allocation = self.governor.state.allocation_of(live)
        runs = allocation is not None and allocation.state in (AllocationState.RUNNING, AllocationState.EXPIRING)
        graceful = allocation is not None and runs and live.kind is Kind.NOTEBOOK
        return {
            "workload": live,
            "where": ", ".join(f"{s.node}/{s.index}" for s in allocation.devices) if allocation else "—",
            "mine": self.actor.owns(live),
            "grace_seconds": allocation.lease.grace_ms // 1000 if allocation is not None and graceful else None,
        }


class StopWorkload(PanelPage):
    async def post(self, workload_id: str) -> None:
        """Stop a session: after its grace, or now."""
        self.find(workload_id)
        how, reason = self.field("when", 10), self.field("reason")
        if how not in ("grace", "now"):
            raise Invalid(f"when: {how!r} is neither grace nor now", hint="choose one of the two")
        await self.governor.do(
            lambda unit: steer.cancel(unit, workload_id, self.actor, reason=reason, now=how == "now")
        )
        self.done("", "stop", workload_id)


class Queues(PanelPage):
    async def get(self) -> None:
        """Each queue with its rules and its line in order."""
        desk = self.desk()
        self.render_panel("panel_queues.html", "queues", desk=desk, queues=line.queue_rows(desk))


class SetQueue(PanelPage):
    async def post(self, queue: str, act: str) -> None:
        """Hold a queue, or let it go on."""
        held, reason = act == "hold", self.field("reason")
        if held and not reason:
            raise Invalid("holding a queue needs a reason", code="reason_required", hint="say why")
        closed = held and self.field("closed", 10) != ""
        await self.governor.do(
            lambda unit: steer.hold(unit, queue, self.actor, held=held, closed=closed, reason=reason)
        )
        self.done("/queues", act, queue)


class Inbox(PanelPage):
    async def get(self) -> None:
        """What waits for a decision, oldest first, and what was decided lately."""
        desk = self.desk()
        since = Instant(desk.now - inbox.DECIDED_DAYS * 86_400_000)
        with self.governor.ledger.reading() as connection:
            found = reading.decided_extensions(connection, since)
        self.render_panel(
            "panel_inbox.html", "inbox", desk=desk, asked=inbox.asked(desk), decided=inbox.decided(desk, found)
        )


class Decide(PanelPage):
    async def post(self, extension_id: str) -> None:
        """Approve a request, in part where `minutes` says less, or deny it with a reason."""
        act, reason, minutes = self.field("act", 10), self.field("reason"), self.field("minutes", 10)
        if act not in ("approve", "shorter", "deny"):
            raise Invalid(f"act: {act!r} is neither approve, shorter nor deny", hint="use the buttons of the page")
        if act == "deny":
            await self.governor.do(lambda unit: approvals.deny(unit, extension_id, self.actor, reason=reason))
        else:
            by_ms = self._minutes(minutes) * 60_000 if act == "shorter" else None
            await self.governor.do(
                lambda unit: approvals.approve(unit, extension_id, self.actor, by_ms=by_ms, reason=reason)
            )
        self.done("/inbox", "deny" if act == "deny" else "approve", extension_id)

    def _minutes(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**7):
            raise Invalid(f"minutes: {text!r} is no whole number of minutes", hint="such as 90")
        return int(text)


class Nodes(PanelPage):
    async def get(self) -> None:
        """Each node, what is on it, and what draining it would mean."""
        desk = self.desk()
        self.render_panel("panel_nodes.html", "nodes", desk=desk, nodes=nodes.node_rows(desk))


class SetNode(PanelPage):
    async def post(self, node: str, act: str) -> None:
        """Let a node take no new work, or take it again."""
        reason = self.field("reason")
        await self.governor.do(
            lambda unit: observe.drain(unit, node, self.actor, drained=act == "drain", reason=reason)
        )
        self.done("/nodes", act, node)


class AuditPage(AuditReader, PanelPage):
    def rows(self, limit: int) -> tuple[list[journal.AuditRow], str | None]:
        """The rows that the address asks for, and where the next page begins."""
        lines, more = self.journal_lines(limit)
        with self.governor.ledger.reading() as connection:
            versions = reading.policy_versions(connection)
        return journal.audit_rows(lines, versions, self.lang), more

    async def get(self) -> None:
        """Who did what to what, before and after in words, why, under which policy."""
        rows, more = self.rows(self.number("limit", 100, 1, 1000))
        names = ("actor", "event", "workload", "from", "to", "all", "limit")
        given = {name: value for name in names if (value := self.query(name)) is not None}
        self.render_panel(
            "panel_audit.html",
            "audit",
            rows=rows,
            given=given,
            query=urlencode(given),
            more=urlencode({**given, "cursor": more}) if more else None,
            events=sorted(((e, event_word(e, self.lang)) for e in ACTS), key=lambda one: one[1]),
        )


class AuditCsv(AuditPage):
    MOST = 10_000

    async def get(self) -> None:
        """The same as a file for spreadsheets, up to 10,000 rows."""
        rows, _ = self.rows(self.MOST)
        names = ("when", "by_whom", "event", "object", "before", "after", "reason", "policy_version", "changed")
        self.set_header("Content-Type", "text/csv; charset=utf-8")
        self.set_header("Content-Disposition", 'attachment; filename="hubgov-audit.csv"')
        # A byte order mark: spreadsheets take Chinese for something else without it.
        self.finish("\ufeff" + journal.as_csv(rows, [texts.word(PANEL, name, self.lang) for name in names]))


class Cost(PanelPage):
    async def get(self) -> None:
        """What GPUs cost in a period, by what the address asks for."""
        desk = self.desk()
        by = self.get_query_arguments("by") or ["team"]
        simulated = self.query("include_simulated") is not None
        asked = costs.question(desk, ",".join(by), self.query("from"), self.query("to"), simulated)
        report = await costs.report(desk, self.governor.ledger, asked)
        self.render_panel(
            "panel_cost.html",
            "cost",
            desk=desk,
            report=report,
            dimensions=tuple(DIMENSIONS),
            given={"from": self.query("from") or "", "to": self.query("to") or "", "simulated": simulated},
            with_simulated=urlencode([*(("by", name) for name in asked.by), ("include_simulated", "1")]),
        )
