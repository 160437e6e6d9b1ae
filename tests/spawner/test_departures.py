"""A departure reaches the service, however long it is away, before anything starts for the next of the name."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any

import pytest
from hubgov_spawner import departures
from hubgov_spawner.departures import FILE, Departures
from jupyterhub.spawner import SpawnException
from spawner.governing import Governed, a_spawner, has, refusal_of, run
from spawner.standin import Standin
from spawner.test_owners import Hub

LOG = logging.getLogger("hubgov.test")


@pytest.fixture
def noted(tmp_path: Path) -> Departures:
    return Departures(state_dir=str(tmp_path), log=LOG)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr("hubgov_spawner.leaving.TELL_SECONDS", 0.2)
    monkeypatch.setattr("hubgov_spawner.leaving.AWAY_SECONDS", 0.2)


def a_home(service: Standin, folder: Path, **change: Any) -> Governed:
    """A spawner with a state folder, whose user is deleted with it."""
    spawner = a_spawner(service, **change)
    spawner.state_dir = str(folder)
    return spawner


def told(service: Standin) -> list[str]:
    return [path for method, path, _ in service.asked if path.endswith("/departed")]


# --- the file ---


def test_what_is_noted_stays_until_it_is_taken(noted: Departures) -> None:
    assert not noted.any()
    noted.note("amy", 100.0)
    noted.note("bo", 200.0)
    noted.note("amy", 300.0)
    again = Departures(state_dir=noted.state_dir, log=LOG)
    assert again.untold() == {"amy": 300.0, "bo": 200.0}
    again.taken("amy", 100.0)
    assert noted.untold() == {"amy": 300.0, "bo": 200.0}, "a later one of the name isn't told with the earlier"
    again.taken("amy", 300.0)
    again.taken("bo", 200.0)
    assert noted.untold() == {}
    file = Path(noted.state_dir) / "homes" / FILE
    assert (file.stat().st_size, stat.S_IMODE(file.stat().st_mode)) == (0, 0o600)


def test_a_line_that_a_crash_cut_off_spoils_no_other(noted: Departures) -> None:
    noted.note("amy", 100.0)
    file = Path(noted.state_dir) / "homes" / FILE
    with file.open("ab") as open_file:
        open_file.write(b'{"name": "cut')
    noted.note("bo", 200.0)
    assert noted.untold() == {"amy": 100.0, "bo": 200.0}


def test_no_link_is_followed(noted: Departures, tmp_path: Path) -> None:
    (tmp_path / "homes").mkdir()
    (tmp_path / "homes" / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=FILE):
        noted.note("amy")
    assert not (tmp_path / "elsewhere").exists()


# --- the spawner ---


def test_one_that_the_service_did_not_hear_is_told_when_it_is_back(
    service: Standin, noted: Departures, tmp_path: Path
) -> None:
    async def scenario() -> None:
        service.failing["departed"] = 503, "unavailable"
        await a_home(service, tmp_path).delete_forever()
        assert set(noted.untold()) == {"amy"}
        del service.failing["departed"]
        await has(lambda: not noted.any(), "told in the background")
        assert service.asked[-1] == ("POST", "/owners/amy/departed", {"reason": "", "ago_seconds": 0})

    run(scenario)


def test_a_hub_that_comes_up_tells_what_the_one_before_could_not(
    service: Standin, noted: Departures, tmp_path: Path
) -> None:
    noted.note("bo")

    class Housed(Governed):
        state_dir = str(tmp_path)

    async def scenario() -> None:
        made = a_spawner(service)
        Housed(user=made.user, hub=made.hub, orm_spawner=made.orm_spawner, hubgov_url=made.hubgov_url,
               hubgov_token=made.hubgov_token)  # fmt: skip
        await has(lambda: not noted.any(), "told by the hub that came up")
        assert told(service) == ["/owners/bo/departed"]

    run(scenario)


def test_nothing_starts_for_the_next_of_a_name_before_it_is_told(
    service: Standin, noted: Departures, tmp_path: Path
) -> None:
    async def scenario() -> None:
        noted.note("amy")
        service.failing["departed"] = 503, "unavailable"
        spawner = a_home(service, tmp_path)
        refused = await refusal_of(spawner)
        assert (refused.reason, refused.status_code) == ("governor", 503)
        assert not service.tickets, "no ticket was asked for"
        del service.failing["departed"]
        await spawner.start()
        assert not noted.any()
        paths = [path for _, path, _ in service.asked]
        assert paths.index("/owners/amy/departed") < paths.index("/workloads")

    run(scenario)


def test_another_ones_departure_holds_nobody_up(service: Standin, noted: Departures, tmp_path: Path) -> None:
    async def scenario() -> None:
        noted.note("bo")
        service.failing["departed"] = 503, "unavailable"
        await a_home(service, tmp_path).start()
        assert set(noted.untold()) == {"bo"}

    run(scenario)


def test_the_ticket_is_no_hindrance(service: Standin, noted: Departures, tmp_path: Path) -> None:
    """The service says no to everything else: the departure is told all the same."""

    async def scenario() -> None:
        service.failing["GET"] = service.failing["DELETE"] = 403, "not_allowed"
        await a_home(service, tmp_path).delete_forever()
        assert told(service) == ["/owners/amy/departed"]
        assert not noted.any()

    run(scenario)


def test_with_nowhere_to_note_it_the_log_says_what_is_to_be_done(
    service: Standin, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        service.failing["departed"] = 503, "unavailable"
        with pytest.raises(SpawnException):
            await a_spawner(service).delete_forever()

    run(scenario)
    [loud] = [r for r in caplog.records if r.levelno == logging.CRITICAL]
    assert "POST /owners/amy/departed" in loud.getMessage()


def test_one_who_was_taken_out_of_the_database_is_told_of_by_his_successor(
    service: Standin, noted: Departures, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async def left_at() -> float:
            return 1000.0

        spawner = a_home(service, tmp_path)
        spawner.predecessor_left_at = left_at
        await spawner.start()
        [(_, _, body)] = [call for call in service.asked if call[1] == "/owners/amy/departed"]
        assert body["ago_seconds"] > 1_000_000_000

    run(scenario)


# --- who follows whom, by the register ---


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path)


def follows(hub: Hub, name: str) -> bool:
    return hub.register.follows_another(hub.users[name], hub.living())


@pytest.mark.parametrize("through_hub", [True, False])
def test_the_next_of_a_name_follows_another_until_he_is_entered(hub: Hub, through_hub: bool) -> None:
    hub.make("bo", "amy")
    assert not follows(hub, "amy"), "the first of a name follows nobody"
    for name in ("bo", "amy"):
        hub.starts(name)
    assert not follows(hub, "amy")
    hub.delete("amy", told=through_hub)
    hub.make("amy")
    assert follows(hub, "amy")
    hub.starts("amy")
    assert not follows(hub, "amy")


def test_who_comes_back_after_a_lost_database_follows_nobody(hub: Hub) -> None:
    hub.make("bo", "amy")
    for name in ("bo", "amy"):
        hub.starts(name)
    hub.lose()
    hub.make("amy")
    assert not follows(hub, "amy")
