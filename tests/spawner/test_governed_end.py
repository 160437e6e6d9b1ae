"""How a governed session ends, is found again and is shown on its way; against the scripted service."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from hubgov_spawner import GovernedMixin, HubGovSpawner
from hubgov_spawner.guarding import Guarding
from hubgov_spawner.housing import Housing
from hubgov_spawner.parting import wait_with_routes
from hubgov_spawner.standing import Standing
from jupyterhub.spawner import Spawner, SpawnException
from spawner.governing import a_spawner, arrived, has, refusal_of, run, running
from spawner.standin import TOKEN, Standin
from traitlets.config import LoggingConfigurable

# --- end ------------------------------------------------------------------------------------------------


def test_a_stop_is_announced_first_and_its_end_told_once(service: Standin) -> None:
    async def scenario() -> None:
        async with running(service) as spawner:
            await spawner.stop()
            assert not spawner.running
            assert await spawner.poll() == 0
            spawner.run_post_stop_hook()
            spawner.clear_state()
        assert service.words()[3:] == ["stopping", "ended"]
        assert service.told("ended") == [{"attempt": 1, "code": 0, "signal": None, "by_owner": True}]

    run(scenario)


@pytest.mark.parametrize("now", [False, True])
def test_a_stop_waits_for_the_documents_unless_it_is_to_be_now(now: bool, service: Standin) -> None:
    async def scenario() -> None:
        async with running(service) as spawner:
            service.saving = not now
            stopped = asyncio.create_task(spawner.stop(now=now))
            await has(lambda: service.told("stopping"), "the stop is announced")
            assert service.told("stopping") == [{"attempt": 1, "now": now}]
            if not now:
                await has(lambda: service.polls, "it is asked whether they are saved")
                assert spawner.running
                service.tell("nb-1", save_requested=None)
            async with asyncio.timeout(5):
                await stopped
            assert not spawner.running
        assert service.told("ended")[0]["by_owner"] is True

    run(scenario)


class OfAProxy:
    """Notes what it takes away, and whether the server still ran then."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, bool]] = []

    async def delete_user(self, user: Any, server_name: str = "") -> None:
        self.taken.append((server_name, user.spawners[server_name].running))


@pytest.mark.parametrize("away", [False, True])
def test_the_way_to_a_server_is_taken_away_when_it_has_saved(
    away: bool, service: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the hub's order: first the route, then the stop."""

    async def scenario() -> None:
        async with running(service) as spawner:
            user, proxy = spawner.user, OfAProxy()
            user.settings["proxy"] = proxy
            user.spawners = {"": spawner}
            assert await spawner.poll() is None
            monkeypatch.setattr(type(spawner), "pending", "stop")
            service.saving = True
            if away:
                service.failing["stopping"] = (503, "unavailable")
            taking = asyncio.create_task(proxy.delete_user(user, ""))
            await has(lambda: service.told("stopping") or away, "the stop is announced")
            if not away:
                await has(lambda: service.polls, "it is asked whether they are saved")
                assert proxy.taken == []
                service.tell("nb-1", save_requested=None)
            async with asyncio.timeout(10):
                await taking
                assert proxy.taken == [("", True)]
                await spawner.stop()
            assert not spawner.running
        assert len(service.told("stopping")) <= 1, "announced once"
        assert service.told("ended")[0]["by_owner"] is True

    run(scenario)


def test_the_way_to_a_server_that_ended_by_itself_is_taken_away_at_once(
    service: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(service) as spawner:
            user, proxy = spawner.user, OfAProxy()
            user.spawners = {"": spawner}
            for _ in range(2):
                wait_with_routes(proxy)
            await proxy.delete_user(user, "")  # nobody stops it: a check of the hub
            monkeypatch.setattr(type(spawner), "pending", "stop")
            spawner.running, spawner.status = False, 1
            await proxy.delete_user(user, "")
            assert proxy.taken == [("", True), ("", False)]
        assert service.told("stopping") == []

    run(scenario)


def test_a_stop_of_a_server_that_never_answered_is_nobodys_wish(service: Standin) -> None:
    async def scenario() -> None:
        async with running(service) as spawner:
            spawner._waiting_for_response = True
            await spawner.stop()
        assert service.words()[3:] == ["ended"]
        assert service.told("ended")[0]["by_owner"] is False

    run(scenario)


def test_a_stop_goes_on_while_the_service_is_away(service: Standin, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with running(service) as spawner:
            service.failing |= {"stopping": (503, "unavailable"), "ended": (503, "unavailable")}
            await spawner.stop()
            assert not spawner.running
            del service.failing["ended"]
        assert service.told("ended")[-1]["by_owner"] is True
        assert service.tickets["nb-1"]["state"] == "cancelled"

    with caplog.at_level(logging.DEBUG):
        run(scenario)
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(("status", "code", "signal"), [(3, 3, None), (-9, None, 9), (0, 0, None)])
def test_a_server_that_ended_by_itself_is_told_once(
    status: int, code: int | None, signal: int | None, service: Standin
) -> None:
    async def scenario() -> None:
        async with running(service) as spawner:
            spawner.running, spawner.status = False, status
            assert await spawner.poll() == status
            assert await spawner.poll() == status
            spawner.run_post_stop_hook()
        assert service.told("ended") == [{"attempt": 1, "code": code, "signal": signal, "by_owner": False}]

    run(scenario)


@pytest.mark.parametrize("granted", [False, True])
def test_a_spawn_that_a_person_takes_back_unwinds_at_once(granted: bool, service: Standin) -> None:
    async def scenario() -> None:
        service.grant = "admitted" if granted else "pending"
        spawner = a_spawner(service)
        spawner.hanging = True
        started = asyncio.create_task(spawner.start())
        await has(lambda: service.words() if granted else service.polls, "the spawn is on")
        async with asyncio.timeout(0.5):
            started.cancel()
            with pytest.raises(asyncio.CancelledError):
                await started
        assert await spawner.poll() is not None
        spawner.run_post_stop_hook()
        spawner.clear_state()
        await arrived()
        assert service.cancelled() == ["nb-1"]
        assert len(service.told("ended")) == granted

    run(scenario)


def test_a_hub_that_ends_leaves_the_ticket(service: Standin) -> None:
    async def scenario() -> None:
        service.grant = "pending"
        started = asyncio.create_task(a_spawner(service).start())
        await has(lambda: service.polls, "the spawn waits")
        started.cancel()  # no hook follows: the loop stops
        await asyncio.wait([started])
        await arrived()
        assert service.cancelled() == []

    run(scenario)


# --- a restarted hub ------------------------------------------------------------------------------------


def test_a_restarted_hub_goes_on_with_the_same_attempt(service: Standin) -> None:
    async def scenario() -> None:
        async with running(service) as spawner:
            state = spawner.get_state()
        again = a_spawner(service)
        again.load_state(state)
        again.running = True
        assert again.held == spawner.held
        assert not again.hubgov_simulated
        await again.get_url()
        await again.stop()
        await arrived()
        assert service.words()[3:] == ["stopping", "ended"]

    run(scenario)


def test_a_restarted_hub_knows_whether_the_devices_are_simulated(service: Standin) -> None:
    async def scenario() -> None:
        service.simulated = True
        async with running(service) as spawner:
            assert spawner.hubgov_simulated
            state = spawner.get_state()
            again = a_spawner(service)
            again.load_state(state)
            assert again.hubgov_simulated
            again.clear_state()
            assert not again.hubgov_simulated

    run(scenario)


def test_a_start_that_a_killed_hub_did_not_finish_is_told_by_the_next(service: Standin) -> None:
    async def scenario() -> None:
        async with running(service) as spawner:
            spawner._ready_told = False
            state = spawner.get_state()
        again = a_spawner(service)
        again.load_state(state)
        again.running = True
        await again.get_url()
        await arrived()
        assert service.words()[3:] == ["processes", "ready"]

    run(scenario)


# --- progress and names ---------------------------------------------------------------------------------


def test_progress_tells_the_present_first_and_then_changes(service: Standin) -> None:
    async def scenario() -> None:
        service.grant = "pending"
        spawner = a_spawner(service)
        started = asyncio.create_task(spawner.start())
        await has(lambda: service.polls, "the spawn waits")
        events = spawner.progress()
        first = await anext(events)
        assert first == {"progress": 5, "message": "Place 3 in queue lab. All cards are in use."}
        following = asyncio.ensure_future(anext(events))
        service.tell("nb-1", position=1, headline="<script>", latest_start="2026-03-02T10:30:00Z")
        assert await following == {
            "progress": 5,
            "message": "Place 1 in queue lab. <script> Starts by 03-02 18:30 as things stand now.",
        }
        assert [event async for event in spawner.progress() if service.tell("nb-1", state="admitted") is None][
            1:
        ] == [{"progress": 50, "message": "Granted: 1 × A100. The server is starting."}]
        await started
        await events.aclose()

    run(scenario)


def test_a_server_that_waits_is_not_renamed(service: Standin) -> None:
    async def scenario() -> None:
        service.grant = "pending"
        spawner = a_spawner(service, attach_seconds=0.1, server_name="old")
        await refusal_of(spawner)
        with pytest.raises(SpawnException, match="nb-1"):
            await spawner.rename("old", "new")
        service.tell("nb-1", state="cancelled")
        await has(lambda: service.tickets["nb-1"]["state"] == "cancelled", "cancelled")
        await spawner.rename("old", "new")

    run(scenario)


def test_a_server_that_is_deleted_leaves_the_line(service: Standin) -> None:
    async def scenario() -> None:
        service.grant = "pending"
        spawner = a_spawner(service, attach_seconds=0.1, server_name="old")
        await refusal_of(spawner)
        await spawner.delete_forever()
        assert service.cancelled() == ["nb-1"]

    run(scenario)


@pytest.mark.parametrize(
    ("name", "active", "told"), [("", False, True), ("", True, False), ("second", False, False)]
)
def test_a_user_who_is_deleted_is_said_to_have_left(name: str, active: bool, told: bool, service: Standin) -> None:
    """Not with a named server, and not while another server keeps the hub from deleting the user."""

    async def scenario() -> None:
        spawner = a_spawner(service, server_name=name)
        spawner.user.spawners = {name: spawner, "other": SimpleNamespace(active=active)}
        await spawner.delete_forever()
        assert ("POST", "/owners/amy/departed", {"reason": "", "ago_seconds": 0}) in service.asked or not told
        assert len(service.told("departed")) == told

    run(scenario)


def test_a_server_is_deleted_also_when_its_ticket_ended_meanwhile(service: Standin) -> None:
    async def scenario() -> None:
        service.grant = "pending"
        spawner = a_spawner(service, attach_seconds=0.1, server_name="old")
        await refusal_of(spawner)
        service.failing["DELETE"] = 409, "ended"
        await spawner.delete_forever()
        service.failing["DELETE"] = 403, "not_allowed"
        with pytest.raises(SpawnException):
            await spawner.delete_forever()

    run(scenario)


def test_what_stands_behind_is_told_of_a_deletion_whatever_the_service_says(service: Standin) -> None:
    deleted: list[str] = []

    async def scenario() -> None:
        service.failing["departed"] = 403, "not_allowed"
        spawner = a_spawner(service)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Spawner, "delete_forever", lambda self: deleted.append(self.user.name))
            with pytest.raises(SpawnException):
                await spawner.delete_forever()
        assert deleted == ["amy"]

    run(scenario)


STATE = {"get_state", "load_state", "clear_state"}
MEANT = {
    GovernedMixin: {"start", "stop", "poll", "progress", "rename", "delete_forever", "run_post_stop_hook"}
    | {"get_env", "get_url", "get_options_form", "run_options_from_form"}
    | STATE,
    Standing: {"poll"},
    Housing: {"delete_forever"} | STATE,
    Guarding: {"add_poll_callback", "start_polling", "stop_polling"} | STATE,
}


@pytest.mark.parametrize("mixin", MEANT, ids=lambda mixin: mixin.__name__)
def test_the_mixins_take_no_name_of_the_hubs_own(mixin: type) -> None:
    """One of these once was `_failed`, and the hub threw every spawner away."""
    generated = set(vars(type("Empty", (LoggingConfigurable,), {})))
    shared = {name for name in vars(mixin) if hasattr(Spawner, name)}
    assert shared - generated - {"__init__"} == MEANT[mixin]


def test_the_boxed_spawner_gets_the_devices_of_the_grant(service: Standin) -> None:
    assert HubGovSpawner.mro().index(GovernedMixin) < HubGovSpawner.mro().index(Spawner)
    spawner = HubGovSpawner()
    assert spawner.box_device_nodes() == ()
    assert spawner.start_timeout > spawner.attach_seconds
