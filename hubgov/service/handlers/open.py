"""What needs no sign-in: health and the OpenAPI document."""

from __future__ import annotations

import json
import os

from tornado import web

from hubgov import __version__
from hubgov.service.base import Services
from hubgov.service.openapi import document


class Health(web.RequestHandler):
    async def get(self) -> None:
        """That the service answers, for whom, and how old what it knows is. No secret, no names of users."""
        services: Services = self.application.settings["hubgov"]
        now = services.clock.now()
        probes = {
            name: {
                "age_seconds": max(0, now - probe.latest().at) // 1000,
                "unavailable": probe.latest().unavailable,
                "simulated": probe.simulated,
                "why": probe.why,
            }
            for name, probe in services.probes.items()
        }
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        self.finish(
            json.dumps(
                {
                    "status": "ok" if services.governor.trouble is None else "degraded",
                    "trouble": services.governor.trouble,
                    "version": __version__,
                    "pid": os.getpid(),
                    "state": services.site,
                    "epoch": services.governor.ledger.epoch,
                    "policy_version": services.governor.state.policy.version,
                    "mode": services.governor.state.policy.mode.value,
                    "isolation": services.isolation,
                    "probes": probes,
                }
            )
        )


class OpenApi(web.RequestHandler):
    async def get(self) -> None:
        """The contract as OpenAPI 3.1, made from the models that check the bodies."""
        services: Services = self.application.settings["hubgov"]
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(document(services.prefix)))
