"""`hubgov service`: run the service; JupyterHub starts it with the settings that `hubgov.setup(c)` passes on."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from traitlets.config import Application

from hubgov import __version__
from hubgov.app import Service, Surroundings
from hubgov.cli.lazy import VERBS
from hubgov.config import HubGov
from hubgov.errors import HubgovError


class ServiceApp(Application):
    """The service as a traitlets application: `--HubGov.NAME=VALUE`, `--help-all` lists every setting."""

    name = "hubgov-service"
    version = __version__
    description = "The hubgov service: queues, quotas and leases over a ledger. Started by JupyterHub."
    classes = [HubGov]
    examples = VERBS["service"].example

    status = 0

    def start(self) -> None:
        """Run until told to stop. `status` is 1, with one line said, when it can't."""
        config = HubGov(config=self.config)
        log = _log(config.log_level)
        try:
            asyncio.run(_serve(config, log))
        except HubgovError as error:
            print(f"hubgov service: {error.message}\nhint: {error.hint}", file=sys.stderr)
            self.status = 1
        except PermissionError as error:
            print(f"hubgov service: {error}\nhint: choose another --HubGov.state_dir", file=sys.stderr)
            self.status = 1


async def _serve(config: HubGov, log: logging.Logger) -> None:
    service = Service(config, Surroundings.from_environment(os.environ), log)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.stopping.set)
    try:
        await service.start()
        await service.run()
    finally:
        await service.close()


def _log(level: str) -> logging.Logger:
    logging.basicConfig(level=level, format="%(asctime)s %(levelname).1s %(name)s %(message)s", stream=sys.stderr)
    # Requests to the hub carry a token in a header, never in the address; still, one line each is noise.
    for chatty in ("httpx", "httpcore", "apscheduler", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return logging.getLogger("hubgov")


def run(arguments: Sequence[str]) -> int:
    """The verb's exit status."""
    app: Any = ServiceApp()
    app.initialize(list(arguments))
    app.start()
    return int(app.status)
