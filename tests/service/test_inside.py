"""What is inside a session: documents, kernels, labels, warnings, its journal. For who answers for it, not for all
who see that it is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from service import server_process
from service_under_test import ServiceUnderTest
from waiting import until


@pytest.mark.parametrize(
    ("who", "status"),
    [("bo", 404), ("stranger", 404), ("admin-server", 404), ("ava", 403), ("amy", 200), ("amy-server", 200),
     ("lena", 200), ("admin", 200), ("spawner", 200)],
)  # fmt: skip
def test_a_session_is_read_by_who_answers_for_it_and_by_nobody_else(
    service: ServiceUnderTest, who: str, status: int
) -> None:
    """Its receipt by id and by server, its journal as events and as audit; also once it is over."""
    over = service.ask("amy", "cpu", server="read").json()["id"]
    service.call("amy", "DELETE", f"/workloads/{over}", {"reason": "private-reason"})
    until(lambda: service.show(over)["ended_at"], 10, "it to be over")
    for path in (
        f"/workloads/{over}/receipt",
        f"/workloads/{over}/events",
        f"/audit?workload={over}",
        "/servers/amy/read/receipt",
    ):
        answer = service.call(who, "GET", path)
        assert answer.status_code == status, (path, answer.text)
        assert ("private-reason" in answer.text) == (status == 200 and "receipt" not in path), path
        if status == 404:
            nothing = path.replace(over, "nb-99999").replace("/read/", "/never/")
            hidden = answer.text.replace(over, "nb-99999")
            assert service.call(who, "GET", nothing).text == hidden, "not there, or not to be seen: no telling"


@contextmanager
def _living(service: ServiceUnderTest, **request: Any) -> Iterator[str]:
    """A session of amy's with a process of its own, so that a stop waits for its save; over at the end."""
    workload = service.ask("amy", **request).json()["id"]
    path = f"/workloads/{workload}"
    launch = service.call("spawner", "POST", f"{path}/launch", {"attempt": 1}).json()
    process, main = server_process.start(launch["environment"])
    try:
        for step, body in (("processes", {"main": main}), ("ready", {"url": "http://127.0.0.1:1/"})):
            assert service.call("spawner", "POST", f"{path}/{step}", {"attempt": 1, **body}).is_success
        yield workload
    finally:
        server_process.end(process)
    service.call("spawner", "POST", f"{path}/ended", {"attempt": 1, "code": 7, "by_owner": True})
    until(lambda: service.show(workload)["ended_at"], 20, "it to be over")


def _asked_to_save(service: ServiceUnderTest, workload: str) -> str:
    answer = service.call("spawner", "POST", f"/workloads/{workload}/stopping", {"attempt": 1})
    asked: str = answer.json()["save_requested"]
    return asked


def test_a_team_mate_sees_that_a_session_is_there_and_no_more(fresh: ServiceUnderTest) -> None:
    """Of a session with everything in it: labels, a warning, a save it is asked for, documents to open again."""
    text = fresh.state / "policy.yaml"
    # The warning is due a second after the session began, so that there is one to be read.
    text.write_text(text.read_text().replace("lease: {default: 4h", "warn: [14399s]\n    lease: {default: 4h"))
    fresh.start()
    with _living(fresh) as first:
        asked = _asked_to_save(fresh, first)
        save = {"save": asked, "asked_lab": True, "documents": [{"path": "secret.ipynb", "outcome": "saved"}]}
        assert fresh.call("amy-server", "PUT", f"/workloads/{first}/saves/{asked}", save).status_code == 204

    def inside(who: str, path: str) -> dict[str, Any]:
        found = fresh.call(who, "GET", path).json()
        one = next(w for w in found["items"] if w["id"] == again) if "items" in found else found
        return {name: one[name] for name in ("labels", "notices", "save_requested", "resume_documents", "note")}

    nothing = {"labels": {}, "notices": [], "save_requested": None, "resume_documents": [], "note": ""}
    with _living(fresh, resumes=first, labels={"paper": "private-label"}) as again:
        until(lambda: fresh.show(again)["notices"], 10, "the warning")
        for path in (f"/workloads/{again}", "/workloads", "/workloads?state=running"):
            for who in ("amy", "amy-server", "lena", "admin", "spawner"):
                found = inside(who, path)
                assert found["labels"] == {"paper": "private-label"}, (who, path)
                assert found["resume_documents"] == ["secret.ipynb"], (who, path)
                assert found["notices"], (who, path)
            assert inside("ava", path) == nothing, path
        _asked_to_save(fresh, again)
        assert inside("amy", f"/workloads/{again}")["save_requested"]
        assert inside("ava", f"/workloads/{again}") == nothing
    assert inside("amy", f"/workloads/{again}")["labels"]
    assert inside("ava", f"/workloads/{again}") == nothing, "nor once it is over"
