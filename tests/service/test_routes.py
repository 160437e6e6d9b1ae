"""Every route once as it is meant to be used, and its refusals with code, message, details and hint."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from service import server_process
from service.answers import end, refused
from service_under_test import PREFIX, ServiceUnderTest
from waiting import until

from hubgov.clock import Instant, from_rfc3339, to_rfc3339

# --- a session's life ------------------------------------------------------------------------------------


def test_a_session_from_the_request_to_the_receipt(service: ServiceUnderTest) -> None:
    asked = service.ask("amy", "one", lease="2h")
    assert asked.status_code == 201
    again = service.ask("amy", "one", lease="2h")
    assert (again.status_code, again.json()["id"]) == (200, asked.json()["id"]), "one server, one ticket"
    workload = until(lambda: service.show(asked.json()["id"]), 5, "it to be there")
    path = f"/workloads/{workload['id']}"
    assert (workload["state"], workload["gpus"], workload["project"]) == ("admitted", 1, "seg")

    launch = service.call("spawner", "POST", f"{path}/launch", {"attempt": 1})
    assert launch.status_code == 200
    uuid = workload["devices"][0]["uuid"]
    assert launch.json()["environment"]["CUDA_VISIBLE_DEVICES"] == uuid
    assert launch.json()["environment"]["HUBGOV_WORKLOAD_ID"] == workload["id"]
    assert uuid.startswith("SIM-")
    twice = service.call("spawner", "POST", f"{path}/launch", {"attempt": 1})
    assert (twice.status_code, twice.json()["allocation"]) == (200, launch.json()["allocation"])

    process, main = server_process.start(launch.json()["environment"])
    known = service.call("spawner", "POST", f"{path}/processes", {"attempt": 1, "main": main})
    assert known.status_code == 204
    ready = service.call("spawner", "POST", f"{path}/ready", {"attempt": 1, "url": "http://127.0.0.1:1/"})
    assert (ready.status_code, ready.json()["state"]) == (200, "running")
    assert ready.json()["lease_seconds"] == 7200
    assert ready.json()["class"] == "standard"
    assert service.call("amy", "POST", f"{path}/claim", {}).status_code == 204

    save = {"save": f"{workload['id']}.1-1-end", "asked_lab": True, "terminals": 1}
    save |= {"documents": [{"path": "a.ipynb", "outcome": "saved", "bytes": 3, "saved_at": "2026-03-02T18:00:00Z"}]}
    save |= {"kernels": [{"id": "k", "name": "python3", "path": "a.ipynb", "busy": True}]}
    unasked = service.call("amy-server", "PUT", f"{path}/saves/{save['save']}", save)
    refused(unasked, 409, "stale_attempt")  # only what hubgov asked for is taken: nobody fills its ledger

    extended = service.call("amy", "POST", f"{path}/extensions", {"by_seconds": 3600})
    assert (extended.status_code, extended.json()["state"]) == (201, "granted")
    stopped = service.call("spawner", "POST", f"{path}/stopping", {"attempt": 1})
    assert (stopped.status_code, stopped.json()["state"]) == (200, "stopping")
    asked = stopped.json()["save_requested"]
    assert asked == f"{workload['id']}.1-2-stop", "its documents are saved before the server is stopped"
    assert service.call("amy-server", "PUT", f"{path}/saves/{asked}", save | {"save": asked}).status_code == 204
    assert service.show(workload["id"])["save_requested"] is None
    server_process.end(process)
    for _ in range(2):
        ended = service.call("spawner", "POST", f"{path}/ended", {"attempt": 1, "code": 0, "by_owner": True})
        assert ended.status_code == 204, "a report that comes late or twice changes nothing"
    until(lambda: service.show(workload["id"])["state"] == "cancelled", 10, "it to be over")

    receipt = service.call("amy", "GET", f"{path}/receipt").json()
    assert [(d["path"], d["outcome"]) for d in receipt["documents"]] == [("a.ipynb", "saved")]
    assert receipt["devices_free_at"]
    assert float(receipt["cost"]["amount"]) >= 0
    assert any("python3" in line for line in receipt["lost"]), "the kernel's variables are gone"
    assert service.call("amy", "GET", "/servers/amy/receipt").json()["workload"]["id"] == workload["id"]
    events = [line["event"] for line in service.call("amy", "GET", f"{path}/events").json()["items"]]
    assert events[-1] == "workload_submitted"
    assert {"extension_granted", "allocation_cancelled"} <= set(events)
    refused(service.call("amy", "GET", f"{path}/why"), 409, "ended")
    refused(service.call("amy", "DELETE", path, {}), 409, "ended")
    refused(service.call("amy", "POST", f"{path}/extensions", {"by_seconds": 60}), 409, "ended")


def test_lists_pages_and_filters(service: ServiceUnderTest) -> None:
    mine = [service.ask("ava", "cpu", server=f"p{n}").json()["id"] for n in range(3)]
    first = service.call("ava", "GET", "/workloads?limit=2&owner=ava&state=live").json()
    assert [w["id"] for w in first["items"]] == mine[:0:-1]
    assert first["total"] == 3
    second = service.call("ava", "GET", f"/workloads?limit=2&owner=ava&state=live&cursor={first['next']}").json()
    assert [w["id"] for w in second["items"]] == mine[:1]
    assert second["next"] is None
    assert service.call("ava", "GET", "/workloads?queue=none").json()["items"] == []
    assert service.call("ava", "GET", "/workloads?team=vision&state=pending").json()["items"] == []
    for workload in mine:
        end(service, workload)
    ended = service.call("ava", "GET", "/workloads?state=ended&owner=ava").json()["items"]
    assert {w["id"] for w in ended} >= set(mine)
    assert all(w["headline"].startswith("Ended") for w in ended)


def test_the_state_filter_means_the_public_word(service: ServiceUnderTest) -> None:
    def listed(state: str, more: str = "") -> dict[str, Any]:
        answer = service.call("admin", "GET", f"/workloads?owner=ava&state={state}{more}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    ending = service.run("ava", "cpu", server="ending", lease="1s")["id"]
    starting, admitted, pending, other = (
        service.ask("ava", "cpu", server=name).json()["id"] for name in ("starting", "admitted", "pending", "other")
    )
    assert service.call("spawner", "POST", f"/workloads/{starting}/launch", {"attempt": 1}).status_code == 200
    until(lambda: service.show(ending)["state"] == "expiring", 15, "the lease to end")
    expected = {"expiring": [ending], "starting": [starting], "admitted": [admitted], "running": []}
    expected |= {
        "pending": [other, pending],
        "held": [],
        "quarantined": [],
        "suspect": [],
        "lost": [],
        "stopping": [],
    }
    for state, ids in expected.items():
        found = listed(state)
        assert ([w["id"] for w in found["items"]], found["total"]) == (ids, len(ids)), state
    first = listed("pending", "&limit=1")
    assert ([w["id"] for w in first["items"]], first["total"]) == ([other], 2)
    second = listed("pending", f"&limit=1&cursor={first['next']}")
    assert ([w["id"] for w in second["items"]], second["total"]) == ([pending], 2)
    assert service.call("bo", "GET", "/workloads?state=pending").json()["total"] == 0
    assert service.call("admin", "POST", "/queues/experiment/hold", {"reason": "new driver"}).status_code == 200
    held = listed("held")["items"]
    assert [w["id"] for w in held] == [other, pending]
    assert "new driver" in held[0]["headline"]
    assert "new driver" in service.call("ava", "GET", f"/workloads/{pending}/why").json()["headline"]
    page = service.http.get(f"{PREFIX}wait/{pending}", headers={"Authorization": "token ava-token"})
    assert "new driver" in page.text
    assert listed("pending")["total"] == 0
    for workload in (pending, other, admitted, starting, ending):
        end(service, workload)
    service.call("admin", "POST", "/queues/experiment/release", {})
    assert {pending, other} <= {w["id"] for w in listed("cancelled")["items"]}
    assert (
        "one of pending, held"
        in refused(service.call("ava", "GET", "/workloads?state=runing"), 400, "invalid")["hint"]
    )


def test_what_is_there(service: ServiceUnderTest, session: dict[str, Any]) -> None:
    quotas = service.call("amy", "GET", "/quotas").json()["items"]
    mine = next(row for row in quotas if row["team"] == "vision")
    assert quotas[0]["team"] == "vision", "what is mine comes first"
    assert (mine["guaranteed"], mine["used"], mine["borrowed"]) == (1, 1, 0)
    assert all(row["simulated"] for row in quotas)
    pools = service.call("amy", "GET", "/pools").json()["items"]
    assert [(p["name"], p["devices"], p["free"], p["simulated"]) for p in pools] == [("dev", 2, 1, True)]
    queue = service.call("amy", "GET", "/queues").json()["items"][0]
    assert (queue["name"], queue["running"], queue["lease_max_seconds"]) == ("experiment", 1, 43200)
    health = service.http.get(f"{PREFIX}health").json()
    assert health["status"] == "ok"
    assert service.http.get(f"{PREFIX}openapi.json").json()["openapi"] == "3.1.0"
    options = service.call("spawner", "GET", "/spawn-options?user=amy&groups=vision").json()
    assert [p["decision"]["outcome"] for p in options["profiles"]] == ["granted", "granted", "waiting"]
    assert options["projects"] == [{"name": "seg", "team": "vision", "environment": "experiment"}]


def test_every_device_says_whose_it_is_and_who_holds_it(service: ServiceUnderTest, session: dict[str, Any]) -> None:
    devices = service.call("admin", "GET", "/devices").json()["items"]
    assert len(devices) == 2
    for device in devices:
        for key in ("team", "project", "environment", "owner", "pool", "flavor", "uuid"):
            assert device[key], (key, device)
    held = next(d for d in devices if d["state"] == "held")
    free = next(d for d in devices if d["state"] == "free")
    assert (held["team"], held["project"], held["owner"]) == ("vision", "seg", "amy")
    assert (held["workload"], held["until"]) == (session["id"], session["expires_at"])
    assert (free["team"], free["project"], free["owner"], free["workload"]) == ("platform", "lab", "admin", None)


def test_a_plan_leaves_no_trace(service: ServiceUnderTest) -> None:
    before = service.call("admin", "GET", "/workloads").json()["total"]
    body = {"queue": "experiment", "kind": "notebook", "gpus": 1, "lease": "1h"}
    decision = service.call("amy", "POST", "/plan", body).json()
    assert (decision["outcome"], decision["code"]) == ("granted", "fits_now")
    assert decision["cost"] == {"amount": "18.500000", "currency": "CNY"}
    assert decision["simulated"]
    without = service.call("amy", "POST", "/plan", {**body, "gpus": 0}).json()
    assert not without["simulated"], "no device, none that is made up"
    assert service.call("admin", "GET", "/workloads").json()["total"] == before


# --- extensions ------------------------------------------------------------------------------------------


def test_extensions_granted_for_approval_denied(service: ServiceUnderTest, session: dict[str, Any]) -> None:
    path = f"/workloads/{session['id']}/extensions"
    denied = service.call("amy", "POST", path, {"by_seconds": 6 * 3600})
    error = refused(denied, 422, "max_total")
    assert (error["details"]["blockers"][0]["have"], error["details"]["blockers"][0]["limit"]) == (18000, 32400)
    assert error["details"]["next_steps"]
    refused(service.call("amy", "POST", path, {"by_seconds": 3 * 3600}), 400, "reason_required")
    asked = service.call("amy", "POST", path, {"by_seconds": 3 * 3600, "reason": "paper"})
    assert (asked.status_code, asked.json()["state"]) == (202, "needs_approval")
    assert asked.json()["needs"] == ["lena", "admin"]
    assert "lena, admin" in asked.json()["decision"]["headline"]
    assert "Ask lena, admin" in asked.json()["decision"]["next_steps"]
    chinese = service.call(
        "amy", "POST", path, {"by_seconds": 3 * 3600, "reason": "paper"}, headers={"Accept-Language": "zh"}
    )
    assert "需由 lena, admin 批准" in chinese.json()["decision"]["headline"]
    far = refused(service.call("amy", "POST", path, {"by_seconds": 400_000_000}), 422, "above_maximum")
    assert far["details"]["blockers"][0]["limit"] == 3650 * 86400
    stale = service.call("amy", "POST", path, {"by_seconds": 60, "lease_version": 99})
    assert refused(stale, 409, "stale_lease_version")["details"] == {"lease_version": 1}
    seen = service.call("amy", "GET", "/extensions").json()["items"]
    assert [e["state"] for e in seen] == ["denied", "needs_approval"], "the same request is the open one"
    assert [e["needs"] for e in seen] == [[], ["lena", "admin"]]
    assert service.call("bo", "GET", "/extensions").json()["items"] == []
    refused(service.call("amy", "POST", path, {}), 400, "invalid")
    refused(service.call("amy", "POST", path, {"by_seconds": 60, "until": "2026-01-01T00:00:00Z"}), 400, "invalid")
    refused(service.call("amy", "POST", path, {"until": "tomorrow"}), 400, "invalid")
    refused(service.call("amy", "POST", path, {"until": "2000-01-01T00:00:00Z"}), 400, "invalid")


def test_an_open_request_is_decided_by_who_may(service: ServiceUnderTest, session: dict[str, Any]) -> None:
    path = f"/workloads/{session['id']}/extensions"
    asked = service.call("amy", "POST", path, {"by_seconds": 3 * 3600, "reason": "paper"}).json()
    decide = f"/extensions/{asked['id']}"
    refused(service.call("amy", "POST", f"{decide}/approve", {}), 403, "not_allowed")
    refused(service.call("amy-server", "POST", f"{decide}/approve", {}), 403, "not_allowed")
    refused(service.call("bo", "POST", f"{decide}/deny", {"reason": "no"}), 404, "not_found")
    refused(service.call("lena", "POST", f"{decide}/deny", {}), 400, "reason_required")
    refused(service.call("lena", "POST", f"{decide}/approve", {"seconds": 4 * 3600}), 400, "invalid")
    [seen] = service.call("lena", "GET", "/extensions?state=needs_approval").json()["items"]
    assert seen["id"] == asked["id"]
    before = service.show(session["id"])
    granted = service.call("lena", "POST", f"{decide}/approve", {"seconds": 3600, "reason": "go on"}).json()
    assert (granted["state"], granted["by_seconds"], granted["decided_by"]) == ("granted", 3600, "lena")
    shown = service.call("amy", "GET", f"/workloads/{session['id']}").json()
    assert from_rfc3339(shown["expires_at"]) == from_rfc3339(before["expires_at"]) + 3_600_000
    assert shown["extension"]["decision_reason"] == "go on"
    assert f"{asked['id']}-granted" in [n["id"] for n in shown["notices"]]
    refused(service.call("lena", "POST", f"{decide}/deny", {"reason": "no"}), 409, "not_open")
    refused(service.call("amy", "POST", f"{decide}/withdraw", {}), 409, "not_open")
    refused(service.call("admin", "POST", "/extensions/nb-999-x1/approve", {}), 404, "not_found")
    refused(service.call("admin", "GET", "/extensions?state=nonsense"), 400, "invalid")


@pytest.mark.parametrize("to", ["by_seconds", "until"])
def test_ten_clicks_with_one_key_are_one_extension(
    service: ServiceUnderTest, session: dict[str, Any], to: str
) -> None:
    path, key = f"/workloads/{session['id']}/extensions", {"Idempotency-Key": f"click-{to}-{session['id']}"}
    later = service.call("amy", "GET", f"/workloads/{session['id']}").json()["expires_at"]
    until_then = to_rfc3339(Instant(from_rfc3339(later) + 600_000))
    body: dict[str, Any] = {"by_seconds": 600} if to == "by_seconds" else {"until": until_then}
    answers: list[httpx.Response] = []
    threads = [
        threading.Thread(target=lambda: answers.append(service.call("amy", "POST", path, body, headers=key)))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a.status_code for a in answers) == [200] * 9 + [201], [a.text for a in answers]
    assert len({a.json()["id"] for a in answers}) == 1
    shown = service.show(session["id"])
    assert (shown["lease_version"], shown["extensions_left"]) == (2, 1)
    other = service.call("amy", "POST", path, {"by_seconds": 601}, headers=key)
    refused(other, 422, "key_reused")
    for bad in ("", "x" * 201):
        answer = service.call("amy", "POST", path, body, headers={"Idempotency-Key": bad})
        refused(answer, 400, "invalid")
        assert answer.json()["error"]["hint"] == "a UUID made for each request"


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code", "numbers"),
    [
        ({"queue": "nope"}, "unknown_queue", None),
        ({"project": "nope"}, "unknown_project", None),
        ({"project": "chat"}, "not_allowed", None),
        ({"flavor": "h900"}, "unknown_flavor", None),
        ({"gpus": 3}, "above_maximum", (3, 2)),
        ({"lease": "13h"}, "above_maximum", (46800, 43200)),
        ({"gpus": 0, "cpus": 10**6}, "impossible", (10**6, None)),
        ({"memory": "81GiB"}, "impossible", None),
        ({"gpus": 1.5}, "invalid", None),
        ({"priority": 5}, "not_allowed", None),
        ({"override": "please"}, "not_allowed", None),
        ({"preemptible": False}, "not_allowed", None),
        ({"need": {"net": "ib"}}, "impossible", None),
    ],
    ids=str,
)
def test_what_is_refused_at_submit_comes_with_its_decision(
    service: ServiceUnderTest, change: dict[str, Any], code: str, numbers: tuple[int, int | None] | None
) -> None:
    body = {"user": "amy", "groups": ["vision"], "queue": "experiment", "kind": "notebook", "gpus": 1, **change}
    error = refused(service.call("spawner", "POST", "/workloads", body), 422, code)
    decision = error["details"]
    assert (decision["outcome"], decision["code"]) == ("refused", code)
    assert decision["headline"] == error["message"]
    assert error["hint"], "every refusal says what to do next"
    if numbers is not None:
        blocker = decision["blockers"][0]
        assert blocker["need"] == numbers[0]
        assert numbers[1] is None or blocker["limit"] == numbers[1]
    plan = service.call("spawner", "POST", "/plan", body).json()
    assert (plan["outcome"], plan["code"], plan["headline"]) == ("refused", code, decision["headline"])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "x" * 64}, "above_maximum"),
        ({"gpus": -1}, "invalid"),
        ({"gpus": 10**16}, "invalid"),
        ({"lease": "9" * 30 + "d"}, "invalid"),
        ({"lease": "4000dd"}, "invalid"),
        ({"memory": "9" * 30 + "GiB"}, "invalid"),
        ({"gpus": "1"}, "invalid"),
        ({"gpus": True}, "invalid"),
        ({"gpus": 0.0001}, "invalid"),
        ({"gpus": []}, "invalid"),
        ({"memory": 80}, "invalid"),
        ({"memory": "80GB"}, "invalid"),
        ({"lease": -5}, "invalid"),
        ({"lease": "soon"}, "invalid"),
        ({"name": "a\u202eb"}, "invalid"),
        ({"name": " a"}, "invalid"),
        ({"surprise": 1}, "invalid"),
        ({"kind": "mining"}, "invalid"),
    ],
    ids=str,
)
def test_what_breaks_the_form_is_refused_with_the_limit(
    service: ServiceUnderTest, change: dict[str, Any], code: str
) -> None:
    body = {"queue": "experiment", "kind": "notebook", "gpus": 1, **change}
    error = refused(service.call("amy", "POST", "/plan", body), 400, code)
    field = next(iter(change))
    assert any(problem["field"].startswith(field) for problem in error["details"]["problems"])


@pytest.mark.parametrize(
    ("change", "field", "asked", "limit"),
    [
        ({"gpus": 10**7}, "gpus", 10**7, 10**6),
        ({"gpus": [1, 10**7]}, "gpus", 10**7, 10**6),
        ({"memory": "2PiB"}, "memory", 2 * 1024**3, 1024**3),
        ({"ram": "2048TiB"}, "ram", 2 * 1024**3, 1024**3),
        ({"lease": "4000d"}, "lease", 4000 * 86400, 3650 * 86400),
        ({"lease": "P4000DT1H"}, "lease", 4000 * 86400 + 3600, 3650 * 86400),
        ({"start_deadline": 3651 * 86400}, "start_deadline", 3651 * 86400, 3650 * 86400),
        ({"cpus": 10**7}, "cpus", 10**7, 10**6),
    ],
    ids=str,
)
def test_what_is_beyond_the_bounds_is_refused_by_a_decision(
    service: ServiceUnderTest, change: dict[str, Any], field: str, asked: int, limit: int
) -> None:
    body = {"user": "amy", "groups": ["vision"], "queue": "experiment", "kind": "notebook", "gpus": 1, **change}
    error = refused(service.call("spawner", "POST", "/workloads", body), 422, "above_maximum")
    blocker = error["details"]["blockers"][0]
    assert (blocker["scope"], blocker["need"], blocker["limit"]) == (field, asked, limit)
    plan = service.call("spawner", "POST", "/plan", body)
    assert (plan.status_code, plan.json()["outcome"]) == (200, "refused")
    assert plan.json()["blockers"] == error["details"]["blockers"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/workloads/nb-99999", None, 404, "not_found"),
        ("GET", "/workloads/NB-1", None, 404, "not_found"),
        ("GET", "/nothing", None, 404, "not_found"),
        ("GET", "/workloads?limit=0", None, 400, "invalid"),
        ("GET", "/workloads?limit=--5", None, 400, "invalid"),
        ("GET", "/workloads?cursor=x", None, 400, "invalid"),
        ("GET", "/workloads?owner=%00", None, 400, "invalid"),
        ("GET", "/workloads?owner=%ff", None, 400, "invalid"),
        ("GET", "/servers/a%00b/receipt", None, 400, "invalid"),
        ("PUT", "/workloads", {}, 405, "method_not_allowed"),
        ("POST", "/queues/nope/hold", {"reason": "x"}, 404, "not_found"),
        ("POST", "/queues/experiment/hold", {}, 400, "invalid"),
        ("POST", "/nodes/nope/drain", {}, 404, "not_found"),
        ("PUT", "/policy", {"text": "version: 1"}, 400, "no_version"),
        ("GET", "/servers/nobody/receipt", None, 404, "not_found"),
        ("GET", "/spawn-options", None, 403, "not_allowed"),
    ],
)
def test_other_refusals(
    service: ServiceUnderTest, method: str, path: str, body: Any, status: int, code: str
) -> None:
    error = refused(service.call("admin", method, path, body), status, code)
    assert error["hint"], "every refusal says what to do next"


def test_reports_of_an_attempt_that_is_over(service: ServiceUnderTest, session: dict[str, Any]) -> None:
    path = f"/workloads/{session['id']}"
    for step, body in (("launch", {}), ("ready", {"url": "x"}), ("stopping", {})):
        answer = service.call("spawner", "POST", f"{path}/{step}", {"attempt": 7, **body})
        refused(answer, 404, "stale_attempt")
    refused(service.call("spawner", "POST", f"{path}/launch", {"attempt": 1}), 409, "not_starting")
    assert service.show(session["id"])["state"] == "running"


def test_a_save_of_somebody_else_cannot_be_overwritten(service: ServiceUnderTest, session: dict[str, Any]) -> None:
    other = service.run("bo")
    theirs = f"{other['id']}.1-1-end"
    forged = {"save": theirs, "asked_lab": False, "documents": [], "error": "nothing to see"}
    answer = service.call("amy-server", "PUT", f"/workloads/{session['id']}/saves/{theirs}", forged)
    refused(answer, 409, "stale_attempt")
    mismatch = service.call("amy-server", "PUT", f"/workloads/{session['id']}/saves/x", forged)
    refused(mismatch, 400, "invalid")
    end(service, other["id"])
    receipt = service.call("bo", "GET", f"/workloads/{other['id']}/receipt").json()
    assert receipt["saved_by_lab"] is None, "nobody's word counts for a save but its own session's"


@pytest.mark.parametrize("kind", [{}, {"kind": "notebook"}])
def test_who_submits_a_notebook_is_sent_to_the_hubs_page(service: ServiceUnderTest, kind: dict[str, str]) -> None:
    for language, message, hint in (
        ("en", "notebooks are not submitted", "start one from the hub's page"),
        ("zh", "笔记本不能提交", "请从 hub 页面启动"),
    ):
        body = {"queue": "experiment", "gpus": 0, **kind}
        answer = service.call("amy", "POST", "/workloads", body, headers={"Accept-Language": language})
        refused(answer, 400, "invalid")
        assert (answer.json()["error"]["message"], answer.json()["error"]["hint"]) == (message, hint)
