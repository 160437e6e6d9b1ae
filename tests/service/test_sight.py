"""Who sees what, and who may do what: the hub's word decides, never a body's."""

from __future__ import annotations

from typing import Any

import pytest
from service_under_test import ServiceUnderTest
from waiting import until


@pytest.fixture(scope="module")
def cast(service: ServiceUnderTest) -> dict[str, str]:
    """Both cards are taken, by amy of vision and bo of nlp; ava of vision and bo wait for one more."""
    ids = {"amy": service.run("amy")["id"], "bo": service.run("bo")["id"]}
    ids |= {"ava": service.ask("ava").json()["id"], "bo waits": service.ask("bo", server="b").json()["id"]}
    return ids


def test_one_sees_ones_own_and_ones_teams_work_by_name(service: ServiceUnderTest, cast: dict[str, str]) -> None:
    def seen(who: str) -> set[str]:
        return {w["id"] for w in service.call(who, "GET", "/workloads").json()["items"]}

    vision, nlp = {cast["amy"], cast["ava"]}, {cast["bo"], cast["bo waits"]}
    assert seen("amy") == seen("ava") == vision
    assert seen("bo") == nlp
    assert seen("lena") == vision | nlp, "a lead of research sees the teams below it"
    assert seen("admin") == vision | nlp
    assert seen("stranger") == set()
    assert seen("amy-server") == vision


INSIDE = ("/events", "/receipt")
"""What is inside a session: for its owner, a lead of its team, an admin."""


@pytest.mark.parametrize("what", ["", "/why", *INSIDE])
def test_what_one_may_not_see_is_not_there(service: ServiceUnderTest, cast: dict[str, str], what: str) -> None:
    hidden = service.call("bo", "GET", f"/workloads/{cast['ava']}{what}")
    nothing = service.call("bo", "GET", f"/workloads/nb-99999{what}")
    assert hidden.status_code == nothing.status_code == 404
    assert hidden.text.replace(cast["ava"], "ID") == nothing.text.replace("nb-99999", "ID")
    mate = service.call("amy", "GET", f"/workloads/{cast['ava']}{what}")
    assert mate.status_code == (403 if what in INSIDE else 200), "a team-mate sees it, and not what is inside"
    for who in ("ava", "lena", "admin"):
        answer = service.call(who, "GET", f"/workloads/{cast['ava']}{what}")
        early = what == "/receipt"
        assert answer.status_code == (404 if early else 200), who
        assert not early or answer.json()["error"]["code"] == "not_ended", who


def test_holders_of_other_teams_are_counts(service: ServiceUnderTest, cast: dict[str, str]) -> None:
    def holders(who: str) -> set[tuple[str, str]]:
        decision = service.call(who, "GET", f"/workloads/{cast['ava']}/why").json()
        return {(h["workload"], h["owner"]) for b in decision["blockers"] for h in b["held_by"]}

    assert service.call("ava", "GET", f"/workloads/{cast['ava']}/why").json()["simulated"]
    assert holders("ava") == {(cast["amy"], "amy"), ("-", "team nlp")}
    assert holders("admin") == holders("lena") == {(cast["amy"], "amy"), (cast["bo"], "bo")}
    assert holders("spawner") == holders("ava"), "what the spawner reads it shows to the owner"


def test_nothing_that_a_waiting_person_reads_names_other_teams_people(
    service: ServiceUnderTest, cast: dict[str, str]
) -> None:
    for who, path in (
        ("ava", f"/workloads/{cast['ava']}"),
        ("ava", f"/workloads/{cast['ava']}/why"),
        ("ava", "/workloads"),
        ("ava", "/devices"),
        ("ava", "/quotas"),
        ("ava", "/queues"),
        ("ava", "/extensions"),
        ("spawner", f"/workloads/{cast['ava']}"),
        ("spawner", "/spawn-options?user=ava&groups=vision"),
    ):
        text = service.call(who, "GET", path).text
        assert cast["bo"] not in text, path
        assert '"bo"' not in text, path
        assert "bo's" not in text, path
    devices = service.call("ava", "GET", "/devices").json()["items"]
    assert {(d["owner"], d["workload"]) for d in devices} == {("amy", cast["amy"]), ("team nlp", "-")}
    chinese = service.call("ava", "GET", f"/workloads/{cast['ava']}/why", headers={"Accept-Language": "zh-CN"})
    assert "等待配额" in chinese.json()["headline"]
    assert "bo" not in chinese.json()["headline"]
    owners = {h["owner"] for b in chinese.json()["blockers"] for h in b["held_by"]}
    devices = service.call("ava", "GET", "/devices", headers={"Accept-Language": "zh-CN"}).json()["items"]
    assert "团队 nlp" in owners
    assert "团队 nlp" in {d["owner"] for d in devices}


ADMIN_ONLY: list[tuple[str, str, Any]] = [
    ("GET", "/policy", None),
    ("PUT", "/policy", {"text": "version: 1"}),
    ("POST", "/policy/check", {"text": "version: 1"}),
    ("POST", "/policy/diff", {"text": "version: 1"}),
    ("POST", "/queues/experiment/hold", {"reason": "x"}),
    ("POST", "/queues/experiment/release", {}),
    ("POST", "/nodes/box/drain", {}),
    ("POST", "/nodes/box/undrain", {}),
]
"""What leads may not do either; the audit is theirs as far as their teams go (`test_authority`)."""


@pytest.mark.parametrize("who", ["amy", "lena", "stranger", "amy-server", "admin-server", "spawner"])
@pytest.mark.parametrize(("method", "path", "body"), ADMIN_ONLY)
def test_authority_needs_the_scope_and_never_a_servers_token(
    service: ServiceUnderTest, who: str, method: str, path: str, body: Any
) -> None:
    answer = service.call(who, method, path, body, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed"), answer.text
    assert service.call("admin", "GET", "/policy").json()["version"] == 1


def test_a_servers_token_acts_for_its_owner_and_no_further(service: ServiceUnderTest, cast: dict[str, str]) -> None:
    assert service.call("admin-server", "GET", f"/workloads/{cast['ava']}").status_code == 404
    assert service.call("admin-server", "DELETE", f"/workloads/{cast['ava']}", {}).status_code == 404
    assert service.call("amy-server", "GET", f"/workloads/{cast['amy']}").status_code == 200


SPAWNERS: list[tuple[str, Any]] = [
    ("launch", {"attempt": 1}),
    ("processes", {"attempt": 1, "main": {"pid": 1, "start_ticks": 1, "boot_id": "b"}}),
    ("ready", {"attempt": 1, "url": "http://evil/"}),
    ("stopping", {"attempt": 1}),
    ("ended", {"attempt": 1, "code": 0}),
]


@pytest.mark.parametrize("who", ["amy", "amy-server", "lena", "admin", "stranger"])
@pytest.mark.parametrize(("step", "body"), SPAWNERS)
def test_only_the_spawner_reports_on_servers(
    service: ServiceUnderTest, cast: dict[str, str], who: str, step: str, body: Any
) -> None:
    before = service.show(cast["amy"])
    answer = service.call(who, "POST", f"/workloads/{cast['amy']}/{step}", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")
    assert service.show(cast["amy"])["version"] == before["version"]


@pytest.mark.parametrize(
    ("who", "change"),
    [
        ("amy", {"user": "ava"}),
        ("admin", {"user": "ava"}),
        ("amy-server", {"user": "amy"}),
        ("spawner", {"user": "ava", "groups": ["vision"], "kind": "training"}),
    ],
)
def test_only_the_spawner_names_a_user_and_only_for_notebooks(
    service: ServiceUnderTest, who: str, change: dict[str, Any]
) -> None:
    body = {"queue": "experiment", "kind": "notebook", "gpus": 0, **change}
    answer = service.call(who, "POST", "/workloads", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed"), answer.text
    if who != "spawner":
        assert service.call(who, "POST", "/plan", body).status_code == 403


def test_a_person_starts_no_notebook_past_the_hub(service: ServiceUnderTest) -> None:
    body = {"queue": "experiment", "kind": "notebook", "gpus": 0}
    answer = service.call("amy", "POST", "/workloads", body)
    assert answer.status_code == 400
    assert answer.json()["error"]["hint"]
    assert service.call("admin", "GET", "/workloads?owner=amy").json()["total"] == 1


def test_groups_in_a_body_give_nobody_a_team(service: ServiceUnderTest) -> None:
    body = {"queue": "experiment", "kind": "notebook", "gpus": 1, "groups": ["vision"], "project": "seg"}
    answer = service.call("bo", "POST", "/plan", body)
    assert answer.json()["code"] == "not_allowed"


@pytest.mark.parametrize("token", [None, "token nobody-token", "token", "Bearer nobody", "Basic YW15OmFteQ=="])
@pytest.mark.parametrize("path", ["/workloads", "/workloads/nb-1", "/devices", "/policy", "/nothing/at/all"])
def test_without_a_valid_token_there_is_nothing(service: ServiceUnderTest, token: str | None, path: str) -> None:
    headers = {"Authorization": token} if token else {}
    answer = service.http.get(f"/services/hubgov/api/v1{path}", headers=headers)
    expected = (404, "not_found") if path.startswith("/nothing") else (401, "unauthorized")
    assert (answer.status_code, answer.json()["error"]["code"]) == expected


def test_who_may_not_use_the_service_is_told_so(service: ServiceUnderTest) -> None:
    answer = service.call("outsider", "GET", "/workloads")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")


def test_who_may_not_name_a_user_is_not_told_what_that_user_has(
    service: ServiceUnderTest, cast: dict[str, str]
) -> None:
    body = {"queue": "experiment", "kind": "notebook", "gpus": 0, "user": "amy"}
    answers = [
        service.call("bo", "POST", "/workloads", {**body, "resumes": workload})
        for workload in (cast["amy"], cast["bo"], "nb-99999")
    ]
    assert {a.status_code for a in answers} == {403}
    assert len({a.text for a in answers}) == 1


def test_who_may_end_and_extend(service: ServiceUnderTest, cast: dict[str, str]) -> None:
    path = f"/workloads/{cast['amy']}"
    assert service.call("ava", "DELETE", path, {}).status_code == 403, "a team-mate sees and does not touch"
    assert service.call("bo", "DELETE", path, {}).status_code == 404
    assert service.call("ava", "POST", f"{path}/extensions", {"by_seconds": 60}).status_code == 403
    assert service.call("lena", "POST", f"{path}/extensions", {"by_seconds": 60}).status_code == 201
    assert service.call("lena", "DELETE", path, {"reason": "urgent"}).status_code == 200
    assert service.show(cast["amy"])["state"] == "expiring", "it has its grace"
    assert service.call("lena", "DELETE", path, {"reason": "urgent", "now": True}).status_code == 200
    until(lambda: service.show(cast["amy"])["ended_at"], 10, "it to be over")
    shown = service.show(cast["amy"])
    assert (shown["state"], shown["end_reason"]) == ("cancelled", "admin")
    who = [line["actor"] for line in service.call("amy", "GET", f"/audit?workload={cast['amy']}").json()["items"]]
    assert "lena" in who
    assert service.call("bo", "GET", f"/audit?workload={cast['amy']}").status_code == 404
