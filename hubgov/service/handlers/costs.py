"""What GPUs cost."""

from __future__ import annotations

from hubgov.errors import Invalid
from hubgov.service import costs
from hubgov.service.base import Base


class Costs(Base):
    async def get(self) -> None:
        """GPU time and cost of a period, grouped as asked: one's own, of the teams one leads, all for admins."""
        simulated = self.query("include_simulated") or "0"
        if simulated not in ("0", "1"):
            raise Invalid(f"include_simulated: {simulated[:40]!r} is neither 0 nor 1", hint="include_simulated=1")
        desk = self.desk()
        asked = costs.question(desk, self.query("by"), self.query("from"), self.query("to"), simulated == "1")
        self.reply(await costs.report(desk, self.governor.ledger, asked))
