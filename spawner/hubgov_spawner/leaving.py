"""A spawner's part in the departure of its user: nothing of a deleted user comes to the next of his name."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from traitlets.config import LoggingConfigurable

from hubgov import errors
from hubgov_spawner import refusals
from hubgov_spawner.client import ServiceError
from hubgov_spawner.departures import Departures
from hubgov_spawner.waiting import AWAY_SECONDS

TELL_SECONDS = 15.0
"""How long the deletion of a user waits for the service to be told."""

_Base: Any = LoggingConfigurable


class Leaving(_Base):  # type: ignore[misc]
    """Put before any spawner class, as part of GovernedMixin."""

    _lang = "en"

    async def departed(self) -> None:
        """Noted on the disk first, then told: now, or as soon as the service takes it."""
        noted = self._departures()
        try:
            if noted is not None:
                await asyncio.to_thread(noted.note, self.user.name)
                await asyncio.wait([self._keep_telling(noted)], timeout=TELL_SECONDS)
                return
        except OSError as error:
            self.log.error("The departure of %s can't be noted: %s", self.user.name, error)
        try:
            await self.hubgov_client(self._lang).departed(self.user.name, within=TELL_SECONDS)
        except ServiceError as error:
            self.log.critical(
                "User %s is deleted and hubgov could not be told (%s). The next user of this name would have all "
                "that was asked for until now: let nobody have it before POST /owners/%s/departed was taken.",
                self.user.name, error.message, self.user.name,
            )  # fmt: skip
            raise refusals.of_service(error, self._lang) from error

    def _departures(self) -> Departures | None:
        """Where departures are noted; None with a spawner that has no state folder."""
        folder = getattr(self, "state_dir", "")
        return Departures(state_dir=folder, log=self.log) if folder else None

    def _keep_telling(self, noted: Departures) -> asyncio.Task[None]:
        client = self.hubgov_client("en")
        return noted.keep_telling(lambda: client)

    def _tell_departures_later(self) -> None:
        """Of whom the service couldn't be told before: the hub makes spawners when it comes up."""
        noted = self._departures()
        if noted is not None and noted.any():
            with contextlib.suppress(RuntimeError):  # no loop yet: then before something starts
                self._keep_telling(noted)

    async def tell_departures(self) -> None:
        """Of those who had this user's name: ServiceError while the service can't be told, since what they had
        asked for is nothing that may start for this one."""
        noted = self._departures()
        if noted is None:
            return
        try:
            find = getattr(self, "predecessor_left_at", None)
            left_at = await find() if find is not None else None
            if left_at is not None:
                await asyncio.to_thread(noted.note, self.user.name, left_at)
            await noted.tell(self.hubgov_client(self._lang), self.user.name, within=AWAY_SECONDS)
        except ServiceError:
            raise
        except (errors.HubgovError, OSError) as error:
            self.log.error("Who had the name %s before can't be told: %s", self.user.name, error)
            raise ServiceError(f"the former user of this name can't be told of: {error}", code="owners") from error
