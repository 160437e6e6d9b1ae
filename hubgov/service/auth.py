"""Who is calling, by the hub's word: hub tokens for programs, the hub's OAuth for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hubgov.control.actor import Actor
from hubgov.errors import NotAllowed

_SERVER = "access:servers!server="


def actor_of(model: Mapping[str, Any]) -> Actor:
    """The actor behind the hub's model of a user or service.

    A notebook server's own token is told by its scope: it may reach that one server. Any kernel can read it, so
    it never carries authority, whatever a site put into `server_token_scopes`.
    """
    if model.get("kind", "user") == "user" and str(model["name"]).startswith("service:"):
        raise NotAllowed(
            "a user who is called like a service can't be told from one",
            hint="have an administrator rename the user",
        )
    scopes = frozenset(model.get("scopes") or ())
    from_session = bool(model.get("session_id"))
    servers = [s.removeprefix(_SERVER) for s in sorted(scopes) if s.startswith(_SERVER)]
    return Actor(
        name=str(model["name"]),
        kind=str(model.get("kind", "user")),
        groups=frozenset(model.get("groups") or ()),
        scopes=scopes,
        from_server=not from_session and bool(servers),
        server=servers[0] if servers and not from_session else "",
    )
