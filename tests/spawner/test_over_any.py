"""A site's own spawner under the mixin: its processes are found, nothing of them is left, each end is told once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from hubgov_spawner.over_any import governed
from jupyterhub.spawner import SimpleLocalProcessSpawner, Spawner
from spawner.governing import arrived, has, run
from spawner.standin import TOKEN, Standin
from waiting import until_async

from hubgov import processes
from hubgov.wire import ProcessRef

SLEEP = [sys.executable, "-c", "import time; time.sleep(1000)"]
STUBBORN = (
    "import subprocess, time; subprocess.Popen(['setsid', '-f', 'bash', '-c', "
    "\"trap '' TERM INT HUP; while :; do sleep 1000; done\"]); time.sleep(1000)"
)


def asleep(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """A process that does nothing for long."""
    return subprocess.Popen(SLEEP, env={**os.environ, **environment})


class NoPid(Spawner):  # type: ignore[misc]
    """A spawner that keeps no pid, as those of containers and batch systems."""

    child: subprocess.Popen[bytes] | None = None

    async def start(self) -> tuple[str, int]:
        self.child = asleep(self.get_env())
        return "127.0.0.1", 9999

    async def stop(self, now: bool = False) -> None:
        if self.child is not None:
            self.child.terminate()
            self.child.wait()

    async def poll(self) -> int | None:
        return self.child.poll() if self.child is not None else 0


class Away(NoPid):
    """One whose server runs elsewhere: nothing of it is on this machine."""

    async def start(self) -> tuple[str, int]:
        return "10.0.0.7", 9999

    async def poll(self) -> int | None:
        return None


def a_spawner(service: Standin, wraps: type, home: str, cmd: list[str] | None = None) -> Any:
    user = SimpleNamespace(
        id=1,
        name="amy",
        escaped_name="amy",
        url="/user/amy/",
        settings={},
        groups=[SimpleNamespace(name="vision")],
        db=SimpleNamespace(commit=lambda: None),
    )
    hub = SimpleNamespace(public_host="", api_url="http://127.0.0.1:1/hub/api", base_url="/hub/")
    orm = SimpleNamespace(name="", server=None, state={}, user_options={})
    service.site = f"@{uuid.uuid4().hex}"
    values: dict[str, Any] = {"hubgov_url": service.url, "hubgov_token": TOKEN, "attach_seconds": 5.0}
    if issubclass(wraps, SimpleLocalProcessSpawner):
        values |= {"home_dir_template": home, "cmd": cmd or SLEEP, "args": [], "term_timeout": 1}
    return governed(wraps)(user=user, hub=hub, orm_spawner=orm, api_token="secret", **values)


def marked(spawner: Any) -> list[ProcessRef]:
    entry = f"HUBGOV_ALLOCATION_ID={spawner.hubgov_server.mark}".encode()
    return processes.with_environment(lambda given: given == entry)


@pytest.mark.parametrize("wraps", [SimpleLocalProcessSpawner, NoPid])
def test_its_process_is_found_and_on_record_before_it_counts_as_up(
    wraps: type, service: Standin, tmp_path: Any
) -> None:
    async def story() -> None:
        spawner = a_spawner(service, wraps, str(tmp_path))
        await spawner.start()
        try:
            main = spawner.hubgov_server.main
            assert processes.is_alive(main)
            assert spawner.hubgov_server.uid == os.getuid()
            assert service.words() == ["launch", "processes", "ready"]
            assert spawner.orm_spawner.state["hubgov_server"][0] == main.pid
        finally:
            await spawner.stop(now=True)
        await arrived()
        assert not processes.is_alive(main)

    run(story)


def test_what_runs_elsewhere_is_governed_without_a_process(service: Standin, tmp_path: Any) -> None:
    async def story() -> None:
        spawner = a_spawner(service, Away, str(tmp_path))
        assert await spawner.start() == "http://10.0.0.7:9999"
        assert spawner.hubgov_server is None
        assert spawner.server_processes() is None
        assert service.words() == ["launch", "ready"]

    run(story)


def test_a_stop_leaves_nothing_also_of_what_ignores_signals(service: Standin, tmp_path: Any) -> None:
    async def story() -> None:
        cmd = [sys.executable, "-c", STUBBORN]
        spawner = a_spawner(service, SimpleLocalProcessSpawner, str(tmp_path), cmd)
        await spawner.start()
        await has(lambda: len(marked(spawner)) >= 2, "the straggler")
        left = marked(spawner)
        await spawner.stop()
        assert processes.wait_gone(left, 5)
        await arrived()
        assert [end["by_owner"] for end in service.told("ended")] == [True]

    run(story)


def test_an_end_that_poll_sees_is_told_though_the_spawner_forgets_it(service: Standin, tmp_path: Any) -> None:
    async def story() -> None:
        spawner = a_spawner(service, SimpleLocalProcessSpawner, str(tmp_path))
        await spawner.start()
        processes.send(spawner.hubgov_server.main, signal.SIGKILL)

        async def ended() -> bool:
            return await spawner.poll() is not None

        await until_async(ended, 10, "the end is seen")
        assert await spawner.poll() is not None
        await arrived()
        assert [(end["signal"], end["by_owner"]) for end in service.told("ended")] == [(9, False)]

    run(story)


def test_after_a_restart_of_the_hub_a_pid_that_another_has_is_not_ours(service: Standin, tmp_path: Any) -> None:
    async def story() -> None:
        spawner = a_spawner(service, SimpleLocalProcessSpawner, str(tmp_path))
        await spawner.start()
        state = spawner.get_state()
        again = a_spawner(service, SimpleLocalProcessSpawner, str(tmp_path))
        again.load_state(state)
        assert again.hubgov_server == spawner.hubgov_server
        assert await again.poll() is None
        other = asleep({})
        try:
            recycled = state | {"pid": other.pid}
            recycled["hubgov_server"] = [other.pid, 1, *state["hubgov_server"][2:4], "no-such-mark"]
            third = a_spawner(service, SimpleLocalProcessSpawner, str(tmp_path))
            third.load_state(recycled)
            assert await third.poll() == 0
            assert other.poll() is None, "another's process is left alone"
        finally:
            other.kill()
            other.wait()
            await spawner.stop(now=True)

    run(story)


# --- a form of the site ----------------------------------------------------------------------------------------


def test_the_sites_form_stands_below_ours_and_its_options_are_kept(service: Standin, tmp_path: Any) -> None:
    async def story() -> None:
        spawner = a_spawner(service, NoPid, str(tmp_path))
        spawner.handler = None
        plain = await spawner.get_options_form()
        spawner.options_form = lambda spawner: "<input name='image'>"
        assert await spawner.get_options_form() == f"{plain}\n<input name='image'>"
        form = {"profile": ["one"], "hours": ["2"], "image": ["big"], "_xsrf": ["x"]}
        assert spawner.run_options_from_form(form) == {"profile": "one", "lease": 7200, "image": ["big"]}
        spawner.options_from_form = lambda data: {"image": data["image"][0], "profile": "theirs"}
        given = spawner.run_options_from_form(form)
        assert given == {"profile": "one", "lease": 7200, "image": "big"}
        spawner.user_options = given
        await spawner.start()
        await spawner.stop(now=True)
        await arrived()
        assert ["image" in body for body in service.told("workloads")] == [False]

    run(story)
