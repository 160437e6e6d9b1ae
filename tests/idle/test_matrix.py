"""Busy or idle? Real kernels of a real Jupyter server, each in one situation, and the verdict with its reason.

All kernels live at the same time in one server, whose extension reports to a stub; the test measures their
processes as the service does and judges each situation by itself, as if it were a session of its own. Thresholds
are seconds instead of half an hour. Verdicts are waited for; nothing sleeps.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from idle.notebook import RUN, Server, request
from idle.stub_service import StubService
from lab.standin import WORKLOAD
from waiting import until
from websocket import create_connection

from hubgov.clock import Instant
from hubgov.core.policy import IdleRule
from hubgov.core.sensing import CardUse, Report, TreeUse, card_signal, reported_signals, tree_signals
from hubgov.core.signals import SignalKind, sample
from hubgov.core.watching import Standing, Verdict, Watched, judge, observed
from hubgov.service.bodies import ActivityBody
from hubgov.service.handlers.idleness import report_of
from hubgov.telemetry.host import HostMeter, Root

PERIOD_MS = 1000
RULE = IdleRule(
    kernel_after_ms=None, after_ms=4000, confirm_ms=1000, grace_ms=1000, keep_count=0, keep_for_ms=0,
    max_unverified_ms=3_600_000,
)  # fmt: skip
SILENT = "import time; time.sleep(600)"
BURN = """
def burn():
    end = time.monotonic() + 0.1
    while time.monotonic() < end: pass
"""
SETUPS: dict[str, str] = {
    "silent_cell": SILENT,
    "subshell_request": SILENT,
    "debug_request": SILENT,
    "child_working": (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
        "'import time\\nwhile True:\\n  e=time.monotonic()+0.1\\n  while time.monotonic()<e: pass\\n"
        "  time.sleep(0.3)'])"
    ),
    "child_sleeping": "import subprocess; subprocess.Popen(['sleep', '600'])",
    "background_thread": (
        "import threading, time" + BURN + "def work():\n  while True: burn(); time.sleep(0.3)\n"
        "threading.Thread(target=work, daemon=True).start()"
    ),
    "async_task": (
        "import asyncio, time" + BURN + "async def work():\n  while True: burn(); await asyncio.sleep(0.3)\n"
        "task = asyncio.get_running_loop().create_task(work())"
    ),
    "async_task_asleep": (
        "import asyncio\nasync def work():\n  await asyncio.sleep(600)\n"
        "task = asyncio.get_running_loop().create_task(work())"
    ),
    "download": (
        "import threading, time\ndef work():\n  chunk = b'x' * 400_000\n  with open('got.bin', 'wb') as out:\n"
        "    while True:\n      out.seek(0); out.write(chunk); time.sleep(0.5)\n"
        "threading.Thread(target=work, daemon=True).start()"
    ),
    "quick_cell": "1 + 1",
}
QUIET = ("untouched", "open_tab", "comm_traffic", "input", "killed_in_a_cell", "restarted_in_a_cell")


@dataclass
class Case:
    """One situation: what was seen of it so far."""

    watched: Watched | None = None
    verdicts: list[Verdict] = field(default_factory=list)
    codes: dict[SignalKind, str] = field(default_factory=dict)

    @property
    def last(self) -> Verdict:
        return self.verdicts[-1]

    def was(self, standing: Standing) -> bool:
        return any(v.standing is standing for v in self.verdicts)


class Matrix:
    """The server, its kernels by situation, and a judgement of each at every sample."""

    def __init__(self, server: Server, stub: StubService) -> None:
        self.server, self.stub = server, stub
        self.kernels: dict[str, str] = {}
        self.cases: dict[str, Case] = {}
        self.open: list[Any] = []
        self.stopping = threading.Event()
        self.threads: list[threading.Thread] = []
        self.meter = HostMeter()
        self.root = Root(main=server.process.pid, init=None, mark="a-1", server=True)
        self.use: TreeUse | None = None

    # --- situations ----------------------------------------------------------------------------------

    def set_up(self) -> None:
        for name in (*SETUPS, *QUIET):
            self.kernels[name] = self.server.open(f"{name}.ipynb")
        for name, code in SETUPS.items():
            self.server.execute(self.kernels[name], code)
        self.open.append(self.server.channels(self.kernels["open_tab"]))
        self._ask_for_input()
        for name in ("killed_in_a_cell", "restarted_in_a_cell"):
            self.server.execute(self.kernels[name], SILENT)
            self.wait_reported(name, 1)
        answer = self.server.http.post(f"/api/kernels/{self.kernels['restarted_in_a_cell']}/restart")
        assert answer.status_code == 200, answer.text
        self._kill("killed_in_a_cell")
        for name in ("silent_cell", "subshell_request", "debug_request"):
            self.wait_reported(name, 1)
        self._disturb()

    def _ask_for_input(self) -> None:
        channels = self.server.channels(self.kernels["input"])
        self.open.append(channels)
        asks = {**RUN, "code": "input('name? ')", "allow_stdin": True}
        channels.send(json.dumps(request("execute_request", asks)))
        while json.loads(channels.recv())["msg_type"] != "input_request":
            pass

    def _kill(self, name: str) -> None:
        """The kernel's process, in the middle of a cell and without a word."""
        uses = self.meter.measure({"s": self.root}, time.monotonic())
        (pid, *_) = sorted(uses["s"].kernels[self.kernels[name]].pids)
        os.kill(pid, signal.SIGKILL)

    def _disturb(self) -> None:
        """Requests that end at once while the cell goes on, again and again: each says busy and idle."""
        subshell = self.server.channels(self.kernels["subshell_request"])
        subshell.send(json.dumps(request("create_subshell_request", {}, "control")))
        while (reply := json.loads(subshell.recv()))["msg_type"] != "create_subshell_reply":
            pass
        beside = {"subshell_id": reply["content"]["subshell_id"]}
        debug = self.server.channels(self.kernels["debug_request"])
        comm = self.server.channels(self.kernels["comm_traffic"])
        self.open += [subshell, debug, comm]
        info = {"type": "request", "seq": 1, "command": "debugInfo", "arguments": {}}
        steps: list[tuple[Any, Callable[[], dict[str, Any]]]] = [
            (subshell, lambda: request("execute_request", {**RUN, "code": "2"}, **beside)),
            (debug, lambda: request("debug_request", info, "control")),
            (comm, lambda: request("comm_msg", {"comm_id": "c", "data": {}})),
            (comm, lambda: request("comm_info_request", {})),
        ]

        def go_on() -> None:
            while not self.stopping.wait(0.4):
                for channels, make in steps:
                    channels.send(json.dumps(make()))

        self.threads.append(threading.Thread(target=go_on, daemon=True))
        self.threads[-1].start()

    def reported(self, name: str) -> dict[str, Any]:
        found = [k for k in (self.stub.report or {}).get("kernels", []) if k["id"] == self.kernels[name]]
        return found[0] if found else {}

    def wait_reported(self, name: str, requests: int) -> None:
        until(lambda: self.reported(name).get("requests") == requests, 60, f"{name}: {requests} requests")

    # --- judging -------------------------------------------------------------------------------------

    def look(self) -> None:
        """One sample of everything, judged situation by situation."""
        uses = self.meter.measure({"s": self.root}, time.monotonic())
        self.use = use = uses["s"]
        now = Instant(time.time_ns() // 1_000_000)
        report = report_of(ActivityBody.model_validate(self.stub.report), now, 1)
        bare = replace(report, edited_at=None, jobs=0)
        quiet = CardUse(index=0, duty_percent=0)
        for name in self.kernels:
            self.judge(name, now, self.part(use, name), self.sliced(bare, name), quiet)
        idle, cell = ("untouched", "silent_cell")
        self.judge("two_kernels_one_busy", now, self.part(use, idle, cell), self.sliced(bare, idle, cell), quiet)
        self.judge("no_kernels", now, self.part(use), self.sliced(bare), quiet)
        working = CardUse(index=0, duty_percent=80)
        self.judge("card_busy_only", now, self.part(use, idle), self.sliced(bare, idle), working)
        lost = CardUse(index=0, duty_percent=None)
        self.judge("card_lost", now, self.part(use, idle), self.sliced(bare, idle), lost)
        self.judge("says_nothing", now, self.part(use, idle), None, quiet)
        edits = replace(self.sliced(bare, idle), edited_at=report.edited_at)
        self.judge("edits", now, self.part(use, idle), edits, quiet)
        terminals = replace(self.part(use, idle), jobs=use.jobs, shells=use.shells)
        self.judge("terminals", now, terminals, replace(self.sliced(bare, idle), jobs=report.jobs), quiet)

    def part(self, use: TreeUse, *names: str) -> TreeUse:
        """What the kernels of some situations used, as the whole of a session."""
        found = {self.kernels[n]: use.kernels[self.kernels[n]] for n in names if self.kernels[n] in use.kernels}
        cpu = [k.cpu_milli for k in found.values()]
        io = [k.io_bytes_per_minute for k in found.values()]
        return TreeUse(
            cpu_milli=None if None in cpu else sum(c for c in cpu if c is not None),
            io_bytes_per_minute=None if None in io else sum(b for b in io if b is not None),
            children=sum(k.children for k in found.values()), jobs=0, kernels=found,
        )  # fmt: skip

    def sliced(self, report: Report, *names: str) -> Report:
        wanted = {self.kernels[name] for name in names}
        return replace(report, kernels=tuple(k for k in report.kernels if k.id in wanted))

    def judge(self, name: str, now: Instant, use: TreeUse, report: Report | None, card: CardUse) -> None:
        case = self.cases.setdefault(name, Case())
        signals = [card_signal((card,)), *tree_signals(use, report), *reported_signals(report)]
        case.codes = {signal.kind: signal.code for signal in signals}
        case.watched = observed(case.watched, sample(now, signals), PERIOD_MS)
        case.verdicts.append(judge(case.watched, RULE, now, Instant(0)))

    def until(self, condition: Callable[[], bool], what: str, seconds: float = 90) -> None:
        """Look once a period until the condition holds."""

        def looked() -> bool:
            began = time.monotonic()
            self.look()
            self.stopping.wait(max(0.0, PERIOD_MS / 1000 - (time.monotonic() - began)))
            return condition()

        until(looked, seconds, what)

    def stands(self, name: str) -> Standing:
        return self.cases[name].last.standing

    def close(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        for channels in self.open:
            channels.close()


IDLE = (
    "untouched", "open_tab", "comm_traffic", "input", "killed_in_a_cell", "restarted_in_a_cell", "quick_cell",
    "async_task_asleep", "no_kernels",
)  # fmt: skip
BUSY: dict[str, SignalKind] = {
    "silent_cell": SignalKind.KERNEL,
    "subshell_request": SignalKind.KERNEL,
    "debug_request": SignalKind.KERNEL,
    "two_kernels_one_busy": SignalKind.KERNEL,
    "child_working": SignalKind.CPU,
    "child_sleeping": SignalKind.CHILD,
    "background_thread": SignalKind.CPU,
    "async_task": SignalKind.CPU,
    "download": SignalKind.IO,
    "card_busy_only": SignalKind.GPU,
}


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    stub = StubService()
    environment = {
        "HUBGOV_WORKLOAD_ID": WORKLOAD, "HUBGOV_ALLOCATION_ID": "a-1", "HUBGOV_URL": stub.url,
        "JUPYTERHUB_API_TOKEN": "t",
    }  # fmt: skip
    server = Server(tmp_path_factory.mktemp("matrix"), environment)
    server.wait()
    made = Matrix(server, stub)
    try:
        made.set_up()
        made.until(
            lambda: all(made.stands(name) is Standing.IDLE for name in IDLE),
            "everything that is idle to be seen so",
        )
        yield made
    except AssertionError:
        print({name: (case.last.standing, case.last.because, case.codes) for name, case in made.cases.items()})
        raise
    finally:
        made.close()
        server.stop()
        stub.close()


@pytest.mark.parametrize("name", IDLE)
def test_it_is_idle(matrix: Matrix, name: str) -> None:
    assert matrix.stands(name) is Standing.IDLE


@pytest.mark.parametrize("name", BUSY)
def test_it_is_busy_and_was_never_taken_for_idle(matrix: Matrix, name: str) -> None:
    case = matrix.cases[name]
    assert not case.was(Standing.IDLE)
    assert case.last.standing is Standing.BUSY
    assert BUSY[name] in case.last.because


@pytest.mark.parametrize("name", ["card_lost", "says_nothing"])
def test_what_is_not_known_is_never_idle(matrix: Matrix, name: str) -> None:
    case = matrix.cases[name]
    assert {v.standing for v in case.verdicts} == {Standing.UNKNOWN} or not case.was(Standing.IDLE)
    assert case.last.standing is Standing.UNKNOWN


def test_one_that_waits_for_input_says_so(matrix: Matrix) -> None:
    assert matrix.cases["input"].codes[SignalKind.KERNEL] == "kernel_waits"


def test_the_server_itself_calls_a_working_kernel_idle(matrix: Matrix) -> None:
    """Why the state that the server keeps is no signal: the subshell's requests have turned it."""
    kernel = matrix.server.http.get(f"/api/kernels/{matrix.kernels['subshell_request']}").json()
    assert kernel["execution_state"] == "idle"
    assert matrix.stands("subshell_request") is Standing.BUSY


def test_somebody_who_edits_is_at_work_until_he_stops(matrix: Matrix) -> None:
    wanted = 1

    def edit() -> bool:
        answer = matrix.server.http.post("/hubgov/edited", json={"path": "untouched.ipynb"})
        assert answer.status_code == 204, answer.text
        return len(matrix.cases["edits"].verdicts) >= wanted

    matrix.until(edit, "edits to be told")
    wanted = len(matrix.cases["edits"].verdicts) + 8
    matrix.until(edit, "a window with edits in it")
    recent = matrix.cases["edits"].verdicts[-6:]
    assert Standing.IDLE not in {v.standing for v in recent}
    matrix.until(lambda: matrix.stands("edits") is Standing.IDLE, "a window after the last edit")


def test_a_terminal_is_idle_until_something_runs_in_it(matrix: Matrix) -> None:
    name = matrix.server.http.post("/api/terminals").json()["name"]
    matrix.until(lambda: matrix.use is not None and matrix.use.shells == 1, "the terminal's shell")
    matrix.until(lambda: matrix.stands("terminals") is Standing.IDLE, "an open terminal to be idle")
    address = f"ws://127.0.0.1:{matrix.server.port}/terminals/websocket/{name}"
    terminal = create_connection(address, header=["Authorization: token t"], timeout=30)
    matrix.open.append(terminal)
    terminal.send(json.dumps(["stdin", "sleep 600\r"]))
    matrix.until(lambda: matrix.stands("terminals") is Standing.BUSY, "its job to be seen")
    assert matrix.cases["terminals"].last.because == (SignalKind.TERMINAL,)
    matrix.until(lambda: (matrix.stub.report or {}).get("jobs") == 1, "the extension to say the same")


def test_a_kernel_is_shut_down_on_word_and_its_document_saved(matrix: Matrix) -> None:
    kernel = matrix.kernels["quick_cell"]
    matrix.stub.end_kernels = [kernel]
    until(lambda: kernel not in matrix.server.kernels(), 30, "the kernel to be shut down")
    matrix.stub.end_kernels = []
    saved = list((matrix.server.folder / ".hubgov" / "saves").glob(f"idle-{kernel}/files/*.ipynb"))
    assert [path.name for path in saved] == ["quick_cell.ipynb"]


def test_a_kernel_that_works_is_not_shut_down(matrix: Matrix) -> None:
    kernel = matrix.kernels["silent_cell"]
    matrix.stub.end_kernels = [kernel]
    said: list[Any] = []

    def refused() -> bool:
        said.extend(end for end in (matrix.stub.report or {}).get("ended", ()) if end["id"] == kernel)
        return bool(said)

    until(refused, 30, "the session to say why not")
    matrix.stub.end_kernels = []
    assert said[0] == {"id": kernel, "failed": "it works again"}
    assert kernel in matrix.server.kernels()
