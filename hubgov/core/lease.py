"""The term of an allocation: its end, the warnings before it, and what may move it (semantics §§5, 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hubgov.clock import Instant
from hubgov.core.decision import Blocker, Decision, Outcome
from hubgov.core.model import Allocation, Lease, Notice, Workload
from hubgov.core.policy import Policy, Queue
from hubgov.core.states import GRACE, AllocationState


def granted_lease(queue: Queue, workload: Workload) -> Lease:
    """The lease of the next attempt, its clock not yet running.

    What was asked for, else the queue's default; less the running time of earlier attempts, since the limit
    counts running time across evictions.
    """
    length = lease_left(queue, workload, workload.ran_ms)
    return Lease(length_ms=length, rule="lease", grace_ms=queue.grace_ms, warn_ms=queue.warn_ms)


def lease_left(queue: Queue, workload: Workload, ran_ms: int) -> int | None:
    """What is left of the lease once it has run for `ran_ms`, in ms; None without an end."""
    length = workload.request.lease_ms if workload.request.lease_ms is not None else queue.lease.default_ms
    return max(0, length - ran_ms) if length is not None else None


def reason_of_end(lease: Lease) -> str:
    """Why a lease that ran out did: `max` where it was extended as far as extensions go."""
    return "max" if lease.rule == "extension" and lease.expires_at == lease.hard_end_at else "lease"


def started_lease(queue: Queue, workload: Workload, lease: Lease, now: Instant) -> Lease:
    """The lease from the moment the workload is ready. `hard_end_at` is as far as extensions may ever go."""
    if lease.length_ms is None:
        return replace(lease, granted_at=now)
    expires_at = Instant(now + lease.length_ms)
    most = queue.extension.max_total_ms if queue.extension else None
    hard_end = Instant(max(expires_at, now + most - workload.ran_ms)) if most is not None else None
    if queue.extension is None:
        hard_end = expires_at
    return replace(lease, expires_at=expires_at, hard_end_at=hard_end, granted_at=now)


def grace_until(allocation: Allocation) -> Instant | None:
    """When the stop is sent: the end that people are shown, and the grace after it."""
    if allocation.state in GRACE:
        return allocation.stop_at
    if allocation.lease.expires_at is None:
        return None
    return Instant(allocation.lease.expires_at + allocation.lease.grace_ms)


def extensions_left(queue: Queue, workload: Workload) -> int:
    """How many more times the owner may extend by himself."""
    return max(0, queue.extension.self_serve_count - workload.extensions_used) if queue.extension else 0


@dataclass(frozen=True, slots=True)
class ExtensionVerdict:
    """A Decision and, where it is granted, the lease that replaces the one it was judged on."""

    decision: Decision
    lease: Lease | None = None


def judge_extension(
    policy: Policy,
    workload: Workload,
    allocation: Allocation,
    by_ms: int,
    now: Instant,
    *,
    approved: bool = False,
) -> ExtensionVerdict:
    """May this lease be extended by `by_ms`: granted, refused with the limit, or only with an approval.

    Beyond `self_serve` (times, or step) it needs approval (`approved`: it has it); beyond `max_total` no approver
    can grant it.
    """
    queue = policy.queues[workload.queue]
    rule, lease = queue.extension, allocation.lease
    base = f"queues.{queue.name}.extension"

    def refused(code: str, name: str, *blockers: Blocker, steps: tuple[str, ...]) -> ExtensionVerdict:
        facts: dict[str, int | str] = {"by": by_ms, "queue": queue.name}
        if blockers:
            facts |= {"limit": blockers[0].limit or 0, "have": blockers[0].have, "unit": blockers[0].unit}
        return ExtensionVerdict(
            Decision(
                outcome=Outcome.NEEDS_APPROVAL if code == "beyond_self_serve" else Outcome.REFUSED,
                code=code,
                rule=name,
                blockers=blockers,
                facts=facts,
                next_steps=steps,
                evaluated_at=now,
                policy_version=policy.version,
            )
        )

    if lease.expires_at is None or allocation.started_at is None:
        return refused("no_end", f"queues.{queue.name}.lease", steps=())
    if rule is None:
        return refused("no_extension", base, steps=("save_work", "submit_batch"))
    expires_at = Instant(lease.expires_at + by_ms)
    if expires_at <= now:
        late = _over(now - lease.expires_at, by_ms, by_ms, "expired_meanwhile", base)
        return refused("expired_meanwhile", base, late, steps=("longer_extension",))
    if rule.max_total_ms is not None and expires_at - allocation.started_at + workload.ran_ms > rule.max_total_ms:
        room = max(0, allocation.started_at - workload.ran_ms + rule.max_total_ms - lease.expires_at)
        over = _over(by_ms, room, rule.max_total_ms, "max_total", f"{base}.max_total")
        steps = ("shorter_extension", "save_work") if room >= 60_000 else ("save_work", "submit_batch")
        return refused("max_total", f"{base}.max_total", over, steps=steps)
    if not approved and workload.extensions_used >= rule.self_serve_count:
        over = Blocker(
            code="beyond_self_serve", need=1, have=0, limit=rule.self_serve_count, unit="times",
            scope=f"{base}.self_serve.count",
        )  # fmt: skip
        return refused("beyond_self_serve", over.scope, over, steps=("ask_approver", "save_work"))
    if not approved and by_ms > rule.step_ms:
        over = _over(by_ms, rule.step_ms, rule.step_ms, "beyond_self_serve", f"{base}.self_serve.step")
        return refused("beyond_self_serve", over.scope, over, steps=("shorter_extension", "ask_approver"))
    granted = replace(lease, expires_at=expires_at, granted_at=now, version=lease.version + 1, rule="extension")
    left = rule.self_serve_count - workload.extensions_used - (0 if approved else 1)
    return ExtensionVerdict(
        Decision(
            outcome=Outcome.GRANTED,
            code="extended",
            rule=f"{base}.approvers" if approved else f"{base}.self_serve",
            facts={"by": by_ms, "left": left, "expires_at": expires_at, "queue": queue.name},
            evaluated_at=now,
            policy_version=policy.version,
        ),
        granted,
    )


def _over(need: int, have: int, limit: int, code: str, scope: str) -> Blocker:
    return Blocker(code=code, need=need, have=have, limit=limit, unit="ms", scope=scope)


def notice_id(allocation: Allocation, threshold_ms: int) -> str:
    """The name of a warning: one per allocation, version of its lease, and threshold."""
    return f"{allocation.id}-{allocation.lease.version}-{threshold_ms // 1000}"


def due_notice(allocation: Allocation, given: frozenset[int], now: Instant) -> Notice | None:
    """The warning to give now, if one is due: the nearest threshold passed since the lease last moved.

    `given` are the thresholds already given for this lease version. After a pause only the nearest one is
    given: being told 30 and 10 minutes in the same breath tells less than 10.
    """
    lease = allocation.lease
    if allocation.state is not AllocationState.RUNNING or lease.expires_at is None:
        return None
    if now >= lease.expires_at:
        return None
    passed = [
        threshold
        for threshold in lease.warn_ms
        if lease.expires_at - threshold <= now
        and (lease.granted_at is None or lease.expires_at - threshold > lease.granted_at)
    ]
    if not passed or min(passed) in given:
        return None
    threshold = min(passed)
    return Notice(
        id=notice_id(allocation, threshold),
        allocation=allocation.id,
        workload=allocation.workload,
        kind="expiring",
        threshold_ms=threshold,
        lease_version=lease.version,
        deadline=lease.expires_at,
        issued_at=now,
    )
