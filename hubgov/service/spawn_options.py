"""What the spawn form shows to one user, in one read."""

from __future__ import annotations

from typing import Any

from hubgov import texts, wire
from hubgov.clock import to_rfc3339
from hubgov.control import submit
from hubgov.control.actor import Actor
from hubgov.core.model import Request, Workload
from hubgov.core.policy import Kind, SpawnProfile
from hubgov.core.state import State
from hubgov.core.states import WorkloadState
from hubgov.service.documents import Desk
from hubgov.service.inventory import free_cards, quota_rows


def document(
    desk: Desk, owner: Actor, server: str, runnable: frozenset[Kind], last: Workload | None
) -> dict[str, Any]:
    """Profiles with the Decision a request would get now, the user's projects and quota, his last choice, and the
    request of this server that waits in line: a new choice takes its place."""
    state, policy = desk.state, desk.state.policy
    projects = [policy.projects[name] for name in policy.projects_of(owner.name, owner.groups)]
    chosen = last.project if last and any(p.name == last.project for p in projects) else None
    project = chosen or (projects[0].name if projects else None)
    teams = {project.team for project in projects}
    return {
        "now": to_rfc3339(desk.now),
        "clock_rate": desk.clock_rate,
        "timezone": policy.timezone,
        "currency": policy.currency,
        "mode": policy.mode.value,
        "simulated": any(d.simulated for node in state.nodes.values() for d in node.devices),
        "projects": [{"name": p.name, "team": p.team, "environment": p.environment} for p in projects],
        "profiles": [_profile(desk, owner, profile, project, runnable) for profile in policy.spawn_profiles],
        "quota": [row for row in quota_rows(desk) if row.team in teams],
        "last": _last(last) if chosen else None,
        "waiting": _waiting(state, owner, server),
    }


def _waiting(state: State, owner: Actor, server: str) -> str | None:
    ticket = submit.open_ticket(state, owner.principal, server)
    return ticket.id if ticket is not None and ticket.state is WorkloadState.PENDING else None


def _last(last: Workload | None) -> dict[str, Any] | None:
    if last is None or last.request.profile is None:
        return None
    lease = last.request.lease_ms
    return {
        "profile": last.request.profile,
        "project": last.project,
        "lease_seconds": lease // 1000 if lease is not None else None,
    }


def _profile(
    desk: Desk, owner: Actor, profile: SpawnProfile, project: str | None, runnable: frozenset[Kind]
) -> dict[str, Any]:
    state = desk.state
    queue = state.policy.queues[profile.queue]
    draft = submit.Draft(
        queue=profile.queue,
        kind=Kind.NOTEBOOK.value,
        project=project,
        request=Request(
            milli_gpus=(profile.gpus_milli,),
            flavors=(profile.flavor,) if profile.flavor else (),
            memory_mib=profile.memory_mib,
            cpus=profile.cpus,
            ram_mib=profile.ram_mib,
        ),
    )
    free, total, flavors = _free(state, profile)
    prices = [state.policy.flavors[name].price_micro_per_hour for name in flavors]
    decision = submit.plan(state, draft, owner, desk.now, runnable)
    return {
        "name": profile.name,
        "title": profile.title.get(desk.lang) or profile.title.get("en") or profile.name,
        "queue": profile.queue,
        "gpus": wire.gpus(profile.gpus_milli),
        "flavor": profile.flavor,
        "flavors": flavors,
        "memory_mib": profile.memory_mib,
        "cpus": profile.cpus,
        "ram_mib": profile.ram_mib,
        "decision": desk.decision(decision, simulated=profile.gpus_milli > 0 and desk.simulated_in(profile.queue)),
        "free": free,
        "total": total,
        "price_per_hour": desk.money(min(prices)) if prices else None,
        "lease_default_seconds": queue.lease.default_ms // 1000 if queue.lease.default_ms else None,
        "lease_max_seconds": queue.lease.max_ms // 1000 if queue.lease.max_ms else None,
        "own": _own(desk, owner, profile.queue),
    }


def _free(state: State, profile: SpawnProfile) -> tuple[int, int, list[str]]:
    """(whole cards free now, cards in all, their card types) of the pools that the profile's queue uses."""
    queue = state.policy.queues[profile.queue]
    if profile.gpus_milli == 0:
        return 0, 0, []
    names = [profile.flavor] if profile.flavor else list(queue.flavors or state.policy.flavors)
    cards = [
        d for node in state.nodes.values() for d in node.devices if d.pool in queue.pools and d.flavor in names
    ]
    return free_cards(state, cards, profile.gpus_milli), len(cards), sorted({d.flavor for d in cards if d.flavor})


def _own(desk: Desk, owner: Actor, queue: str) -> str:
    """How much the user holds in the queue, of how much he may."""
    state = desk.state
    held = sum(
        a.milli_gpus
        for a in state.allocations.values()
        if state.workload_of(a).owner == owner.name and state.workload_of(a).queue == queue
    )
    limit = state.policy.queues[queue].caps.per_user.milli_gpus
    shown = f"{wire.gpus(limit)}" if limit is not None else texts.word(texts.WORDS, "no_limit", desk.lang)
    return texts.word(texts.WORDS, "own_use", desk.lang, held=wire.gpus(held), limit=shown, queue=queue)
