"""Queues, nodes, the policy, and waiting for changes."""

from __future__ import annotations

import threading
import time
from typing import Any

from service.answers import end, refused
from service_under_test import ServiceUnderTest
from waiting import until

# --- queues, nodes, policy -------------------------------------------------------------------------------


def test_a_held_queue_starts_nothing_and_a_closed_one_takes_nothing(service: ServiceUnderTest) -> None:
    held = service.call("admin", "POST", "/queues/experiment/hold", {"reason": "upkeep"})
    assert held.json() == {"queue": "experiment", "held": True, "closed": False, "reason": "upkeep"}
    waiting = service.ask("amy", "cpu", server="held").json()
    assert (waiting["state"], waiting["why"]) == ("held", "held")
    assert service.call("admin", "POST", "/queues/experiment/hold", {"reason": "r", "closed": True}).json()[
        "closed"
    ]
    refused(service.ask("amy", "cpu", server="other"), 422, "held")
    assert service.call("admin", "POST", "/queues/experiment/release", {}).status_code == 200
    assert service.show(waiting["id"])["state"] == "admitted"
    end(service, waiting["id"])


def test_a_drained_node_takes_nothing_new(service: ServiceUnderTest) -> None:
    def free() -> tuple[int, int]:
        """Cards that the pools and the spawn form call free."""
        (pool,) = service.call("amy", "GET", "/pools").json()["items"]
        form = service.call("spawner", "GET", "/spawn-options?user=amy&groups=vision").json()
        return pool["free"], next(p["free"] for p in form["profiles"] if p["name"] == "one")

    assert free() == (2, 2)
    node = service.call("admin", "GET", "/devices").json()["items"][0]["node"]
    assert service.call("admin", "POST", f"/nodes/{node}/drain", {"reason": "fan"}).json()["drained"]
    assert {d["state"] for d in service.call("amy", "GET", "/devices").json()["items"]} == {"drained"}
    assert free() == (0, 0), "what takes nothing new is not free, wherever it is counted"
    waiting = service.ask("amy").json()
    assert (waiting["state"], waiting["why"]) == ("pending", "waiting_devices")
    form = "/spawn-options?user=amy&groups=vision"
    assert service.call("spawner", "GET", form).json()["waiting"] == waiting["id"], "what a new choice replaces"
    assert service.call("spawner", "GET", f"{form}&server=other").json()["waiting"] is None
    assert not service.call("admin", "POST", f"/nodes/{node}/undrain", {}).json()["drained"]
    assert service.show(waiting["id"])["state"] == "admitted"
    end(service, waiting["id"])
    acts = {line["event"] for line in service.call("admin", "GET", "/audit").json()["items"]}
    assert {"node_drained", "node_undrained", "queue_held", "queue_released"} <= acts


def test_the_policy_is_edited_against_its_version(service: ServiceUnderTest) -> None:
    current = service.call("admin", "GET", "/policy")
    version, text = current.json()["version"], current.json()["text"]
    assert current.headers["etag"] == f'"{version}"'
    edited = text.replace("default: 4h", "default: 3h")
    diff = service.call("admin", "POST", "/policy/diff", {"text": edited}).json()
    assert [e["path"] for e in diff["edits"]] == ["queues.experiment.lease.default"]
    assert diff["warnings"] == []
    doubtful = text.replace("flavor: a100, guaranteed: 1", "flavor: a100, guaranteed: 9", 1)
    assert doubtful != text
    (warning,) = service.call("admin", "POST", "/policy/diff", {"text": doubtful}).json()["warnings"]
    assert "warning over_guaranteed" in warning
    assert service.call("admin", "POST", "/policy/check", {"text": edited}).json()["ok"]
    faulty = service.call("admin", "POST", "/policy/check", {"text": "version: 1\nquues: {}\n"}).json()
    assert not faulty["ok"]
    assert faulty["problems"][0]["line"]
    match = {"If-Match": f'"{version}"'}
    told = refused(
        service.call("admin", "PUT", "/policy", {"text": "quues: {}"}, headers=match), 400, "policy_invalid"
    )
    assert told["details"]["problems"][0] == told["hint"]
    assert "there is no key 'quues' at the top; did you mean queues?" in told["hint"]
    chinese = {**match, "Accept-Language": "zh-CN"}
    told = refused(
        service.call("admin", "PUT", "/policy", {"text": "quues: {}"}, headers=chinese), 400, "policy_invalid"
    )
    assert told["message"] == f"策略有 {len(told['details']['problems'])} 处错误，未应用"
    assert "顶层没有键 'quues'；是否想写 queues？" in told["hint"]
    applied = service.call("admin", "PUT", "/policy", {"text": edited}, headers={"If-Match": f'"{version}"'})
    assert applied.json()["version"] == version + 1
    moved = service.call("admin", "PUT", "/policy", {"text": text}, headers={"If-Match": f'"{version}"'})
    assert refused(moved, 412, "policy_moved")["details"] == {"version": version + 1}
    session = service.ask("bo", "cpu").json()
    without = text.replace("  chat: {team: nlp, owner: bo}\n", "")
    taken = service.call("admin", "PUT", "/policy", {"text": without}, headers={"If-Match": f"{version + 1}"})
    assert session["id"] in refused(taken, 409, "in_use")["message"]
    end(service, session["id"])


# --- waiting ---------------------------------------------------------------------------------------------


def test_a_long_poll_wakes_at_once_and_otherwise_returns_in_time(
    service: ServiceUnderTest, session: dict[str, Any]
) -> None:
    path = f"/workloads/{session['id']}"
    began = time.monotonic()
    same = service.call("amy", "GET", f"{path}?after={session['version']}&wait=1").json()
    assert 0.9 <= time.monotonic() - began < 3
    assert same["version"] == session["version"]
    woken: list[tuple[float, dict[str, Any]]] = []

    def wait() -> None:
        answer = service.call("amy", "GET", f"{path}?after={session['version']}&wait=30").json()
        woken.append((time.monotonic(), answer))

    thread = threading.Thread(target=wait)
    thread.start()
    assert service.call("bo", "POST", "/plan", {"queue": "experiment", "gpus": 0, "kind": "notebook"}).is_success
    changed = service.call("amy", "POST", f"{path}/extensions", {"by_seconds": 60})
    told = time.monotonic()
    thread.join(10)
    assert changed.status_code == 201
    assert woken[0][0] - told < 0.2
    assert woken[0][1]["version"] > session["version"]
    past = service.call("amy", "GET", f"{path}?after=0&wait=30")
    assert past.status_code == 200
    refused(service.call("amy", "GET", f"{path}?wait=61"), 400, "invalid")


def test_too_many_attached_spawns_are_turned_away(fresh: ServiceUnderTest) -> None:
    text = fresh.state / "policy.yaml"
    text.write_text(text.read_text().replace("timezone: UTC", "timezone: UTC\nmax_attached: 2"))
    fresh.start()
    for server in ("a", "b"):
        fresh.run("bo", server=server)
    waiting = [f"/workloads/{fresh.ask('amy', server=f's{n}').json()['id']}" for n in range(3)]
    # Between two polls a spawner still counts as attached, for a moment.
    for path in waiting[:2]:
        assert fresh.call("spawner", "GET", f"{path}?after=99&wait=1&attach=1").status_code == 200
    third = f"{waiting[2]}?after=99&wait=1&attach=1"
    error = refused(fresh.call("spawner", "GET", third), 429, "too_many")
    assert "kept" in error["hint"]
    assert fresh.call("spawner", "GET", f"{waiting[0]}?after=99&wait=1&attach=1").status_code == 200
    assert fresh.call("spawner", "GET", f"{waiting[2]}?wait=1").status_code == 200
    until(lambda: fresh.call("spawner", "GET", third).status_code == 200, 15, "a place to become free")


def test_only_a_spawner_waits_attached(fresh: ServiceUnderTest) -> None:
    """The places are few: whoever else asks for one waits without it."""
    text = fresh.state / "policy.yaml"
    text.write_text(text.read_text().replace("timezone: UTC", "timezone: UTC\nmax_attached: 1"))
    fresh.start()
    fresh.run("bo", "two")
    mine, other = (fresh.ask("amy", server=name).json()["id"] for name in ("a", "b"))
    for who in ("amy", "ava", "amy-server", "lena", "admin"):
        assert fresh.call(who, "GET", f"/workloads/{mine}?after=99&wait=1&attach=1").status_code == 200
    # One that had taken the place would still have it for a moment.
    assert fresh.call("spawner", "GET", f"/workloads/{other}?after=99&wait=1&attach=1").status_code == 200
    refused(fresh.call("spawner", "GET", f"/workloads/{mine}?after=99&wait=1&attach=1"), 429, "too_many")
