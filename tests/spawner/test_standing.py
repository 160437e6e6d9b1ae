"""A server that the ledger doesn't know gives its devices up; with the real service and a real process."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hubgov_spawner import HubGovSpawner, client, reports, standing
from service_under_test import PREFIX, ServiceUnderTest
from spawner.boxing import LISTEN, released
from spawner.governing import arrived, run
from spawner.standin import TOKEN, Standin, workload
from waiting import until

from hubgov import processes


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ServiceUnderTest]:
    service = ServiceUnderTest(tmp_path / "service")
    try:
        service.start()
        yield service
    finally:
        service.close()


class OfAmy(HubGovSpawner):
    """Her spawner, with stand-ins for all that the hub gives it."""

    def hub_files(self) -> list[str]:
        return []

    def hub_users(self) -> dict[int, tuple[str, str]]:
        return {1: ("amy", "2026-03-02T10:00:00")}


def a_spawner(service: ServiceUnderTest, state: Path) -> OfAmy:
    user = SimpleNamespace(id=1, name="amy", url="/user/amy/", settings={}, spawners={})
    user.groups = [SimpleNamespace(name="vision")]
    user.db = SimpleNamespace(commit=lambda: None)
    hub = SimpleNamespace(
        public_host="", api_url="http://127.0.0.1:1/hub/api", base_url="/hub/", server=SimpleNamespace()
    )
    options = {"profile": "one"}
    spawner = OfAmy(
        user=user,
        hub=hub,
        orm_spawner=SimpleNamespace(name="", server=None, state={}, user_options=options),
        api_token="secret",
        hubgov_url=f"http://127.0.0.1:{service.port}{PREFIX}".rstrip("/"),
        hubgov_token="spawner-token",
        state_dir=str(state),
        isolation="none",
        cmd=[sys.executable, "-c", LISTEN],
    )
    spawner.user_options = options
    return spawner


Lost = Callable[[ServiceUnderTest, Path], None]


def lost(service: ServiceUnderTest, before: Path) -> None:
    """The ledger is gone."""
    _remove(service)


def put_back(service: ServiceUnderTest, before: Path) -> None:
    """The ledger is from before she asked."""
    _remove(service)
    for path in before.iterdir():
        shutil.copy(path, service.state)


def _remove(service: ServiceUnderTest) -> None:
    for path in service.state.glob("hubgov.sqlite*"):
        path.unlink()


async def asked(spawner: OfAmy) -> None:
    """The hub polls, and what that asks is answered."""
    spawner._asked_at = float("-inf")
    assert await spawner.poll() is None
    assert spawner._asking
    await spawner._asking


@pytest.mark.parametrize("taken", [False, True], ids=["", "and its number is another's now"])
@pytest.mark.parametrize("loss", [lost, put_back])
@pytest.mark.parametrize("restarted", [False, True], ids=["", "hub restarted"])
def test_a_server_that_the_ledger_doesnt_know_is_ended(
    restarted: bool, loss: Lost, taken: bool, ledger: ServiceUnderTest, tmp_path: Path
) -> None:
    before = tmp_path / "before"
    before.mkdir()
    ledger.kill()
    for path in ledger.state.glob("hubgov.sqlite*"):
        shutil.copy(path, before)
    ledger.start()

    async def scenario() -> None:
        first = spawner = a_spawner(ledger, tmp_path / "spawner")
        await spawner.start()
        main = spawner.box_main
        assert main
        assert spawner.held
        await asked(spawner)
        assert await spawner.poll() is None, "all is well"
        ledger.kill()
        await asked(spawner)
        assert processes.is_alive(main), "the service is away"
        loss(ledger, before)
        ledger.start()
        if taken:
            assert ledger.ask("bo").json()["id"] == spawner.held.workload
        if restarted:
            again = a_spawner(ledger, tmp_path / "spawner")
            again.load_state(spawner.get_state())
            spawner = again
        await asked(spawner)
        assert not processes.is_alive(main)
        assert first._exit_status() <= 0  # reaped; the hub that had it is gone
        assert await spawner.poll() is not None
        spawner.run_post_stop_hook()
        spawner.clear_state()
        await released()
        if taken:
            until(lambda: ledger.show("nb-1")["state"] == "admitted", 30, "it to start once the stranger ended")
            assert ledger.show("nb-1")["attempt"] == 1, "nothing is told of the other's"

    run(scenario)


MEANT: dict[str, tuple[dict[str, Any], bool]] = {
    "as it was": ({}, True),
    "on its way out": ({"state": "stopping"}, True),
    "lost sight of": ({"state": "lost"}, True),
    "in line again": ({"state": "pending"}, False),
    "granted, not launched": ({"state": "admitted"}, False),
    "over": ({"state": "expired"}, False),
    "a later attempt": ({"attempt": 2}, False),
    "somebody else's": ({"owner": "bo"}, False),
    "another server's": ({"server": "second"}, False),
}


@pytest.mark.parametrize(("change", "known"), MEANT.values(), ids=MEANT.keys())
def test_what_the_service_says_of_a_workload(change: dict[str, Any], known: bool, service: Standin) -> None:
    async def scenario() -> None:
        service.tickets["nb-1"] = workload(state="running") | change
        held = reports.Held(workload="nb-1", attempt=1, allocation="nb-1.1")
        asks = client.Client(url=service.url, token=TOKEN)
        assert bool(await standing.unknown(asks, held, "amy", "")) is not known

    run(scenario)


@pytest.mark.parametrize(
    ("failure", "gone"), [((404, "not_found"), True), ((404, "error"), False), ((403, "not_allowed"), False)]
)
def test_only_a_clear_word_of_the_service_counts(failure: tuple[int, str], gone: bool, service: Standin) -> None:
    async def scenario() -> None:
        service.failing["GET"] = failure
        held = reports.Held(workload="nb-1", attempt=1, allocation="nb-1.1")
        asks = client.Client(url=service.url, token=TOKEN)
        assert bool(await standing.unknown(asks, held, "amy", "")) is gone

    run(scenario)


@pytest.mark.parametrize("how", ["stop", "killed"])
def test_an_end_is_not_told_of_what_is_anothers_now(how: str, ledger: ServiceUnderTest, tmp_path: Path) -> None:
    async def scenario() -> None:
        spawner = a_spawner(ledger, tmp_path / "spawner")
        await spawner.start()
        assert spawner.held
        assert spawner.box_main
        ledger.kill()
        lost(ledger, tmp_path)
        ledger.start()
        assert ledger.ask("bo").json()["id"] == spawner.held.workload
        spawner._asked_at = float("inf")
        if how == "killed":
            processes.send(spawner.box_main, signal.SIGKILL)
            assert await processes.ends_within(spawner.box_main, 10)
            assert await spawner.poll() is not None
        else:
            await spawner.stop()
        await arrived()
        until(lambda: ledger.show("nb-1")["state"] == "admitted", 30, "it to start once the stranger ended")
        assert ledger.show("nb-1")["attempt"] == 1
        spawner.clear_state()
        await released()

    run(scenario)


def test_it_is_asked_now_and_then_and_not_while_something_is_pending(
    ledger: ServiceUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        spawner = a_spawner(ledger, tmp_path / "spawner")
        await spawner.start()
        spawner._check_pending = True
        assert await spawner.poll() is None
        assert spawner._asking is None
        spawner._check_pending = False
        for _ in range(3):
            assert await spawner.poll() is None
        first = spawner._asking
        assert first is not None
        assert await spawner.poll() is None
        assert spawner._asking is first
        monkeypatch.setattr(standing, "ASK_SECONDS", 0)
        assert await spawner.poll() is None
        assert spawner._asking is not first
        await spawner.stop()
        spawner.clear_state()
        await released()

    run(scenario)
