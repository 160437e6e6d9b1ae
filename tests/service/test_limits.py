"""How often one may ask for changes, and what a repeated request is."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from service.answers import refused
from service_under_test import ServiceUnderTest

from hubgov.control.actor import ADMIN, SPAWN, Actor
from hubgov.errors import TooMany
from hubgov.service.limits import KEPT, Limits

AMY = Actor(name="amy")


class Seconds:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def _spent(limits: Limits, actor: Actor, times: int) -> int:
    """How many of so many changes pass."""
    passed = 0
    for _ in range(times):
        try:
            limits.spend(actor)
            passed += 1
        except TooMany:
            pass
    return passed


def test_a_burst_and_then_so_many_a_second() -> None:
    seconds = Seconds()
    limits = Limits(60, 5.0, seconds)
    assert _spent(limits, AMY, 100) == 60
    seconds.at += 1
    assert _spent(limits, AMY, 100) == 5
    seconds.at += 3600
    assert _spent(limits, AMY, 100) == 60, "what isn't used doesn't pile up"


@pytest.mark.parametrize(("per_second", "wait"), [(5.0, 1), (1.0, 1), (0.25, 4), (0.01, 100)])
def test_the_time_to_wait_is_enough_and_no_more(per_second: float, wait: int) -> None:
    seconds = Seconds()
    limits = Limits(1, per_second, seconds)
    limits.spend(AMY)
    with pytest.raises(TooMany) as told:
        limits.spend(AMY)
    assert told.value.details["retry_after_seconds"] == wait
    seconds.at += wait
    limits.spend(AMY)


def test_everybody_has_a_bucket_of_his_own_and_so_has_his_notebook() -> None:
    limits = Limits(3, 1.0, Seconds())
    notebook = Actor(name="amy", from_server=True)
    service = Actor(name="amy", kind="service")
    for actor in (notebook, AMY, Actor(name="bo"), service):
        assert _spent(limits, actor, 10) == 3, actor
    assert _spent(limits, Actor(name="amy", groups=frozenset({"other"})), 10) == 0, "the same one in another group"


def test_who_speaks_for_everybody_has_none() -> None:
    limits = Limits(3, 1.0, Seconds())
    spawner = Actor(name="hubgov-spawner", kind="service", scopes=frozenset({SPAWN}))
    admins = Actor(name="ops", kind="service", scopes=frozenset({ADMIN}))
    assert _spent(limits, spawner, 1000) == _spent(limits, admins, 1000) == 1000
    for limited in (Actor(name="root", scopes=frozenset({ADMIN})), Actor(name="amy", scopes=frozenset({SPAWN}))):
        assert _spent(limits, limited, 1000) == 3, "a person, whatever the scopes"


def test_what_is_full_again_is_forgotten() -> None:
    seconds = Seconds()
    limits = Limits(2, 1.0, seconds)
    for n in range(KEPT):
        limits.spend(Actor(name=f"u{n}"))
    seconds.at += 10
    assert _spent(limits, AMY, 5) == 2
    assert _spent(limits, Actor(name="bo"), 1) == 1
    assert len(limits._buckets) < KEPT
    assert _spent(limits, AMY, 5) == 0, "nobody gets a new one by that"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUnderTest]:
    under_test = ServiceUnderTest(tmp_path_factory.mktemp("strict") / "state", changes_at_once=10)
    try:
        under_test.start()
        yield under_test
    finally:
        under_test.close()


def test_a_notebooks_token_is_stopped_and_its_owner_is_not(strict: ServiceUnderTest) -> None:
    workload = strict.run("amy")["id"]
    path = f"/workloads/{workload}/extensions"
    answers = [strict.call("amy-server", "POST", path, {"by_seconds": 86400 + n}) for n in range(200)]
    stopped = [a for a in answers if a.status_code == 429]
    assert len(stopped) > 100
    assert {a.status_code for a in answers} == {422, 429}
    error = refused(stopped[-1], 429, "too_fast")
    assert int(stopped[-1].headers["Retry-After"]) == error["details"]["retry_after_seconds"] == 1
    journal = strict.call("amy", "GET", f"/workloads/{workload}/events?limit=1000").json()["items"]
    assert len([line for line in journal if line["event"] == "extension_denied"]) < 100
    assert strict.call("amy-server", "GET", f"/workloads/{workload}").status_code == 200, "reading is free"
    chinese = strict.call("amy-server", "POST", path, {"by_seconds": 1}, headers={"Accept-Language": "zh"})
    assert chinese.status_code in (201, 429)
    for _ in range(30):
        assert strict.ask("amy").status_code == 200, "the spawner speaks for everybody"
    assert strict.call("amy", "POST", path, {"by_seconds": 60}).status_code == 201
    assert strict.call("amy", "DELETE", f"/workloads/{workload}", {}).status_code == 200


def test_a_key_with_another_version_is_another_request(service: ServiceUnderTest) -> None:
    """What a policy is applied to is part of what is asked."""
    current = service.call("admin", "GET", "/policy").json()
    version, text = current["version"], current["text"] + "# a note\n"
    key = {"Idempotency-Key": "apply-1"}

    def apply(based_on: int) -> httpx.Response:
        headers = {**key, "If-Match": f'"{based_on}"'}
        return service.call("admin", "PUT", "/policy", {"text": text}, headers=headers)

    assert apply(version).status_code == 200
    assert apply(version).status_code == 200, "the same again: its first answer"
    refused(apply(version + 1), 422, "key_reused")
    assert service.call("admin", "GET", "/policy").json()["version"] == version + 1
