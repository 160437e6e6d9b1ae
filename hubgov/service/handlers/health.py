"""Whether the service is well: for whoever asks, so without a secret and without a name of a user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from hubgov import __version__
from hubgov.service.base import Open


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeHealth:
    """What a node's probe last saw: how old it is, why it sees nothing, whether its devices are made up and why."""

    age_seconds: int
    unavailable: str | None
    simulated: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthDocument:
    """`degraded` with the `trouble` while nothing can be written; `state` tells one ledger from another."""

    status: str
    trouble: str | None
    version: str
    pid: int
    state: str
    epoch: int
    policy_version: int
    mode: str
    isolation: str
    probes: Mapping[str, ProbeHealth]


class Health(Open):
    async def get(self) -> None:
        """That the service answers, for whom, and how old what it knows is."""
        services, governor = self.services, self.governor
        now = services.clock.now()
        self.reply(
            HealthDocument(
                status="ok" if governor.trouble is None else "degraded",
                trouble=governor.trouble,
                version=__version__,
                pid=os.getpid(),
                state=services.state,
                epoch=governor.ledger.epoch,
                policy_version=governor.state.policy.version,
                mode=governor.state.policy.mode.value,
                isolation=services.isolation,
                probes={
                    name: ProbeHealth(
                        age_seconds=max(0, now - probe.latest().at) // 1000,
                        unavailable=probe.latest().unavailable,
                        simulated=probe.simulated,
                        why=probe.why,
                    )
                    for name, probe in services.probes.items()
                },
            )
        )
