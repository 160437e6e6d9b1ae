"""A hundred and twenty people wait for two cards: who asks for no card isn't one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from service_under_test import PREFIX, ServiceUnderTest
from waiting import until

CROWD = 120
POLLS = 20


def _ask(service: ServiceUnderTest, number: int, profile: str = "one") -> Any:
    body = {"user": f"crowd-{number}", "groups": ["vision"], "queue": "experiment", "kind": "notebook"}
    body |= {"gpus": {"cpu": 0, "one": 1}[profile], "profile": profile}
    return service.call("spawner", "POST", "/workloads", body)


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.monotonic()
    result = work()
    return time.monotonic() - began, result


@pytest.fixture(scope="module")
def crowd(service: ServiceUnderTest) -> Iterator[list[str]]:
    """Ids of those who wait; twenty of their spawners wait attached."""
    for holder in ("amy", "bo"):
        service.run(holder)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: _ask(service, n), range(CROWD)))
    assert {a.status_code for a in answers} == {201}
    ids = [a.json()["id"] for a in answers]
    over = threading.Event()

    def poll(workload: str) -> None:
        while not over.is_set():
            service.call("spawner", "GET", f"/workloads/{workload}?after=1&wait=1&attach=1")

    polls = [threading.Thread(target=poll, args=(i,)) for i in ids[:POLLS]]
    for thread in polls:
        thread.start()
    yield ids
    over.set()
    for thread in polls:
        thread.join()


def test_a_cpu_session_starts_at_once(service: ServiceUnderTest, crowd: list[str]) -> None:
    for number in range(500, 505):
        took, answer = _seconds(lambda n=number: _ask(service, n, "cpu"))  # type: ignore[misc]
        assert answer.status_code == 201
        assert answer.json()["state"] == "admitted"
        assert took < 1, f"{took:.2f} s"


def test_everybody_has_a_place_and_a_reason(service: ServiceUnderTest, crowd: list[str]) -> None:
    took, answer = _seconds(lambda: service.call("admin", "GET", "/workloads?state=pending&limit=200"))
    waiting = answer.json()["items"]
    assert took < 2, f"{took:.2f} s for the list"
    assert sorted(w["position"] for w in waiting) == list(range(1, CROWD + 1))
    assert {w["why"] for w in waiting} == {"waiting_quota"}
    assert all("needs 1" in w["headline"] for w in waiting)
    by_place = sorted(waiting, key=lambda w: w["position"])
    assert [w["submitted_at"] for w in by_place] == sorted(w["submitted_at"] for w in waiting), "first come"


def test_one_answer_does_not_wait_for_the_crowd(service: ServiceUnderTest, crowd: list[str]) -> None:
    last = crowd[-1]
    for path in (f"/workloads/{last}", f"/workloads/{last}/why", "/devices", "/quotas", "/queues"):
        took, answer = _seconds(lambda path=path: service.call("admin", "GET", path))  # type: ignore[misc]
        assert answer.status_code == 200
        assert took < 1, f"{path}: {took:.2f} s"
    took, page = _seconds(
        lambda: service.http.get(f"{PREFIX}wait/{last}", headers={"Authorization": "token admin-token"})
    )
    assert page.status_code == 200
    assert took < 1


def test_a_card_that_comes_free_goes_to_the_first_in_line(service: ServiceUnderTest, crowd: list[str]) -> None:
    waiting = service.call("admin", "GET", "/workloads?state=pending&limit=200").json()["items"]
    first = min(waiting, key=lambda w: w["position"])["id"]
    holder = service.call("admin", "GET", "/workloads?owner=amy").json()["items"][0]["id"]
    began = time.monotonic()
    assert service.call("amy", "DELETE", f"/workloads/{holder}", {"now": True}).status_code == 200
    until(lambda: service.show(first)["state"] in ("admitted", "starting"), 10, "the first in line to be admitted")
    assert time.monotonic() - began < 5
    left = service.call("admin", "GET", "/workloads?state=pending&limit=200").json()
    assert left["total"] == CROWD - 1
