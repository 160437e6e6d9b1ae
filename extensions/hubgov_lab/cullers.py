"""Only hubgov ends what is idle: the server's own cullers know neither cards nor leases, and tell nobody."""

from __future__ import annotations

import logging

from jupyter_server.serverapp import ServerApp


def switch_off(server: ServerApp, log: logging.Logger) -> None:
    """Switch off what would shut down kernels, terminals or the whole server for want of activity: while the server
    is made, since each of them begins with what it finds when it is first used."""
    terminals = server.web_app.settings.get("terminal_manager")
    for owner, trait in (
        (server.kernel_manager, "cull_idle_timeout"),
        (terminals, "cull_inactive_timeout"),
        (server, "shutdown_no_activity_timeout"),
    ):
        if owner is not None and getattr(owner, trait, 0) > 0:
            log.warning("hubgov: %s.%s is switched off: hubgov decides what is idle", type(owner).__name__, trait)
            owner.set_trait(trait, 0)
