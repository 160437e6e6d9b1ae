"""A user who was deleted, and another of the same name: what was the one's is not the other's."""

from __future__ import annotations

from typing import Any

import pytest
from service.answers import end, refused
from service_under_test import ServiceUnderTest


@pytest.fixture(scope="module")
def former(service: ServiceUnderTest) -> dict[str, Any]:
    """A session of a bo who was deleted; the bo of the tests is the next of that name."""
    workload = service.run("bo", server="w")
    end(service, workload["id"])
    for _ in range(2):  # told again after a hub's restart
        answer = service.call("spawner", "POST", "/owners/bo/departed", {"reason": ""})
        assert (answer.status_code, answer.text) == (204, "")
    return workload


def test_the_next_of_a_name_finds_nothing_of_the_one_before(
    service: ServiceUnderTest, former: dict[str, Any]
) -> None:
    path = f"/workloads/{former['id']}"
    for what in ("/events", "/receipt"):
        assert service.call("bo", "GET", path + what).status_code in (403, 404), what
    refused(service.call("bo", "GET", "/servers/bo/w/receipt"), 404, "not_found")
    refused(service.call("spawner", "GET", "/servers/bo/w/receipt"), 404, "not_found")
    options = service.call("spawner", "GET", "/spawn-options?user=bo&groups=nlp&server=w").json()
    assert options["last"] is None
    resumed = service.ask("bo", server="w", resumes=former["id"])
    refused(resumed, 404, "not_found")
    costs = service.call("bo", "GET", "/costs", params={"by": "user", "include_simulated": "1"}).json()
    assert costs["items"] == []


def test_what_the_next_one_asks_for_is_his(service: ServiceUnderTest, former: dict[str, Any]) -> None:
    mine = service.run("bo", server="w")
    assert mine["id"] != former["id"]
    assert service.call("bo", "GET", f"/workloads/{mine['id']}/events").status_code == 200
    end(service, mine["id"])
    assert service.call("bo", "GET", "/servers/bo/w/receipt").json()["workload"]["id"] == mine["id"]


def test_the_books_keep_it_for_those_who_answer_for_it(service: ServiceUnderTest, former: dict[str, Any]) -> None:
    for who in ("lena", "admin"):
        assert service.call(who, "GET", f"/workloads/{former['id']}/receipt").status_code == 200
    acts = service.call("admin", "GET", "/audit").json()["items"]
    assert [a["record"] for a in acts if a["event"] == "user_departed"] == ["bo", "bo"]


@pytest.mark.parametrize("who", ["bo", "admin", "amy-server"])
def test_only_the_spawner_tells_of_it(service: ServiceUnderTest, who: str) -> None:
    refused(service.call(who, "POST", "/owners/amy/departed", {"reason": ""}), 403, "not_allowed")


def test_what_still_runs_is_stopped_and_said_why(fresh: ServiceUnderTest) -> None:
    fresh.start()
    workload = fresh.run("bo")
    told = {"reason": "", "ago_seconds": 0}
    assert fresh.call("spawner", "POST", "/owners/bo/departed", told).status_code == 204
    end(fresh, workload["id"])
    path = f"/workloads/{workload['id']}"
    shown = fresh.call("admin", "GET", path).json()
    assert (shown["state"], shown["end_reason"]) == ("cancelled", "admin")
    assert shown["note"] == "the hub deleted the user"
    assert shown["note"] in shown["headline"]
    chinese = fresh.call("admin", "GET", path, headers={"Accept-Language": "zh"}).json()
    assert chinese["note"] == "hub 已删除该用户"
    costs = fresh.call("bo", "GET", "/costs", params={"by": "user", "include_simulated": "1"}).json()
    assert costs["items"] == []


def test_a_departure_lies_in_no_future(service: ServiceUnderTest) -> None:
    refused(
        service.call("spawner", "POST", "/owners/x/departed", {"reason": "", "ago_seconds": -1}), 400, "invalid"
    )


def test_it_is_known_after_a_restart(fresh: ServiceUnderTest) -> None:
    fresh.start()
    workload = fresh.run("bo")
    end(fresh, workload["id"])
    assert fresh.call("spawner", "POST", "/owners/bo/departed", {"reason": ""}).status_code == 204
    fresh.kill()
    fresh.start()
    assert fresh.call("bo", "GET", f"/workloads/{workload['id']}/receipt").status_code in (403, 404)
