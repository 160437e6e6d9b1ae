"""What is refused at submit, with the numbers: it could never start, or the rules forbid it (semantics §6).

Bounds come first, then what the queue allows, then caps of one request, then what could not fit even with
nothing running. What passes here may wait, but not for ever because of itself.
"""

from __future__ import annotations

from collections.abc import Callable

from hubgov.clock import Instant
from hubgov.core import caps, quota
from hubgov.core.decision import Blocker, Decision, Outcome
from hubgov.core.inventory import capacity
from hubgov.core.model import ChargeKey, Workload
from hubgov.core.placement import Offer, largest_ever, node_suits, offers, passes_guard
from hubgov.core.policy import Policy, PriorityClass, Queue
from hubgov.core.state import State
from hubgov.wire import MAX_MEMORY_MIB, MAX_MILLI_GPUS, MAX_NAME, MAX_SPAN_MS

MAX_CPUS = 10**6
MAX_NODES = 10**5


def refusal(state: State, workload: Workload, now: Instant) -> Decision | None:
    """The first reason to refuse this request, or None if it may wait and start."""
    checks: tuple[Callable[[State, Workload, Instant], Decision | None], ...] = (
        _out_of_bounds,
        _not_for_this_queue,
        _lease_too_long,
        _above_a_cap,
        _no_flavor_left,
        _impossible,
    )
    for check in checks:
        if (decision := check(state, workload, now)) is not None:
            return decision
    return None


def never(state: State, workload: Workload, now: Instant) -> tuple[Blocker, ...]:
    """Why a request that waits already can't start any more, however long it waits; () if it may.

    The policy or the devices may have changed since it was taken in line.
    """
    for check in (_no_flavor_left, _impossible):
        if (decision := check(state, workload, now)) is not None:
            return decision.blockers or (_closed(workload, decision.rule),)
    return ()


def _closed(workload: Workload, rule: str) -> Blocker:
    return Blocker(code="impossible", need=max(1, workload.request.smallest), have=0, limit=0, scope=rule)


def _refused(
    state: State,
    now: Instant,
    code: str,
    rule: str,
    *,
    blockers: tuple[Blocker, ...] = (),
    next_steps: tuple[str, ...] = ("change_request",),
    **facts: int | str,
) -> Decision:
    return Decision(
        outcome=Outcome.REFUSED,
        code=code,
        rule=rule,
        blockers=blockers,
        facts=facts,
        next_steps=next_steps,
        evaluated_at=now,
        policy_version=state.policy.version,
    )


def _out_of_bounds(state: State, workload: Workload, now: Instant) -> Decision | None:
    request = workload.request
    for name, value, limit, unit in (
        ("gpus", request.milli_gpus[-1], MAX_MILLI_GPUS, "milli_gpus"),
        ("memory", request.memory_mib or 0, MAX_MEMORY_MIB, "mib"),
        ("ram", request.ram_mib or 0, MAX_MEMORY_MIB, "mib"),
        ("cpus", request.cpus or 0, MAX_CPUS, "cpus"),
        ("nodes", request.nodes, MAX_NODES, "nodes"),
        ("lease", request.lease_ms or 0, MAX_SPAN_MS, "ms"),
        ("start_deadline", request.start_deadline_ms or 0, MAX_SPAN_MS, "ms"),
        ("name", len(workload.name), MAX_NAME, "characters"),
    ):
        if value > limit:
            over = Blocker(code="above_maximum", need=value, have=limit, limit=limit, unit=unit, scope=name)
            return _refused(
                state, now, "above_maximum", f"bounds.{name}", blockers=(over,), field=name,
                asked=value, limit=limit, unit=unit,
            )  # fmt: skip
    for name, least, asked, unit in (
        ("memory", 1, request.memory_mib, "mib"),
        ("ram", 0, request.ram_mib, "mib"),
        ("cpus", 0, request.cpus, "cpus"),
        ("nodes", 0, request.nodes, "nodes"),
        ("lease", 1, request.lease_ms, "ms"),
        ("start_deadline", 0, request.start_deadline_ms, "ms"),
    ):
        if asked is not None and asked < least:
            return _refused(state, now, "invalid", f"bounds.{name}", field=name, asked=asked, unit=unit)
    for milli in request.milli_gpus:
        if milli < 0 or (milli > 1000 and milli % 1000) or (milli and not request.smallest):
            return _refused(
                state, now, "invalid", "bounds.gpus", field="gpus", asked=milli, unit="milli_gpus",
                next_steps=("whole_gpus",),
            )  # fmt: skip
        if request.nodes > 1 and milli % (1000 * request.nodes):
            return _refused(
                state, now, "invalid", "nodes", field="nodes", asked=request.nodes, unit="nodes",
                next_steps=("whole_gpus",),
            )  # fmt: skip
    return None


def _not_for_this_queue(state: State, workload: Workload, now: Instant) -> Decision | None:
    """Kind, retirement, a closed queue, and what the queue must `allow`."""
    queue, request = state.policy.queues[workload.queue], workload.request
    base = f"queues.{queue.name}"
    if workload.kind not in queue.kinds:
        kinds = ", ".join(kind.value for kind in queue.kinds)
        return _refused(
            state, now, "not_allowed", f"{base}.kinds", next_steps=("other_queue",),
            what=workload.kind.value, allowed=kinds,
        )  # fmt: skip
    if queue.retired or state.policy.projects[workload.project].retired:
        place = f"queue {queue.name}" if queue.retired else f"project {workload.project}"
        return _refused(state, now, "not_allowed", "retired", next_steps=("other_queue",), place=place, allowed="-")
    if (hold := state.holds.get(queue.name)) and hold.closed:
        return _refused(
            state,
            now,
            "held",
            f"{base}.hold",
            next_steps=("other_queue",),
            queue=queue.name,
            reason=hold.reason,
        )
    low, high = queue.priority_range
    if not low <= workload.priority <= high:
        return _refused(
            state, now, "not_allowed", f"{base}.priority_range",
            place=f"priority {workload.priority}", low=low, high=high,
        )  # fmt: skip
    for wanted, word in (
        (request.override is not None, "override"),
        (not request.preemptible and queue.class_ is not PriorityClass.PROTECTED, "non_preemptible"),
    ):
        if wanted and word not in queue.allow:
            allowed = ", ".join(queue.allow) or "-"
            return _refused(state, now, "not_allowed", f"{base}.allow", what=word, allowed=allowed)
    return None


def _lease_too_long(state: State, workload: Workload, now: Instant) -> Decision | None:
    """A longer lease than the queue's is refused, never clipped silently."""
    rule, asked = state.policy.queues[workload.queue].lease, workload.request.lease_ms
    if asked is None or rule.max_ms is None or asked <= rule.max_ms:
        return None
    name = f"queues.{workload.queue}.lease.max"
    over = Blocker(code="above_maximum", need=asked, have=rule.max_ms, limit=rule.max_ms, unit="ms", scope=name)
    return _refused(
        state,
        now,
        "above_maximum",
        name,
        blockers=(over,),
        field="lease",
        asked=asked,
        limit=rule.max_ms,
        unit="ms",
    )


def _above_a_cap(state: State, workload: Workload, now: Instant) -> Decision | None:
    for over, code in (
        (caps.single_request_above(state, workload), "above_maximum"),
        (caps.pending_full(state, workload), "too_many_pending"),
    ):
        if over is not None:
            return _refused(
                state, now, code, over.scope, blockers=(over,), field=over.unit, asked=over.need,
                limit=over.limit or 0, unit=over.unit,
                next_steps=("change_request",) if code == "above_maximum" else ("cancel_another", "wait"),
            )  # fmt: skip
    return None


def _no_flavor_left(state: State, workload: Workload, now: Instant) -> Decision | None:
    """Data access closes every pool, or the fit guard every card."""
    policy, queue = state.policy, state.policy.queues[workload.queue]
    if offers(policy, workload):
        return None
    level = policy.projects[workload.project].data_access or "-"
    if all(policy.pools[p].data_access and level not in policy.pools[p].data_access for p in queue.pools):
        return _refused(
            state, now, "data_access", "data_access", next_steps=("other_queue",), level=level,
            pools=", ".join(queue.pools),
        )  # fmt: skip
    guarded = _guarded_flavors(state, workload, queue)
    if guarded:
        least = min(policy.flavors[f].guard_min_memory_mib or 0 for f in guarded)
        return _refused(
            state, now, "fit_guard", f"flavors.{guarded[0]}.fit_guard", next_steps=("ask_memory", "override"),
            flavors=", ".join(guarded), least=least, unit="mib",
        )  # fmt: skip
    return _refused(
        state, now, "impossible", f"queues.{queue.name}.flavors", asked=workload.request.smallest, most=0,
        queue=queue.name, unit="milli_gpus",
    )  # fmt: skip


def _guarded_flavors(state: State, workload: Workload, queue: Queue) -> list[str]:
    policy = state.policy
    wanted = workload.request.flavors or queue.flavors or tuple(policy.flavors)
    return [f for f in wanted if f in policy.flavors and not passes_guard(policy, workload, policy.flavors[f])]


def _impossible(state: State, workload: Workload, now: Instant) -> Decision | None:
    """Doesn't fit even with nothing running, in no window; nodes that are down or drained count as there."""
    need, blockers = workload.request.smallest, []
    if (decision := _no_node_ever(state, workload, now)) is not None or need == 0:
        return decision
    if (decision := _no_card_that_big(state, workload, now)) is not None:
        return decision
    for offer in offers(state.policy, workload):
        if (short := never_on(state, workload, offer, now)) is None:
            return None
        blockers.append(short)
    most = max((b.have for b in blockers), default=0)
    return _refused(
        state, now, "impossible", blockers[0].scope if blockers else "pools", blockers=tuple(blockers),
        asked=need, most=most, queue=workload.queue, unit="milli_gpus",
    )  # fmt: skip


def never_on(state: State, workload: Workload, offer: Offer, now: Instant) -> Blocker | None:
    """What one offer lacks for ever, devices or quota; None if the request may once start there."""
    need = workload.request.smallest
    if need == 0:
        return None
    devices = largest_ever(state, workload, offer)
    if devices < need:
        return _never(offer, "impossible", need, devices, "devices")
    room = quota_ever(state, workload, offer, now)
    return _never(offer, "impossible", need, room, "quota") if room < need else None


def quota_ever(state: State, workload: Workload, offer: Offer, now: Instant) -> int:
    """The most quota this offer could ever give. Protected and non-preemptible work only gets its guarantee."""
    key = offer.key
    assert key is not None
    policy, place = state.policy, state.place_of(workload)
    known = state.memo(now)
    if ("most ever", key, place) not in known:
        known["most ever", key, place] = quota.most_ever(policy, key, capacity(state.nodes, *key), place, now)
    most: int = known["most ever", key, place]
    if must_be_entitled(state, workload):
        most = min(most, max(_guarantees(policy, key, workload), default=0))
    return most


def _guarantees(policy: Policy, key: ChargeKey, workload: Workload) -> list[int]:
    """What is ever guaranteed where it is judged: its project's rows where it has one, else its team's."""
    rows = [row for row in policy.quotas if (row.pool, row.flavor) == key]
    own = [row.guaranteed for row in rows if row.project == workload.project]
    return own or [row.guaranteed for row in rows if row.project is None and row.team == workload.team]


def must_be_entitled(state: State, workload: Workload) -> bool:
    """Protected work and what opted out of preemption never runs on borrowed devices (§3)."""
    protected = state.policy.queues[workload.queue].class_ is PriorityClass.PROTECTED
    return protected or not workload.request.preemptible


def _no_node_ever(state: State, workload: Workload, now: Instant) -> Decision | None:
    """Any work needs a node of one of its pools that has the labels, the CPUs and the RAM at all."""
    request = workload.request
    pools = tuple(dict.fromkeys(offer.pool for offer in offers(state.policy, workload)))
    nodes = [n for n in state.nodes.values() if any(node_suits(n, workload, p) for p in pools)]
    if not nodes and request.smallest:
        return None  # the devices tell it: there are none
    cpus, ram = request.cpus or 0, request.ram_mib or 0
    roomy = [n for n in nodes if n.cpus is None or cpus <= n.cpus]
    if not nodes:
        unit, asked, most = "nodes", 1, 0
    elif not roomy:
        unit, asked, most = "cpus", cpus, max(n.cpus or 0 for n in nodes)
    elif all(n.ram_mib is not None and n.ram_mib < ram for n in roomy):
        unit, asked, most = "mib", ram, max(n.ram_mib or 0 for n in roomy)
    else:
        return None
    scope = f"pools {', '.join(pools)}"
    short = Blocker(code="impossible", need=asked, have=most, limit=most, unit=unit, scope=scope)
    return _refused(
        state, now, "impossible", "pools", blockers=(short,), asked=asked, most=most,
        queue=workload.queue, unit=unit,
    )  # fmt: skip


def _no_card_that_big(state: State, workload: Workload, now: Instant) -> Decision | None:
    """Of more memory than any card has that it may use, the largest of these is named."""
    asked = workload.request.memory_mib or 0
    mine = {(offer.pool, offer.flavor): offer for offer in offers(state.policy, workload)}
    cards = [d for node in state.nodes.values() for d in node.devices if (d.pool, d.flavor) in mine]
    largest = max(cards, key=lambda d: d.memory_mib, default=None)
    if largest is None or asked <= largest.memory_mib:
        return None  # without any card the devices tell it
    short = Blocker(
        code="impossible", need=asked, have=largest.memory_mib, limit=largest.memory_mib, unit="mib",
        scope="memory", pool=largest.pool, flavor=largest.flavor,
    )  # fmt: skip
    return _refused(
        state, now, "impossible", "memory", blockers=(short,), asked=asked, most=largest.memory_mib,
        queue=workload.queue, unit="mib",
    )  # fmt: skip


def _never(offer: Offer, code: str, need: int, have: int, scope: str) -> Blocker:
    return Blocker(code=code, need=need, have=have, limit=have, scope=scope, pool=offer.pool, flavor=offer.flavor)
