"""What a session may say of itself and who may keep it, over REST."""

from __future__ import annotations

from typing import Any

import pytest
from service_under_test import POLICY, ServiceUnderTest

IDLE = "idle: {after: 30m, confirm: 15m, grace: 15m, keep: {count: 2, for: 1h}, kernel_after: 30m}"
RULED = POLICY.replace("    lease: {default: 4h", f"    {IDLE}\n    lease: {{default: 4h")
KERNEL = {"id": "k1", "name": "python3", "path": "a.ipynb", "requests": 1}


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = ServiceUnderTest(tmp_path_factory.mktemp("ruled"), RULED)
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def workload(ruled: ServiceUnderTest) -> str:
    return str(ruled.run("amy")["id"])


def tell(service: ServiceUnderTest, who: str, workload: str, **report: Any) -> Any:
    return service.call(who, "PUT", f"/workloads/{workload}/activity", report)


def test_a_server_reports_on_itself_and_hears_when_again(ruled: ServiceUnderTest, workload: str) -> None:
    answer = tell(ruled, "amy-server", workload, kernels=[KERNEL], edited_seconds_ago=3)
    assert (answer.status_code, answer.json()) == (200, {"period_seconds": 10, "end_kernels": []})


@pytest.mark.parametrize(("who", "status"), [("amy", 403), ("amy-session", 403), ("ava", 403), ("bo", 404)])
def test_nobody_else_reports_on_it(ruled: ServiceUnderTest, workload: str, who: str, status: int) -> None:
    assert tell(ruled, who, workload, kernels=[]).status_code == status


def test_a_server_does_not_report_on_its_owners_other_servers(ruled: ServiceUnderTest) -> None:
    other = ruled.run("amy", "cpu", "second")["id"]
    assert tell(ruled, "amy-server", other).status_code == 403


@pytest.mark.parametrize(
    "report",
    [
        {"kernels": [KERNEL] * 201},
        {"kernels": [{**KERNEL, "requests": -1}]},
        {"kernels": [{**KERNEL, "id": "x" * 101}]},
        {"kernels": [{**KERNEL, "state": "asleep"}]},
        {"edited_seconds_ago": -5},
        {"edited_seconds_ago": 10**30},
        {"busy": True},
        {"ended": [{"id": "k", "failed": "x" * 201}]},
    ],
)
def test_what_is_no_report_is_refused_whole(ruled: ServiceUnderTest, workload: str, report: dict[str, Any]) -> None:
    answer = tell(ruled, "amy-server", workload, **report)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] in ("invalid", "above_maximum")


def test_a_kernel_that_nobody_asked_to_end_leaves_no_record(ruled: ServiceUnderTest, workload: str) -> None:
    before = ruled.show(workload)["version"]
    assert (
        tell(ruled, "amy-server", workload, ended=[{"id": "k1"}, {"id": "k2", "failed": "no"}]).status_code == 200
    )
    assert ruled.show(workload)["version"] == before


def test_a_huge_age_is_the_beginning_of_time(ruled: ServiceUnderTest, workload: str) -> None:
    assert tell(ruled, "amy-server", workload, edited_seconds_ago=10**15).status_code == 200


def test_what_is_not_asked_about_is_not_kept(ruled: ServiceUnderTest, workload: str) -> None:
    answer = ruled.call("amy", "POST", f"/workloads/{workload}/keep", {})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_asked")
    chinese = ruled.call("amy", "POST", f"/workloads/{workload}/keep?lang=zh", {}).json()["error"]["message"]
    assert chinese == f"尚未询问 {workload} 是否仍需要"
    assert ruled.call("bo", "POST", f"/workloads/{workload}/keep", {}).status_code == 404
    assert ruled.call("ava", "POST", f"/workloads/{workload}/keep", {}).status_code == 403


def test_the_document_tells_the_rule(ruled: ServiceUnderTest, workload: str) -> None:
    shown = ruled.show(workload)
    assert (shown["idle_phase"], shown["keeps_left"], shown["idle_after_seconds"]) == ("active", 2, 1800)
    assert shown["idle_deadline"] is None
