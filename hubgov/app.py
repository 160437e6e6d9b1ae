"""Composition: ledger, clock, probe, governor, reconciler, service and alarm put together into one process."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import psutil
from hubgov_spawner import isolation
from jupyterhub.services.auth import HubOAuth
from tornado.httpserver import HTTPServer

from hubgov import processes
from hubgov.clock import Instant, SystemClock
from hubgov.config import HubGov, private_folder, site_of
from hubgov.control import observe, policies
from hubgov.control.attachments import Attachments
from hubgov.control.governor import Governor
from hubgov.control.reconcile import Reconciler
from hubgov.control.watch import Watch
from hubgov.core.clock_rate import for_clock_rate
from hubgov.core.metering import Entry
from hubgov.core.model import Allocation, PolicyText
from hubgov.core.policy import Policy
from hubgov.engines import job_sweep
from hubgov.engines.hub import HubEngine
from hubgov.engines.local import LocalEngine
from hubgov.engines.strangers import Strangers
from hubgov.errors import Unavailable
from hubgov.launching import BoxLauncher
from hubgov.ledger.leadership import StaleLeader
from hubgov.ledger.ledger import Ledger
from hubgov.policy import load, sample_policy
from hubgov.reaper.jobs import SWEEP_SECONDS, Alarm
from hubgov.service import application
from hubgov.service.base import READ_BYTES, Services
from hubgov.service.feed import Feed
from hubgov.service.limits import Limits
from hubgov.stand_down import take_over
from hubgov.telemetry.detect import choose_probe
from hubgov.telemetry.simulated import SimulatedModel

OBSERVE_SECONDS = 5.0
RENEW_SECONDS = 5.0
WATCH_SECONDS = 1.0
"""How often it is asked whether a telemetry period has passed."""
BOOKS_SECONDS = 3600.0
IDENTITY_SECONDS = 10
"""How long what the hub said of a token counts."""
LOGS_SECONDS = 600.0
SETTLE_SECONDS = 5.0
"""How long an end waits for starts and stops that are under way."""


def read_policy(text: str, version: int) -> Policy:
    """An applied policy text as values. It was checked when it was applied, so it can be read."""
    loaded = load(text, version=version)
    if loaded.policy is None:
        raise Unavailable(
            f"policy version {version} of the ledger can't be read: {loaded.errors[0]}",
            hint="use the version of hubgov that applied it, or apply a corrected policy",
        )
    return loaded.policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where the hub is and under which name it knows this service: from the environment it gives us."""

    api_url: str
    api_token: str
    service_url: str
    prefix: str
    hub_base_url: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Surroundings:
        """From the variables that JupyterHub gives its services; Unavailable names the one that is missing."""
        try:
            return cls(
                api_url=environment["JUPYTERHUB_API_URL"],
                api_token=environment["JUPYTERHUB_API_TOKEN"],
                service_url=environment["JUPYTERHUB_SERVICE_URL"],
                prefix=environment["JUPYTERHUB_SERVICE_PREFIX"],
                hub_base_url=environment.get("JUPYTERHUB_BASE_URL", "/"),
            )
        except KeyError as missing:
            raise Unavailable(
                f"{missing} is not set", hint="JupyterHub starts the service: hubgov.setup(c) in its config"
            ) from None


class Service:
    """One running service: `start`, then `run` until it is told to stop or loses the lead, then `close`."""

    def __init__(self, config: HubGov, around: Surroundings, log: logging.Logger) -> None:
        self._config, self._around, self._log = config, around, log
        self._tasks: list[asyncio.Task[Any]] = []
        self._closing = AsyncExitStack()
        self.stopping = asyncio.Event()

    async def start(self) -> None:
        """Take the lead, rebuild the picture, begin to watch, and answer requests."""
        config = self._config
        state_dir = private_folder(Path(config.state_dir))
        self.clock = _clock(config, state_dir)
        self.ledger = Ledger(config.database_url, self._read_policy)
        self._closing.callback(self.ledger.close)
        await take_over(self.ledger, self._log)
        self._site = f"{site_of(config.state_dir)}.{self.ledger.id}"
        self.probe = await choose_probe(
            config.node_name,
            simulated={"auto": None, "real": False, "simulated": True}[config.devices],
            clock=self.clock,
            model=SimulatedModel(count=config.simulated_count),
            holders=self._holders,
        )
        self._closing.push_async_callback(self.probe.close)
        self._isolation = await asyncio.to_thread(_isolation_here, config.isolation)
        text = self.ledger.policy() or self._first_policy()
        state = self.ledger.load(text, self.clock.now())
        self.governor = Governor(self.ledger, state, self.clock, self._log)
        self._check_books(None)
        self.governor.fallen = asyncio.get_running_loop().create_future()
        self.attachments = Attachments(self.clock)
        self._strangers = Strangers(self._site, self._log, jobs=state_dir / "jobs", own=self.ledger.id)
        self.engine = HubEngine(self._around.api_url, self._around.api_token, self._site, self._log)
        self._closing.push_async_callback(self.engine.close)
        self.jobs = self._local_engine(state_dir)
        if self._strangers.left():
            why = "sessions of another ledger run; nothing starts until they end"
            self._log.error("event=strangers_found error=%s", why)
            state.engine_away(self.engine.kinds | self.jobs.kinds)
        self._closing.push_async_callback(self._end_loops)
        engines = (self.engine, self.jobs)
        self.reconciler = Reconciler(
            self.governor, engines, self.attachments, self._log, self._still_held, self._strangers.left
        )
        probes = {config.node_name: self.probe}
        self.watch = Watch(self.governor, probes, self._site, self._log)
        stock = asyncio.create_task(self.reconciler.take_stock())
        await asyncio.sleep(0)  # so that it is the writer's first
        self._tasks.append(asyncio.create_task(self.governor.run()))
        await stock
        await self._observe()
        self._looking = asyncio.create_task(self.reconciler.run())
        self._tasks.append(self._looking)
        self._closing.push_async_callback(self._end_effects)
        alarm = Alarm()
        self._closing.callback(alarm.stop)
        alarm.every(SWEEP_SECONDS, "sweep", self.governor.sweep)
        alarm.every(OBSERVE_SECONDS, "observe", self._observe)
        alarm.every(WATCH_SECONDS, "watch", self.watch.tick)
        alarm.every(OBSERVE_SECONDS, "strangers", self._end_strangers)
        alarm.every(RENEW_SECONDS, "renew", self._renew)
        alarm.every(BOOKS_SECONDS, "books", self._check_books_lately)
        alarm.every(LOGS_SECONDS, "logs", self._remove_old_logs)
        alarm.start()
        self._listen()

    def _local_engine(self, state_dir: Path) -> LocalEngine:
        launcher = BoxLauncher(
            self._around.api_url, self._around.api_token, state=lambda: self.governor.state, site=self._site,
            service_url=self._address, log=self._log,
        )  # fmt: skip
        self._closing.push_async_callback(launcher.close)
        # By ledger: another one counts its workloads from one again, and may not find these jobs for its own.
        folder = private_folder(private_folder(state_dir / "jobs") / self.ledger.id)
        wake = self.governor.committed.set
        return LocalEngine(folder.resolve(), launcher, self._site, self.clock, self._log, wake=wake)

    @property
    def _address(self) -> str:
        """Where processes of this machine reach the service, without the proxy."""
        return self._around.service_url.rstrip("/") + self._around.prefix.rstrip("/")

    def _listen(self) -> None:
        address = urlparse(self._around.service_url)
        feed = Feed(self.governor.state)
        self.governor.listeners.append(feed.publish)
        services = Services(
            governor=self.governor,
            attachments=self.attachments,
            probes={self._config.node_name: self.probe},
            clock=self.clock,
            runnable=self.engine.kinds | self.jobs.kinds,
            log_folder=self.jobs.folder_of,
            hub_base_url=self._around.hub_base_url,
            service_url=self._address,
            prefix=self._around.prefix,
            state=site_of(self._config.state_dir),
            site=self._site,
            isolation=self._isolation,
            feed=feed,
            limits=Limits(self._config.changes_at_once, self._config.changes_per_second),
            watch=self.watch,
            log=self._log,
        )
        # Whoever was put into a group, or lost a right, is known so at once, not after the stock five minutes.
        HubOAuth.instance(cache_max_age=IDENTITY_SECONDS)
        app = application.make(services)
        http = HTTPServer(app, xheaders=True, max_body_size=READ_BYTES)
        self._closing.callback(http.stop)
        http.listen(address.port or self._config.service_port, address.hostname or "127.0.0.1")
        self._log.info("event=listening url=%s%s", self._around.service_url, self._around.prefix)

    def _first_policy(self) -> PolicyText:
        """The policy of a ledger that has none yet: the configured file, else a sample for this box."""
        path = self._config.policy_file
        if path:
            text, name = Path(path).read_text(encoding="utf-8"), path
        else:
            reading = self.probe.latest()
            devices = [(d.index, d.uuid, d.model, d.memory_mib) for d in reading.devices]
            text = sample_policy(
                devices,
                hostname=socket.gethostname(),
                timezone=self._config.timezone,
                simulated=self.probe.simulated,
            )
            name = "sample policy"
        change, applied = policies.first(text, name, self.clock.now(), self.clock.rate)
        self.ledger.commit([Entry(change=change)], applied.applied_at)
        return applied

    async def _observe(self) -> None:
        """Bring what the probe sees into the record, when it changed. It looks at the pace of today's policy."""
        self.probe.pace(self.governor.state.policy.telemetry_period_ms / 1000)
        reading = self.probe.latest()
        ram_mib = psutil.virtual_memory().total // 1024**2
        cpus = psutil.cpu_count() or 1
        await self.governor.do(lambda unit: observe.node_seen(unit, reading, socket.gethostname(), cpus, ram_mib))

    async def _end_strangers(self) -> None:
        """Also while nobody asks for anything: they are ended by force when their time is over."""
        self._strangers.left()

    async def _remove_old_logs(self) -> None:
        """Folders of jobs go `archive.logs_after` after their end; some at a time, beside the loop."""
        after_ms = self.governor.state.policy.archive.get("logs_after_ms")
        if after_ms is None:
            return
        live = frozenset(self.governor.state.allocations)
        jobs, seconds = Path(self._config.state_dir) / "jobs", after_ms / 1000 / self.clock.rate
        removed = await asyncio.to_thread(job_sweep.remove_old, jobs, self.ledger.id, live, seconds)
        if removed:
            self._log.info("event=logs_removed jobs=%s", removed)

    async def _renew(self) -> None:
        """Prolong the lead; who was passed over is no leader any more."""
        try:
            self.governor.renew()
        except StaleLeader as error:
            self._log.error("event=lead_lost error=%s", error.message)
            self.stopping.set()

    def _read_policy(self, text: str, version: int) -> Policy:
        return for_clock_rate(read_policy(text, version), self.clock.rate)

    def _check_books(self, ended_since: Instant | None) -> None:
        """Say it loudly when the charges on the books aren't those of the picture that decides: at the start with
        all that ever was, then with what lives or ended since."""
        found = self.ledger.drift(self.governor.state, ended_since=ended_since)
        for allocation, (books, picture) in found.items():
            self._log.error("event=books_differ allocation=%s books=%s picture=%s", allocation, books, picture)
        self._log.info("event=books_checked differ=%s", len(found))

    async def _check_books_lately(self) -> None:
        # Twice the time between two looks: no end falls between them.
        lately = round(2 * BOOKS_SECONDS * 1000) * self.clock.rate
        self._check_books(Instant(self.clock.now() - lately))

    def _holders(self) -> Mapping[str, tuple[int, ...]]:
        """Which processes hold each device: what a simulated probe shows load by. Of a notebook what it runs, since
        a server that is only looked at uses no card."""
        if not hasattr(self, "watch"):
            return {}
        found: dict[str, tuple[int, ...]] = {}
        for allocation in self.governor.state.allocations.values():
            working = self.watch.working(allocation.id)
            if allocation.main is not None:
                pids = working if working is not None else (allocation.main.pid,)
                found |= {share.uuid: pids for share in allocation.devices}
        return found

    def _still_held(self, allocation: Allocation) -> bool:
        """Whether the probe sees a living process on a card of an allocation that ought to be free.

        Only for whole cards: on a shared one the others' processes are there by right. Unknown holds nothing up:
        the processes we know of are gone already.
        """
        whole = {share.uuid for share in allocation.devices if share.milli == 1000}
        return any(
            processes.identify(process.pid) is not None
            for device in self.probe.latest().devices
            if device.uuid in whole and device.processes and not device.simulated
            for process in device.processes
        )

    async def run(self) -> None:
        """Until told to stop, or until another leader has written."""
        assert self.governor.fallen is not None
        stop: asyncio.Future[Any] = asyncio.ensure_future(self.stopping.wait())
        loops: list[asyncio.Future[Any]] = list(self._tasks)
        done, _ = await asyncio.wait([stop, self.governor.fallen, *loops], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        for task in done.intersection(loops):
            task.result()  # a loop of ours never ends by itself: let what ended it be seen

    async def close(self) -> None:
        """Stop answering, end what runs here, give the lead up: as far as the start came, in reverse. Notebook
        servers and jobs live on."""
        await self._closing.aclose()
        self._log.info("event=stopped")

    async def _end_effects(self) -> None:
        """Begin no effect any more, and let those under way arrive while the writer can still write down what
        came of them; not once another process leads."""
        self._looking.cancel()
        await asyncio.wait([self._looking])
        assert self.governor.fallen is not None
        await self.reconciler.settled(within=0 if self.governor.fallen.done() else SETTLE_SECONDS)

    async def _end_loops(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _isolation_here(wanted: str) -> str:
    """`enforced` where the spawner finds that it can make boxes, else `advisory`: tried, not read from settings."""
    try:
        mode = isolation.detect(wanted).mode
    except Unavailable:  # no box, and the setting allows nothing else: no server starts
        return "advisory"
    return "advisory" if mode is isolation.Mode.SINGLE_USER else "enforced"


def _clock(config: HubGov, state_dir: Path) -> SystemClock:
    """The clock; a fast one begins at an instant kept beside the ledger, so that restarts go on from there."""
    if config.clock_rate == 1:
        return SystemClock()
    path = state_dir / "clock.json"
    if not path.exists():
        draft = path.with_name(".clock.json")
        draft.write_text(json.dumps({"anchor": SystemClock().now()}))
        draft.replace(path)  # in one step: a kill in between must not leave an empty file
    anchor = Instant(int(json.loads(path.read_text())["anchor"]))
    return SystemClock(rate=config.clock_rate, anchor=anchor)
