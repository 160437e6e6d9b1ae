"""What tests of the service ask of its answers."""

from __future__ import annotations

from typing import Any

import httpx
from service_under_test import ServiceUnderTest
from waiting import until


def end(service: ServiceUnderTest, workload: str) -> None:
    service.call("admin", "DELETE", f"/workloads/{workload}", {"now": True, "reason": "tidying up"})
    until(lambda: service.show(workload)["ended_at"], 20, f"{workload} to be over")


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The error of an answer, which must have that status and code and say something."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"code", "message", "details", "hint"}
    assert error["code"] == code
    assert error["message"]
    return error
