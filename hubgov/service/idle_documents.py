"""What the idle rule says of a session, as documents: its fields, its signals with their evidence in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hubgov import texts, wire
from hubgov.clock import Instant, to_rfc3339
from hubgov.core import idle
from hubgov.core.idleness import IdlePhase
from hubgov.core.model import Allocation
from hubgov.core.signals import MEASURED, Signal
from hubgov.core.state import State
from hubgov.core.states import AllocationState
from hubgov.service.sentences import Reader


def fields(state: State, live: Allocation | None, now: Instant) -> dict[str, Any]:
    """The idle fields of a workload's document; none where no idle rule looks at it."""
    if live is None or not (live.state is AllocationState.RUNNING or idle.in_grace(live)):
        return {}
    rule = idle.rule_of(state, live)
    if rule is None:
        return {}
    verdict = idle.verdict_on(state, live, now)
    since = live.idle.since
    if since is None and verdict is not None and verdict.standing.value in ("settling", "idle"):
        since = verdict.since
    deadline = idle.returned_at(rule, live)
    return {
        "keeps_left": idle.keeps_left(rule, live),
        "idle_phase": live.idle.phase.value,
        "idle_deadline": to_rfc3339(deadline) if deadline is not None else None,
        "idle_since": to_rfc3339(since) if since is not None else None,
        "idle_after_seconds": rule.after_ms // 1000,
    }


def signals(state: State, live: Allocation | None, reader: Reader) -> tuple[wire.Signal, ...]:
    """Every signal of a running session as it was last seen, with its age and when it was last busy."""
    watched = state.watched.get(live.id) if live is not None else None
    if watched is None or live is None or idle.rule_of(state, live) is None:
        return ()
    age = max(0, reader.now - watched.at) // 1000
    return tuple(
        wire.Signal(
            kind=kind.value,
            level=signal.level.value,
            text=said(signal, reader.lang),
            busy_at=to_rfc3339(watched.busy_at[kind]) if kind in watched.busy_at else None,
            age_seconds=age,
            measured=kind in MEASURED,
        )
        for kind, signal in watched.signals.items()
    )


def said(signal: Signal, lang: str) -> str:
    """The evidence of a signal in words."""
    return texts.word(texts.EVIDENCE, signal.code, lang, **signal.facts)


def evidence(last: Allocation | None, reader: Reader) -> tuple[str, ...]:
    """Why a session that ended for idleness counted as idle, a line each."""
    if last is None or last.end_reason != "idle" or last.idle.phase is not IdlePhase.GRACE:
        return ()
    return tuple(_lines(last.idle.evidence, reader))


def _lines(found: Iterable[Signal], reader: Reader) -> Iterable[str]:
    for signal in found:
        kind = texts.word(texts.SIGNALS, signal.kind.value, reader.lang)
        facts = {"kind": kind, "text": said(signal, reader.lang)}
        if signal.busy_at is None:
            yield texts.word(texts.WORDS, "idle_evidence", reader.lang, **facts)
        else:
            at = reader.clock(signal.busy_at)
            yield texts.word(texts.WORDS, "idle_evidence_since", reader.lang, **facts, at=at)
