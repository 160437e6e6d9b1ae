"""The table of routes: one row each, from which the application and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from hubgov import wire
from hubgov.service import bodies
from hubgov.service.handlers import (
    costs,
    events,
    extensions,
    governance,
    health,
    idleness,
    logs,
    servers,
    workloads,
)

ID = r"(?P<workload_id>[a-z]{2}-[0-9]{1,18})"
EXTENSION = r"(?P<extension_id>[a-z]{2}-[0-9]{1,18}-x[0-9]{1,9})"
NAME = r"(?P<{}>[^/]{{1,200}})"
_PAGE = (("limit", "integer"), ("cursor", "integer"))
_OK = {200: "done"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one address."""

    method: str
    pattern: str
    handler: type[Any]
    summary: str
    body: type[BaseModel] | None = None
    query: tuple[tuple[str, str], ...] = ()
    """Name and type; `strings` may be given several times, a `!` after the type means that it must be given."""
    if_match: bool = False
    """Whether it says which version it was made from."""
    signed_in: bool = True
    """Whether one has to be; what needs no sign-in has no secret and no names."""
    answers: Mapping[int, str] = field(default_factory=lambda: dict(_OK))
    document: type[Any] | None = None
    """What a good answer is, where it is a document of the wire."""
    content: str = "application/json"
    """The media type of a good answer."""
    listed: bool = False
    """Whether it is a list of them."""


def _get(
    pattern: str,
    handler: type[Any],
    summary: str,
    *query: tuple[str, str],
    one: type[Any] | None = None,
    many: type[Any] | None = None,
) -> Route:
    return Route(
        method="GET", pattern=pattern, handler=handler, summary=summary, query=query, document=one or many,
        listed=many is not None,
    )  # fmt: skip


def _post(
    pattern: str,
    handler: type[Any],
    summary: str,
    body: type[BaseModel],
    *statuses: int,
    one: type[Any] | None = None,
) -> Route:
    answers = dict.fromkeys(statuses or (200,), "done")
    return Route(
        method="POST", pattern=pattern, handler=handler, summary=summary, body=body, answers=answers, document=one
    )


ROUTES: tuple[Route, ...] = (
    Route(
        method="GET", pattern="/health", handler=health.Health, summary="Whether the service is well",
        document=health.HealthDocument, signed_in=False,
    ),
    _get(
        "/workloads", workloads.Workloads, "List workloads, newest first",
        ("state", "string"), ("owner", "string"), ("team", "string"), ("queue", "string"), *_PAGE,
        many=wire.Workload,
    ),
    _post("/workloads", workloads.Workloads, "Submit a workload", bodies.WorkloadBody, 201, 200, one=wire.Workload),
    _post("/plan", workloads.Plan, "What would happen to this request now", bodies.WorkloadBody, one=wire.Decision),
    _get(
        f"/workloads/{ID}", workloads.OneWorkload, "Show a workload, or wait for its next version",
        ("after", "integer"), ("wait", "integer"), ("attach", "string"),
        one=wire.Workload,
    ),
    Route(
        method="DELETE", pattern=f"/workloads/{ID}", handler=workloads.OneWorkload, summary="Cancel a workload",
        body=bodies.CancelBody, document=wire.Workload,
    ),
    _post(
        f"/workloads/{ID}/extensions", workloads.Extensions, "Ask for more time", bodies.ExtensionBody,
        201, 202, 200, one=wire.Extension,
    ),
    _post(f"/workloads/{ID}/keep", idleness.Keep, "Keep an idle session", bodies.ReasonBody, one=wire.Workload),
    _get(f"/workloads/{ID}/why", workloads.Why, "The current Decision", one=wire.Decision),
    _get(
        f"/workloads/{ID}/logs", logs.Logs, "What a job wrote",
        ("offset", "integer"), ("limit", "integer"), ("wait", "integer"), ("attempt", "integer"),
        one=wire.Log,
    ),
    _get(f"/workloads/{ID}/events", workloads.Events, "The journal of a workload", ("limit", "integer")),
    _get(
        f"/workloads/{ID}/receipt", servers.ReceiptOfWorkload, "What was saved, lost, used, charged",
        one=wire.Receipt,
    ),
    _get(
        "/extensions", extensions.AllExtensions, "Requests for more time", ("state", "string"), many=wire.Extension
    ),
    _post(
        f"/extensions/{EXTENSION}/approve", extensions.Approve, "Grant a request for more time",
        bodies.ApprovalBody, one=wire.Extension,
    ),
    _post(f"/extensions/{EXTENSION}/deny", extensions.Deny, "Refuse it", bodies.ReasonBody, one=wire.Extension),
    _post(
        f"/extensions/{EXTENSION}/withdraw", extensions.Withdraw, "Take it back", bodies.ReasonBody,
        one=wire.Extension,
    ),
    _get("/queues", governance.Queues, "Queues"),
    _post(f"/queues/{NAME.format('queue')}/hold", governance.HoldQueue, "Hold a queue", bodies.HoldBody),
    _post(f"/queues/{NAME.format('queue')}/release", governance.ReleaseQueue, "Release it", bodies.ReasonBody),
    _get("/quotas", governance.Quotas, "Quota and use", ("team", "string"), ("pool", "string"), many=wire.Quota),
    _get("/pools", governance.Pools, "Pools"),
    _get("/devices", governance.Devices, "Devices, whose they are and who holds them", many=wire.Device),
    Route(
        method="GET", pattern="/events", handler=events.Events, summary="A stream of what changes",
        content="text/event-stream",
    ),
    _get(
        "/costs", costs.Costs, "GPU time and what it cost",
        ("by", "string"), ("from", "string"), ("to", "string"), ("include_simulated", "string"), one=wire.Costs,
    ),
    _get(
        "/audit", governance.Audit, "Who did what and why",
        ("workload", "string"), ("actor", "string"), ("event", "string"), ("from", "string"), ("to", "string"),
        ("all", "string"), *_PAGE,
    ),
    _get("/policy", governance.PolicyDocument, "The policy in force"),
    Route(
        method="PUT", pattern="/policy", handler=governance.PolicyDocument, summary="Apply a policy",
        body=bodies.PolicyBody, if_match=True,
    ),
    _post("/policy/check", governance.PolicyCheck, "Check a policy text", bodies.PolicyBody),
    _post("/policy/diff", governance.PolicyDiff, "Compare a policy text", bodies.PolicyBody),
    _post(f"/nodes/{NAME.format('node')}/drain", governance.DrainNode, "Drain a node", bodies.ReasonBody),
    _post(f"/nodes/{NAME.format('node')}/undrain", governance.UndrainNode, "Undrain it", bodies.ReasonBody),
    # the spawner's
    _get(
        "/spawn-options", servers.SpawnOptions, "What the spawn form shows", ("user", "string!"),
        ("server", "string"), ("groups", "strings"),
    ),
    _post(
        f"/workloads/{ID}/launch", servers.Launch, "Begin to start a server", bodies.AttemptBody, one=wire.Launch
    ),
    _post(
        f"/workloads/{ID}/processes", servers.Processes, "Which processes a server is", bodies.ProcessesBody, 204
    ),
    _post(f"/workloads/{ID}/ready", servers.Ready, "A server answers", bodies.ReadyBody, one=wire.Workload),
    _post(
        f"/workloads/{ID}/stopping", servers.Stopping, "The hub stops a server", bodies.StoppingBody,
        one=wire.Workload,
    ),
    _post(f"/workloads/{ID}/ended", servers.EndedReport, "A server's process ended", bodies.EndedBody, 204),
    _post(
        f"/owners/{NAME.format('user')}/departed", servers.Departed, "The hub deleted a user",
        bodies.DepartedBody, 204,
    ),
    _get(
        f"/servers/{NAME.format('user')}/{NAME.format('server')}/receipt", servers.ReceiptOfServer,
        "Receipt of a named server's last session", one=wire.Receipt,
    ),
    _get(
        f"/servers/{NAME.format('user')}/receipt", servers.ReceiptOfServer, "Receipt of the last session",
        one=wire.Receipt,
    ),
    # the notebook server's own
    Route(
        method="PUT", pattern=f"/workloads/{ID}/saves/(?P<save_id>[A-Za-z0-9._-]{{1,200}})",
        handler=servers.Saves, summary="What a save brought", body=bodies.SaveBody, answers={204: "noted"},
    ),
    Route(
        method="PUT", pattern=f"/workloads/{ID}/activity", handler=idleness.Activity,
        summary="What a server says of itself", body=bodies.ActivityBody, document=wire.ActivityAnswer,
    ),
    _post(f"/workloads/{ID}/claim", workloads.Claim, "Somebody opened the notebook", bodies.ReasonBody, 204),
)  # fmt: skip
