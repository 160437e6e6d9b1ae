"""A kernel that can't be listened to is unknown, and says so: real kernels whose channels fail."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hubgov_lab.activity import Activity
from hubgov_lab.requests import KernelWatch
from idle.deaf_kernels import DeafKernel, Kernels

from hubgov.wire import ActivityAnswer, ActivityReport, KernelActivity

LOG = logging.getLogger("test.hearing")
DEADLINE_SECONDS = 30.0
LATER = """
import threading
def junk():
    get_ipython().kernel.iopub_thread.send_multipart([b"x", b"<IDS|MSG>", b"forged", b"{}", b"{}", b"{}", b"{}"])
threading.Timer(SECONDS, junk).start()
"""


class Told:
    """The service's end of the reports."""

    def __init__(self) -> None:
        self.reports: list[ActivityReport] = []
        self.end_kernels: tuple[str, ...] = ()

    async def report_activity(self, report: ActivityReport) -> ActivityAnswer:
        self.reports.append(report)
        return ActivityAnswer(period_seconds=1, end_kernels=self.end_kernels)


class House:
    """Two kernels and the activity that is told of them."""

    def __init__(self, manager: Kernels, told: Told, activity: Activity) -> None:
        self.manager, self.told, self.activity = manager, told, activity

    def last(self, kernel: str) -> KernelActivity | None:
        found = self.told.reports[-1].kernels if self.told.reports else ()
        return next((k for k in found if k.id == kernel), None)

    async def until(self, holds: Callable[[], Any], what: str) -> None:
        end = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            assert time.monotonic() < end, f"waited for {what}: {self.told.reports[-1:]}"
            await asyncio.sleep(0.05)

    async def until_heard(self, kernel: str, heard: bool) -> None:
        await self.until(lambda: (k := self.last(kernel)) and k.heard is heard, f"{kernel} to be heard: {heard}")

    async def execute(self, kernel: str, code: str) -> None:
        client = self.manager.get_kernel(kernel).client()
        client.start_channels()
        try:
            await client.wait_for_ready(timeout=DEADLINE_SECONDS)
            client.execute(code)
            await client.get_shell_msg(timeout=DEADLINE_SECONDS)
        finally:
            client.stop_channels()


def with_kernels(folder: Path, story: Callable[[House, str, str], Awaitable[None]]) -> None:
    """The story of one kernel that may not be listened to at first, and one that may."""

    async def live() -> None:
        manager = Kernels(kernel_manager_class="idle.deaf_kernels.DeafKernel", root_dir=str(folder))
        first, second = [str(await manager.start_kernel()) for _ in range(2)]
        DeafKernel.deaf = {first}
        told, saving = Told(), type("NothingToSave", (), {"at_work": False})()
        watch = KernelWatch(manager=manager, changed=lambda: None, log=LOG)

        async def no_paths() -> dict[str, str]:
            return {}

        activity = Activity(
            service=told, saving=saving, watch=watch, log=LOG, paths=no_paths, terminals=lambda: (0, 0)
        )  # type: ignore[arg-type]
        watch.changed = activity.change
        running = asyncio.create_task(activity.run())
        try:
            await story(House(manager, told, activity), first, second)
            assert not running.done(), running
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            await manager.shutdown_all(now=True)

    asyncio.run(live())


def test_a_kernel_without_a_channel_is_told_as_not_heard_and_the_others_are_heard(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(house: House, deaf: str, open_: str) -> None:
        await house.until_heard(open_, True)
        await house.until_heard(deaf, False)
        reports = len(house.told.reports)
        await house.until(lambda: len(house.told.reports) > reports + 1, "reports to go on")
        assert (k := house.last(deaf)) is not None
        assert not k.heard
        said = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
        assert said == [f"hubgov: kernel {deaf} can't be listened to"], "said once, not twice a second"
        house.told.end_kernels = (deaf,)
        await house.until(lambda: any(r.ended for r in house.told.reports), "an answer to the order to end it")
        [end] = next(r.ended for r in house.told.reports if r.ended)
        assert (end.id, end.failed) == (deaf, "whether it works can't be heard")
        assert deaf in house.manager.list_kernel_ids(), "it lives"
        house.told.end_kernels = ()
        DeafKernel.deaf = set()
        await house.until_heard(deaf, True)

    with_kernels(tmp_path, story)


def test_a_channel_that_closes_is_made_anew_and_what_fails_in_between_ends_nothing(tmp_path: Path) -> None:
    async def story(house: House, other: str, kernel: str) -> None:
        await house.until_heard(kernel, True)
        DeafKernel.deaf.add(kernel)
        DeafKernel.channels[kernel].close()
        await house.until_heard(kernel, False)
        reports = len(house.told.reports)
        house.manager.away = True
        await house.until(lambda: len(house.activity._failing) == 2, "both loops to have met the failure")
        assert len(house.told.reports) <= reports + 1
        house.manager.away = False
        DeafKernel.deaf = set()
        await house.until_heard(kernel, True)
        await house.until_heard(other, True)

    with_kernels(tmp_path, story)


def test_a_kernel_that_says_what_cannot_be_read_is_unknown_until_it_can(tmp_path: Path) -> None:
    async def story(house: House, _: str, kernel: str) -> None:
        await house.until_heard(kernel, True)
        await house.execute(kernel, LATER.replace("SECONDS", "2"))
        await house.until_heard(kernel, False)
        await house.execute(kernel, "1")
        await house.until_heard(kernel, True)

    with_kernels(tmp_path, story)
