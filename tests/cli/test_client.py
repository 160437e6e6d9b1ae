"""The Python client: what it raises, what it sends, and where it finds the service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.standin import TOKEN, Standin, decision, error, extension

from hubgov import Client, NeedsApproval, PolicyDenied, errors
from hubgov.client import NotSignedIn, connection
from hubgov.client.connection import Login
from hubgov.client.transport import Transport

FAILURES: dict[str, tuple[int, str, type[errors.HubgovError]]] = {
    "a value that isn't one": (400, "invalid", errors.Invalid),
    "no token": (401, "unauthorized", NotSignedIn),
    "no right": (403, "not_allowed", errors.NotAllowed),
    "nothing there": (404, "not_found", errors.NotFound),
    "over": (409, "ended", errors.Ended),
    "moved": (409, "conflict", errors.Conflict),
    "another policy": (412, "policy_moved", errors.PolicyMoved),
    "too large": (413, "too_large", errors.Invalid),
    "another body": (422, "key_reused", errors.KeyReused),
    "too often": (429, "too_many", errors.TooMany),
    "unexpected": (500, "error", errors.HubgovError),
    "away": (503, "unavailable", errors.Unavailable),
}


@pytest.fixture
def client(standin: Standin) -> Iterator[Client]:
    with Client(standin.url, TOKEN) as made:
        yield made


@pytest.mark.parametrize("what", FAILURES)
def test_each_failure_has_its_class(client: Client, standin: Standin, what: str) -> None:
    status, code, kind = FAILURES[what]
    standin.set("GET", "/workloads/nb-7", error(code, "told", "do this", {"n": 1}), status)
    with pytest.raises(kind) as caught:
        client.workload("nb-7")
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.message, caught.value.hint) == (code, "told", "do this")
    assert caught.value.details == {"n": 1}


def test_a_denial_carries_its_decision(client: Client, standin: Standin) -> None:
    standin.set("POST", "/workloads", error("max_total", "no", "", decision()), 422)
    with pytest.raises(PolicyDenied) as caught:
        client.submit({"queue": "train", "gpus": 1})
    told = caught.value.decision
    assert (told.code, told.blockers[0].have, told.blockers[0].held_by[0].owner) == ("max_total", 3600, "ann")


def test_what_needs_approval_carries_the_request(client: Client, standin: Standin) -> None:
    standin.set("POST", "/workloads/nb-7/extensions", extension("needs_approval"), 202)
    with pytest.raises(NeedsApproval) as caught:
        client.extend("nb-7", 7200, lease_version=1)
    assert caught.value.extension.id == "ex-1"
    assert standin.last("POST", "/workloads/nb-7/extensions").body["lease_version"] == 1


def test_documents_come_as_dataclasses_and_as_they_were(client: Client) -> None:
    found = client.workload("nb-7")
    assert (found.class_, found.devices[0].simulated, found.gpus) == ("standard", True, 1)
    assert client.document["added_later"] == "kept"
    line = client.audit().items[0]
    assert (line.actor, line.from_, line.to) == ("wei", None, "held")


def test_waiting_waits_at_the_service(client: Client, standin: Standin) -> None:
    client.wait_for_version("nb-7", 2, 30)
    assert standin.last("GET", "/workloads/nb-7").query == {"after": "2", "wait": "30"}


def test_numbers_that_json_has_not_are_refused_here(client: Client, standin: Standin) -> None:
    with pytest.raises(errors.Invalid):
        client.submit({"queue": "train", "gpus": float("nan")})
    assert standin.asked == []


def test_a_broken_connection_is_tried_a_bounded_number_of_times(standin: Standin) -> None:
    pauses: list[float] = []
    transport = Transport(connection.find(standin.url, TOKEN), pause=pauses.append)
    standin.drop = 2
    assert transport.ask("POST", "/plan", body={})[0] == 200
    assert pauses == [0.2, 0.6]
    standin.drop = 10
    with pytest.raises(errors.Unavailable) as caught:
        transport.ask("POST", "/plan", body={})
    assert caught.value.code == "unreachable"
    keys = [a.headers["Idempotency-Key"] for a in standin.asked]
    assert len(keys) == 6
    assert [len(set(keys[:3])), len(set(keys[3:])), len(set(keys))] == [1, 1, 2]
    transport.close()


def test_a_token_is_not_in_what_is_printed() -> None:
    found = connection.find("http://h/services/hubgov", "very-secret")
    assert "very-secret" not in repr(found)
    assert "very-secret" not in repr(Login(url="u", user="u", token="very-secret"))


HERE = "http://h/services/hubgov"
FOUND: dict[str, tuple[dict[str, str], Login | None, str]] = {
    "both named": ({"HUBGOV_URL": HERE, "HUBGOV_TOKEN": "a"}, None, "a"),
    "named wins over the notebook's": (
        {"HUBGOV_URL": HERE, "HUBGOV_TOKEN": "a", "JUPYTERHUB_API_TOKEN": "b"},
        None,
        "a",
    ),
    "in a notebook": ({"HUBGOV_URL": HERE, "JUPYTERHUB_API_TOKEN": "b"}, Login(url=HERE, user="u", token="c"), "b"),
    "kept by login": ({}, Login(url=HERE, user="u", token="c"), "c"),
    "kept, and the address named": ({"HUBGOV_URL": HERE + "/"}, Login(url=HERE, user="u", token="c"), "c"),
    "kept address, token named": ({"HUBGOV_TOKEN": "a"}, Login(url=HERE, user="u", token="c"), "a"),
    "a server's token without an address is not used": (
        {"JUPYTERHUB_API_TOKEN": "b"},
        Login(url=HERE, user="u", token="c"),
        "c",
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_where_the_service_is_and_with_which_token(tmp_path: Path, case: str) -> None:
    environment, login, token = FOUND[case]
    file = tmp_path / "login.json"
    if login is not None:
        connection.write_login(file, login)
    found = connection.find(environment=environment, file=file)
    assert (found.url, found.token) == (HERE, token)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/services/hubgov"),
        ("https://h/jupyter/hub/", "https://h/jupyter/services/hubgov"),
        ("https://h/jupyter/services/gov/", "https://h/jupyter/services/gov"),
    ],
)
def test_a_hubs_address_means_its_service(given: str, expected: str) -> None:
    assert connection.service_url(given) == expected


@pytest.mark.parametrize("given", ["", "h", "ftp://h", "http://", "http://h/\nx", "http://h/?a=b", "file:///etc"])
def test_what_is_no_address(given: str) -> None:
    with pytest.raises(errors.Invalid):
        connection.service_url(given)
