"""Apply a policy: all of it or nothing, against the version it was made from (semantics §2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hubgov.clock import Instant
from hubgov.control.actor import Actor, check_admin
from hubgov.control.unit import Unit
from hubgov.core.clock_rate import for_clock_rate
from hubgov.core.inventory import inventory
from hubgov.core.metering import tariffs_ended
from hubgov.core.model import Change, PolicyText
from hubgov.core.policy import Policy
from hubgov.core.state import State
from hubgov.errors import Conflict, Invalid, PolicyMoved
from hubgov.policy import Edit, Loaded, Problem, Usage, diff, in_use
from hubgov.policy import load as load

K = TypeVar("K")


def checked(text: str, name: str, version: int = 0) -> Loaded:
    """The policy of a text, or Invalid whose details carry every `Problem`."""
    loaded = load(text, name=name, version=version)
    if loaded.policy is None:
        problems = loaded.errors
        raise Invalid(
            f"errors in the policy: {len(problems)}; nothing was applied",
            code="policy_invalid",
            hint=str(problems[0]),
            details={"problems": problems},
        )
    return loaded


def apply(unit: Unit, text: str, based_on: int, actor: Actor, name: str = "policy.yaml") -> PolicyText:
    """The new version in force. PolicyMoved when `based_on` isn't the current one any more; Conflict with the
    list when it removes what work still needs."""
    check_admin(actor)
    current = unit.state.policy
    if based_on != current.version:
        raise PolicyMoved(
            f"the policy is at version {current.version}, your edit began at {based_on}",
            hint="look at the difference and apply again from the current version",
            details={"version": current.version},
        )
    loaded = checked(text, name, current.version + 1)
    assert loaded.policy is not None
    taken = [str(item) for item in in_use(current, loaded.policy, usage(unit.state))]
    taken += _held_elsewhere(unit.state, loaded.policy)
    taken += _kinds_waited_for(unit.state, loaded.policy)
    if loaded.policy.currency != current.currency and unit.state.last_seq:
        taken.append(f"currency {current.currency} is what the books are kept in since the first request")
    if taken:
        raise Conflict(
            "the new policy takes away what work still needs: " + "; ".join(taken),
            code="in_use",
            hint="wait until it is free, or mark the queue, project or pool `retired: true` first",
            details={"in_use": taken},
        )
    after = PolicyText(
        version=current.version + 1,
        text=text,
        applied_at=unit.now,
        applied_by=actor.principal,
        policy=for_clock_rate(loaded.policy, unit.clock_rate),
    )
    change = Change(event="policy_applied", before=unit.state.policy_text, after=after, actor=actor.principal)
    unit.write([*tariffs_ended(unit.state, change, unit.now), change])
    return after


def first(text: str, name: str, now: Instant, clock_rate: int) -> tuple[Change, PolicyText]:
    """Version 1 of a ledger that has none yet, and the change that writes it."""
    loaded = checked(text, name, 1)
    assert loaded.policy is not None
    policy = for_clock_rate(loaded.policy, clock_rate)
    after = PolicyText(version=1, text=text, applied_at=now, applied_by="hubgov", policy=policy)
    return Change(event="policy_applied", before=None, after=after, actor="hubgov"), after


def compare(state: State, text: str, name: str) -> tuple[tuple[Edit, ...], tuple[Problem, ...]]:
    """What a text would change of the current policy, as both were written, and the warnings of the text."""
    loaded = checked(text, name, state.policy.version)
    current = load(state.policy_text.text).policy if state.policy_text else None
    assert loaded.policy is not None
    return diff(current or state.policy, loaded.policy), loaded.problems


def _held_elsewhere(state: State, policy: Policy) -> list[str]:
    """Devices that live work holds and that the new policy puts into another pool, or calls another card."""
    devices = {d.key: d for node in inventory(policy, state.seen.values()).values() for d in node.devices}
    found = []
    for allocation in sorted(state.allocations.values(), key=lambda a: a.id):
        for share in allocation.devices:
            device = devices.get(share.key)
            if device is not None and (device.pool, device.flavor) != (allocation.pool, allocation.flavor):
                place = f"pool {device.pool or '-'} as {device.flavor or '-'}"
                found.append(f"device {share.node}/{share.index} is held by {allocation.workload}; not to {place}")
    return found


def _kinds_waited_for(state: State, policy: Policy) -> list[str]:
    """Work in line whose queue would no longer take its kind."""
    return [
        f"queue {workload.queue} takes {workload.kind.value} work, for which {workload.id} waits"
        for workload in state.pending()
        if workload.queue in policy.queues and workload.kind not in policy.queues[workload.queue].kinds
    ]


def usage(state: State) -> Usage:
    """Which names live workloads hold or wait on."""
    workloads = sorted(state.workloads.values(), key=lambda w: w.seq)
    allocations = sorted(state.allocations.values(), key=lambda a: a.id)
    return Usage(
        teams=_by((w.team, w.id) for w in workloads),
        projects=_by((w.project, w.id) for w in workloads),
        queues=_by((w.queue, w.id) for w in workloads),
        pools=_by((a.pool, a.workload) for a in allocations),
        flavors=_by((a.flavor, a.workload) for a in allocations if a.flavor),
        nodes=_by((a.node, a.workload) for a in allocations),
        devices=_by(((share.node, share.index), a.workload) for a in allocations for share in a.devices),
    )


def _by(pairs: Iterable[tuple[K, str]]) -> dict[K, tuple[str, ...]]:
    found: dict[K, tuple[str, ...]] = {}
    for name, workload in pairs:
        found[name] = (*found.get(name, ()), workload)
    return found
