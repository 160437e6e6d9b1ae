"""Real process trees, with and without a box: what counts as work, as a kernel, as a child, as the server's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

from hubgov.core.sensing import CPU_FLOOR_MILLI, IO_FLOOR_BYTES_PER_MINUTE, TreeUse
from hubgov.telemetry.host import HostMeter, Root

BURN = (
    "import time\nwhile True:\n  end = time.monotonic() + 0.1\n"
    "  while time.monotonic() < end: pass\n  time.sleep(0.2)\n"
)
SLEEP = "import signal; signal.pause()"
KERNEL = "kernel-11111111-2222-3333-4444-555555555555.json"


def server_with(kernel: str, argument: str = KERNEL) -> str:
    """A server's code that starts one kernel and then only waits."""
    start = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {kernel!r}, {argument!r}])\n"
    return start + SLEEP


@contextmanager
def running(code: str, *box: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([*box, sys.executable, "-c", code], start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def measured(root: Root) -> TreeUse:
    """The use between two looks that lie half a second apart or more."""
    meter = HostMeter()
    began = time.monotonic()
    meter.measure({"s": root}, began)
    until(lambda: time.monotonic() - began > 0.6, 5, "half a second")
    return meter.measure({"s": root}, time.monotonic())["s"]


def root_of(pid: int, init: int | None = None) -> Root:
    return Root(main=pid, init=init, mark="nobody", server=True)


def test_a_kernels_work_is_seen_and_the_servers_own_is_not() -> None:
    with running(server_with(BURN)) as server:
        until(lambda: measured(root_of(server.pid)).kernels, 10, "the kernel")
        use = measured(root_of(server.pid))
        assert use.cpu_milli is not None
        assert use.cpu_milli > 5 * CPU_FLOOR_MILLI
        (kernel,) = use.kernels.values()
        assert kernel.cpu_milli is not None
        assert kernel.cpu_milli > 5 * CPU_FLOOR_MILLI
        assert (use.children, use.jobs) == (0, 0)
    with running(BURN) as busy_server:
        use = measured(root_of(busy_server.pid))
        assert (use.cpu_milli, use.io_bytes_per_minute, use.children) == (0, 0, 0)


def test_a_child_of_a_kernel_is_one_and_a_helper_of_the_server_is_none() -> None:
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}])\n{SLEEP}"
    with running(server_with(child)) as server:
        use = until(lambda: u if (u := measured(root_of(server.pid))).children else None, 10, "the child")
        assert use is not None
        assert (use.children, [k.children for k in use.kernels.values()]) == (1, [1])
    with running(server_with(SLEEP, "language-server")) as server:
        until(lambda: len(measured(root_of(server.pid)).pids) == 2, 10, "the helper")
        assert (measured(root_of(server.pid)).children, measured(root_of(server.pid)).kernels) == (0, {})


def test_writes_are_seen(tmp_path: Path) -> None:
    code = (
        f"import time\nout = open({str(tmp_path / 'got')!r}, 'wb', buffering=0)\n"
        "while True:\n  out.seek(0); out.write(b'x' * 100000); time.sleep(0.1)\n"
    )
    with running(server_with(code)) as server:
        until(lambda: measured(root_of(server.pid)).kernels, 10, "the kernel")
        rate = measured(root_of(server.pid)).io_bytes_per_minute
        assert rate is not None
        assert rate > 10 * IO_FLOOR_BYTES_PER_MINUTE


def test_the_first_look_tells_no_use_and_one_that_is_gone_is_left_out() -> None:
    meter = HostMeter()
    with running(SLEEP) as server:
        use = meter.measure({"s": root_of(server.pid)}, time.monotonic())["s"]
        assert (use.cpu_milli, use.io_bytes_per_minute) == (None, None)
    assert meter.measure({"s": root_of(server.pid)}, time.monotonic()) == {}


@pytest.mark.boxed
def test_in_a_box_what_lost_its_parent_is_still_seen() -> None:
    """A kernel's child whose kernel ended belongs to pid 1 of the box: it works on, and counts."""
    orphan = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURN!r}], start_new_session=True)"
    box = ("bwrap", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc", "--")
    with running(server_with(orphan), *box) as outer:
        (init,) = until(lambda: children(outer.pid), 10, "pid 1 of the box")
        (main,) = until(lambda: [p for p in children(init) if b"kernel-" in cmdline(p)] or None, 10, "the server")
        use = until(lambda: u if (u := measured(root_of(main, init))).children else None, 15, "the orphan")
        assert use is not None
        assert (use.children, use.kernels) == (1, {})
        use = measured(root_of(main, init))
        assert use.cpu_milli is not None
        assert use.cpu_milli > 5 * CPU_FLOOR_MILLI


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
