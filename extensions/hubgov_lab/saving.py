"""One save, from the request to a report the service took: browsers first, then copies, then the report."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from hubgov.errors import HubgovError, Invalid, Unavailable
from hubgov.wire import KernelReport, SavedDocument, SaveReport
from hubgov_lab.documents import Saver
from hubgov_lab.service import Service

_CONNECTED_SECONDS = 75.0
"""A browser is there when it asked within this time: a hidden one asks once a minute."""

_FIRST_RETRY_SECONDS = 1.0
_LAST_RETRY_SECONDS = 30.0


@dataclass(slots=True)
class Browser:
    """One tab of Lab: when it was last heard, and what it has open."""

    heard: float
    documents: tuple[str, ...] = ()


@dataclass(slots=True)
class Browsers:
    """The tabs that show this server, and what they said about the save that runs."""

    tabs: dict[str, Browser] = field(default_factory=dict)
    _save: str | None = None
    _errors: dict[str, str] = field(default_factory=dict)
    _saved: set[str] = field(default_factory=set)
    _answers: set[str] = field(default_factory=set)
    _waiting_for: set[str] = field(default_factory=set)
    _all_answered: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, tab: str) -> Browser:
        """Note that the tab is there."""
        now = time.monotonic()
        found = self.tabs.setdefault(tab, Browser(now))
        found.heard = now
        return found

    def leave(self, tab: str) -> None:
        """Forget a tab that was closed."""
        self.tabs.pop(tab, None)
        self._no_longer_waits_for(tab)

    def open_documents(self) -> set[str]:
        """What the connected tabs have open."""
        return {path for tab in self._connected() for path in self.tabs[tab].documents}

    def take(self, tab: str, save: str, outcome: dict[str, str]) -> bool:
        """A tab's answer: each path with its error, empty when saved. False when nobody waits for it."""
        if save != self._save:
            return False
        self._saved.update(path for path, error in outcome.items() if not error)
        self._errors.update({path: error for path, error in outcome.items() if error})
        self._answers.add(tab)
        self._no_longer_waits_for(tab)
        return True

    async def ask(self, save: str, seconds: float) -> tuple[bool, set[str], dict[str, str]]:
        """Whether any tab answered, the paths they named, and what they couldn't save."""
        self._save, self._errors, self._saved, self._answers = save, {}, set(), set()
        asked = set(self._connected())
        self._waiting_for = set(asked)
        self._all_answered = asyncio.Event()
        if asked:
            # A tab may not answer, for example one on a sleeping laptop: then go on with what is known.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_answered.wait(), seconds)
        self._save, self._waiting_for = None, set()
        return bool(self._answers), self._saved | set(self._errors), self._errors

    def _no_longer_waits_for(self, tab: str) -> None:
        self._waiting_for.discard(tab)
        if not self._waiting_for:
            self._all_answered.set()

    def _connected(self) -> list[str]:
        since = time.monotonic() - _CONNECTED_SECONDS
        for tab in [tab for tab, found in self.tabs.items() if found.heard < since]:
            del self.tabs[tab]
        return list(self.tabs)


@dataclass(slots=True, kw_only=True)
class Saving:
    """Carries out saves, one at a time; handing in a report may overlap with the next save."""

    service: Service
    saver: Saver
    browsers: Browsers
    log: logging.Logger
    lab_wait_seconds: float
    session_documents: Callable[[], Awaitable[tuple[str, ...]]]
    kernels: Callable[[], Awaitable[tuple[KernelReport, ...]]]
    terminals: Callable[[], int]
    first_retry_seconds: float = _FIRST_RETRY_SECONDS
    _copying: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def save(self, save: str) -> bool:
        """Make the save and hand in its report; True once the service has it."""
        try:
            self.saver.folder(save)
        except Invalid as error:
            self.log.error("hubgov: %s; nothing was saved for it", error.message)
            return False
        async with self._copying:
            report = await self.make(save)
        return await self._hand_in(report)

    @property
    def at_work(self) -> bool:
        """Whether documents are being saved because they were asked for."""
        return self._copying.locked()

    async def copy_of(self, save: str, path: str) -> SavedDocument:
        """Save one document for this server's own sake: the browsers first, then the copy; nobody waits for it."""
        async with self._copying:
            asked, _, errors = await self.browsers.ask(save, self.lab_wait_seconds)
            documents = await asyncio.to_thread(self.saver.copy_all, save, (path,), errors)
            await asyncio.to_thread(self.saver.finish, SaveReport(save=save, asked_lab=asked, documents=documents))
            return documents[0]

    async def make(self, save: str) -> SaveReport:
        """Ask the browsers, copy every document, and note what else runs."""
        kernels = await self.kernels()
        asked, named, errors = await self.browsers.ask(save, self.lab_wait_seconds)
        paths = {*named, *self.browsers.open_documents(), *await self.session_documents()}
        documents = await asyncio.to_thread(self.saver.copy_all, save, paths, errors)
        report = SaveReport(
            save=save,
            asked_lab=asked,
            documents=documents,
            kernels=kernels,
            terminals=self.terminals(),
        )
        error = await asyncio.to_thread(self.saver.finish, report)
        return replace(report, error=error) if error else report

    async def _hand_in(self, report: SaveReport) -> bool:
        retry = self.first_retry_seconds
        while True:
            try:
                await self.service.put_save(report)
            except Unavailable as error:
                self.log.warning("hubgov: the report of save %s waits: %s", report.save, error.message)
                await asyncio.sleep(retry)
                retry = min(retry * 2, _LAST_RETRY_SECONDS)
            except HubgovError as error:
                # Refused for good: asking again would bring the same answer. The copies stay in the home.
                self.log.error("hubgov: the report of save %s was refused: %s", report.save, error.message)
                return False
            else:
                return True
