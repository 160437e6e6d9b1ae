"""Every verb, as a document for programs and as plain lines for pipes and people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Program
from cli.standin import Standin, decision, listed, quota, waiting, workload

DOCUMENTS: dict[str, tuple[list[str], str, str]] = {
    "list": (["list"], "GET", "/workloads"),
    "show": (["show", "nb-7"], "GET", "/workloads/nb-7"),
    "why": (["why", "nb-8"], "GET", "/workloads/nb-8/why"),
    "quota": (["quota"], "GET", "/quotas"),
    "devices": (["devices"], "GET", "/devices"),
    "pools": (["pools"], "GET", "/pools"),
    "queues": (["queues"], "GET", "/queues"),
    "extend": (["extend", "nb-7", "--by", "2h"], "POST", "/workloads/nb-7/extensions"),
    "cancel": (["cancel", "nb-7"], "DELETE", "/workloads/nb-7"),
    "plan": (["plan", "--queue", "experiment", "--gpus", "1"], "POST", "/plan"),
    "cost": (["cost"], "GET", "/costs"),
    "audit": (["audit"], "GET", "/audit"),
    "receipt": (["receipt", "nb-7"], "GET", "/workloads/nb-7/receipt"),
    "extensions": (["extensions"], "GET", "/extensions"),
    "approvals": (["approvals"], "GET", "/extensions"),
    "approve": (["approve", "nb-7-x1", "--by", "1h"], "POST", "/extensions/nb-7-x1/approve"),
    "deny": (["deny", "nb-7-x1", "--reason", "no"], "POST", "/extensions/nb-7-x1/deny"),
    "withdraw": (["withdraw", "nb-7-x1"], "POST", "/extensions/nb-7-x1/withdraw"),
    "policy show": (["policy", "show"], "GET", "/policy"),
    "policy diff": (["policy", "diff", "FILE"], "POST", "/policy/diff"),
    "policy apply": (["policy", "apply", "FILE", "--yes"], "PUT", "/policy"),
    "hold": (["hold", "train", "--reason", "repair", "--closed"], "POST", "/queues/train/hold"),
    "release": (["release", "train"], "POST", "/queues/train/release"),
    "drain": (["drain", "gpu-a"], "POST", "/nodes/gpu-a/drain"),
    "undrain": (["undrain", "gpu-a"], "POST", "/nodes/gpu-a/undrain"),
}

PLAIN: dict[str, tuple[list[str], list[str]]] = {
    "list": (["list"], [
        "ID\tSTATE\tPOSITION\tWHY\tDEVICE\tUTIL\tMEM\tSTOPS-AT\tLEFT\tCOST",
        "nb-7\trunning\t—\t—\tbox/0 SIMULATED\t73%\t12.3GiB\t17:42\t1h42m\t¥41.25",
        "nb-8\twaiting\t1\tover_own_limit\t—\t—\t—\t—\t—\t—",
    ]),
    "columns in the order asked for": (["list", "--columns", "owner,stops-at,ID"], [
        "OWNER\tSTOPS-AT\tID", "ann\t17:42\tnb-7", "ann\t—\tnb-8",
    ]),
    "show": (["show", "nb-7"], [
        "ID\tnb-7", "STATE\trunning", "DEVICE\tbox/0 SIMULATED", "STOPS-AT\t17:42, grace to 17:47 · 1h42m left",
        "EXTENSIONS-LEFT\t2",
    ]),
    "why": (["why", "nb-8"], [
        "OUTCOME\tCODE\tHEADLINE",
        "waiting\tover_own_limit\tAt most 2 GPUs per user.",
        "CODE\tNEED\tHAVE\tLIMIT\tUNIT\tWHERE\tHELD-BY\tFREES-AT",
        "max_total\t2h\t1h\t1d\ttime\texperiment dev\tann nb-7 (end 18:30)\t18:36",
        "SIMULATED: no card is behind these numbers.",
        "next: Ask for a shorter extension · Save your work before the end",
    ]),
    "cost": (["cost", "--by", "team,user"], [
        "TEAM\tUSER\tGPU-HOURS\tLIST-COST\tDISCOUNT\tCOST\tBORROWED-HOURS\tFAILED-HOURS\tCREDITED\tOVERHEAD-HOURS",
        "vision\t=ann\t1.5\t¥27.75\t¥8.32\t¥19.42\t0.5\t0\t¥0.00\t0.25",
        "Total\t—\t1.5\t¥27.75\t¥8.32\t¥19.42\t0.5\t0\t¥0.00\t0.25",
        "Usage of simulated devices is left out; --include-simulated counts it.",
    ]),
    "cost as CSV": (["cost", "--format", "csv"], [
        "team,user,gpu_seconds,list_cost,cost,currency,borrowed_gpu_seconds,failed_gpu_seconds,overhead_gpu_seconds,"
        "simulated,discount,credited",
        "vision,'=ann,5400,27.750000,19.425000,CNY,1800,0,900,no,8.325000,0.000000",
    ]),
    "quota": (["quota"], [
        "TEAM\tPROJECT\tPOOL\tFLAVOR\tGUARANTEED\tUSED\tBORROWED\tLENT\tAVAILABLE\tBORROW\tLEND\tWINDOW\tNEXT-CHANGE",
        "vision\t—\tdev SIMULATED\tl40s-48g\t4\t1\t0\t0\t3\tno limit\t2\t—\t—",
    ]),
    "pools": (["pools"], ["dev SIMULATED\tlocal\t2\t1\tplatform\tlab\texperiment\twei\tpack\tenforced"]),
    "queues": (["queues"], ["experiment\tnotebook\tdev\tstandard\t50\tfair\t4h\tno limit\tyes\t2\t1"]),
    "extend": (["extend", "nb-7", "--by", "2h"], ["Extended to 19:42 (+2h). Extensions left: 1."]),
    "extend, nothing to say": (["extend", "nb-7", "--by", "2h", "-q"], []),
    "cancel": (["cancel", "nb-7"], ["nb-7: stopping"]),
    "plan": (["plan", "--queue", "experiment", "--gpus", "1"], [
        "can start\tfits_now\tCan start now.", "SIMULATED: no card is behind these numbers.",
        "Estimated cost: ¥37.00",
    ]),
    "receipt": (["receipt", "nb-7"], [
        "USED\t1h30m", "GPU-HOURS\t1.50", "COST\t¥27.75", "PATH\tOUTCOME\tBYTES\tSAVED-AT\tNOTE",
        "lost: variables of kernel python3 (train.ipynb)",
    ]),
    "extensions": (["extensions"], ["needs approval"]),
    "approvals": (["approvals"], ["nb-8 +30m, team nlp +without end"]),
    "approve": (["approve", "nb-7-x1", "--by", "1h"], ["ex-1: granted, until 2026-03-02 19:42"]),
    "deny": (["deny", "nb-7-x1", "--reason", "no"], ["ex-1: denied"]),
    "withdraw": (["withdraw", "nb-7-x1"], ["ex-1: withdrawn"]),
    "policy show, exactly as it was written": (["policy", "show"], ["version: 1", "# 试验"]),
    "policy show --version": (["policy", "show", "--version"], ["3"]),
    "policy diff": (["policy", "diff", "FILE"], [
        "policy.yaml:9: warning over_guaranteed: more than there is",
        "~ queues.experiment.grace: 5m -> 10m", "+ queues.batch: {kinds: [training]}", "- queues.old: {}",
    ]),
    "policy apply": (["policy", "apply", "FILE", "--yes"], [
        "policy.yaml:9: warning over_guaranteed: more than there is", "~ queues.experiment.grace: 5m -> 10m",
        "Version 4 is in force.",
    ]),
    "hold": (["hold", "train", "--reason", "repair", "--closed"], [
        "Queue train is on hold and closed for new work: repair",
    ]),
    "release": (["release", "train"], ["Queue train goes on."]),
    "drain": (["drain", "gpu-a"], ["Nothing new starts on gpu-a; what runs goes on."]),
    "undrain": (["undrain", "gpu-a"], ["gpu-a takes work again."]),
}  # fmt: skip

CHINESE: dict[str, tuple[list[str], list[str]]] = {
    "list": (["list"], ["nb-7\t运行中", "nb-8\t排队中"]),
    "quota": (["quota"], ["vision\t—\tdev 模拟\tl40s-48g"]),
    "why": (["why", "nb-8"], ["模拟：以下数据并非真实显卡。", "ann nb-7（18:30 到期）\t18:36"]),
    "devices": (["devices"], ["模拟\tdev\tl40s-48g\t占用"]),
    "show": (["show", "nb-7"], ["17:42，宽限至 17:47 · 剩余 1h42m"]),
    "drain": (["drain", "gpu-a"], ["gpu-a 不再启动新任务，运行中的继续。"]),
    "audit": (["audit"], ["wei\t暂停队列\t—\ttrain"]),
    "receipt": (["receipt", "nb-7"], ["train.ipynb\t已保存\t2048"]),
    "plan": (["plan", "--queue", "experiment", "--gpus", "1"], ["可启动\tfits_now", "预计费用：¥37.00"]),
}


def _with_file(arguments: list[str], folder: Path) -> list[str]:
    file = folder / "policy.yaml"
    file.write_text("version: 1\n")
    return [str(file) if word == "FILE" else word for word in arguments]


@pytest.mark.parametrize("verb", DOCUMENTS)
def test_json_is_the_document_of_the_rest_interface(
    hubgov: Program, standin: Standin, tmp_path: Path, verb: str
) -> None:
    arguments, method, path = DOCUMENTS[verb]
    ran = hubgov(*_with_file(arguments, tmp_path), "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.document == standin.answers[method, path][1]


@pytest.mark.parametrize("verb", PLAIN)
def test_a_pipe_gets_plain_lines(hubgov: Program, tmp_path: Path, verb: str) -> None:
    arguments, lines = PLAIN[verb]
    ran = hubgov(*_with_file(arguments, tmp_path))
    assert (ran.code, ran.err) == (0, "")
    written = ran.out.splitlines()
    for line in lines:
        assert any(line == w or (line in w and "\t" not in line) or w.endswith(line) for w in written), (
            line,
            ran.out,
        )
    assert lines or not written
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("verb", CHINESE)
def test_chinese_is_asked_of_the_service_and_spoken_here(hubgov: Program, standin: Standin, verb: str) -> None:
    arguments, parts = CHINESE[verb]
    ran = hubgov(*arguments, LANG="zh_CN.UTF-8")
    assert ran.code == 0
    for part in parts:
        assert part in ran.out
    assert {a.headers["Accept-Language"] for a in standin.asked} == {"zh"}


def test_devices_say_why_a_number_is_unknown_and_how_old_it_is(hubgov: Program) -> None:
    first, second = hubgov("devices").rows[1:]
    assert first[0] == "box/0 SIMULATED"
    assert first[11:14] == ["73%", "12.3GiB", "—"]
    assert second[11:14] == ["—", "—", "not measurable on MIG; stale, 10m ago"]


def test_real_devices_are_not_called_simulated(hubgov: Program, standin: Standin) -> None:
    standin.set("GET", "/quotas", listed(quota(simulated=False)))
    standin.set("GET", "/workloads/nb-8/why", decision(simulated=False))
    for verb in (["quota"], ["why", "nb-8"], ["show", "nb-8"]):
        assert "SIMULATED" not in hubgov(*verb).out


def test_what_waits_for_simulated_devices_says_so(hubgov: Program, standin: Standin) -> None:
    standin.set("GET", "/workloads/nb-8", waiting(simulated=True))
    assert ["DEVICE", "SIMULATED"] in hubgov("show", "nb-8").rows
    assert ["DEVICE", "模拟"] in hubgov("show", "nb-8", "--lang", "zh").rows


def test_the_audit_says_who_did_what_and_why(hubgov: Program, standin: Standin) -> None:
    ran = hubgov("audit", "--workload", "nb-7", "--all")
    assert ran.rows[1][1:] == [
        "wei",
        "queue put on hold",
        "—",
        "train",
        "—",
        "queue on hold",
        "storage is being repaired",
    ]
    assert standin.last("GET", "/audit").query == {"workload": "nb-7", "all": "1", "limit": "100"}


def test_list_passes_its_filters_on_and_takes_all_pages(hubgov: Program, standin: Standin) -> None:
    standin.set("GET", "/workloads", listed(*(workload(id=f"nb-{n}") for n in range(3)), total=7, next_="17"))
    ran = hubgov("list", "--state", "live", "--owner", "ann", "--team", "vision", "--queue", "q", "--limit", "5")
    assert len(ran.rows) == 1 + 6
    first, second = (a.query for a in standin.asked if a.path == "/workloads")
    assert first == {"state": "live", "owner": "ann", "team": "vision", "queue": "q", "limit": "5"}
    assert second == {**first, "limit": "2", "cursor": "17"}


def test_mutations_send_what_was_asked_for_and_a_key(hubgov: Program, standin: Standin) -> None:
    hubgov("cancel", "nb-7", "--reason", "done", "--now")
    hubgov("extend", "nb-7", "--by", "1h30m", "--reason", "评估")
    cancelled = standin.last("DELETE", "/workloads/nb-7")
    extended = standin.last("POST", "/workloads/nb-7/extensions")
    assert cancelled.body == {"reason": "done", "now": True}
    assert extended.body == {"by_seconds": 5400, "reason": "评估"}
    assert len({a.headers["Idempotency-Key"] for a in (cancelled, extended)}) == 2


def test_stopping_another_sends_the_grace_and_says_until_when(hubgov: Program, standin: Standin) -> None:
    told = workload(state="expiring", grace_until="2026-03-02T10:35:00Z")
    standin.set("DELETE", "/workloads/nb-7", told)
    ran = hubgov("cancel", "nb-7", "--reason", "needed", "--grace", "5m")
    assert standin.last("DELETE", "/workloads/nb-7").body == {
        "reason": "needed", "now": False, "grace_seconds": 300
    }  # fmt: skip
    assert "its owner is told" in ran.out + ran.err
    assert hubgov("cancel", "nb-7", "--grace", "soon").code == 2


def test_the_audit_passes_its_filters_on(hubgov: Program, standin: Standin) -> None:
    hubgov("audit", "--actor", "lena", "--event", "queue_held", "--from", "2026-03-01", "--to", "2026-03-02")
    asked = standin.last("GET", "/audit").query
    assert asked == {
        "actor": "lena", "event": "queue_held", "from": "2026-03-01", "to": "2026-03-02", "limit": "100"
    }  # fmt: skip


def test_a_decision_sends_what_was_decided(hubgov: Program, standin: Standin) -> None:
    hubgov("approve", "nb-7-x1", "--by", "1h", "--reason", "go on")
    assert standin.last("POST", "/extensions/nb-7-x1/approve").body == {"seconds": 3600, "reason": "go on"}
    hubgov("deny", "nb-7-x1", "--reason", "the release comes first")
    assert standin.last("POST", "/extensions/nb-7-x1/deny").body == {"reason": "the release comes first"}
    assert hubgov("deny", "nb-7-x1").code == 2, "a denial without a reason is no use of it"


def test_a_plan_sends_the_fields_of_a_submit(hubgov: Program, standin: Standin) -> None:
    hubgov(
        *("plan", "--queue", "train", "--gpus", "1,2,0.25", "--flavor", "a", "--flavor", "b", "--memory", "20GiB"),
        *("--need", "net=ib", "--label", "k=v=w", "--lease", "4h", "--nodes", "any", "--non-preemptible"),
        *("--priority", "-5", "--after", "tr-1", "--cpus", "8"),
    )
    expected: dict[str, Any] = {
        "queue": "train", "gpus": [1, 2, 0.25], "flavor": ["a", "b"], "memory": "20GiB", "need": {"net": "ib"},
        "labels": {"k": "v=w"}, "lease": 14400, "nodes": "any", "preemptible": False, "priority": -5,
        "after": ["tr-1"], "cpus": 8,
    }  # fmt: skip
    assert standin.last("POST", "/plan").body == expected


def test_apply_names_the_version_that_the_difference_was_shown_for(
    hubgov: Program, standin: Standin, tmp_path: Path
) -> None:
    apply = _with_file(["policy", "apply", "FILE", "--yes"], tmp_path)
    hubgov(*apply)
    assert standin.last("PUT", "/policy").headers["If-Match"] == '"3"'
    assert standin.last("PUT", "/policy").body == {"text": "version: 1\n", "name": "policy.yaml"}
    hubgov(*apply, "--from", "2")
    assert standin.last("PUT", "/policy").headers["If-Match"] == '"2"'


def test_what_is_in_force_already_is_not_applied_again(hubgov: Program, standin: Standin, tmp_path: Path) -> None:
    (tmp_path / "same.yaml").write_text("version: 1\n# 试验\n")
    ran = hubgov("policy", "apply", str(tmp_path / "same.yaml"), "--json")
    assert (ran.code, ran.document["version"]) == (0, 3)
    assert not [a for a in standin.asked if a.method == "PUT"]


def test_options_that_every_verb_takes_stand_before_it_or_after(hubgov: Program) -> None:
    before, after = hubgov("--json", "--lang", "zh", "queues"), hubgov("queues", "--json", "--lang", "zh")
    assert before.document == after.document
