"""The service is killed and comes back: same work, same places, same devices, same deadlines."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service import server_process
from service_under_test import POLICY, PREFIX, ServiceUnderTest
from waiting import until

from hubgov.config import site_of

KEPT = (
    "id", "state", "attempt", "position", "devices", "expires_at", "hard_end_at", "grace_until", "lease_version",
    "submitted_at", "started_at", "extensions_left", "version",
)  # fmt: skip
SHORT = POLICY.replace(
    "lease: {default: 4h, max: 12h}", "lease: {default: 2s, max: 12h}\n    warn: []\n    grace: 1h"
)


class Server:
    """A notebook server's stand-in: a process that the service can see, reported as the spawner does."""

    def __init__(self, service: ServiceUnderTest, workload: str) -> None:
        attempt = service.show(workload)["attempt"]
        path = f"/workloads/{workload}"
        launch = service.call("spawner", "POST", f"{path}/launch", {"attempt": attempt}).json()
        self.process, main = server_process.start(launch["environment"])
        service.call("spawner", "POST", f"{path}/processes", {"attempt": attempt, "main": main})
        service.call("spawner", "POST", f"{path}/ready", {"attempt": attempt, "url": "http://127.0.0.1:1/"})
        service.hub.on_stop = lambda _: self.process.terminate()

    def close(self) -> None:
        server_process.end(self.process)


def _kept(service: ServiceUnderTest) -> dict[str, dict[str, Any]]:
    items = service.call("admin", "GET", "/workloads?state=live").json()["items"]
    return {w["id"]: {key: w[key] for key in KEPT} for w in items}


def _held_once(service: ServiceUnderTest) -> None:
    live = service.call("admin", "GET", "/workloads?state=live").json()["items"]
    held = [device["uuid"] for w in live for device in w["devices"]]
    assert len(held) == len(set(held)), "a device held twice"


def _killed_and_back(service: ServiceUnderTest) -> None:
    assert service.kill(signal.SIGKILL) == -signal.SIGKILL
    service.start()


@pytest.fixture
def short(tmp_path: Path) -> Iterator[ServiceUnderTest]:
    under_test = ServiceUnderTest(tmp_path / "state", SHORT)
    try:
        under_test.start()
        yield under_test
    finally:
        under_test.close()


@pytest.mark.parametrize("state", ["waiting", "starting", "running"])
def test_kill_9(fresh: ServiceUnderTest, state: str) -> None:
    fresh.start()
    servers = []
    mine = fresh.ask("amy", "two").json()["id"]
    if state == "starting":
        fresh.call("spawner", "POST", f"/workloads/{mine}/launch", {"attempt": 1})
    else:
        servers.append(Server(fresh, mine))
    waiting = [
        fresh.ask(user, server=server).json()["id"] for user, server in (("ava", ""), ("bo", ""), ("bo", "b"))
    ]
    if state == "running":
        fresh.call("amy", "POST", f"/workloads/{mine}/extensions", {"by_seconds": 600})
    before = _kept(fresh)
    try:
        _killed_and_back(fresh)
        after = _kept(fresh)
        assert after == before
        assert sorted(after[w]["position"] for w in waiting) == [1, 2, 3]
        _held_once(fresh)
        epoch = fresh.http.get(f"{PREFIX}health").json()["epoch"]
        assert epoch == 2
        fresh.call("amy", "DELETE", f"/workloads/{mine}", {"now": True})
        until(lambda: fresh.show(mine)["ended_at"], 30, "the devices to be free")
        until(
            lambda: len(fresh.call("admin", "GET", "/workloads?state=admitted").json()["items"]) == 2, 10, "turns"
        )
        _held_once(fresh)
        receipt = fresh.call("amy", "GET", f"/workloads/{mine}/receipt").json()
        shown = receipt["workload"]
        assert (shown["state"], shown["end_reason"]) == ("cancelled", "cancelled")
        assert receipt["devices_free_at"] == shown["ended_at"]
        assert (receipt["used_seconds"] >= 1) == (state != "starting")
    finally:
        for server in servers:
            server.close()


def test_kill_9_in_the_grace(short: ServiceUnderTest) -> None:
    mine = short.ask("amy").json()["id"]
    server = Server(short, mine)
    try:
        until(lambda: short.show(mine)["state"] == "expiring", 10, "the lease to end")
        before = _kept(short)
        _killed_and_back(short)
        assert _kept(short) == before, "the grace goes on where it was"
        assert server.process.poll() is None
        extended = short.call("amy", "POST", f"/workloads/{mine}/extensions", {"by_seconds": 3600})
        assert (extended.status_code, short.show(mine)["state"]) == (201, "running")
    finally:
        server.close()


def test_what_fell_due_while_the_service_was_away_is_done_when_it_is_back(short: ServiceUnderTest) -> None:
    mine = short.ask("amy").json()["id"]
    server = Server(short, mine)
    try:
        end = short.show(mine)["expires_at"]
        assert short.kill(signal.SIGKILL) == -signal.SIGKILL
        server.process.terminate()
        server.process.wait(10)
        short.start()
        until(lambda: short.show(mine)["ended_at"], 30, "it to be over")
        receipt = short.call("amy", "GET", f"/workloads/{mine}/receipt").json()
        assert receipt["workload"]["end_reason"] in ("failed", "lease")
        assert receipt["workload"]["expires_at"] == end
        assert short.call("admin", "GET", "/devices").json()["items"][0]["state"] == "free"
        assert short.call("admin", "GET", "/devices").json()["items"][1]["state"] == "free"
    finally:
        server.close()


def test_a_second_service_on_the_same_state_makes_the_first_stand_down(fresh: ServiceUnderTest) -> None:
    """A killed hub leaves its service alive and starts another one: the newer belongs to the living hub."""
    fresh.start()
    running = fresh.run("amy")
    waiting = fresh.ask("bo", "two").json()["id"]
    before = _kept(fresh)
    first = fresh.process
    assert first is not None
    fresh.start()
    assert first.wait(30) == 0, fresh.log()[-2000:]
    second = fresh.process
    assert second is not None

    def answered_by_the_second() -> bool:
        try:
            return bool(fresh.http.get(f"{PREFIX}health").json()["pid"] == second.pid)
        except httpx.HTTPError:
            return False

    until(answered_by_the_second, 30, "the second to answer")
    assert _kept(fresh) == before
    assert (
        fresh.call("amy", "POST", f"/workloads/{running['id']}/extensions", {"by_seconds": 60}).status_code == 201
    )
    assert fresh.show(waiting)["state"] == "pending"
    _held_once(fresh)
    assert "event=standing_down_older" in fresh.log()
    assert "Traceback" not in fresh.log()


def test_a_service_told_to_stop_ends_in_order(fresh: ServiceUnderTest) -> None:
    fresh.start()
    fresh.ask("amy")
    assert fresh.kill(signal.SIGTERM) == 0
    assert "event=stopped" in fresh.log()
    assert "Traceback" not in fresh.log()


def test_a_service_that_cannot_start_says_why_in_a_line(fresh: ServiceUnderTest) -> None:
    (fresh.state / "hubgov.sqlite").mkdir()
    with pytest.raises(AssertionError, match="ended with 1"):
        fresh.start()
    fresh.process = None
    assert "hint:" in fresh.log()
    assert "Traceback" not in fresh.log()


def test_health_says_that_nothing_can_be_written_and_that_it_can_again(fresh: ServiceUnderTest) -> None:
    fresh.start()

    def health() -> dict[str, Any]:
        answer: dict[str, Any] = fresh.http.get(f"{PREFIX}health").json()
        return answer

    assert (health()["status"], health()["trouble"]) == ("ok", None)
    with sqlite3.connect(fresh.state / "hubgov.sqlite", isolation_level=None) as other:
        other.execute("CREATE TRIGGER no BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'secret-of-bo'); END")
        refused = fresh.ask("amy", "cpu")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
        assert health()["status"] == "degraded"
        assert "secret" not in refused.text + json.dumps(health())
        other.execute("DROP TRIGGER no")
    other.close()
    until(lambda: health()["status"] == "ok", 15, "the renewal to see that it can be written")
    assert health()["trouble"] is None


def test_nothing_starts_while_sessions_of_a_lost_ledger_run(fresh: ServiceUnderTest) -> None:
    """Their devices are free by the new ledger's word only."""
    mark = f"nb-1.1@{site_of(str(fresh.state))}.lost"
    environment = {**os.environ, "HUBGOV_ALLOCATION_ID": mark}
    command = [sys.executable, "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        fresh.start()
        workload = fresh.ask("amy").json()
        assert (workload["state"], workload["why"]) == ("pending", "held")
        assert "does not answer" in workload["headline"]
        stranger.kill()
        stranger.wait()
        until(lambda: fresh.show(workload["id"])["state"] == "admitted", 30, "it to be granted")
    assert "event=strangers_found" in fresh.log()
