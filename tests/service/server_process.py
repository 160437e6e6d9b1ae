"""A notebook server's stand-in: a process that the service can see and knows by its mark."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from hubgov import processes


def start(environment: dict[str, str]) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """The process, and its identity as the spawner reports it. It lives until it is killed or its input ends."""
    code = "import sys; sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **environment}, stdin=subprocess.PIPE
    )
    ref = processes.identify(process.pid)
    assert ref is not None
    return process, {"pid": ref.pid, "start_ticks": ref.start_ticks, "boot_id": ref.boot_id}


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill it and reap it."""
    process.kill()
    process.communicate()
