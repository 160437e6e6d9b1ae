"""The program against the real service: the documents, sentences and statuses are the service's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Program, Ran
from service_under_test import PREFIX, ServiceUnderTest
from waiting import until


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceUnderTest]:
    under_test = ServiceUnderTest(tmp_path / "state")
    try:
        under_test.start()
        yield under_test
    finally:
        under_test.close()


def test_a_day_with_the_command_line(hubgov: Program, service: ServiceUnderTest, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{service.port}{PREFIX}"

    def as_(user: str, *arguments: str, given: str = "") -> Ran:
        return hubgov(*arguments, given=given, HUBGOV_URL=url, HUBGOV_TOKEN=f"{user}-token", TZ="UTC")

    # 1. One runs, one waits: the list, the numbers, the reasons.
    running = service.run("amy", "two")["id"]
    waiting = service.ask("bo", "one").json()["id"]
    listed = as_("admin", "list", "--columns", "id,state,why,owner,device")
    assert listed.code == 0
    assert sorted(row[0] for row in listed.rows[1:]) == sorted([running, waiting])
    assert {row[0]: row[4].count("SIMULATED") for row in listed.rows[1:]} == {running: 2, waiting: 1}
    assert as_("bo", "list", "--json").document["total"] == 1
    why = as_("bo", "why", waiting)
    assert (why.code, why.rows[1][:2]) == (0, ["waiting", "waiting_quota"])
    assert "排队中" in as_("bo", "why", waiting, "--lang", "zh").out
    assert as_("amy", "devices").out.count("in use") == 2
    assert as_("bo", "quota").rows[1][0] == "nlp"
    assert as_("bo", "show", running).code == 1
    assert as_("bo", "show", "nonsense").code == 1

    # 2. More time: granted, needing a yes, beyond what anybody can grant.
    extended = as_("amy", "extend", running, "--by", "2h", "--reason", "evaluation")
    assert (extended.code, extended.err) == (0, "")
    assert extended.out.startswith("Extended to ")
    unsure = as_("amy", "extend", running, "--by", "2h30m", "--reason", "more")
    assert unsure.code == 6
    assert "It needs the yes of lena, admin." in unsure.err
    assert "Ask lena, admin" in unsure.err
    chinese = as_("amy", "extend", running, "--by", "3h", "--reason", "more", "--lang", "zh")
    assert "需由 lena, admin 批准" in chinese.err
    denied = as_("amy", "extend", running, "--by", "9h", "--reason", "more")
    assert (denied.code, denied.out) == (3, "")
    assert "9h" in denied.err
    assert [row[-1] for row in as_("admin", "extensions").rows[1:]] == ["—", "—", "lena, admin", "—"]
    # The last of the two is open: it would keep bo waiting, who is of another team, so that only an admin decides.
    [asked] = as_("admin", "approvals", "--json").document["items"]
    assert (asked["state"], asked["by_seconds"], asked["needs"]) == ("needs_approval", 10800, ["lena", "admin"])
    assert [(d["workload"], d["team"]) for d in asked["delays"]] == [(waiting, "nlp")]
    assert as_("amy", "approve", asked["id"]).code == 3
    approved = as_("admin", "approve", asked["id"], "--by", "1h", "--reason", "the paper is due")
    assert (approved.code, approved.err) == (0, "")
    assert as_("amy", "extensions", "--json").document["items"][2]["decided_by"] == "admin"
    assert as_("admin", "deny", asked["id"], "--reason", "too late").code == 1

    # 3. Plans, holds, nodes, and who may.
    assert as_("bo", "plan", "--queue", "experiment", "--gpus", "1", "--kind", "notebook").code == 0
    assert as_("bo", "plan", "--queue", "experiment", "--gpus", "512", "--kind", "notebook").code == 3
    assert as_("bo", "hold", "experiment", "--reason", "x").code == 3
    assert as_("admin", "hold", "experiment", "--reason", "repair").code == 0
    assert as_("admin", "queues").rows[1][8] == "yes"
    assert "repair" in as_("bo", "why", waiting).out
    assert [row[0] for row in as_("admin", "list", "--state", "held", "--columns", "id,state").rows[1:]] == [
        waiting
    ]
    assert as_("bo", "show", running, "--lang", "zh").err.startswith(f"hubgov: 没有任务 {running}，")
    assert as_("admin", "release", "experiment").code == 0
    node = as_("admin", "devices", "--json").document["items"][0]["node"]
    assert as_("admin", "drain", node, "--reason", "x").code == 0
    assert as_("admin", "undrain", node).code == 0
    assert as_("admin", "pools").code == 0

    # 4. The policy: shown as it is, compared, applied, and moved meanwhile.
    policy = as_("admin", "policy", "show").out
    assert policy == (service.state / "policy.yaml").read_text()
    edited = policy.replace("default: 4h", "default: 3h")
    (tmp_path / "edited.yaml").write_text(edited)
    edit = as_("admin", "policy", "diff", str(tmp_path / "edited.yaml"))
    assert edit.out == "~ queues.experiment.lease.default: 4h -> 3h\n"
    assert as_("admin", "policy", "apply", str(tmp_path / "edited.yaml"), "--yes").code == 0
    assert as_("admin", "policy", "apply", "-", "--from", "1", "--yes", given=policy).code == 1
    wrong = as_("admin", "policy", "apply", "-", "--yes", given="version: 1\nqueue: {}\n")
    assert wrong.code == 1
    assert "stdin:2: unknown_key" in wrong.err

    # 5. The end: cancelled, why no longer, who did what.
    assert as_("bo", "cancel", waiting, "--reason", "done").code == 0
    assert as_("bo", "show", waiting, "--json").document["state"] == "cancelled"
    assert as_("bo", "cancel", waiting).code == 1
    assert as_("bo", "why", waiting).code == 1
    assert as_("bo", "receipt", waiting).code == 0
    assert as_("amy", "cancel", running, "--now").code == 0
    until(lambda: service.show(running)["state"] in ("stopping", "cancelled"), 10, "it stops")
    events = {row[2] for row in as_("admin", "audit").rows[1:]}
    assert {"queue put on hold", "node drained", "policy applied", "extension granted"} <= events
    assert as_("bo", "audit").code == 3
