"""A hub that was there before, joined by `hubgov init` alone: governed, then taken apart again and as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from existing_hub import ExistingHub, system_users, uid
from waiting import until

from hubgov import processes

PEOPLE = {"localprocess": ["hgtestann", "hgtestbo"], "simple": ["ann", "bo"]}
STRAGGLER = """
import subprocess
subprocess.Popen(["setsid", "-f", "bash", "-c", "trap '' TERM INT HUP; while :; do sleep 1000; done"])
"""


@pytest.fixture(
    scope="module", params=[pytest.param("localprocess", marks=[pytest.mark.boxed, pytest.mark.slow]), "simple"]
)
def hub(request: pytest.FixtureRequest) -> Iterator[ExistingHub]:
    """The hub of a site, not joined and not started; with LocalProcessSpawner its users are the machine's."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubgov-site-")))
        folder.chmod(0o755)
        names = PEOPLE[request.param]
        if request.param == "localprocess":
            (folder / "homes").mkdir()
            stack.enter_context(system_users(names, folder / "homes"))
        made = ExistingHub(folder, names, request.param)
        stack.callback(made.close)
        yield made


def hubgov(hub: ExistingHub, *arguments: str) -> str:
    """What the command prints; it must succeed."""
    command = [sys.executable, "-m", "hubgov.cli", *arguments]
    done = subprocess.run(command, cwd=hub.folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_of(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/environ").read_text()
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def spawn(browser: httpx.Client, **form: str) -> httpx.Response:
    page = browser.get("/spawn")
    xsrf = [cookie.value or "" for cookie in browser.cookies.jar if cookie.name == "_xsrf"][-1]
    assert page.status_code == 200
    return browser.post(f"/spawn?_xsrf={xsrf}", data=form)


def test_before_it_is_joined_a_server_is_not_governed(hub: ExistingHub) -> None:
    hub.start()
    first = hub.people[0]
    with closing(hub.browser(first)) as browser:
        assert spawn(browser, image="small").status_code == 200
    state = hub.ready(first)["state"]
    assert "HUBGOV_WORKLOAD_ID" not in environment_of(state["pid"])
    hub.stop(first)
    hub.end()


def test_a_dry_run_writes_nothing(hub: ExistingHub) -> None:
    before = {path: path.read_bytes() for path in hub.folder.iterdir() if path.is_file()}
    shown = hubgov(hub, "init", "--state", str(hub.folder / "state"))
    assert "Nothing was written" in shown
    assert "+hubgov.setup(c)" in shown
    assert "vision" in shown
    assert {path: path.read_bytes() for path in hub.folder.iterdir() if path.is_file()} == before


def test_init_joins_it_and_a_second_time_changes_nothing(hub: ExistingHub) -> None:
    original = hub.config.read_bytes()
    (hub.folder / "original").write_bytes(original)
    hubgov(hub, "init", "--state", str(hub.folder / "state"), "--simulated", "--apply", "--yes")
    joined = hub.config.read_bytes()
    assert joined.startswith(original)
    assert (hub.folder / "hubgov-policy.yaml").exists()
    backups = list(hub.folder.glob("*.before-hubgov"))
    assert [backup.read_bytes() for backup in backups] == [original]
    assert "nothing to write" in hubgov(hub, "init", "--apply", "--yes")
    assert hub.config.read_bytes() == joined


@pytest.fixture(scope="module")
def governed(hub: ExistingHub) -> ExistingHub:
    """The hub, joined and up, its service on a port of the test's."""
    text = hub.config.read_text()
    line = f"c.HubGov.service_port = {hub.service_port}"
    kept = [row for row in text.splitlines(keepends=True) if not row.startswith("c.HubGov.service_port")]
    hub.config.write_text("".join(kept).replace("hubgov.setup(c)", f"{line}\nhubgov.setup(c)"))
    hub.start()
    return hub


def form_of(browser: httpx.Client) -> Callable[[], Any]:
    return lambda: (page := browser.get("/spawn").text) and "hubgov-card" in page and page


def test_a_server_started_by_the_form_is_governed(governed: ExistingHub) -> None:
    hub, first = governed, governed.people[0]
    with closing(hub.browser(first)) as browser:
        page = until(form_of(browser), 60, "the form of hubgov")
        assert "name='image'" in page
        hours = {"profile": "one-gpu", "hours": "1", "image": "big"}
        assert spawn(browser, **hours).status_code == 200
    found = hub.ready(first)
    assert found["user_options"]["image"] == "big"
    environment = environment_of(found["state"]["pid"])
    assert environment["CUDA_VISIBLE_DEVICES"].startswith("SIM-")
    assert environment["HUBGOV_WORKLOAD_ID"] == "nb-1"
    assert environment["HUBGOV_DEADLINE_FILE"].startswith(environment["HOME"])
    if first.startswith("hgtest"):
        assert os.stat(f"/proc/{found['state']['pid']}").st_uid == uid(first)
    hooks = hub.hooks()
    assert "pre_spawn big" in hooks
    assert "auth_state" in hooks


def test_its_lease_runs_and_can_be_extended(governed: ExistingHub) -> None:
    with governed.service(governed.people[0]) as service:
        workload = service.get("/workloads/nb-1").json()
        assert workload["state"] == "running"
        assert workload["expires_at"]
        body = {"by_seconds": 3600, "reason": "evaluation"}
        extended = service.post("/workloads/nb-1/extensions", json=body).json()
        assert extended["state"] == "granted"
        assert extended["expires_at"] > workload["expires_at"]
        held = [d for d in service.get("/devices").json()["items"] if d["workload"] == "nb-1"]
        assert [device["isolation"] for device in held] == ["advisory"]


def test_doctor_finds_nothing_broken(governed: ExistingHub) -> None:
    found = json.loads(hubgov(governed, "doctor", "--json"))
    colours = {row["check"]: row["colour"] for row in found["checks"]}
    assert found["ok"]
    for check in ("config", "hub", "service", "leader", "port", "ledger", "policy", "private_files", "lab", "disk"):
        assert colours[check] == "green", found
    assert colours["isolation"] == "amber"
    said = {row["check"]: row["text"] for row in found["checks"]}
    assert said["devices"].startswith("GPUs: 0 real, 6 simulated")
    assert governed.people[1] in said["groups"]


def test_a_hub_that_is_killed_and_started_again_knows_it(governed: ExistingHub) -> None:
    hub, first = governed, governed.people[0]
    before = hub.server(first)["state"]["hubgov_server"]
    older = hub.service_pid()
    assert hub.process is not None
    hub.process.kill()
    hub.process.wait()
    hub.start()
    until(lambda: hub.service_pid() not in (None, older), 60, "the new hub's service has taken over")
    assert hub.ready(first)["state"]["hubgov_server"] == before


def test_a_stop_ends_what_ignores_signals_and_leaves_a_receipt(governed: ExistingHub) -> None:
    hub, first = governed, governed.people[0]
    state = hub.server(first)["state"]
    mark = state["hubgov_server"][4].encode()
    hub.run(first, STRAGGLER)

    def of_it() -> list[Any]:
        return processes.with_environment(lambda entry: entry == b"HUBGOV_ALLOCATION_ID=" + mark)

    until(lambda: len(of_it()) >= 3, 20, "server, kernel and straggler")
    hub.stop(first)
    with hub.service(first) as service:
        receipt = until(
            lambda: (answer := service.get("/workloads/nb-1/receipt")).status_code == 200 and answer.json(),
            60,
            "the receipt",
        )
    assert of_it() == []
    assert receipt["workload"]["end_reason"] == "cancelled"
    assert receipt["devices_free_at"]
    assert "post_stop" in hub.hooks()


def test_who_is_in_no_group_is_told_what_to_do(governed: ExistingHub) -> None:
    second = governed.people[1]
    with closing(governed.browser(second)) as browser:
        page = until(lambda: (p := browser.get("/spawn").text) and "hubgov" in p and p, 30, "the form")
        assert "no team" in page
    answer = governed.api("POST", f"/users/{second}/server")
    assert answer.status_code in (403, 422), answer.text
    assert "team" in answer.json()["message"]


def test_a_new_member_of_a_group_starts_without_any_restart(governed: ExistingHub) -> None:
    hub, second = governed, governed.people[1]
    with hub.service(second) as service:
        body = {"queue": "experiment", "kind": "notebook", "gpus": 1}
        refused = service.post("/plan", json=body).json()
        assert (refused.get("outcome"), refused.get("code")) == ("refused", "unknown_project"), refused
        assert "You are in no team" in refused["headline"]
        assert hub.api("POST", "/groups/vision/users", {"users": [second]}).status_code == 200
        until(lambda: service.post("/plan", json=body).json().get("outcome") == "granted", 20, "he is in a team")
    assert hub.api("POST", f"/users/{second}/server").status_code in (201, 202)
    assert environment_of(hub.ready(second)["state"]["pid"])["HUBGOV_WORKLOAD_ID"]
    hub.stop(second)


def test_removed_it_is_as_it_was(governed: ExistingHub) -> None:
    hub, first = governed, governed.people[0]
    hub.end()
    hubgov(hub, "init", "--remove", "--apply")
    assert hub.config.read_bytes() == (hub.folder / "original").read_bytes()
    hub.start()
    with closing(hub.browser(first)) as browser:
        assert "hubgov" not in browser.get("/spawn").text
        assert spawn(browser, image="small").status_code == 200
    state = hub.ready(first)["state"]
    assert "HUBGOV_WORKLOAD_ID" not in environment_of(state["pid"])
    assert [name for name in hub.api("GET", "/services").json() if name.startswith("hubgov")] == []
    hub.stop(first)
