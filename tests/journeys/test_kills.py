"""Kill -9 of hub, service, proxy or notebook server, at any point: nothing is lost, nothing allocated twice.

Real processes throughout. After each kill `up` is run again, as a user would.
"""

from __future__ import annotations

import json
import signal
import sqlite3
from typing import Any

import httpx
import pytest
from demo_under_test import DemoUnderTest
from waiting import until

from hubgov import processes
from hubgov.wire import ProcessRef

pytestmark = pytest.mark.boxed
PARTS = ("hub", "service", "proxy")


def server_of(demo: DemoUnderTest, workload: dict[str, Any]) -> ProcessRef:
    """The notebook server's main process, from the ledger."""
    with sqlite3.connect(f"file:{demo.state / 'hubgov.sqlite'}?mode=ro", uri=True) as ledger:
        row = ledger.execute(
            "SELECT body FROM allocation WHERE workload = ? ORDER BY attempt DESC", (workload["id"],)
        ).fetchone()
    main = json.loads(row[0])["main"]
    return ProcessRef(**main)


def held_once(demo: DemoUnderTest) -> None:
    """No device has two whole holders, and every holder is a live workload."""
    devices = demo.call("admin", "GET", "/devices").json()["items"]
    live = demo.call("admin", "GET", "/workloads?state=live").json()["items"]
    holding = [(d["node"], d["index"], w["id"]) for w in live for d in w["devices"]]
    assert len({(node, index) for node, index, _ in holding}) == len(holding), holding
    named = {d["workload"] for d in devices if d["workload"]}
    assert named <= {w["id"] for w in live}


def end_all(demo: DemoUnderTest) -> None:
    """Cancel whatever is live, and wait until the devices are free."""
    for user in ("amy", "bo"):
        for workload in demo.call(user, "GET", f"/workloads?state=live&owner={user}").json()["items"]:
            demo.call(user, "DELETE", f"/workloads/{workload['id']}", {"now": True})
    until(lambda: not demo.call("admin", "GET", "/workloads?state=live").json()["items"], 60, "everything to end")


@pytest.mark.parametrize("part", PARTS)
def test_a_running_notebook_and_one_that_waits_survive(demo: DemoUnderTest, part: str) -> None:
    demo.spawn("amy")
    running = demo.until_state("amy", "running")
    server = server_of(demo, running)
    assert demo.spawn("bo").status_code in (202, 503)
    waiting = demo.until_state("bo", "pending")

    demo.kill(part)
    demo.up()

    assert processes.is_alive(server), "the notebook server went down with the " + part
    after = demo.call("amy", "GET", f"/workloads/{running['id']}").json()
    assert (after["state"], after["devices"]) == ("running", running["devices"])
    assert after["expires_at"] == running["expires_at"]
    still = demo.call("bo", "GET", f"/workloads/{waiting['id']}").json()
    assert (still["state"], still["submitted_at"], still["position"]) == ("pending", waiting["submitted_at"], 1)
    until(lambda: reachable(demo, "amy"), 30, "amy's server to be reachable through the proxy")
    held_once(demo)
    # And the wait ends as it should: bo's server starts by itself once amy's is gone.
    demo.call("amy", "DELETE", f"/workloads/{running['id']}", {"now": True})
    started = demo.until_state("bo", "running", 90)
    assert started["id"] == waiting["id"]
    assert started["devices"] == running["devices"]
    held_once(demo)
    end_all(demo)


def reachable(demo: DemoUnderTest, user: str) -> bool:
    try:
        return demo._request(user, "GET", f"/user/{user}/api/kernels", None).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.parametrize("part", PARTS)
def test_killed_while_a_server_starts(demo: DemoUnderTest, part: str) -> None:
    asking = demo.begin("amy")
    starting = demo.until_state("amy", "starting")
    demo.kill(part)
    demo.up()
    running = demo.until_state("amy", "running", 120)
    asking.join(60)
    assert running["id"] == starting["id"], "the ticket is the same"
    held_once(demo)
    until(lambda: reachable(demo, "amy"), 60, "amy's server to be reachable through the proxy")
    end_all(demo)


def test_a_killed_notebook_server_frees_its_device_and_says_so(demo: DemoUnderTest) -> None:
    demo.spawn("amy")
    running = demo.until_state("amy", "running")
    demo.spawn("bo")
    demo.until_state("bo", "pending")
    assert processes.send(server_of(demo, running), signal.SIGKILL)
    failed = until(
        lambda: (w := demo.call("amy", "GET", f"/workloads/{running['id']}").json())["ended_at"] and w,
        60,
        "amy's workload to end",
    )
    assert (failed["state"], failed["end_reason"]) == ("failed", "failed")
    assert demo.until_state("bo", "running", 90)["devices"] == running["devices"]
    receipt = demo.call("amy", "GET", f"/workloads/{running['id']}/receipt").json()
    assert receipt["lost"], "the receipt says that what was not on disk is lost"
    held_once(demo)
    end_all(demo)


@pytest.mark.parametrize("part", PARTS)
def test_killed_in_the_grace_after_the_end(demo: DemoUnderTest, part: str) -> None:
    demo.hub("amy", "POST", "/users/amy/server", {"user_options": {"profile": "one-gpu", "lease": 20}})
    running = demo.until_state("amy", "running")
    demo.until_state("amy", "expiring", 90)
    demo.kill(part)
    demo.up()
    ended = until(
        lambda: (w := demo.call("amy", "GET", f"/workloads/{running['id']}").json())["ended_at"] and w,
        90,
        "amy's workload to end",
    )
    assert (ended["state"], ended["end_reason"]) == ("expired", "lease")
    assert ended["expires_at"] == running["expires_at"], "the end that was shown stands"
    devices = demo.call("admin", "GET", "/devices").json()["items"]
    assert [d["state"] for d in devices if d["pool"] == "dev"] == ["free"]
    held_once(demo)
