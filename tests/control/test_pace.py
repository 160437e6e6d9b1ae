"""The policy says how often devices are looked at, from its first version on and after every edit."""

from __future__ import annotations

import asyncio
from pathlib import Path

from control.house import ADMINISTRATOR, LOG, POLICY, a_house

from hubgov.app import Service, Surroundings
from hubgov.config import HubGov
from hubgov.control import policies
from hubgov.telemetry.simulated import SimulatedModel, SimulatedProbe

NOWHERE = Surroundings(api_url="", api_token="", service_url="", prefix="", hub_base_url="/")


class Paced(SimulatedProbe):
    """Remembers at which pace it was told to look."""

    paces: list[float]

    def pace(self, seconds: float) -> None:
        self.paces.append(seconds)
        super().pace(seconds)


def test_the_probe_looks_at_the_pace_of_the_policy_in_force(tmp_path: Path) -> None:
    async def story() -> None:
        policy = f"{POLICY}telemetry: {{period: 7s}}\n"
        async with a_house(tmp_path, policy=policy) as house:
            service = Service(HubGov(), NOWHERE, LOG)
            service.governor = house.governor
            service.probe = probe = Paced("box", clock=house.clock, model=SimulatedModel(count=2))
            probe.paces = []
            await service._observe()
            assert probe.paces == [7.0]
            text = policy.replace("period: 7s", "period: 1m")
            await house.do(lambda unit: policies.apply(unit, text, 1, ADMINISTRATOR))
            await service._observe()
            assert probe.paces == [7.0, 60.0]

    asyncio.run(story())
