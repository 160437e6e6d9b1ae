"""The hub's answer to the service: where a user's jobs live. `POST /hub/api/hubgov/quarters/NAME`."""

from __future__ import annotations

from jupyterhub import orm
from jupyterhub.apihandlers import APIHandler
from jupyterhub.scopes import needs_scope
from tornado import web

from hubgov import errors

ADDRESS = r"/api/hubgov/quarters/([^/]+)"
"""For JupyterHub.extra_handlers."""


class QuartersHandler(APIHandler):  # type: ignore[misc]
    """Answers the service that may start users' servers. No person's token counts, not even for himself: what a
    box shows and hides is nobody's to know from within."""

    @needs_scope("start:servers")  # type: ignore[untyped-decorator]
    async def post(self, user_name: str) -> None:
        """Account and home, made if missing. 501 with a spawner without homes here, 409 when they can't be had;
        503 when they can't be had now, so that it is asked again."""
        if not isinstance(self.current_user, orm.Service):
            raise web.HTTPError(403, reason="only a service is told where jobs run")
        user = self.find_user(user_name)
        if user is None:
            raise web.HTTPError(404)
        make = getattr(user.spawner, "quarters", None)
        if make is None:
            raise web.HTTPError(501, reason="this hub's spawner keeps no homes on this machine")
        try:
            quarters = await make()
        except errors.Invalid as error:
            self.log.warning("No quarters for jobs of %s: %s", user_name, error)
            raise web.HTTPError(409, reason="its home can't be used; see the hub's log") from error
        except (errors.HubgovError, OSError) as error:
            self.log.error("No quarters for jobs of %s now: %s", user_name, error)
            raise web.HTTPError(503, reason="its home can't be used now; see the hub's log") from error
        self.write(quarters.to_json())
