"""The OpenAPI document is the contract: what it describes is what the service does, for whoever asks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from service_under_test import PREFIX, ServiceUnderTest

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "negative_data_rejection", "unsupported_method",
)  # fmt: skip
BOTH = "coverage,fuzzing"


def _conform(
    service: ServiceUnderTest, folder: Path, examples: int, callers: Mapping[str, str], *options: str
) -> None:
    """Requests made from the document, valid and invalid ones, with several identities at the same time: each
    with the phases that `callers` says."""
    base = f"http://127.0.0.1:{service.port}{PREFIX}"
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{base}openapi.json"]
    command += ["--url", f"{base}api/v1", "--checks", ",".join(CHECKS)]
    command += ["--exclude-path", "/events"]  # it has no end
    command += ["--max-examples", str(examples), "--no-color", "--warnings", "off", *options]
    runs = {}
    for who, phases in callers.items():
        (folder / who).mkdir()
        with (folder / who / "report").open("wb") as report:
            one = [*command, "--phases", phases, "-H", f"Authorization: token {who}-token"]
            runs[who] = subprocess.Popen(one, cwd=folder / who, stdout=report, stderr=report)
    failed = [who for who, run in runs.items() if run.wait(1500) != 0]
    reports = "\n".join((folder / who / "report").read_text()[-5000:] for who in failed)
    assert not failed, f"{failed}\n{reports}"
    assert "Traceback" not in service.log()


def test_requests_made_from_the_document(service: ServiceUnderTest, tmp_path: Path) -> None:
    service.run("amy")
    service.ask("ava", "two")
    callers = {"spawner": "coverage", "admin": "fuzzing", "amy": "fuzzing"}
    _conform(service, tmp_path, 2, callers, "--generation-deterministic")


@pytest.mark.slow
def test_many_requests_made_from_the_document(fresh: ServiceUnderTest, tmp_path: Path) -> None:
    fresh.start()
    fresh.run("amy")
    fresh.ask("ava", "two")
    _conform(fresh, tmp_path, 100, dict.fromkeys(("admin", "amy", "spawner"), BOTH))


def test_the_document_describes_every_route_with_its_answers(service: ServiceUnderTest) -> None:
    document = service.http.get(f"{PREFIX}openapi.json").json()
    operations = [op for path in document["paths"].values() for op in path.values()]
    assert len(operations) >= 30
    for operation in operations:
        assert operation["summary"], operation["operationId"]
        good = [status for status in operation["responses"] if status.startswith("2")]
        assert good, operation["operationId"]
        for status in good:
            assert status == "204" or operation["responses"][status]["content"], operation["operationId"]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))
    workload = document["components"]["schemas"]["Workload"]["properties"]
    assert {"class", "expires_at", "devices", "lease_version", "extensions_left"} <= set(workload)
    assert "class_" not in workload


def test_the_document_has_what_the_handlers_read(service: ServiceUnderTest) -> None:
    paths = service.http.get(f"{PREFIX}openapi.json").json()["paths"]

    def parameters(method: str, path: str) -> dict[str, tuple[str, bool, str]]:
        found = paths[path][method]["parameters"]
        return {p["name"]: (p["in"], p["required"], p["schema"]["type"]) for p in found}

    form = parameters("get", "/spawn-options")
    assert form == {
        "user": ("query", True, "string"),
        "server": ("query", False, "string"),
        "groups": ("query", False, "array"),
    }
    assert parameters("put", "/policy")["If-Match"] == ("header", True, "string")
    assert "If-Match" not in parameters("post", "/policy/check")
    # As described, so it is: each of a list counts, and the other server's last choice is another's.
    for server, profile in (("", "cpu"), ("b", "one")):
        asked = service.ask("bo", profile, server=server).json()["id"]
        service.call("bo", "DELETE", f"/workloads/{asked}", {})
    query = "/spawn-options?user=bo&groups=nothing&groups=nlp"
    assert [p["name"] for p in service.call("spawner", "GET", query).json()["projects"]] == ["chat"]
    assert service.call("spawner", "GET", query).json()["last"]["profile"] == "cpu"
    assert service.call("spawner", "GET", f"{query}&server=b").json()["last"]["profile"] == "one"


def test_health_is_described_and_asks_nobody_who_he_is(service: ServiceUnderTest) -> None:
    document = service.http.get(f"{PREFIX}openapi.json").json()
    operation = document["paths"]["/health"]["get"]
    assert operation["security"] == []
    reference = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
    described = document["components"]["schemas"][reference.rpartition("/")[2]]
    for address in (f"{PREFIX}health", f"{PREFIX}api/v1/health"):
        answer = service.http.get(address)
        assert answer.status_code == 200
        assert set(answer.json()) == set(described["properties"]) == set(described["required"])
        wrong = service.http.put(address)
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
        assert wrong.headers["Allow"] == "GET"
