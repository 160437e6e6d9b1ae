"""Take a request in line, or say why not: the same path for the form, REST, the command line, every kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hubgov.clock import Instant
from hubgov.control.actor import Actor
from hubgov.control.unit import Unit
from hubgov.core import explain, screening
from hubgov.core.decision import Decision, Outcome
from hubgov.core.model import ANY_NODES, Request, SaveRecord, Workload, WorkloadId
from hubgov.core.policy import Kind, Policy
from hubgov.core.state import State
from hubgov.core.states import WorkloadState
from hubgov.core.transitions import cancelled, submitted
from hubgov.errors import Conflict, Invalid, NotAllowed, Refusal

PREFIX = {
    Kind.NOTEBOOK: "nb",
    Kind.TRAINING: "tr",
    Kind.INFERENCE: "in",
    Kind.BATCH_INFERENCE: "bi",
    Kind.EVALUATION: "ev",
    Kind.DATA: "da",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What its author asks for, checked for form only: names aren't looked up yet."""

    queue: str
    request: Request
    kind: str | None = None
    name: str | None = None
    project: str | None = None
    team: str | None = None
    priority: int | None = None


def with_documents(draft: Draft, saves: Sequence[SaveRecord]) -> Draft:
    """The draft with the documents that a session had saved last, to be opened again."""
    paths = [d.path for save in saves[-1:] for d in save.documents if d.outcome == "saved"]
    return replace(draft, request=replace(draft.request, resume_documents=tuple(dict.fromkeys(paths))))


class Refused(Refusal):
    """Carries the Decision of a refused request to the edge; nothing was written."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.code)
        self.decision = decision


def submit(unit: Unit, draft: Draft, owner: Actor, by: Actor, runnable: frozenset[Kind]) -> Workload:
    """The workload in line. Refused carries the Decision when the policy says no."""
    workload = draw_up(unit.state, draft, owner, unit.now, runnable)
    if workload.kind is not Kind.NOTEBOOK and not workload.request.command:
        raise Invalid(f"{workload.kind.value} work needs a command", hint="say what to run, after --")
    refusal = screening.refusal(unit.state, workload, unit.now)
    if refusal is not None:
        raise Refused(refusal)
    unit.write(submitted(workload, by.principal))
    return workload


def ensure_server(unit: Unit, draft: Draft, owner: Actor, by: Actor, runnable: frozenset[Kind]) -> Workload:
    """The open ticket of a notebook server, or a new one: two spawns of one server never make two tickets.

    Asked for something else while it waits, the owner has changed his mind: the new request takes the ticket's
    place, at its place in line if it asks for no more. Only the spawner may name another user, and only for
    notebooks. A ticket whose devices are still on their way out is waited for: Conflict, with the id.
    """
    if not by.spawner:
        raise NotAllowed("only the spawner starts notebooks", hint="start it from the hub's page")
    if draft.kind not in (None, Kind.NOTEBOOK.value):
        raise NotAllowed("the spawner starts notebooks only", hint="submit other work in your own name")
    draft = replace(draft, kind=Kind.NOTEBOOK.value)
    found = open_ticket(unit.state, owner.principal, draft.request.server)
    if found is None:
        return submit(unit, draft, owner, by, runnable)
    allocation = unit.state.allocation_of(found)
    if allocation is not None and allocation.outcome is not None:
        raise Conflict(
            f"{found.id}, the last session of this server, is still stopping",
            code="still_stopping",
            hint="its devices are freed within a minute; then start again",
            details={"workload": found.id},
        )
    if found.state is WorkloadState.PENDING:
        wanted = draw_up(unit.state, draft, owner, unit.now, runnable)
        if _asks(wanted) != _asks(found):
            return _replaced(unit, found, wanted, by)
    return found


def _asks(workload: Workload) -> tuple[object, ...]:
    """What a ticket asks for; which session it resumes is no other request."""
    request = replace(workload.request, resumes=None, resume_documents=())
    return workload.queue, workload.project, request


def _replaced(unit: Unit, old: Workload, new: Workload, by: Actor) -> Workload:
    """The new request instead of the one in line. Refused leaves the old one where it is."""
    if _no_more(unit.state.policy, old, new):
        new = replace(new, eligible_since=old.eligible_since)
    cancel = cancelled(
        unit.state, old, unit.now, actor=old.owner, reason=f"replaced by {new.id}", code="replaced", now=False
    )
    mark = len(unit.entries)
    unit.write(cancel)
    refusal = screening.refusal(unit.state, new, unit.now)
    if refusal is not None:
        unit.undo_to(mark)
        raise Refused(refusal)
    unit.write(submitted(new, by.principal))
    return new


def _no_more(policy: Policy, old: Workload, new: Workload) -> bool:
    """Whether the new request asks for no more of anything, so that nobody behind it loses by its place."""
    if (old.queue, old.project) != (new.queue, new.project) or new.priority > old.priority:
        return False
    was, now = old.request, new.request
    default = policy.queues[old.queue].lease.default_ms

    def most(value: int | None, other: int | None) -> bool:
        return (other or 0) <= (value or 0)

    lease, longer = (r.lease_ms if r.lease_ms is not None else default for r in (was, now))
    return (
        now.smallest <= was.smallest
        and (lease is None or (longer is not None and longer <= lease))
        and most(was.memory_mib, now.memory_mib)
        and most(was.cpus, now.cpus)
        and most(was.ram_mib, now.ram_mib)
    )


def open_ticket(state: State, owner: str, server: str) -> Workload | None:
    """The live workload of a notebook server."""
    for workload in state.workloads.values():
        if (workload.kind, workload.owner, workload.request.server) == (Kind.NOTEBOOK, owner, server):
            return workload
    return None


def plan(state: State, draft: Draft, owner: Actor, now: Instant, runnable: frozenset[Kind]) -> Decision:
    """A dry run of `submit`: the Decision, with cost; nothing is written."""
    try:
        workload = draw_up(state, draft, owner, now, runnable)
    except Refused as refused:
        return refused.decision
    return explain.plan(state, workload, workload.submitted_at)


def draw_up(state: State, draft: Draft, owner: Actor, now: Instant, runnable: frozenset[Kind]) -> Workload:
    """The workload that a draft describes, with every name looked up and every default filled in."""
    policy = state.policy
    queue = policy.queues.get(draft.queue)
    if queue is None:
        raise _unknown("unknown_queue", draft.queue, sorted(policy.queues), now, policy)
    kind = _kind(draft, queue.kinds)
    if kind is Kind.NOTEBOOK and kind not in runnable:
        raise Invalid("notebooks are not submitted", hint="start one from the hub's page")
    if kind not in runnable:
        raise Invalid(
            f"no engine of this service runs {kind.value} work",
            details={"kind": kind.value, "runs": sorted(k.value for k in runnable)},
            hint="kinds that run here: " + ", ".join(sorted(k.value for k in runnable)),
        )
    if kind is Kind.NOTEBOOK and (draft.request.command or draft.request.cwd or draft.request.env):
        raise Invalid("a notebook takes no command, folder or variables", hint="leave command, cwd and env out")
    if kind is not Kind.NOTEBOOK and draft.request.nodes not in (1, ANY_NODES):
        raise Invalid("jobs run on one node", hint="leave nodes out")
    for flavor in draft.request.flavors:
        if flavor not in policy.flavors:
            raise _unknown("unknown_flavor", flavor, sorted(policy.flavors), now, policy)
    project = policy.projects[_project(draft, owner, now, policy)]
    if draft.team is not None and draft.team not in policy.ancestors(project.team):
        raise _refusal("not_allowed", "team", now, policy, place=f"team {draft.team}", allowed=project.team)
    low, high = queue.priority_range
    priority = draft.priority if draft.priority is not None else min(max(0, low), high)
    seq = state.last_seq + 1
    return Workload(
        id=WorkloadId(f"{PREFIX[kind]}-{seq}"),
        seq=seq,
        name=draft.name or draft.request.server or f"{kind.value}-{seq}",
        kind=kind,
        owner=owner.principal,
        team=project.team,
        project=project.name,
        environment=project.environment,
        queue=queue.name,
        priority=priority,
        request=replace(draft.request, milli_gpus=tuple(sorted(set(draft.request.milli_gpus)))),
        submitted_at=now,
        eligible_since=now,
        pending_since=now,
    )


def _kind(draft: Draft, kinds: tuple[Kind, ...]) -> Kind:
    """The kind asked for; without one the queue's only kind, else training."""
    if draft.kind is not None:
        return Kind(draft.kind)
    return kinds[0] if len(kinds) == 1 else Kind.TRAINING


def _project(draft: Draft, owner: Actor, now: Instant, policy: Policy) -> str:
    """The project to charge: the one asked for if the owner may, else his only one."""
    mine = policy.projects_of(owner.principal, owner.groups)
    if draft.project is None:
        if len(mine) == 1:
            return mine[0]
        raise _no_project("unknown_project", "project", "-", mine, owner.groups, now, policy)
    if draft.project not in mine:
        known = draft.project in policy.projects
        code = "not_allowed" if known else "unknown_project"
        raise _no_project(code, "projects", draft.project, mine, owner.groups, now, policy)
    return draft.project


def _no_project(
    code: str, rule: str, what: str, mine: Sequence[str], groups: frozenset[str], now: Instant, policy: Policy
) -> Refused:
    """Who is in no project can't mend that by asking for something else: only a group of the hub leads to one."""
    if mine:
        return _refusal(code, rule, now, policy, what=what, allowed=", ".join(mine))
    told = ", ".join(sorted(groups)) or "-"
    return _refusal(code, rule, now, policy, next_steps=("ask_lead",), what=what, allowed="-", groups=told)


def _unknown(code: str, name: str, known: list[str], now: Instant, policy: Policy) -> Refused:
    return _refusal(code, code.removeprefix("unknown_"), now, policy, what=name, allowed=", ".join(known) or "-")


def _refusal(
    code: str,
    rule: str,
    now: Instant,
    policy: Policy,
    *,
    next_steps: tuple[str, ...] = ("change_request",),
    **facts: int | str,
) -> Refused:
    return Refused(
        Decision(
            outcome=Outcome.REFUSED,
            code=code,
            rule=rule,
            facts=facts,
            next_steps=next_steps,
            evaluated_at=now,
            policy_version=policy.version,
        )
    )
