"""How do readings keep coming when NVIDIA's driver hangs? From a child process that can be replaced."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from hubgov.clock import Clock
from hubgov.core.devices import Health
from hubgov.telemetry.lines import MAX_LINE, Unavailable, decode
from hubgov.telemetry.probe import DeviceReading, Probe, Reading, turned_unknown, unread

log = logging.getLogger(__name__)

_MAX_LAST_WORDS = 2000
_MAX_WAITING_LINES = 64
_STEADY_READINGS = 3
_HOPELESS_FAILURES = 3
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Happening(StrEnum):
    """What befell the prober."""

    NOT_STARTED = "not_started"
    DIED = "died"
    SILENT = "silent"
    GARBAGE = "garbage"
    BABBLING = "babbling"
    NO_DRIVER = "no_driver"
    DRIVER_TROUBLE = "driver_trouble"
    UNKILLABLE = "unkillable"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class ProbeEvent:
    """Something about the prober that an administrator may want to know, in words."""

    happening: Happening
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long does the supervisor wait for what? In real seconds.

    The first line may take long: without persistence mode the driver wakes each card anew. `to_stop` is
    allowed for each of three steps: the child's input closed, SIGTERM, SIGKILL.
    """

    first_line: float = 60.0
    line: float = 30.0
    """Between readings, the period included."""
    to_stop: float = 3.0
    no_driver: float = 300.0


def exponential(failures: int) -> float:
    """Seconds to wait before the next try after so many failures in a row: 1, 2, 4 and so on up to 60."""
    return float(min(60, 2 ** min(failures, 6)))


def log_event(event: ProbeEvent) -> None:
    """Tells the log, in one line."""
    log.warning("NVML prober: %s: %s", event.happening, event.message)


class NvmlProbe(Probe):
    """Readings of this machine's NVIDIA cards, from a child that is killed and replaced when it hangs."""

    simulated = False

    def __init__(
        self,
        node: str,
        *,
        clock: Clock,
        period: float = 10.0,
        patience: Patience | None = None,
        command: Sequence[str] | None = None,
        backoff: Callable[[int], float] = exponential,
        on_event: Callable[[ProbeEvent], None] = log_event,
    ) -> None:
        self._node = node
        self._clock = clock
        self._period = period
        self._paced = False
        self._patience = patience or Patience(line=period + 20.0)
        self._command = command or (
            sys.executable, "-m", "hubgov.telemetry.nvml_child", "--period", str(period)
        )  # fmt: skip
        self._backoff = backoff
        self._on_event = on_event
        self._nothing = Reading(node, clock.now(), (), "no reading has come yet")
        self._last: Reading | None = None
        self._heard_at = 0.0
        self._trouble: ProbeEvent | None = None
        self._known: dict[str, DeviceReading] = {}
        self._decided = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._child: _Child | None = None

    async def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._supervise(), name="nvml prober")
            self._task.add_done_callback(self._supervision_ended)

    def latest(self) -> Reading:
        trouble = self._trouble.message if self._trouble else None
        if self._last is None:
            return dataclasses.replace(self._nothing, unavailable=trouble or self._nothing.unavailable)
        if time.monotonic() - self._heard_at <= self._patience.line:
            return self._last
        return turned_unknown(self._last, trouble or "the prober does not answer")

    def pace(self, seconds: float) -> None:
        if seconds == self._period:
            return
        line = self._patience.line + seconds - self._period
        self._patience = dataclasses.replace(self._patience, line=line)
        self._period, self._paced = seconds, True
        if self._child is not None:
            self._child.pace(seconds)

    async def first_word(self) -> Reading:
        """The first reading, once there is one or little hope of one: no driver, or three vain tries."""
        await self._decided.wait()
        return self.latest()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._child is not None:
            if not await self._put_down(self._child):
                self._tell(ProbeEvent(Happening.UNKILLABLE, f"process {self._child.pid} is left behind"))
            self._child.release()

    # --- one prober after another --------------------------------------------------------------------

    async def _supervise(self) -> None:
        """Runs probers, one at a time: a second one beside a first that hangs in the driver hangs as well."""
        failures = 0
        while True:
            readings, ending = await self._run_prober()
            failures = 0 if readings >= _STEADY_READINGS else failures + 1
            no_driver = ending is Happening.NO_DRIVER
            if no_driver or failures >= _HOPELESS_FAILURES:
                self._decided.set()
            await asyncio.sleep(self._patience.no_driver if no_driver else self._backoff(failures))

    async def _run_prober(self) -> tuple[int, Happening]:
        """One prober from start to end: how many readings it gave, and what ended it."""
        try:
            self._child = child = await _spawn(self._command)
        except OSError as error:
            self._tell(ProbeEvent(Happening.NOT_STARTED, f"the prober can't be started: {error}"))
            return 0, Happening.NOT_STARTED
        if self._paced:
            child.pace(self._period)
        readings, ending = await self._listen(child)
        self._tell(ending)
        if not await self._put_down(child):
            stuck = f"process {child.pid} hangs in the driver and can't be killed; no other is started"
            self._tell(ProbeEvent(Happening.UNKILLABLE, stuck))
            await child.exited.wait()
        child.release()
        self._child = None
        return readings, ending.happening

    async def _listen(self, child: _Child) -> tuple[int, ProbeEvent]:
        """Takes the child's readings until it ends, gives up, talks nonsense without end or falls silent."""
        readings, garbage = 0, 0
        due = time.monotonic() + self._patience.first_line
        while True:
            try:
                # Not wait_for: Python 3.11's forgets a cancellation that comes together with a line.
                async with asyncio.timeout(due - time.monotonic()):
                    line = await child.lines.get()
            except TimeoutError:
                return readings, ProbeEvent(Happening.SILENT, "the driver does not answer")
            if line is None:
                return readings, await self._why_it_ended(child)
            try:
                said = decode(line)
            except ValueError as error:
                garbage += 1
                if garbage == 1:
                    self._on_event(ProbeEvent(Happening.GARBAGE, f"{error}: {line[:80]!r}"))
                continue
            if isinstance(said, Unavailable):
                kind = Happening.NO_DRIVER if said.no_driver else Happening.DRIVER_TROUBLE
                return readings, ProbeEvent(kind, said.why)
            readings += 1
            due = time.monotonic() + self._patience.line
            self._take(said)

    async def _why_it_ended(self, child: _Child) -> ProbeEvent:
        if child.babbles:
            return ProbeEvent(Happening.BABBLING, "the prober prints without end")
        gone = await child.gone_within(self._patience.to_stop)
        words = bytes(child.last_words).decode(errors="replace").strip().rpartition("\n")[2]
        how = f"status {child.status}" if gone else "its output closed"
        return ProbeEvent(Happening.DIED, f"the prober ended ({how}) {words}".strip())

    async def _put_down(self, child: _Child) -> bool:
        """Ends the child, as gently as it lets us; False when it survives even SIGKILL.

        First of all it is asked: a client of the driver that was killed has frozen cards until a reboot.
        """
        for step in (child.close_input, child.terminate, child.kill):
            step()
            if await child.gone_within(self._patience.to_stop):
                return True
        return False

    def _take(self, devices: Iterable[DeviceReading]) -> None:
        whole = with_remembered(self._known, devices)
        self._known = {device.uuid: device for device in whole}
        self._last = Reading(self._node, self._clock.now(), whole, None)
        self._heard_at = time.monotonic()
        self._trouble = None
        self._decided.set()

    def _tell(self, event: ProbeEvent) -> None:
        self._trouble = event
        self._on_event(event)

    def _supervision_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the NVML prober is no longer watched", exc_info=error)
            self._tell(ProbeEvent(Happening.BROKEN, f"the prober is no longer watched: {error!r}"))


def with_remembered(
    known: Mapping[str, DeviceReading], devices: Iterable[DeviceReading]
) -> tuple[DeviceReading, ...]:
    """The devices just read, completed by what was known of those that could not say who they are, by index.

    A lost card keeps its number but has no UUID any more; after a reload of the driver it isn't listed at
    all, and the others may be numbered anew. Both stay in the picture as what they were. A card that was
    never identified is left out: nothing can be allocated on a card without identity.
    """
    fresh = {device.uuid: device for device in devices if device.uuid}
    nameless = {device.index: device for device in devices if not device.uuid}
    for uuid, before in known.items():
        if uuid in fresh:
            continue
        now = nameless.get(before.index)
        if now is None:
            fresh[uuid] = unread(before, "the driver no longer lists this card", Health.SICK)
        else:
            fresh[uuid] = unread(before, now.unknown_because or "the card does not answer", now.health)
    return tuple(sorted(fresh.values(), key=lambda device: (device.index, device.uuid)))


# --- the child as the event loop sees it -------------------------------------------------------------


class _Child(asyncio.SubprocessProtocol):
    """A running prober: its lines, bounded in length and in number, and the tail of what it complained about.

    asyncio's own streams are not used: one that has met an overlong line no longer notices the process's end.
    """

    def __init__(self) -> None:
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.exited = asyncio.Event()
        self.last_words = bytearray()
        self.babbles = False
        self._part = b""
        self._transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDERR:
            self.last_words += data
            del self.last_words[:-_MAX_LAST_WORDS]
        elif not self.babbles:
            *lines, self._part = (self._part + data).split(b"\n")
            longest = max(map(len, (*lines, self._part)))
            if longest > MAX_LINE or self.lines.qsize() + len(lines) > _MAX_WAITING_LINES:
                self.babbles, self._part = True, b""
                self._close(_STDOUT)
                self.lines.put_nowait(None)
            else:
                for line in lines:
                    self.lines.put_nowait(line)

    def pipe_connection_lost(self, fd: int, _error: Exception | None) -> None:
        if fd == _STDOUT:
            self.lines.put_nowait(None)

    def process_exited(self) -> None:
        self.exited.set()

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    @property
    def status(self) -> int | None:
        return self._transport.get_returncode()

    async def gone_within(self, seconds: float) -> bool:
        """Whether the process is gone, now or at the latest after so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.exited.wait()
        return self.exited.is_set()

    def pace(self, seconds: float) -> None:
        """Tell it how many seconds to let pass between readings."""
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(_STDIN))
        if pipe is not None and not pipe.is_closing():
            pipe.write(f"{seconds}\n".encode())

    def close_input(self) -> None:
        self._close(_STDIN)

    def terminate(self) -> None:
        # It may have ended since we last looked; that is what we want.
        with contextlib.suppress(ProcessLookupError):
            self._transport.terminate()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._transport.kill()

    def release(self) -> None:
        """Closes the pipes."""
        self._transport.close()

    def _close(self, fd: int) -> None:
        pipe = self._transport.get_pipe_transport(fd)
        if pipe is not None:
            pipe.close()


async def _spawn(command: Sequence[str]) -> _Child:
    """Starts a prober in a session of its own: Ctrl-C in a terminal is for us, and we end it in order."""
    _, child = await asyncio.get_running_loop().subprocess_exec(_Child, *command, start_new_session=True)
    return child
