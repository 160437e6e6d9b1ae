"""How a governed spawner starts: ticket, wait, grant, refusal, options, environment; against the scripted service.

The end of a session is in test_governed_end.py, the real hub in test_governed_hub.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from spawner.governing import a_spawner, arrived, has, refusal_of, run
from spawner.standin import TOKEN, Standin, decision, options, profile

from hubgov import processes

# --- start ----------------------------------------------------------------------------------------------


def test_what_is_granted_at_once_starts(service: Standin) -> None:
    async def scenario() -> None:
        spawner = a_spawner(service, {"profile": "one", "lease": "2h"})
        assert await spawner.start() == "http://127.0.0.1:9999"
        assert service.words() == ["launch", "processes", "ready"]
        assert service.told("workloads") == [
            {
                "kind": "notebook",
                "user": "amy",
                "groups": ["vision"],
                "server": "",
                "profile": "one",
                "queue": "lab",
                "gpus": 1,
                "flavor": "A100",
                "memory": "40960MiB",
                "cpus": 4,
                "project": "seg",
                "lease": 7200,
            }
        ]
        assert service.told("processes")[0]["main"] == {"pid": 1, "start_ticks": 2, "boot_id": "boot"}
        assert service.told("ready") == [{"attempt": 1, "url": "http://127.0.0.1:9999"}]

    run(scenario)


def test_what_is_granted_after_a_while_starts(service: Standin) -> None:
    async def scenario() -> None:
        service.grant = "pending"
        spawner = a_spawner(service)
        started = asyncio.create_task(spawner.start())
        await has(lambda: service.polls, "the spawn waits")
        assert await spawner.poll() is None
        service.tell("nb-1", state="admitted")
        assert await started == "http://127.0.0.1:9999"

    run(scenario)


def test_a_wait_that_is_too_long_leads_to_the_waiting_page(service: Standin) -> None:
    async def scenario() -> None:
        service.grant = "pending"
        spawner = a_spawner(service, {"profile": "one"}, attach_seconds=0.2)
        error = await refusal_of(spawner)
        assert (error.reason, error.status_code) == ("queue", 503)
        assert "All cards are in use." in error.message
        assert 'class="hubgov-waiting" href="/services/hubgov/wait/nb-1"' in error.jupyterhub_html_message
        assert service.cancelled() == []
        assert service.words() == []
        assert spawner.orm_spawner.user_options == {"profile": "one"}
        service.tell("nb-1", state="admitted")
        assert await spawner.start()
        assert len(service.tickets) == 1

    run(scenario)


def test_a_queue_may_allow_a_shorter_wait_than_the_hub(service: Standin) -> None:
    async def scenario() -> None:
        service.grant, service.attach_seconds = "pending", 1
        async with asyncio.timeout(4):
            error = await refusal_of(a_spawner(service, attach_seconds=60.0))
        assert error.reason == "queue"

    run(scenario)


def test_when_too_many_wait_attached_the_spawn_leaves_at_once(service: Standin) -> None:
    async def scenario() -> None:
        service.grant, service.full = "pending", True
        async with asyncio.timeout(3):
            error = await refusal_of(a_spawner(service, attach_seconds=60.0))
        assert error.reason == "queue"

    run(scenario)


@pytest.mark.parametrize(("code", "status"), [("above_maximum", 422), ("not_allowed", 403)])
def test_a_refusal_shows_rule_and_next_steps(code: str, status: int, service: Standin) -> None:
    async def scenario() -> None:
        details = decision("refused", code=code, headline="<b>No</b>", next_steps=["Ask for less"])
        service.refusal = 422, {"error": {"code": code, "message": "m", "details": details, "hint": ""}}
        spawner = a_spawner(service, {"profile": "one"})
        error = await refusal_of(spawner)
        assert (error.reason, error.status_code) == ("policy", status)
        assert error.message == "<b>No</b> You can: Ask for less."
        assert "&lt;b&gt;No" in error.jupyterhub_html_message
        assert "<li>Ask for less</li>" in error.jupyterhub_html_message
        assert spawner.orm_spawner.user_options == {}

    run(scenario)


def test_with_the_service_away_nothing_is_started(service: Standin) -> None:
    async def scenario() -> None:
        spawner = a_spawner(service, hubgov_url="http://127.0.0.1:1/services/hubgov")
        error = await refusal_of(spawner)
        assert (error.reason, error.status_code) == ("governor", 503)
        assert not spawner.running
        assert TOKEN not in str(error)

    run(scenario)


def test_whoever_took_the_services_port_gets_no_token(service: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "impostor_at", lambda url, from_outside: 61002)

    async def scenario() -> None:
        spawner = a_spawner(service)
        error = await refusal_of(spawner)
        assert (error.reason, error.status_code) == ("governor", 503)
        assert service.asked == []
        assert not spawner.running

    run(scenario)


@pytest.mark.parametrize("word", ["launch", "processes", "ready"])
def test_a_report_that_is_turned_down_ends_the_start(word: str, service: Standin) -> None:
    async def scenario() -> None:
        service.failing[word] = 409, "conflict"
        spawner = a_spawner(service)
        error = await refusal_of(spawner)
        assert (error.reason, error.status_code) == ("over", 409)
        assert not spawner.running
        await arrived()
        assert len(service.told("ended")) == (0 if word == "launch" else 1)

    run(scenario)


@pytest.mark.parametrize("status", [404, 409])
def test_what_the_service_says_is_not_there_or_over_is_said_once(status: int, service: Standin) -> None:
    async def scenario() -> None:
        error = {"code": "x", "message": "no session nb-9 to resume", "details": {}, "hint": "start a new one"}
        service.refusal = status, {"error": error}
        spawner = a_spawner(service, {"profile": "one", "resumes": "nb-9"})
        refused = await refusal_of(spawner)
        assert (refused.message, refused.status_code) == ("no session nb-9 to resume; start a new one", status)
        assert spawner.orm_spawner.user_options == {}

    run(scenario)


def test_a_ticket_that_is_cancelled_meanwhile_ends_the_spawn(service: Standin) -> None:
    async def scenario() -> None:
        service.grant = "pending"
        spawner = a_spawner(service)
        started = asyncio.create_task(refusal_of(spawner))
        await has(lambda: service.polls, "the spawn waits")
        service.tell("nb-1", state="cancelled", headline="Ended: its owner stopped it.")
        error = await started
        assert error.reason == "over"
        assert "its owner stopped it" in error.message

    run(scenario)


def test_a_session_that_still_stops_is_waited_for(service: Standin) -> None:
    async def scenario() -> None:
        spawner = a_spawner(service)
        await spawner.start()
        service.tell("nb-1", state="stopping")
        details = {"workload": "nb-1"}
        error = {"code": "still_stopping", "message": "m", "details": details, "hint": ""}
        service.refusal = 409, {"error": error}
        again = asyncio.create_task(a_spawner(service).start())
        await has(lambda: service.polls, "the spawn waits")
        service.refusal = None
        service.tell("nb-1", state="expired")
        assert await again
        assert service.tickets["nb-2"]["state"] == "running"

    run(scenario)


@pytest.mark.parametrize("state", ["lost", "quarantined"])
def test_a_start_that_was_given_up_stays_in_line(state: str, service: Standin) -> None:
    async def scenario() -> None:
        service.grant = state
        started = asyncio.create_task(a_spawner(service).start())
        await has(lambda: service.polls, "the spawn waits")
        service.tell("nb-1", state="pending")
        polls = service.polls
        await has(lambda: service.polls > polls, "it waits in line again")
        service.tell("nb-1", state="admitted")
        assert await started == "http://127.0.0.1:9999"
        assert list(service.tickets) == ["nb-1"]

    run(scenario)


def test_a_session_that_stops_for_too_long_is_told(service: Standin) -> None:
    async def scenario() -> None:
        await a_spawner(service).start()
        spawner = a_spawner(service, attach_seconds=0.2)
        error = await refusal_of(spawner)
        assert (error.reason, error.status_code) == ("stopping", 409)

    run(scenario)


def test_a_start_that_fails_is_reported(service: Standin) -> None:
    async def scenario() -> None:
        spawner = a_spawner(service)
        spawner.broken = OSError("no such program")
        with pytest.raises(OSError, match="no such program"):
            await spawner.start()
        await arrived()
        assert service.told("ended") == [{"attempt": 1, "code": None, "signal": None, "by_owner": False}]

    run(scenario)


def test_a_start_that_takes_too_long_is_no_cancellation(service: Standin) -> None:
    async def scenario() -> None:
        spawner = a_spawner(service, start_timeout=2)
        spawner.hanging = True
        error = await refusal_of(spawner)
        assert error.reason == "timeout"
        spawner.run_post_stop_hook()
        await arrived()
        assert service.cancelled() == []
        assert len(service.told("ended")) == 1

    run(scenario)


# --- options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "injected",
    [
        {"cmd": "sh"},
        {"user": "bo"},
        {"groups": ["admin"]},
        {"server": "x"},
        {"kind": "training"},
        {"profile": 1},
        {"profile": "x" * 64},
        {"profile": "one\n"},
        {"profile": "nowhere"},
        {"gpus": True},
        {"gpus": float("nan")},
        {"gpus": -1},
        {"lease": "for ever"},
        {"lease": 0},
        {"lease": "0s"},
        {"lease": 10**12},
        {"memory": "80GB"},
        {"cpus": 1.5},
    ],
    ids=repr,
)
def test_options_from_rest_are_checked(injected: Any, service: Standin) -> None:
    async def scenario() -> None:
        spawner = a_spawner(service)
        spawner.user_options = injected
        error = await refusal_of(spawner)
        assert (error.reason, error.status_code) == ("invalid", 422)
        assert service.tickets == {}
        assert spawner.orm_spawner.user_options == {}

    run(scenario)


def test_without_options_the_last_choice_counts(service: Standin) -> None:
    async def scenario() -> None:
        last = {"profile": "two", "project": "seg", "lease_seconds": 600}
        service.options = options(profiles=[profile("one"), profile("two")], last=last)
        await a_spawner(service).start()
        body = service.told("workloads")[0]
        assert (body["profile"], body["lease"]) == ("two", 600)

    run(scenario)


def test_without_options_and_choice_the_first_possible_profile_counts(service: Standin) -> None:
    async def scenario() -> None:
        service.options = options(profiles=[profile("one", decision=decision("refused")), profile("two")])
        await a_spawner(service).start()
        assert service.told("workloads")[0]["profile"] == "two"

    run(scenario)


def test_what_is_resumed_is_resumed_once(service: Standin) -> None:
    async def scenario() -> None:
        spawner = a_spawner(service, {"profile": "one", "resumes": "nb-9"})
        await spawner.start()
        assert service.told("workloads")[0]["resumes"] == "nb-9"
        assert spawner.orm_spawner.user_options == {"profile": "one"}

    run(scenario)


# --- environment ----------------------------------------------------------------------------------------


def test_the_environment_is_that_of_the_grant(service: Standin) -> None:
    async def scenario() -> None:
        given = {
            "CUDA_VISIBLE_DEVICES": "0,1,2",
            "NVIDIA_VISIBLE_DEVICES": "all",
            "HUBGOV_WORKLOAD_ID": "x",
            "A": "b",
        }
        spawner = a_spawner(service, environment=given)
        await spawner.start()
        seen = spawner.environment_seen
        assert seen["CUDA_VISIBLE_DEVICES"] == "GPU-1"
        assert (seen["HUBGOV_WORKLOAD_ID"], seen["HUBGOV_ALLOCATION_ID"]) == ("nb-1", "nb-1.1")
        assert "NVIDIA_VISIBLE_DEVICES" not in seen
        assert (seen["A"], seen["HUBGOV_URL"]) == ("b", "http://where.servers/find/it")
        assert TOKEN not in seen.values()

    run(scenario)


def test_without_devices_the_variable_is_empty(service: Standin) -> None:
    async def scenario() -> None:
        service.environment = {}
        spawner = a_spawner(service, environment={"CUDA_VISIBLE_DEVICES": "0"})
        await spawner.start()
        seen = spawner.environment_seen
        assert (seen["CUDA_VISIBLE_DEVICES"], seen["ASCEND_RT_VISIBLE_DEVICES"]) == ("", "")

    run(scenario)


@pytest.mark.parametrize("name", ["a" * 64, "a" * 255, "a\u200bb", " amy"])
def test_a_user_whose_name_the_service_doesnt_take_is_told_the_limit(name: str, service: Standin) -> None:
    async def scenario() -> None:
        spawner = a_spawner(service)
        spawner.user.name = name
        error = await refusal_of(spawner)
        assert (error.reason, error.status_code) == ("invalid", 422)
        assert "at most 63 visible characters" in error.message
        assert service.asked == []
        longest = a_spawner(service)
        longest.user.name = "a" * 63
        assert await longest.start()
        await longest.stop()

    run(scenario)
