"""Sign-in for the demo: four people, random passwords, only their hashes kept."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from jupyterhub.auth import Authenticator

from hubgov.demo import settings

STATE_VARIABLE = "HUBGOV_DEMO_STATE"
_NOBODYS = settings.hashed(settings.password())
"""What the password of an unknown name is compared with."""


class DemoAuthenticator(Authenticator):  # type: ignore[misc]
    """Checks a password against the demo's settings, read anew each time: --new-passwords acts at once."""

    async def authenticate(self, handler: Any, data: dict[str, str]) -> str | None:
        """The user's name, or None for a wrong name or password, which take equally long."""
        known = settings.load(Path(os.environ[STATE_VARIABLE]))
        name = data.get("username", "")
        stored = known.passwords.get(name) if known else None
        right = await asyncio.to_thread(settings.matches, data.get("password", ""), stored or _NOBODYS)
        return name if stored is not None and right else None
