"""Where a user's jobs live, told to the service: account, home and box are the hub's to know, as those of servers.

The service asks the hub for them before it starts a job (`quarters_api`), since whose home and uid is which follows
from the hub's own records of its users (`owners`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hubgov_spawner.isolation import Box, Isolation, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarters:
    """What the processes of one user get; `box` None where there is none (single-user mode)."""

    account: str
    home: str
    home_inside: str
    isolation: Isolation
    box: Box | None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        plain: dict[str, Any] = dataclasses.asdict(self)
        plain["isolation"]["mode"] = self.isolation.mode.value
        if self.box is not None:
            plain["box"]["mode"] = self.box.mode.value
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Quarters:
        """What `to_json` gave; ValueError, KeyError or TypeError for anything else."""
        found = plain["box"]
        lists = ("read_only", "device_nodes")
        box = (
            Box(**{**found, **{n: tuple(found[n]) for n in lists}, "mode": Mode(found["mode"])}) if found else None
        )
        isolation = Isolation(**{**plain["isolation"], "mode": Mode(plain["isolation"]["mode"])})
        return cls(
            account=plain["account"],
            home=plain["home"],
            home_inside=plain["home_inside"],
            isolation=isolation,
            box=box,
        )
