"""The contract as OpenAPI 3.1."""

from __future__ import annotations

from hubgov.service.base import Open
from hubgov.service.openapi import document


class OpenApi(Open):
    async def get(self) -> None:
        """Made from the models that check the bodies."""
        self.reply(document(self.services.prefix))
