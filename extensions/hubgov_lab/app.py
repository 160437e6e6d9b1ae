"""The server extension: builds the session from the environment, adds handlers, starts and ends the watch."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.serverapp import ServerApp
from traitlets import Float, Int

from hubgov.errors import Invalid
from hubgov_lab.activity import activity_of
from hubgov_lab.cullers import switch_off
from hubgov_lab.documents import Saver
from hubgov_lab.handlers import HANDLERS
from hubgov_lab.home import Memory
from hubgov_lab.kernels import running_kernels, running_terminals, session_documents
from hubgov_lab.saving import Browsers, Saving
from hubgov_lab.service import Service
from hubgov_lab.session import ServiceTime, Session
from hubgov_lab.settings import Governed, Limits, governed


class HubgovLab(ExtensionApp):
    """Relays between JupyterLab and the governing service, and saves documents at the end of a session."""

    name = "hubgov_lab"

    lab_wait = Float(
        9.0, min=0.0, max=10.0, help="Seconds that a save waits for open browsers to write unsaved changes."
    ).tag(config=True)
    max_document_mib = Int(200, min=1, help="Largest document that a save copies, in MiB.").tag(config=True)
    max_save_mib = Int(1024, min=1, help="Most that one save copies in all, in MiB.").tag(config=True)
    kept_saves = Int(5, min=1, help="How many saves stay in the home; older ones go.").tag(config=True)

    session: Session | None = None

    def initialize_handlers(self) -> None:
        """Add the handlers. An ungoverned server has them too, so that Lab can ask and hears `no`."""
        try:
            found = governed(os.environ)
        except Invalid as error:
            self.log.error("hubgov: %s; %s", error.message, error.hint)
            found = None
        if found is not None:
            assert self.serverapp is not None
            switch_off(self.serverapp, self.log)
            self.session = self._session(found)
        self.handlers.extend((path, handler, {"session": self.session}) for path, handler in HANDLERS)

    async def _start_jupyter_server_extension(self, serverapp: ServerApp) -> None:
        if self.session is not None:
            switch_off(serverapp, self.log)  # of terminals, whose extension may come after this one
            self.session.start()

    async def stop_extension(self) -> None:
        """End the watch with the server."""
        if self.session is not None:
            await self.session.stop()

    def _session(self, found: Governed) -> Session:
        assert self.serverapp is not None
        server: ServerApp = self.serverapp
        service, clock = Service(found), ServiceTime()
        limits = Limits(
            lab_wait_seconds=self.lab_wait,
            document_bytes=self.max_document_mib * 1024**2,
            total_bytes=self.max_save_mib * 1024**2,
            kept_saves=self.kept_saves,
        )
        home = Path.home()
        saving = Saving(
            service=service,
            saver=Saver(home=home, root=_root(server), limits=limits, now=clock.now),
            browsers=Browsers(),
            log=self.log,
            lab_wait_seconds=limits.lab_wait_seconds,
            session_documents=partial(session_documents, server),
            kernels=partial(running_kernels, server),
            terminals=partial(running_terminals, server),
        )
        return Session(
            service=service,
            memory=Memory.of(home, found.workload),
            saving=saving,
            log=self.log,
            time=clock,
            activity=activity_of(server, service, saving, self.log),
            deadline_file=found.deadline_file,
        )


def _root(server: ServerApp) -> Path:
    """The folder that document paths start from: the contents manager's, else the server's."""
    manager: Any = server.contents_manager
    return Path(getattr(manager, "root_dir", "") or server.root_dir)
