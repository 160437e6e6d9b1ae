"""A spawner that asks before it starts: a ticket in the governing service, a bounded wait, then the server.

The wait itself lives in the service. `start()` stays with it for `attach_seconds` at most and then ends the
spawn with a link to the waiting page; when its turn comes, the service starts the server by itself. What a
hub that was killed needs to go on is in the spawner's state: workload, attempt, allocation.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from jupyterhub.spawner import SpawnException
from traitlets import Float, Unicode, default

from hubgov import errors, processes
from hubgov.wire import Launch, ProcessRef, Workload
from hubgov_spawner import choices, options, options_form, overview, page_texts, progress, receipts, refusals
from hubgov_spawner.client import Client, ServiceError
from hubgov_spawner.leaving import Leaving
from hubgov_spawner.parting import STOPPING_SECONDS, announce, wait_with_routes
from hubgov_spawner.reports import Held, Reporter
from hubgov_spawner.standing import Standing, goes_with_user
from hubgov_spawner.waiting import AWAY_SECONDS, Applicant

START_SECONDS = 120
"""What a start may take once it is granted."""
REPORT_SECONDS = 15.0
"""How long a start waits for the service to take a report, and a stop likewise."""

NO_DEVICES = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")
"""Empty, not absent, where nothing was granted: without them a program would see every card."""
_OURS = re.compile(r"HUBGOV_\w+|\w+_VISIBLE_DEVICES")


class GovernedMixin(Leaving, Standing):
    """Put before any spawner class: `class MySpawner(GovernedMixin, SomeSpawner)`."""

    hubgov_url = Unicode(
        "http://127.0.0.1:8083/services/hubgov",
        help="Address of the governing service for spawners, with its prefix; it tells servers theirs itself.",
    ).tag(config=True)

    hubgov_token = Unicode(
        help="""Token of the hub service that spawners are for the governing service.

        Its role has the scope custom:hubgov:spawn; it is never handed to a server.
        """,
    ).tag(config=True)

    attach_seconds = Float(
        60.0,
        min=0.0,
        help="""Longest wait of a spawn in the hub; after that the ticket waits in the service alone.""",
    ).tag(config=True)

    waiting_url = Unicode(
        "/services/hubgov/wait",
        help="Where people wait: the workload's id is appended to it.",
    ).tag(config=True)

    ticket: Workload | None = None
    """The workload as the service told it last, while a spawn is on."""
    hubgov_simulated = False
    """Whether the devices of the server, or those that it waits for, are made up; for the hub's pages."""

    _launch: Launch | None = None
    _ready_told = False
    _parted = False
    _withdrawn = False  # a person took back the spawn; not set when the hub ends or time is over
    _in_start = False
    _in_stop = False
    _lang = "en"
    _zone = "UTC"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._changed = asyncio.Event()
        log: Any = self.log
        getattr(log, "logger", log).addFilter(refusals.EVERYDAY)
        self._tell_departures_later()

    @default("start_timeout")
    def _default_start_timeout(self) -> int:
        return math.ceil(self.attach_seconds) + START_SECONDS

    @default("options_form")
    def _default_options_form(self) -> Callable[[Any], Awaitable[str]]:
        return options_form.options_form

    @default("options_from_form")
    def _default_options_from_form(self) -> Callable[[Any], dict[str, Any]]:
        return options_form.options_from_form

    @default("apply_user_options")
    def _default_apply_user_options(self) -> Callable[[Any, Any], None]:
        return _left_to_start

    # --- the form of a site ---

    @property
    def hubgov_site_form(self) -> bool:
        """Whether the site has a form of its own: its fields are then shown below, and its options kept."""
        return self.options_form is not options_form.options_form and bool(self.options_form)

    async def get_options_form(self) -> str:
        """hubgov's form, and the site's own below it."""
        ours = await options_form.options_form(self)
        if not self.hubgov_site_form:
            return ours
        return f"{ours}\n{await super().get_options_form() or ''}"

    def run_options_from_form(self, form_data: dict[str, Any]) -> dict[str, Any]:
        """The options of both forms; where both give one, hubgov's counts."""
        if not self.hubgov_site_form:
            given: dict[str, Any] = super().run_options_from_form(form_data)
            return given
        ours, theirs = options.parted(form_data)
        plain = self.options_from_form is options_form.options_from_form  # the site says nothing about its fields
        of_site = theirs if plain or not theirs else super().run_options_from_form(theirs)
        return {**(of_site or {}), **options_form.options_from_form(ours, self)}

    # --- start ---

    async def start(self) -> str:
        """Take a place in line, wait for a while, start what was granted; SpawnException with why if not."""
        self._in_start, self._withdrawn, self._end_told, self._ready_told = True, False, False, False
        self._parted = False
        self._lang = page_texts.language(self.handler)
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(self.start_timeout - 1.0, 0.1)) as limit:
                return await self._governed_start(began)
        except asyncio.CancelledError:
            self._withdrawn = True
            raise
        except TimeoutError as error:
            if not limit.expired():
                self._tell_end(None)
                raise
            raise self._hub_told(refusals.too_slow(self.start_timeout, self._lang)) from error
        except errors.Invalid as error:
            raise self._hub_told(refusals.invalid(error.message, error.hint, self._lang)) from error
        except ServiceError as error:
            raise self._hub_told(refusals.of_service(error, self._lang)) from error
        except SpawnException as error:
            raise self._hub_told(error) from error.__cause__
        except Exception:
            self._tell_end(None)
            raise
        finally:
            self._in_start = False
            self._notify()

    def _hub_told(self, error: SpawnException) -> SpawnException:
        """The exception for the hub, with what has to follow from it done."""
        self._tell_end(None)
        if error.reason in ("policy", "invalid", "over"):
            # What was refused isn't what the next start without options of its own should ask for.
            self.orm_spawner.user_options = {}
        error = refusals.shown(error)
        if error.reason == "queue":
            choices.forget(self.user.name, self.name)
        else:
            told = error.reason in ("policy", "invalid")  # the rest passes, and is no matter of what was chosen
            choices.refuse(self.user.name, self.name, error.jupyterhub_html_message if told else "", self._lang)
        return error

    async def _governed_start(self, began: float) -> str:
        client = self.hubgov_client(self._lang)
        options.check_user(self.user.name)
        await self.tell_departures()
        given = self.user_options or {}
        wanted = options.checked(options.parted(given)[0] if self.hubgov_site_form else given)
        # Room for the start itself, also where a site made start_timeout shorter.
        room = max(self.start_timeout - min(START_SECONDS, self.start_timeout / 2), 0.0)
        workload = await self._applicant(client).granted(wanted, began + min(self.attach_seconds, room))
        self._show(workload)
        choices.forget(self.user.name, self.name)
        if "resumes" in wanted:  # once: the next start of this server resumes nothing
            rest = {key: value for key, value in {**given, **wanted}.items() if key != "resumes"}
            self.orm_spawner.user_options = rest
        try:
            self._launch = await client.launch(workload.id, workload.attempt, within=REPORT_SECONDS)
        except asyncio.CancelledError:  # it may have been taken all the same
            self.held = Held(workload=workload.id, attempt=workload.attempt, allocation="")
            raise
        self.held = Held(workload=workload.id, attempt=self._launch.attempt, allocation=self._launch.allocation)
        self._show(self._launch.workload)
        found = await super().start()
        wait_with_routes(self.user.settings.get("proxy"))
        try:
            url = found if isinstance(found, str) else f"http://{found[0]}:{found[1]}"
            await client.ready(self.held.workload, self.held.attempt, url, within=REPORT_SECONDS)
        except ServiceError:
            await super().stop(now=True)  # nobody would end it when its time is over
            raise
        self._ready_told = True
        return url

    def _applicant(self, client: Client) -> Applicant:
        return Applicant(
            client=client,
            user=self.user.name,
            groups=[group.name for group in self.user.groups],
            server=self.name,
            waiting_url=self.waiting_url,
            show=self._show,
            zone_known=self._set_zone,
        )

    # --- what the wrapped spawner asks for ---

    def get_env(self) -> dict[str, str]:
        """The environment with what was granted: a site's `environment` never beats it."""
        given: dict[str, str] = super().get_env()
        env = {name: value for name, value in given.items() if not _OURS.fullmatch(name)}
        env |= dict.fromkeys(NO_DEVICES, "")
        if self._launch is not None:
            env |= self._launch.environment
            if env.get("HOME"):  # a box has a home of its own, and says so itself
                env["HUBGOV_DEADLINE_FILE"] = os.path.join(env["HOME"], ".hubgov", "deadline")
        return env

    async def report_processes(self, main: ProcessRef, init: ProcessRef | None) -> None:
        """Tell which processes the server is; for the wrapped spawner, before the server can be used."""
        if self.held is None:
            return
        client = self.hubgov_client(self._lang)
        try:
            await client.processes(self.held.workload, self.held.attempt, main, init, within=REPORT_SECONDS)
        except ServiceError as error:
            raise refusals.of_service(error, self._lang) from error

    def server_processes(self) -> tuple[ProcessRef, ProcessRef | None] | None:
        """The server's processes as far as the wrapped spawner knows any: reported again after a restart."""
        return None

    def exit_of(self, status: int | None) -> tuple[int | None, int | None]:
        """(exit code, signal) of a status that `poll` gave."""
        if status is None:
            return None, None
        return (None, -status) if status < 0 else (status, None)

    # --- poll, stop, and what the hub calls when all is over ---

    async def poll(self) -> int | None:
        """None while the server runs or a spawn is on; an end is reported as soon as it is seen."""
        wait_with_routes(self.user.settings.get("proxy"))
        if self._in_start:
            return None
        held, told = self.held, self._end_told  # some spawners clear their state when they see the end
        status: int | None = await super().poll()
        if status is not None and not self._withdrawn and not self._in_stop:  # else that has to arrive first
            self.held, self._end_told = held, told
            self._tell_end(status)
        return status

    async def part(self) -> None:
        """Of a stop that somebody wished: announced, and saved, while browsers still reach the server."""
        try:
            if self.pending == "stop" and await super().poll() is None:
                await self._announce(now=False)
        except Exception:
            self.log.exception("Server of %s: its stop was not announced", self.user.name)

    async def _announce(self, *, now: bool) -> None:
        """Once for each stop."""
        if self.held is not None and not self._parted:
            self._parted = True
            refuse = self._reporter().refuse_anothers
            client = self.hubgov_client(self._lang)
            await announce(client, self.held, now=now, refuse=refuse, log=self.log)

    async def stop(self, now: bool = False) -> None:
        """Tell that the hub stops the server, stop it, tell that it ended: the service may be away for all that."""
        held = self.held
        # The hub stops a server that doesn't answer after its start; that is nobody's wish.
        wished = not getattr(self, "_waiting_for_response", False)
        if wished:
            await self._announce(now=now)
        known, self._in_stop = self._end_told, True
        try:
            await super().stop(now=now)
        finally:
            self._in_stop = False
        if held is not None and not known:
            self.held, self._end_told = held, True
            code, signal = self.exit_of(await super().poll())
            told = self._reporter().ended(held, code, signal, by_owner=wished)
            await asyncio.wait([told], timeout=STOPPING_SECONDS)  # goes on in the background if it takes longer

    def run_post_stop_hook(self) -> Any:
        """After every end, also of a spawn that failed or was taken back: what isn't told yet is told now."""
        if self._withdrawn and self.ticket is not None:
            self._end_told = True
            self._reporter().withdrawn(self.ticket.id, self.held)
        elif self._is_over():
            self._tell_end(None)
        self._withdrawn = False
        return super().run_post_stop_hook()

    def _is_over(self) -> bool:
        """Whether nothing of the server is left, as far as the wrapped spawner knows."""
        found = self.server_processes()
        return found is None or not processes.is_alive(found[0])

    def _tell_end(self, status: int | None) -> None:
        """Report the end once, in the background: nobody waits for it."""
        if self.held is not None and not self._end_told:
            self._end_told = True
            self._reporter().ended(self.held, *self.exit_of(status), by_owner=False)

    # --- state ---

    def get_state(self) -> dict[str, Any]:
        """What a restarted hub needs to go on with the session."""
        state: dict[str, Any] = super().get_state()
        if self.held is not None:
            held = self.held
            state["hubgov"] = [held.workload, held.attempt, held.allocation, self._ready_told]
            state["hubgov_simulated"] = self.hubgov_simulated
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up what get_state gave."""
        super().load_state(state)
        if state.get("hubgov"):
            workload, attempt, allocation, self._ready_told = state["hubgov"]
            self.held = Held(workload=workload, attempt=attempt, allocation=allocation)
            self.hubgov_simulated = bool(state.get("hubgov_simulated"))

    def clear_state(self) -> None:
        """Forget the session that ended."""
        super().clear_state()
        self.held = self.ticket = self._launch = None
        self._ready_told = self._end_told = self._parted = self.hubgov_simulated = False

    async def get_url(self) -> str:
        """Where the server is. The hub asks after a restart: a start that it didn't see the end of is told now."""
        url: str = await super().get_url()
        if self.held is not None and not self._ready_told and await super().poll() is None:
            self._ready_told = True
            self._reporter().started(self.held, self.server_processes(), url)
        return url

    # --- pages ---

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Where the spawn stands, then again whenever that changes; a page that comes back gets it at once."""
        shown = None
        while True:
            changed = self._changed
            event = progress.event(self.ticket, self._lang, self._zone)
            if event != shown:
                shown = event
                yield event
            if not self._in_start:
                return
            await changed.wait()

    async def hubgov_receipt(self, lang: str = "en") -> receipts.View | None:
        """What the last session of this server left, for the page of a stopped server; None if it can't be told."""
        return await receipts.view(
            self.hubgov_client(lang), self.user.name, self.name, self.orm_spawner.user_options or {}, self.log
        )

    async def hubgov_overview(self, lang: str = "en") -> Mapping[str, overview.Line]:
        """What each server of this user holds or waits for, for the hub's home page."""
        return await overview.lines(self.hubgov_client(lang), self.user.name, self.waiting_url, self.log)

    # --- named servers ---

    async def rename(self, old_name: str, new_name: str) -> None:
        """Refuse while a ticket waits under the old name: the service would start a server of that name."""
        ticket = await self._live_ticket(old_name)
        if ticket is not None:
            raise refusals.open_ticket(ticket.id, self._lang)
        await super().rename(old_name, new_name)

    async def delete_forever(self) -> None:
        """Cancel a ticket that still waits: a server that was deleted must not start. With the user's first server
        goes the user, and all that he has in the service, unless another server of his keeps the hub from that.

        The wrapped spawner is told in any case: the hub deletes the user whatever comes of this.
        """
        try:
            if goes_with_user(self):
                await self.departed()
            else:
                await self._cancel_ticket()
        finally:
            removed = super().delete_forever()
            if removed is not None:
                await removed

    async def _cancel_ticket(self) -> None:
        ticket = await self._live_ticket(self.name)
        if ticket is not None:
            client = self.hubgov_client(self._lang)
            try:
                await client.cancel(ticket.id, "server deleted", now=True, within=REPORT_SECONDS)
            except ServiceError as error:
                if error.status not in (404, 409):  # over meanwhile: nothing of it can start any more
                    raise refusals.of_service(error, self._lang) from error

    async def _live_ticket(self, server: str) -> Workload | None:
        """The ticket of this server that isn't over; SpawnException when the service doesn't answer."""
        client = self.hubgov_client(self._lang)
        try:
            found = await client.live_tickets(self.user.name, within=AWAY_SECONDS)
        except ServiceError as error:
            raise refusals.of_service(error, self._lang) from error
        return next((t for t in found if t.kind == "notebook" and (t.server or "") == server), None)

    # --- the service ---

    def hubgov_client(self, lang: str) -> Client:
        """The service, speaking this language."""
        return Client(url=self.hubgov_url, token=self.hubgov_token, lang=lang)

    def _reporter(self) -> Reporter:
        return Reporter(client=self.hubgov_client("en"), user=self.user.name, server=self.name, log=self.log)

    def _show(self, ticket: Workload) -> None:
        self.ticket, self.hubgov_simulated = ticket, ticket.simulated
        self._notify()

    def _set_zone(self, zone: str) -> None:
        self._zone = zone

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _left_to_start(spawner: Any, user_options: Any) -> None:
    """Nothing: start() reads the options, and says there what is wrong with them."""
