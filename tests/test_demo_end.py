"""How a demo ends, and an older service gives way: what is ended, what is spared, what foreign answers do."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hubgov import processes, stand_down
from hubgov.config import site_of
from hubgov.demo import settings
from hubgov.demo.runner import Runner
from hubgov.errors import Unavailable
from hubgov.wire import ProcessRef


def a_runner(state: Path) -> Runner:
    port = settings._free_ports(1)[0]
    kept, _ = settings.fresh(port=port, devices="simulated", clock_rate=1, timezone="UTC", policy_file="")
    return Runner(state, kept)


@contextmanager
def started_with(**environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], **environment}) as process:
        try:
            yield process
        finally:
            process.kill()


def test_down_ends_what_hubgov_started_and_no_shell_of_a_user(tmp_path: Path) -> None:
    state, other = tmp_path / "state", tmp_path / "state2"
    state.mkdir()
    runner = a_runner(state)
    url = f"http://127.0.0.1:{runner._settings.service_port}/services/hubgov"
    ours: list[dict[str, str]] = [
        {"HUBGOV_DEMO_STATE": str(state)},
        {"HUBGOV_PORT_OF": str(state)},
        {"HUBGOV_ALLOCATION_ID": f"nb-1.1@{site_of(str(state))}", "HUBGOV_URL": url},
    ]
    others: list[dict[str, str]] = [
        {"HUBGOV_URL": url},
        {"HUBGOV_URL": f"{url}/"},
        {"HUBGOV_DEMO_STATE": str(other)},
        {"HUBGOV_PORT_OF": str(other)},
        {"HUBGOV_ALLOCATION_ID": f"nb-1.1@{site_of(str(other))}"},
        {"NOTE": f"nb-1.1@{site_of(str(state))}"},
    ]
    with all_started(ours) as ended, all_started(others) as spared:
        runner.down()
        assert [process.wait(10) is not None for process in ended] == [True] * len(ours)
        assert [process.poll() for process in spared] == [None] * len(others)


@contextmanager
def all_started(environments: list[dict[str, str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    with ExitStack() as stack:
        yield [stack.enter_context(started_with(**environment)) for environment in environments]


def test_what_belongs_to_another_user_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(ref: ProcessRef, number: int) -> bool:
        raise PermissionError(1, "Operation not permitted")

    runner = a_runner(tmp_path)
    monkeypatch.setattr(processes, "send", refused)
    with (
        started_with(HUBGOV_DEMO_STATE=str(tmp_path)) as process,
        pytest.raises(Unavailable, match=rf"process {process.pid} .* another user"),
    ):
        runner.down()


@pytest.mark.parametrize("answer", ["", "<html>", "[]", "{}", '"x"', "null", '{"pid": null}', '{"pid": "x"}'])
def test_a_foreign_answer_is_no_service(answer: str, tmp_path: Path) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_: Any) -> None:
            pass

    runner = a_runner(tmp_path)
    with http.server.HTTPServer(("127.0.0.1", runner._settings.port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert runner._service_pid() is None
            with pytest.raises(Unavailable, match="not this demo"):
                runner.health()
        finally:
            server.shutdown()
            thread.join()


def test_an_older_service_that_ends_while_it_is_looked_at_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger: Any = SimpleNamespace(url=f"sqlite:///{tmp_path / 'hubgov.sqlite'}")
    with subprocess.Popen(["true"]) as older:
        pid = older.pid
    (tmp_path / "hubgov.sqlite.lock").write_text(str(pid))
    # Seen a moment ago, ended since.
    seen = ProcessRef(pid=pid, start_ticks=1, boot_id=processes.boot_id())
    monkeypatch.setattr(processes, "identify", lambda _: seen)
    assert stand_down._older_copy(ledger) is None
