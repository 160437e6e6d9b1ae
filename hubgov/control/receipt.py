"""What a session that is over had: from its own reports and from the books, never from guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hubgov import texts
from hubgov.control.save_texts import reason
from hubgov.core.amounts import rounded
from hubgov.core.metering import Account, UsageSegment, cost_of
from hubgov.core.model import Allocation, KernelSeen, SavedDocument, SaveRecord
from hubgov.core.transitions import ran_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a receipt. `milli_gpu_ms` is Σ share × time on the team's account."""

    documents: tuple[SavedDocument, ...]
    kernels: tuple[KernelSeen, ...]
    terminals: int
    asked_lab: bool | None
    reported: bool
    started: bool
    used_ms: int
    milli_gpu_ms: int
    cost_micro: int

    def lost(self, lang: str) -> tuple[str, ...]:
        """What is gone, a line each."""
        lines = [
            texts.word(texts.LOST, "document", lang, path=d.path, error=reason(d.error or d.outcome, lang))
            for d in self.documents
            if d.outcome != "saved"
        ]
        for kernel in self.kernels:
            lines.append(texts.word(texts.LOST, "variables", lang, name=kernel.name, path=kernel.path))
            if kernel.busy:
                lines.append(texts.word(texts.LOST, "cell", lang, path=kernel.path))
        if self.terminals:
            lines.append(texts.word(texts.LOST, "terminals", lang, count=self.terminals))
        if self.started and not self.reported:
            lines.append(texts.word(texts.LOST, "unknown", lang))
        return tuple(lines)


def facts(attempts: Sequence[Allocation], saves: Sequence[SaveRecord], segments: Sequence[UsageSegment]) -> Facts:
    """The receipt's facts: the last save of the last attempt, the usage of all."""
    last = attempts[-1] if attempts else None
    mine = [save for save in saves if last is not None and save.allocation == last.id]
    save = mine[-1] if mine else None
    team = [s for s in segments if s.account is Account.TEAM]
    return Facts(
        documents=save.documents if save else (),
        kernels=save.kernels if save else (),
        terminals=save.terminals if save else 0,
        asked_lab=save.asked_lab if save else None,
        reported=save is not None,
        started=last is not None and last.started_at is not None,
        used_ms=sum(ran_ms(a, a.ended_at or a.since) for a in attempts),
        milli_gpu_ms=sum((s.ended - s.began) * s.milli_gpus for s in team),
        cost_micro=rounded(sum((cost_of(s) for s in team), start=Fraction(0))),
    )
