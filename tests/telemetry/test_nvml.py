"""The supervisor with real children: whatever the prober does, readings go on and the loop keeps turning."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from telemetry.fake_prober import fake_prober, script
from telemetry.patience import is_gone, ticking, until

from hubgov.clock import FakeClock, Instant
from hubgov.core.devices import Health
from hubgov.telemetry.lines import encode
from hubgov.telemetry.nvml import Happening, NvmlProbe, Patience, ProbeEvent, exponential, with_remembered
from hubgov.telemetry.nvml_child import EXIT_DRIVER, EXIT_NO_LIBRARY
from hubgov.telemetry.probe import DeviceReading, Reading

SOON = Patience(first_line=30.0, line=0.5, to_stop=0.3, no_driver=0.05)
STANDSTILL = 2.0
"""Seconds: far above what a loaded machine adds, far below what a call that hangs would take."""


class Watched:
    """A probe and what it told."""

    def __init__(
        self,
        command: tuple[str, ...],
        patience: Patience = SOON,
        backoff: Callable[[int], float] = lambda failures: 0.0,
        kind: type[NvmlProbe] = NvmlProbe,
        period: float = 10.0,
    ) -> None:
        self.events: list[ProbeEvent] = []
        self.clock = FakeClock()
        self.probe = kind(
            "box",
            clock=self.clock,
            command=command,
            period=period,
            patience=patience,
            backoff=backoff,
            on_event=self.events.append,
        )

    def told(self, happening: Happening, times: int = 1) -> bool:
        return sum(event.happening is happening for event in self.events) >= times

    async def event(self, happening: Happening, times: int = 1) -> ProbeEvent:
        await until(lambda: self.told(happening, times), f"{happening} in {self.events}")
        return next(event for event in self.events if event.happening is happening)


def watching(watched: Watched, scene: Callable[[Watched], Coroutine[Any, Any, None]]) -> None:
    """Plays the scene with the probe started, and closes it."""

    async def play() -> None:
        await watched.probe.start()
        try:
            await scene(watched)
        finally:
            await watched.probe.close()

    asyncio.run(play())


def pids(file: Path) -> list[int]:
    return [int(pid) for pid in file.read_text(encoding="ascii").split()] if file.exists() else []


def is_current(reading: Reading) -> bool:
    return reading.unavailable is None and bool(reading.devices)


def is_unknown(reading: Reading) -> bool:
    return bool(reading.devices) and all(
        device.health is Health.UNKNOWN
        and device.unknown_because == reading.unavailable
        and (device.used_mib, device.utilisation_percent, device.processes) == (None, None, None)
        for device in reading.devices
    )


def test_readings_come_with_the_time_at_which_they_came() -> None:
    async def scene(watched: Watched) -> None:
        before = watched.probe.latest()
        assert (before.devices, before.unavailable) == ((), "no reading has come yet")
        first = await watched.probe.first_word()
        assert (first.node, first.at, len(first.devices)) == ("box", watched.clock.at, 2)
        assert first.devices[1].utilisation_percent == 37
        later = watched.clock.advance(5000)
        await until(lambda: watched.probe.latest().at == later, "the next reading")

    watching(Watched(fake_prober(cards=2), Patience()), scene)


def test_a_call_that_hangs_makes_devices_unknown_and_blocks_nothing(tmp_path: Path) -> None:
    """The hung child heeds no SIGTERM, as in a real driver call: it takes SIGKILL to be rid of it."""

    async def scene(watched: Watched) -> None:
        good = await watched.probe.first_word()
        first = pids(tmp_path / "pids")[0]
        later = watched.clock.advance(60_000)
        longest_answer = 0.0

        def turned_unknown() -> bool:
            nonlocal longest_answer
            asked = time.monotonic()
            reading = watched.probe.latest()
            longest_answer = max(longest_answer, time.monotonic() - asked)
            return is_unknown(reading) and reading.at == good.at

        async with ticking() as loop:
            await until(turned_unknown, "unknown devices with the time of the last good reading")
            unknown = watched.probe.latest()
            assert [d.uuid for d in unknown.devices] == [d.uuid for d in good.devices]
            await until(lambda: is_current(watched.probe.latest()), "a reading of the next prober")
        assert watched.probe.latest().at == later
        assert is_gone(first)
        assert watched.told(Happening.SILENT)
        assert longest_answer < STANDSTILL
        assert loop.ticks > 20
        assert loop.longest < STANDSTILL

    watching(Watched(fake_prober(cards=1, hang_after=1, pids=str(tmp_path / "pids"))), scene)


def test_a_child_that_never_speaks_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    mute = script(f"import os,time; print(os.getpid(), file=open({str(file)!r}, 'a')); time.sleep(600)")

    async def scene(watched: Watched) -> None:
        await until(lambda: len(pids(file)) >= 2, "a second prober")
        assert is_gone(pids(file)[0])
        assert watched.probe.latest().unavailable == "the driver does not answer"

    watching(Watched(mute, Patience(first_line=1.0, to_stop=0.3)), scene)


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    deaf = script(
        "import os,signal,time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"print(os.getpid(), file=open({str(file)!r}, 'a'))\n"
        "while True: time.sleep(600)"
    )

    async def scene(watched: Watched) -> None:
        await until(lambda: len(pids(file)) >= 2, "a second prober")
        assert is_gone(pids(file)[0])

    watching(Watched(deaf, Patience(first_line=1.0, to_stop=0.3)), scene)
    assert all(is_gone(pid) for pid in pids(file))


def test_a_child_that_dies_is_replaced_ever_more_slowly_and_its_last_words_are_told() -> None:
    failures: list[int] = []

    def backoff(failed: int) -> float:
        failures.append(failed)
        return 0.0

    async def scene(watched: Watched) -> None:
        died = await watched.event(Happening.DIED, times=3)
        assert died.message == "the prober ended (status 7) no way"
        assert failures[:2] == [1, 2]
        assert watched.probe.latest().unavailable == died.message
        assert (await watched.probe.first_word()).devices == ()

    watching(Watched(script("import sys; print('no way', file=sys.stderr); sys.exit(7)"), backoff=backoff), scene)


def test_the_wait_before_a_new_child_doubles_up_to_a_minute() -> None:
    assert [exponential(failures) for failures in (0, 1, 2, 5, 6, 1000)] == [1, 2, 4, 32, 60, 60]


def test_a_program_that_is_not_there_is_an_event() -> None:
    async def scene(watched: Watched) -> None:
        event = await watched.event(Happening.NOT_STARTED, times=2)
        assert "no-such-program" in event.message
        assert watched.probe.latest().unavailable == event.message

    watching(Watched(("/no-such-program",)), scene)


def test_garbage_between_readings_is_told_once_and_does_no_harm() -> None:
    noisy = script(
        "import sys,time\n"
        "while True:\n"
        "    print('Segmentation fault', '{\"devices\": 3}', sep='\\n')\n"
        "    print('{\"devices\": []}', flush=True)\n"
        "    time.sleep(0.01)"
    )

    async def scene(watched: Watched) -> None:
        reading = await watched.probe.first_word()
        assert (reading.devices, reading.unavailable) == ((), None)
        later = watched.clock.advance(1000)
        await until(lambda: watched.probe.latest().at == later, "another reading")
        assert [event.happening for event in watched.events] == [Happening.GARBAGE]
        assert "Segmentation fault" in watched.events[0].message

    watching(Watched(noisy, Patience()), scene)


def test_another_pace_holds_from_now_on_also_for_the_next_prober(tmp_path: Path) -> None:
    file = tmp_path / "pids"

    async def another(watched: Watched, what: str) -> None:
        at = watched.clock.advance(1000)
        await until(lambda: watched.probe.latest().at == at, what)

    async def scene(watched: Watched) -> None:
        await watched.probe.first_word()
        watched.probe.pace(0.05)
        await another(watched, "a reading at the new pace")
        await another(watched, "and another")
        os.kill(pids(file)[0], signal.SIGKILL)
        await until(lambda: len(pids(file)) == 2, "the next prober")
        await another(watched, "its first reading")
        await another(watched, "its second")
        assert len(pids(file)) == 2, "nobody fell silent"

    patience = Patience(first_line=30.0, line=630.0, to_stop=0.3)
    watching(Watched(fake_prober(period=600, cards=1, pids=str(file)), patience, period=600), scene)


def test_patience_goes_with_the_pace() -> None:
    """Cards aren't unknown for want of readings that nobody asked for."""
    probe = NvmlProbe("box", clock=FakeClock())
    assert probe._patience.line == 30
    probe.pace(3600)
    assert probe._patience.line == 3620
    probe.pace(10)
    assert probe._patience.line == 30


def test_nothing_but_garbage_is_silence() -> None:
    async def scene(watched: Watched) -> None:
        await watched.event(Happening.SILENT)
        assert watched.probe.latest().devices == ()

    garbage = script("import time\nwhile True: print('?', flush=True); time.sleep(0.05)")
    watching(Watched(garbage, Patience(first_line=1.0, to_stop=0.3)), scene)


@pytest.mark.parametrize("text", ["x", "\\n"], ids=["a line without end", "lines without end"])
def test_a_child_that_prints_without_end_is_replaced(text: str) -> None:
    async def scene(watched: Watched) -> None:
        async with ticking() as loop:
            await watched.event(Happening.BABBLING, times=2)
        assert loop.longest < STANDSTILL

    flood = script(f"import sys\nwhile True: sys.stdout.write('{text}' * 65536)")
    watching(Watched(flood), scene)


def test_without_a_driver_library_it_says_so_and_looks_again_in_its_own_time() -> None:
    def no_backoff(failures: int) -> float:
        raise AssertionError("a missing driver is not a failure to be tried again at once")

    async def scene(watched: Watched) -> None:
        reading = await watched.probe.first_word()
        assert reading.unavailable == "no NVIDIA driver library"
        await watched.event(Happening.NO_DRIVER, times=2)
        assert not watched.told(Happening.BROKEN)

    watching(Watched(fake_prober(library=False), backoff=no_backoff), scene)


def test_a_missing_driver_library_makes_no_storm_of_probers(tmp_path: Path) -> None:
    async def scene(watched: Watched) -> None:
        await watched.event(Happening.NO_DRIVER)
        async with ticking() as loop:
            await until(lambda: loop.ticks > 50, "fifty turns of the loop")

    file = tmp_path / "pids"
    watching(Watched(fake_prober(library=False, pids=str(file)), Patience(no_driver=3600.0)), scene)
    assert len(pids(file)) == 1


def test_a_driver_that_does_not_start_is_tried_again() -> None:
    async def scene(watched: Watched) -> None:
        event = await watched.event(Happening.DRIVER_TROUBLE, times=2)
        assert event.message == "the NVIDIA driver does not start: Driver Not Loaded"

    watching(Watched(fake_prober(errors={"nvmlInitWithFlags": 9})), scene)


@pytest.mark.parametrize(
    ("scenario", "status"),
    [
        ({"library": False}, EXIT_NO_LIBRARY),
        ({"errors": {"nvmlInitWithFlags": 9}}, EXIT_DRIVER),
        ({"errors": {"nvmlDeviceGetCount_v2": 999}}, EXIT_DRIVER),
    ],
    ids=["no library", "driver not loaded", "driver in trouble"],
)
def test_the_status_of_a_prober_says_why_it_gave_up(scenario: dict[str, object], status: int) -> None:
    with subprocess.Popen(fake_prober(**scenario), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert b"unavailable" in child.stdout.readline()
        assert child.wait(30) == status


class Unkillable(NvmlProbe):
    """As in front of a process in uninterruptible sleep: no signal has any effect."""

    powerless = True

    async def _put_down(self, child: Any) -> bool:
        return await child.gone_within(0.1) if self.powerless else await super()._put_down(child)


def test_no_second_prober_starts_while_the_first_cannot_be_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    mute = script(f"import os,time; print(os.getpid(), file=open({str(file)!r}, 'a')); time.sleep(600)")

    async def scene(watched: Watched) -> None:
        await watched.event(Happening.UNKILLABLE)
        async with ticking() as loop:
            await until(lambda: loop.ticks > 50, "fifty turns of the loop")
        (stuck,) = pids(file)
        assert f"process {stuck} hangs" in (watched.probe.latest().unavailable or "")
        os.kill(stuck, signal.SIGKILL)
        await until(lambda: len(pids(file)) == 2, "a second prober once the first is gone")
        await watched.event(Happening.UNKILLABLE, times=2)
        os.kill(pids(file)[1], signal.SIGKILL)
        await until(lambda: len(pids(file)) == 3, "a third")
        watched.probe.powerless = False  # type: ignore[attr-defined]

    watching(Watched(mute, Patience(first_line=1.0, to_stop=0.5), kind=Unkillable), scene)
    assert all(is_gone(pid) for pid in pids(file))


def test_closing_leaves_no_process_even_while_it_hangs(tmp_path: Path) -> None:
    file = tmp_path / "pids"

    async def scene(watched: Watched) -> None:
        await watched.probe.first_word()

    watching(Watched(fake_prober(period=0, cards=1, hang_after=1, pids=str(file)), Patience(to_stop=0.3)), scene)
    (pid,) = pids(file)
    assert is_gone(pid)


def test_closing_at_the_moment_at_which_a_line_comes_ends_too() -> None:
    """Python 3.11's asyncio.wait_for loses the cancellation then, and the supervisor would go on for ever."""

    async def scene(watched: Watched) -> None:
        await watched.probe.first_word()
        child = watched.probe._child
        assert child is not None
        child.lines.put_nowait(encode(()))
        async with asyncio.timeout(20):
            await watched.probe.close()

    watching(Watched(fake_prober(period=600, cards=1)), scene)


def test_closing_ends_a_healthy_prober_by_asking(tmp_path: Path) -> None:
    """Its input is closed and it shuts the driver down in order: no signal is sent."""
    file = tmp_path / "status"
    wrapped = script(
        "import subprocess,sys\n"
        f"status = subprocess.run({fake_prober(period=600, cards=1)!r}).returncode\n"
        f"open({str(file)!r}, 'w').write(str(status))"
    )

    async def scene(watched: Watched) -> None:
        await watched.probe.first_word()

    watching(Watched(wrapped, Patience(to_stop=20.0)), scene)
    assert file.read_text(encoding="ascii") == "0"


@pytest.mark.parametrize("hang_after", [None, pytest.param(1, marks=pytest.mark.slow)], ids=["healthy", "hung"])
def test_the_parents_death_ends_the_child(tmp_path: Path, hang_after: int | None) -> None:
    file = tmp_path / "pids"
    parent = script(
        "import asyncio\n"
        "from hubgov.clock import SystemClock\n"
        "from hubgov.telemetry.nvml import NvmlProbe\n"
        "async def main():\n"
        f"    command = {fake_prober(cards=1, hang_after=hang_after, pids=str(file))!r}\n"
        "    probe = NvmlProbe('box', clock=SystemClock(), command=command)\n"
        "    await probe.start()\n"
        "    print(len((await probe.first_word()).devices), flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())"
    )
    with subprocess.Popen(parent, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        process.kill()
    (child,) = pids(file)
    asyncio.run(until(lambda: is_gone(child), "the end of the child"))


def test_a_fault_of_the_supervisor_itself_is_not_hidden(caplog: pytest.LogCaptureFixture) -> None:
    def broken(failures: int) -> float:
        raise ZeroDivisionError("a fault in here")

    async def scene(watched: Watched) -> None:
        event = await watched.event(Happening.BROKEN)
        assert "a fault in here" in event.message
        assert watched.probe.latest().unavailable == event.message

    with caplog.at_level(logging.ERROR):
        watching(Watched(("/no-such-program",), backoff=broken), scene)
    assert "no longer watched" in caplog.text


def card(index: int, uuid: str, health: Health = Health.OK, because: str | None = None) -> DeviceReading:
    model = "NVIDIA L40S" if uuid else ""
    return DeviceReading(index, uuid, model, 46068, index, 5, 50, 1, health, because, (), simulated=False)


def test_a_lost_card_is_remembered_when_a_new_prober_cannot_name_it() -> None:
    known = {"A": card(0, "A"), "B": card(1, "B")}
    first, lost = with_remembered(known, [card(0, "A"), card(1, "", Health.SICK, "GPU is lost")])
    assert first == known["A"]
    assert (lost.uuid, lost.model, lost.health, lost.unknown_because) == (
        "B",
        "NVIDIA L40S",
        Health.SICK,
        "GPU is lost",
    )
    assert lost.used_mib is None


def test_a_card_that_is_no_longer_listed_stays_as_sick_and_comes_back() -> None:
    known = {"A": card(0, "A"), "B": card(1, "B"), "C": card(2, "C")}
    read = with_remembered(known, [card(0, "A"), card(1, "C")])
    assert [(d.uuid, d.index, d.health) for d in read] == [
        ("A", 0, Health.OK),
        ("B", 1, Health.SICK),
        ("C", 1, Health.OK),
    ]
    again = with_remembered({d.uuid: d for d in read}, known.values())
    assert again == tuple(known.values())


def test_a_card_that_was_never_named_is_left_out() -> None:
    assert with_remembered({}, [card(0, "", Health.SICK), card(1, "B")]) == (card(1, "B"),)


def test_a_sick_card_stays_sick_when_its_prober_falls_silent() -> None:
    known = {"A": card(0, "A", Health.SICK)}
    (silent,) = with_remembered(known, [card(0, "", Health.UNKNOWN, "Unknown Error")])
    assert silent.health is Health.SICK


def test_the_time_of_a_reading_is_the_clocks() -> None:
    assert NvmlProbe("box", clock=FakeClock(Instant(7))).latest().at == 7
