"""The kernel level of the idle rule: a kernel that is idle by its own signals is shut down, and the lease goes on.

The session does it: it is told which kernel, saves its document first and says what came of it (semantics §8).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hubgov.clock import Instant
from hubgov.core.idle import rule_of, written
from hubgov.core.idleness import IdlePhase, KernelEnding
from hubgov.core.model import Allocation, Change, Notice
from hubgov.core.policy import Mode
from hubgov.core.signals import Level
from hubgov.core.state import State
from hubgov.core.states import AllocationState
from hubgov.core.transitions import SERVICE
from hubgov.core.watching import GAP_PERIODS


def step(state: State, allocation: Allocation, now: Instant) -> tuple[Change, ...]:
    """Kernels that have been idle for `kernel_after` are to be shut down; one that works again, or is gone, isn't.

    Not while the session as a whole is in question: its owner has been asked about all of it.
    """
    rule, watched = rule_of(state, allocation), state.watched.get(allocation.id)
    if allocation.state is not AllocationState.RUNNING or watched is None:
        return ()
    after = rule.kernel_after_ms if rule is not None else None
    enforced = state.policy.mode is Mode.ENFORCE
    fresh = now - watched.at <= GAP_PERIODS * watched.period_ms
    idle: dict[str, KernelEnding] = {}
    if after is not None and fresh and allocation.idle.phase in (IdlePhase.ACTIVE, IdlePhase.KEPT):
        for name, kernel in watched.kernels.items():
            if kernel.level is Level.IDLE and watched.at - kernel.quiet_since >= after:
                idle[name] = KernelEnding(
                    id=name, path=kernel.path, since=kernel.quiet_since, asked_at=now, observed=not enforced
                )
    elif after is not None and not fresh:
        return ()  # nothing is known: what was asked stands, nothing is added
    return _reconciled(state, allocation, idle)


def _reconciled(state: State, allocation: Allocation, idle: dict[str, KernelEnding]) -> tuple[Change, ...]:
    asked = {ending.id: ending for ending in allocation.kernels_ending}
    kept = [e for e in allocation.kernels_ending if e.id in idle and e.observed == idle[e.id].observed]
    new = [ending for name, ending in idle.items() if name not in {e.id for e in kept}]
    endings = tuple(sorted((*kept, *new), key=lambda e: (e.asked_at, e.id)))
    if endings == allocation.kernels_ending:
        return ()
    event = "kernel_end_withdrawn" if not new else "kernel_end_observed" if new[0].observed else "kernel_end_asked"
    names = ", ".join(e.path or e.id for e in new) or ", ".join(e.path or e.id for e in asked.values())
    after = replace(allocation, kernels_ending=endings)
    return written(state, allocation, event, after, reason=names[:200])


def to_end(allocation: Allocation) -> Iterator[KernelEnding]:
    """The kernels that its session is told to shut down now."""
    if allocation.state is AllocationState.RUNNING:
        yield from (e for e in allocation.kernels_ending if not e.observed and not e.failed)


def ended(
    state: State, allocation: Allocation, kernel: str, now: Instant, *, actor: str, failed: str
) -> tuple[Change, ...]:
    """What came of it: the kernel is shut down and its owner is told, or why it was not, which is not tried again
    until the kernel has worked. () for one that nobody asked for."""
    ending = next((e for e in allocation.kernels_ending if e.id == kernel), None)
    if ending is None or ending.failed:
        return ()
    rest = tuple(e for e in allocation.kernels_ending if e.id != kernel)
    if failed:
        after = replace(allocation, kernels_ending=(*rest, replace(ending, failed=failed)))
        return written(state, allocation, "kernel_not_ended", after, actor=actor, reason=failed)
    notice = Notice(
        id=f"{allocation.id}-kernel-{kernel[:36]}-{ending.asked_at}",
        allocation=allocation.id,
        workload=allocation.workload,
        kind="kernel_idle",
        threshold_ms=0,
        lease_version=allocation.lease.version,
        deadline=now,
        issued_at=now,
        quiet_ms=now - ending.since,
        subject=ending.path,
    )
    after = replace(allocation, kernels_ending=rest)
    told = Change(event="warning_issued", before=None, after=notice, actor=SERVICE)
    reason = ending.path or kernel
    return (told, *written(state, allocation, "kernel_ended", after, actor=actor, reason=reason))
