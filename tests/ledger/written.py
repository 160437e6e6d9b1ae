"""A play whose every unit is committed to a ledger, and what is compared between the two."""

from __future__ import annotations

from typing import Any, Self

import sqlalchemy as sa
from builders import Play, PolicyBuilder, snapshot

from hubgov.clock import Instant
from hubgov.core.metering import Entry
from hubgov.core.model import Change, ExtensionRequest, PolicyText
from hubgov.core.policy import Policy
from hubgov.core.ranking import Ranking
from hubgov.core.state import State
from hubgov.ledger import reading, schema
from hubgov.ledger.codec import decode
from hubgov.ledger.ledger import Ledger


class Written(Play):
    """As `Play`, on a ledger that this process leads. With `restarts` every unit is followed by a restart."""

    def __init__(self, url: str, policy: PolicyBuilder, *, restarts: bool = False) -> None:
        super().__init__(policy, wrote=self.commit)
        self.url, self.restarts = url, restarts
        self.ledger = Ledger(url, self.read_policy)
        self.ledger.upgrade()
        self.ledger.lead()
        text = self.state.policy_text
        assert text is not None
        self._texts_by_version = {1: text.policy}
        first = Change(event="policy_applied", before=None, after=text, actor="ops")
        self.ledger.commit([Entry(change=first)], self.now)

    def read_policy(self, text: str, version: int) -> Policy:
        return self._texts_by_version[version]

    def commit(self, entries: list[Entry], now: Instant) -> None:
        for entry in entries:
            if isinstance(entry.change.after, PolicyText):
                self._texts_by_version[entry.change.after.version] = entry.change.after.policy
        self.ledger.commit(entries, now)
        if self.restarts:
            self.state = self.loaded()

    def loaded(self) -> State:
        """The live picture as another process would build it from the database alone."""
        other = Ledger(self.url, self.read_policy)
        try:
            text = other.policy()
            assert text is not None
            return other.load(text, self.now)
        finally:
            other.close()

    def same(self) -> Self:
        """The ledger says what the live picture says, and its books agree with it."""
        loaded = self.loaded()
        assert compared(loaded, self.now) == compared(self.state, self.now)
        with self.ledger.reading() as connection:
            totals = reading.charge_totals(connection)
        charged = {a.id: a.milli_gpus for a in self.state.allocations.values() if a.charged}
        assert totals == charged
        return self

    def close(self) -> None:
        self.ledger.close()


def compared(state: State, now: Instant) -> dict[str, Any]:
    """Everything of a picture that a rule may ask for, with the order of who waits."""
    order = [(s.workload.id, s.within_guarantee, s.shares) for s in Ranking(state, now).in_order(state.pending())]
    kept = snapshot(state)
    kept["notices"] = {k: n for k, n in state.notices.items() if n.allocation in state.allocations}
    kept["extensions"] = {k: e for k, e in state.extensions.items() if e.workload in state.workloads}
    kept["saves"] = {k: s for k, s in state.saves.items() if s.workload in state.workloads}
    return kept | {"order": order}


def extensions_of(connection: sa.Connection, workload_id: str) -> list[ExtensionRequest]:
    """Every request for more time of a workload, oldest first."""
    table = schema.extension
    bodies = connection.execute(sa.select(table.c.body).where(table.c.workload == workload_id)).scalars()
    return sorted((decode(ExtensionRequest, body) for body in bodies), key=lambda e: (e.requested_at, e.id))
