"""Notebook servers: started and stopped through JupyterHub's REST API, watched through the kernel.

The spawner launches the processes and reports who they are. The hub may be gone while servers live on, so
seeing and killing go by process identity and need no hub.
"""

from __future__ import annotations

import logging
from urllib.parse import quote

import httpx

from hubgov import processes
from hubgov.core.model import Allocation, ProcessId, Workload
from hubgov.core.policy import Kind
from hubgov.engines.base import Engine, Knows, Seen, mark, meant_to_live
from hubgov.errors import Unavailable
from hubgov.wire import ProcessRef


class HubEngine(Engine):
    """One hub, by its API's address and a token with start:servers, delete:servers and read:servers."""

    kinds = frozenset({Kind.NOTEBOOK})

    def __init__(self, api_url: str, token: str, site: str, log: logging.Logger, timeout: float = 30.0) -> None:
        self._site = site
        self._log = log
        self._client = httpx.AsyncClient(
            base_url=api_url, headers={"Authorization": f"token {token}"}, timeout=timeout, trust_env=False
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def start(self, workload: Workload, allocation: Allocation) -> None:
        """POST the server; the spawner then finds the ticket granted. Running or pending already is fine."""
        answer = await self._ask("POST", _server(workload))
        if answer.status_code not in (201, 202, 400):
            raise Unavailable(
                f"the hub refused to start {workload.id}: {answer.status_code}", hint="see the hub's log"
            )

    async def stop(self, workload: Workload, allocation: Allocation) -> None:
        """DELETE the server. A hub that knows no such server is as good as one that stopped it."""
        answer = await self._ask("DELETE", _server(workload))
        if answer.status_code not in (202, 204, 400, 404):
            raise Unavailable(
                f"the hub refused to stop {workload.id}: {answer.status_code}", hint="see the hub's log"
            )

    def kill(self, allocation: Allocation) -> None:
        processes.signal_box(
            _ref(allocation.main),
            _ref(allocation.init),
            kill=True,
            allocation_id=mark(self._site, allocation),
            uid=allocation.uid,
        )

    def look(self, allocation: Allocation) -> Seen:
        main, init = _ref(allocation.main), _ref(allocation.init)
        if main is None and init is None and meant_to_live(allocation):
            return Seen.ALIVE if processes.marked_with(mark(self._site, allocation)) else Seen.UNSEEN
        if main is not None and processes.is_alive(main):
            return Seen.ALIVE
        gone = processes.box_gone(main, init, mark(self._site, allocation), uid=allocation.uid)
        return Seen.GONE if gone else Seen.ENDED

    def sees(self, allocation: Allocation) -> bool:
        return allocation.main is not None or allocation.started_at is None

    async def answers(self) -> bool:
        try:
            return (await self._ask("GET", "/")).status_code < 500
        except Unavailable:
            return False

    async def knows(self, workload: Workload) -> Knows:
        try:
            answer = await self._ask("GET", f"/users/{quote(workload.owner, safe='')}")
        except Unavailable:
            return Knows.UNKNOWN
        if answer.status_code == 404:
            return Knows.NO
        if answer.status_code != 200:
            return Knows.UNKNOWN
        server = answer.json().get("servers", {}).get(workload.request.server)
        return Knows.YES if server and (server.get("ready") or server.get("pending")) else Knows.NO

    async def _ask(self, method: str, path: str) -> httpx.Response:
        impostor = processes.impostor_at(str(self._client.base_url), from_outside=True)
        if impostor is not None:
            raise Unavailable(
                f"the hub's port is held by uid {impostor}, which gets no token", hint="it is asked again"
            )
        try:
            return await self._client.request(method, path)
        except httpx.HTTPError as error:
            raise Unavailable(
                f"the hub doesn't answer: {type(error).__name__}", hint="it is asked again"
            ) from error


def _server(workload: Workload) -> str:
    user, server = quote(workload.owner, safe=""), workload.request.server
    return f"/users/{user}/servers/{quote(server, safe='')}" if server else f"/users/{user}/server"


def _ref(process: ProcessId | None) -> ProcessRef | None:
    if process is None:
        return None
    return ProcessRef(pid=process.pid, start_ticks=process.start_ticks, boot_id=process.boot_id)
