"""The client: one method per route, with the documents of `hubgov.wire` as answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from hubgov import wire
from hubgov.client import connection as connections
from hubgov.client import documents as docs
from hubgov.client.failures import NeedsApproval, read
from hubgov.client.job import Job
from hubgov.client.transport import Transport, part

T = TypeVar("T")


class Client:
    """Asks the service on behalf of one person or program.

    Without arguments it finds address and token as the command line does: `HUBGOV_URL` and `HUBGOV_TOKEN`, the
    environment of a notebook server, or what `hubgov login` wrote. What is refused is raised: `PolicyDenied` with
    its Decision, else the classes of `hubgov.errors`. Sentences come in `lang`. `document` holds the last answer
    as it came, with whatever a newer service added.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, lang: str = "en", timeout: float = 30.0
    ) -> None:
        self._transport = Transport(connections.find(url, token), lang, timeout)
        self.document: Any = None

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._transport.connection.url

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections. The client can still be used; it opens new ones."""
        self._transport.close()

    # --- workloads -----------------------------------------------------------------------------------

    def workloads(
        self,
        *,
        state: str | None = None,
        owner: str | None = None,
        team: str | None = None,
        queue: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> docs.Page[wire.Workload]:
        """The newest workloads that one may see. `state` is one of the states, or `live` or `ended`."""
        filters = {"state": state, "owner": owner, "team": team, "queue": queue}
        return self._page(wire.Workload, "/workloads", {**filters, "limit": limit, "cursor": cursor})

    def workload(self, workload_id: str) -> wire.Workload:
        """One workload as it is now."""
        return read(wire.Workload, self._get(f"/workloads/{part(workload_id)}"))

    def wait_for_version(self, workload_id: str, after: int, seconds: int = 25) -> wire.Workload:
        """The workload once its version is beyond `after`, or as it is when the time (at most 60 s) is over."""
        path = f"/workloads/{part(workload_id)}"
        return read(wire.Workload, self._get(path, {"after": after, "wait": seconds}, wait_seconds=seconds))

    def submit(self, body: Mapping[str, Any] | None = None, **fields: Any) -> Job:
        """Take a request in line: `submit(queue="train", gpus=1, command=["python", "train.py"])`, or its fields as
        one mapping. PolicyDenied with the Decision when the policy says no."""
        return Job(self, read(wire.Workload, self._send("POST", "/workloads", {**(body or {}), **fields})))

    def job(self, workload_id: str) -> Job:
        """A job that was submitted before."""
        return Job(self, self.workload(workload_id))

    def logs(
        self, workload_id: str, *, offset: int = 0, attempt: int | None = None, wait_seconds: int = 0
    ) -> wire.Log:
        """A piece of what a job wrote, from `offset` on; `wait_seconds` (at most 60) for there to be something."""
        query = {"offset": offset, "attempt": attempt, "wait": wait_seconds or None}
        return read(wire.Log, self._get(f"/workloads/{part(workload_id)}/logs", query, wait_seconds=wait_seconds))

    def plan(self, body: Mapping[str, Any]) -> wire.Decision:
        """What would happen to this request now, with its cost. A refusal is an answer here, not an error."""
        return read(wire.Decision, self._send("POST", "/plan", body))

    def cancel(self, workload_id: str, *, reason: str = "", now: bool = False) -> wire.Workload:
        """Stop it, in whatever state it is; `now` leaves out the time to save."""
        body = {"reason": reason, "now": now}
        return read(wire.Workload, self._send("DELETE", f"/workloads/{part(workload_id)}", body))

    def extend(
        self, workload_id: str, by_seconds: int, *, reason: str = "", lease_version: int | None = None
    ) -> wire.Extension:
        """More time. NeedsApproval when somebody has to agree, PolicyDenied when nobody can."""
        body: dict[str, Any] = {"by_seconds": by_seconds, "reason": reason}
        if lease_version is not None:
            body["lease_version"] = lease_version
        path = f"/workloads/{part(workload_id)}/extensions"
        extension = read(wire.Extension, self._send("POST", path, body))
        if extension.state == "needs_approval":
            raise NeedsApproval(extension)
        return extension

    def keep(self, workload_id: str) -> wire.Workload:
        """Keep an idle session that was asked about. PolicyDenied when it was kept as often as the queue allows."""
        return read(wire.Workload, self._send("POST", f"/workloads/{part(workload_id)}/keep", {}))

    def why(self, workload_id: str) -> wire.Decision:
        """Why it waits, or on what terms it runs. Ended when it is over."""
        return read(wire.Decision, self._get(f"/workloads/{part(workload_id)}/why"))

    def events(self, workload_id: str, limit: int = 100) -> tuple[docs.JournalLine, ...]:
        """What happened to it, newest first."""
        return self._list(docs.JournalLine, f"/workloads/{part(workload_id)}/events", {"limit": limit})

    def receipt(self, workload_id: str) -> wire.Receipt:
        """What was saved, lost, used and charged; NotFound while it isn't over."""
        return read(wire.Receipt, self._get(f"/workloads/{part(workload_id)}/receipt"))

    def extensions(self, *, state: str | None = None) -> tuple[wire.Extension, ...]:
        """Requests for more time of live workloads, oldest first; `state` needs_approval: those that are open."""
        return self._list(wire.Extension, "/extensions", {"state": state})

    def approve(self, extension_id: str, *, seconds: int | None = None, reason: str = "") -> wire.Extension:
        """Grant an open request, all of it or `seconds`. NotAllowed for who may not decide."""
        return self._decide(extension_id, "approve", {"seconds": seconds, "reason": reason})

    def deny(self, extension_id: str, *, reason: str) -> wire.Extension:
        """Refuse an open request; its author reads the reason."""
        return self._decide(extension_id, "deny", {"reason": reason})

    def withdraw(self, extension_id: str) -> wire.Extension:
        """Take back one's own open request."""
        return self._decide(extension_id, "withdraw", {})

    def _decide(self, extension_id: str, what: str, body: dict[str, Any]) -> wire.Extension:
        return read(wire.Extension, self._send("POST", f"/extensions/{part(extension_id)}/{what}", body))

    # --- what is there -------------------------------------------------------------------------------

    def queues(self) -> tuple[docs.Queue, ...]:
        """Every queue with its rules."""
        return self._list(docs.Queue, "/queues")

    def quotas(self, *, team: str | None = None, pool: str | None = None) -> tuple[wire.Quota, ...]:
        """Quota and use; one's own teams come first."""
        return self._list(wire.Quota, "/quotas", {"team": team, "pool": pool})

    def devices(self) -> tuple[wire.Device, ...]:
        """Every device, whose it is and who holds it until when."""
        return self._list(wire.Device, "/devices")

    def pools(self) -> tuple[docs.Pool, ...]:
        """Every pool with its ownership."""
        return self._list(docs.Pool, "/pools")

    def costs(
        self,
        by: Sequence[str] = ("team",),
        *,
        start: str | None = None,
        end: str | None = None,
        include_simulated: bool = False,
    ) -> wire.Costs:
        """GPU time and cost of a period, of what one may see; by team, project, user, queue, kind, flavor, day."""
        simulated = "1" if include_simulated else None
        query = {"by": ",".join(by), "from": start, "to": end, "include_simulated": simulated}
        return read(wire.Costs, self._get("/costs", query))

    # --- governance ----------------------------------------------------------------------------------

    def audit(
        self,
        *,
        workload: str | None = None,
        all_events: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> docs.Page[docs.JournalLine]:
        """Who did what and why, newest first. Without a workload for admins only."""
        query = {"workload": workload, "all": "1" if all_events else None, "limit": limit, "cursor": cursor}
        return self._page(docs.JournalLine, "/audit", query)

    def policy(self) -> docs.PolicyText:
        """The policy in force as it was written."""
        return read(docs.PolicyText, self._get("/policy"))

    def policy_check(self, text: str, name: str = "policy.yaml") -> docs.PolicyChecked:
        """Every problem of a policy text; `name` stands for the file in messages."""
        return read(docs.PolicyChecked, self._send("POST", "/policy/check", {"text": text, "name": name}))

    def policy_diff(self, text: str, name: str = "policy.yaml") -> docs.PolicyDifference:
        """What a text would change of the policy in force. Invalid with every problem when it doesn't check."""
        return read(docs.PolicyDifference, self._send("POST", "/policy/diff", {"text": text, "name": name}))

    def policy_apply(self, text: str, based_on: int, name: str = "policy.yaml") -> docs.PolicyApplied:
        """Put a policy in force, all of it or nothing. PolicyMoved when `based_on` isn't the current version."""
        body = {"text": text, "name": name}
        return read(docs.PolicyApplied, self._send("PUT", "/policy", body, {"If-Match": f'"{based_on}"'}))

    def hold(self, queue: str, *, reason: str, closed: bool = False) -> docs.QueueHold:
        """Let nothing of this queue start any more; `closed` also refuses new work."""
        body = {"reason": reason, "closed": closed}
        return read(docs.QueueHold, self._send("POST", f"/queues/{part(queue)}/hold", body))

    def release(self, queue: str, *, reason: str = "") -> docs.QueueHold:
        """Let the queue go on."""
        return read(docs.QueueHold, self._send("POST", f"/queues/{part(queue)}/release", {"reason": reason}))

    def drain(self, node: str, *, reason: str = "") -> docs.NodeState:
        """Let nothing new start on this node; what runs goes on."""
        return read(docs.NodeState, self._send("POST", f"/nodes/{part(node)}/drain", {"reason": reason}))

    def undrain(self, node: str, *, reason: str = "") -> docs.NodeState:
        """Let the node take work again."""
        return read(docs.NodeState, self._send("POST", f"/nodes/{part(node)}/undrain", {"reason": reason}))

    # --- asking --------------------------------------------------------------------------------------

    def _get(
        self, path: str, query: Mapping[str, str | int | None] | None = None, wait_seconds: float = 0
    ) -> dict[str, Any]:
        _, self.document = self._transport.ask("GET", path, query=query, wait_seconds=wait_seconds)
        return self.document or {}

    def _send(
        self, method: str, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        _, self.document = self._transport.ask(method, path, body=body, headers=headers)
        return self.document or {}

    def _list(self, kind: type[T], path: str, query: Mapping[str, str | int | None] | None = None) -> tuple[T, ...]:
        return self._page(kind, path, query or {}).items

    def _page(self, kind: type[T], path: str, query: Mapping[str, str | int | None]) -> docs.Page[T]:
        found = self._get(path, query)
        items = tuple(read(kind, item) for item in found.get("items", ()))
        total = found.get("total")
        cursor = found.get("next")
        return docs.Page(
            items=items,
            next=str(cursor) if cursor else None,
            total=total if isinstance(total, int) else len(items),
        )
