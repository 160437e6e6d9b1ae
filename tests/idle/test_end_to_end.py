"""An idle notebook is asked and given back: a real service, a real Jupyter server, real kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from idle.notebook import Notebook
from service_under_test import POLICY, ServiceUnderTest
from waiting import until

IDLE = "idle: {after: 8s, confirm: 4s, grace: 4s, keep: {count: 1, for: 6s}, kernel_after: KERNEL}"
RULE = POLICY.replace("    lease: {default: 4h, max: 12h}\n", f"    lease: {{default: 4h, max: 12h}}\n    {IDLE}\n")
RULE += "telemetry: {period: 1s}\n"


def policy(kernel_after: str = "null") -> str:
    return RULE.replace("KERNEL", kernel_after)


@pytest.fixture
def service(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ServiceUnderTest]:
    made = ServiceUnderTest(tmp_path / "state", policy(getattr(request, "param", "null")))
    made.start()
    yield made
    made.close()


@pytest.fixture
def notebook(service: ServiceUnderTest, tmp_path: Path) -> Iterator[Notebook]:
    made = Notebook(service, "amy", tmp_path / "home")
    service.hub.on_stop = lambda path: made.stop()
    yield made
    made.stop()


def events(service: ServiceUnderTest, workload: str) -> list[str]:
    found = service.call("admin", "GET", f"/workloads/{workload}/events?limit=1000").json()["items"]
    return [line["event"] for line in reversed(found)]


def test_an_idle_notebook_is_asked_kept_asked_again_and_given_back(
    service: ServiceUnderTest, notebook: Notebook
) -> None:
    notebook.open("a.ipynb")
    until(lambda: notebook.show()["idle_phase"] == "asked", 60, "the owner to be asked")
    shown = notebook.show()
    assert [n["kind"] for n in service.show(notebook.id, "amy")["notices"]] == ["idle"]
    assert shown["state"] == "running"
    assert shown["idle_deadline"] is not None
    why = notebook.why()
    assert "Keep" in why["headline"], why["headline"]
    assert {s["kind"]: s["level"] for s in why["signals"]} == dict.fromkeys(
        ("gpu", "cpu", "io", "kernel", "terminal", "child", "human"), "idle"
    )

    first = service.call("amy", "POST", f"/workloads/{notebook.id}/keep", {}, headers={"Idempotency-Key": "tab-1"})
    assert (first.status_code, first.json()["idle_phase"], first.json()["keeps_left"]) == (200, "kept", 0)
    again = service.call("amy", "POST", f"/workloads/{notebook.id}/keep", {}, headers={"Idempotency-Key": "tab-2"})
    assert (again.status_code, again.json()["keeps_left"]) == (200, 0)

    until(lambda: notebook.show()["idle_phase"] == "asked", 60, "the owner to be asked again")
    refused = service.call("amy", "POST", f"/workloads/{notebook.id}/keep", {})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "keep_used_up")

    until(lambda: notebook.show()["state"] == "culled", 60, "the notebook to be given back")
    ended = notebook.show()
    assert ended["end_reason"] == "idle"
    receipt = service.call("amy", "GET", f"/workloads/{notebook.id}/receipt").json()
    assert [d["path"] for d in receipt["documents"]] == ["a.ipynb"]
    assert [d["outcome"] for d in receipt["documents"]] == ["saved"]
    assert any("kernels, none works" in line for line in receipt["evidence"]), receipt["evidence"]
    wanted = ["idle_asked", "idle_kept", "idle_keep_ended", "idle_asked"]
    wanted += ["allocation_idled", "allocation_grace_ended"]
    assert [e for e in events(service, notebook.id) if e in wanted] == wanted
    acts = service.call("admin", "GET", f"/audit?workload={notebook.id}").json()["items"]
    idle = [(line["event"], line["actor"]) for line in reversed(acts) if "idle" in line["event"]]
    assert idle == [("idle_kept", "amy"), ("allocation_idled", "hubgov")], "the audit shows what was decided"


def test_a_cell_that_runs_in_the_grace_brings_it_back(service: ServiceUnderTest, notebook: Notebook) -> None:
    kernel = notebook.open("a.ipynb")
    until(lambda: notebook.show()["state"] == "expiring", 60, "the grace")
    notebook.execute(kernel, "import time; time.sleep(60)")
    until(lambda: notebook.show()["state"] == "running", 10, "the session to go on")
    why = notebook.why()
    assert {s["kind"]: s["level"] for s in why["signals"]}["kernel"] == "busy"
    assert why["headline"].startswith("Running and at work")


@pytest.mark.parametrize("service", ["4s"], indirect=True)
def test_an_idle_kernel_beside_a_busy_one_is_shut_down_and_the_lease_goes_on(
    service: ServiceUnderTest, notebook: Notebook
) -> None:
    idle, busy = notebook.open("idle.ipynb"), notebook.open("busy.ipynb")
    notebook.execute(busy, "import time; time.sleep(600)")
    until(lambda: notebook.kernels() == {busy}, 60, "the idle kernel to be shut down")
    until(lambda: "kernel_ended" in events(service, notebook.id), 60, "the end to be on record")
    shown = service.show(notebook.id, "amy")
    assert (shown["state"], shown["idle_phase"]) == ("running", "active")
    told = [(n["kind"], n["subject"]) for n in shown["notices"]]
    assert told == [("kernel_idle", "idle.ipynb")]
    copies = list((notebook.folder / ".hubgov" / "saves").glob(f"idle-{idle}/files/idle.ipynb"))
    assert len(copies) == 1
