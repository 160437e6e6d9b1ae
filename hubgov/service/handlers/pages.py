"""Pages for people: the way in, the waiting page of a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tornado import web

from hubgov.control import steer
from hubgov.core.model import WorkloadId
from hubgov.errors import NotFound
from hubgov.service.base import Page
from hubgov.service.documents import server_url
from hubgov.service.handlers.workloads import WorkloadReader
from hubgov.service.inventory import device_rows, quota_rows

STATIC = Path(__file__).parent.parent / "static"


class Home(Page):
    async def get(self) -> None:
        """My sessions and requests, my teams' quota, the devices."""
        desk = self.desk()
        mine = [w for w in self.governor.state.workloads.values() if self.actor.owns(w)]
        teams = desk.reader.teams
        self.render_page(
            "home.html",
            workloads=[desk.workload(w, full=False) for w in sorted(mine, key=lambda w: -w.seq)],
            quotas=[row for row in quota_rows(desk) if row.team in teams or self.actor.admin],
            devices=device_rows(desk, self.services.probes, self.services.isolation),
            desk=desk,
        )


class Waiting(WorkloadReader, Page):
    async def get(self, workload_id: str) -> None:
        """The waiting page: place, why, latest start; goes on to the server by itself. A fragment for updates."""
        try:
            workload = self.find(workload_id)
        except NotFound:
            self._missing(workload_id)
            return
        desk = self.desk()
        document = self.document(workload, desk)
        live = self.governor.state.workloads.get(WorkloadId(workload_id))
        decision = None
        if live is not None:
            decision = desk.decision(desk.explained(live), live)
        fragment = bool(self.get_query_argument("fragment", ""))
        self.render_page(
            "waiting_card.html" if fragment else "waiting.html",
            workload=document,
            decision=decision,
            server_url=server_url(self.services.hub_base_url, document.owner, document.server),
            desk=desk,
            mine=self.actor.owns(workload),
        )

    async def post(self, workload_id: str) -> None:
        """Cancel, from the page's own button."""
        try:
            self.find(workload_id)
        except NotFound:
            self._missing(workload_id)
            return
        await self.governor.do(
            lambda unit: steer.cancel(unit, workload_id, self.actor, reason="waiting page", now=False)
        )
        self.redirect(f"{self.services.prefix}wait/{workload_id}")

    def _missing(self, workload_id: str) -> None:
        self.render_page("missing.html", 404, what=workload_id[:40])


class Static(web.StaticFileHandler):
    """The service's own scripts and styles; nothing comes from elsewhere."""

    def parse_url_path(self, url_path: str) -> str:
        """The file's path; 404 for a name that no file can have."""
        if "\x00" in url_path:
            raise web.HTTPError(404)
        return str(super().parse_url_path(url_path))

    def set_extra_headers(self, path: str) -> None:
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-cache")


def static_route(prefix: str) -> tuple[str, Any, dict[str, str]]:
    """Where the static files lie."""
    return (prefix + r"static/(.*)", Static, {"path": str(STATIC)})
