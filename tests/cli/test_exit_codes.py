"""Each exit code, with what stands on stderr: one line, and a hint."""

from __future__ import annotations

import pytest
from cli.conftest import Program, Ran
from cli.standin import Standin, decision, error, extension, waiting, workload

USAGE: dict[str, list[str]] = {
    "no such verb": ["lst"],
    "no such option": ["list", "--bogus"],
    "no id": ["show"],
    "nonsense instead of a time": ["extend", "nb-7", "--by", "nonsense"],
    "no time at all": ["extend", "nb-7", "--by", ""],
    "a negative time": ["extend", "nb-7", "--by", "-1h"],
    "zero time": ["extend", "nb-7", "--by", "0s"],
    "more than ten years": ["extend", "nb-7", "--by", "99999999d"],
    "not a number of GPUs": ["plan", "--queue", "q", "--gpus", "NaN"],
    "infinite GPUs": ["plan", "--queue", "q", "--gpus", "inf"],
    "negative GPUs": ["plan", "--queue", "q", "--gpus", "-1"],
    "one of the counts negative": ["plan", "--queue", "q", "--gpus", "1,-2"],
    "four decimals": ["plan", "--queue", "q", "--gpus", "0.1234"],
    "a decimal unit of memory": ["plan", "--queue", "q", "--gpus", "1", "--memory", "20GB"],
    "a pair without a value": ["plan", "--queue", "q", "--gpus", "1", "--need", "net"],
    "an unknown kind": ["plan", "--queue", "q", "--gpus", "1", "--kind", "game"],
    "negative CPUs": ["plan", "--queue", "q", "--gpus", "1", "--cpus", "-1"],
    "zero nodes": ["plan", "--queue", "q", "--gpus", "1", "--nodes", "0"],
    "an unknown state": ["list", "--state", "runing"],
    "an unknown column": ["list", "--columns", "id,colour"],
    "a limit of nothing": ["list", "--limit", "0"],
    "a hold without a reason": ["hold", "train"],
    "an unknown language": ["list", "--lang", "fr"],
    "a password from nowhere": ["login", "--user", "ann"],
    "a number as Python writes it": ["list", "--limit", "1_0"],
    "another number as Python writes it": ["plan", "--queue", "q", "--gpus", "1", "--cpus", "1_0"],
    "GPUs as Python writes them": ["plan", "--queue", "q", "--gpus", "1_0"],
    "an owner that is no text": ["list", "--owner", "\udcff"],
    "an id that is no text": ["show", "nb-\udcff"],
    "a reason that is no text": ["cancel", "nb-7", "--reason", "\udcff"],
    "a file that is no text and not there": ["policy", "check", "\udcff.yaml"],
    "a name that is no text": ["login", "--user", "\udcff", "--password-stdin"],
}


def _two_lines(ran: Ran) -> tuple[str, str]:
    message, hint = ran.err.splitlines()
    assert message.startswith("hubgov: ")
    assert hint.startswith("hint: ")
    return message.removeprefix("hubgov: "), hint.removeprefix("hint: ")


@pytest.mark.parametrize("mistake", USAGE)
def test_2_the_command_was_not_given_as_it_must_be(hubgov: Program, standin: Standin, mistake: str) -> None:
    ran = hubgov(*USAGE[mistake])
    assert (ran.code, ran.out) == (2, "")
    _two_lines(ran)
    assert standin.asked == []


def test_1_an_unknown_id(hubgov: Program, standin: Standin) -> None:
    standin.set("GET", "/workloads/nb-9", error("not_found", "no workload nb-9", "hubgov list"), 404)
    ran = hubgov("show", "nb-9")
    assert (ran.code, ran.out) == (1, "")
    assert _two_lines(ran) == ("no workload nb-9", "hubgov list")


def test_1_an_id_that_would_be_another_address(hubgov: Program, standin: Standin) -> None:
    assert hubgov("show", "..").code == 1
    assert standin.asked == []
    assert hubgov("show", "../queues").code == 1
    assert standin.asked[0].path == "/workloads/..%2Fqueues"


def test_1_what_is_over(hubgov: Program, standin: Standin) -> None:
    standin.set("DELETE", "/workloads/nb-7", error("ended", "nb-7 is over", "hubgov show nb-7"), 409)
    assert hubgov("cancel", "nb-7").code == 1


def test_1_a_policy_that_moved(hubgov: Program, standin: Standin) -> None:
    moved = error("policy_moved", "the policy is at version 4, your edit began at 3", "look at the difference")
    standin.set("PUT", "/policy", moved, 412)
    ran = hubgov("policy", "apply", "-", "--yes", given="version: 1\n")
    assert ran.code == 1
    assert "version 4" in ran.err


def test_1_a_policy_with_errors_says_all_of_them(hubgov: Program, standin: Standin) -> None:
    problems = ["stdin:1: unknown_key: there is no key 'queue'; did you mean queues?", "stdin:2: missing_key: …"]
    standin.set(
        "POST", "/policy/diff", error("policy_invalid", "2 errors", problems[0], {"problems": problems}), 400
    )
    ran = hubgov("policy", "diff", "-", given="x")
    assert ran.code == 1
    for problem in problems:
        assert problem in ran.err


def test_3_denied_by_policy_with_every_number(hubgov: Program, standin: Standin) -> None:
    denied = decision()
    hint = "; ".join(denied["next_steps"])
    document = error("max_total", denied["headline"], hint, denied)
    standin.set("POST", "/workloads/nb-7/extensions", document, 422)
    ran = hubgov("extend", "nb-7", "--by", "2h")
    assert (ran.code, ran.out) == (3, "")
    assert _two_lines(ran) == (denied["headline"], hint)
    told = hubgov("extend", "nb-7", "--by", "2h", "--json")
    assert told.code == 3
    assert told.document == document


def test_3_a_plan_that_would_be_refused(hubgov: Program, standin: Standin) -> None:
    standin.set("POST", "/plan", decision(code="impossible", headline="Can never start."))
    ran = hubgov("plan", "--queue", "q", "--gpus", "512")
    assert ran.code == 3
    assert "refused\timpossible\tCan never start." in ran.out


def test_3_not_allowed(hubgov: Program, standin: Standin) -> None:
    refused = error("not_allowed", "this needs the scope custom:hubgov:admin", "sign in as an admin of hubgov")
    standin.set("POST", "/queues/train/hold", refused, 403)
    ran = hubgov("hold", "train", "--reason", "x")
    assert ran.code == 3
    assert _two_lines(ran)[0] == "this needs the scope custom:hubgov:admin"


def test_hints_name_flags_and_the_document_what_programs_send(hubgov: Program, standin: Standin) -> None:
    refused = error("not_allowed", "the whole audit is for admins", "?workload=ID shows that of one workload")
    standin.set("GET", "/audit", refused, 403)
    ran = hubgov("audit")
    assert (ran.code, _two_lines(ran)[1]) == (3, "--workload ID shows that of one workload")
    assert hubgov("audit", "--json").document == refused
    unreadable = error("invalid", "labels.k: Field required", "see /openapi.json for the fields and their limits")
    standin.set("POST", "/plan", unreadable, 400)
    ran = hubgov("plan", "--queue", "q", "--gpus", "1")
    assert _two_lines(ran) == ("--label.k: Field required", "hubgov plan --help")


def test_3_a_token_that_is_no_good(hubgov: Program) -> None:
    ran = hubgov("list", HUBGOV_TOKEN="another")
    assert ran.code == 3
    assert _two_lines(ran)[1] == "hubgov login"


def test_4_still_waiting_when_the_time_is_over(hubgov: Program) -> None:
    ran = hubgov("show", "nb-8", "--wait", "1s", "--json")
    assert ran.code == 4
    assert ran.document["state"] == "pending"
    assert _two_lines(ran) == ("nb-8 still waits after 1s: Waiting for your own limit.", "hubgov why nb-8")


def test_0_and_1_what_was_waited_for(hubgov: Program, standin: Standin) -> None:
    assert hubgov("show", "nb-7", "--wait", "1h").code == 0
    standin.set("GET", "/workloads/nb-8", waiting(state="failed", version=4))
    assert hubgov("show", "nb-8", "--wait", "1h").code == 1


def test_5_the_service_is_down(hubgov: Program, standin: Standin) -> None:
    standin.close()
    ran = hubgov("list")
    assert (ran.code, ran.out) == (5, "")
    message, _ = _two_lines(ran)
    assert message.startswith(f"{standin.url} does not answer: ")
    chinese = hubgov("list", "--lang", "zh")
    assert chinese.err.startswith(f"hubgov: {standin.url} 无响应：")
    assert chinese.err.splitlines()[1].startswith("提示：")


@pytest.mark.parametrize("status", [502, 503, 504])
def test_5_the_service_is_down_behind_its_proxy(hubgov: Program, standin: Standin, status: int) -> None:
    standin.set("GET", "/workloads", "<html>away</html>", status)
    ran = hubgov("list")
    assert (ran.code, ran.out) == (5, "")
    assert _two_lines(ran) == (
        f"{standin.url} is away (status {status})",
        "what runs goes on; try again in a moment",
    )
    assert "暂不可用" in hubgov("list", "--lang", "zh").err


@pytest.mark.parametrize(
    "address",
    ["http://[::1", "http://127.0.0.1:99999", "http://h:x/", "http://xn--/", "http://a\udcff/", "ftp://h"],
)
@pytest.mark.parametrize("verb", [["list"], ["login", "--user", "ann", "--password-stdin"]], ids=lambda v: v[0])
def test_1_an_address_that_is_none(hubgov: Program, address: str, verb: list[str]) -> None:
    ran = hubgov(*verb, HUBGOV_URL=address)
    assert (ran.code, ran.out) == (1, "")
    message, hint = _two_lines(ran)
    assert message.endswith("is not the address of a service")
    assert hint.startswith("such as http://")


@pytest.mark.parametrize("locale", ["C.UTF-8", "en_US.UTF-8", "C"])
def test_2_a_password_that_is_no_text(hubgov: Program, standin: Standin, locale: str) -> None:
    ran = hubgov("login", "--user", "amy", "--password-stdin", given=b"x\xff", LANG=locale)
    assert (ran.code, ran.out) == (2, "")
    assert _two_lines(ran)[0] == "the password is not text in UTF-8"
    assert standin.asked == []


@pytest.mark.parametrize(("status", "page"), [(404, "<html>hub</html>"), (302, "")])
def test_5_something_else_answers_there(hubgov: Program, standin: Standin, status: int, page: str) -> None:
    standin.set("GET", "/workloads", page, status)
    ran = hubgov("list")
    assert ran.code == 5
    assert "is not hubgov" in ran.err


def test_5_an_answer_of_another_shape(hubgov: Program, standin: Standin) -> None:
    standin.set("GET", "/workloads/nb-7", {"id": "nb-7"})
    ran = hubgov("show", "nb-7")
    assert ran.code == 5
    assert "is not a Workload" in ran.err


def test_5_no_service_is_known(hubgov: Program) -> None:
    ran = hubgov("list", HUBGOV_URL=None, HUBGOV_TOKEN=None)
    assert ran.code == 5
    assert "hubgov login" in ran.err


def test_6_needs_approval(hubgov: Program, standin: Standin) -> None:
    told = decision(outcome="needs_approval", code="beyond_self_serve", headline="Not extended: 0 left, this +2h.")
    standin.set("POST", "/workloads/nb-7/extensions", extension("needs_approval", decision=told), 202)
    ran = hubgov("extend", "nb-7", "--by", "2h")
    assert (ran.code, ran.out) == (6, "")
    assert _two_lines(ran)[0] == "Not extended: 0 left, this +2h."
    document = hubgov("extend", "nb-7", "--by", "2h", "--json").document
    assert document["state"] == "needs_approval"
    assert document["decision"]["code"] == "beyond_self_serve"


def test_a_connection_that_breaks_is_tried_again_as_the_same_act(hubgov: Program, standin: Standin) -> None:
    standin.drop = 2
    ran = hubgov("extend", "nb-7", "--by", "2h")
    assert ran.code == 0
    assert len(standin.asked) == 3
    assert len({a.headers["Idempotency-Key"] for a in standin.asked}) == 1
    standin.drop = 100
    assert hubgov("queues").code == 5
    assert len(standin.asked) == 6


def test_who_stops_reading_gets_no_complaint(hubgov: Program, standin: Standin) -> None:
    import subprocess
    import sys

    many = [workload(id=f"nb-{n}", name="x" * 60) for n in range(900)]
    standin.set("GET", "/workloads", {"items": many, "next": None, "total": 900})
    command = f"{sys.executable} -m hubgov.cli list --columns id,name --limit 1000 | head -1"
    done = subprocess.run(["sh", "-c", command], env=hubgov.environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("ID\tNAME\n", "")
