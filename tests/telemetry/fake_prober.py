"""The real prober over a fake library, as a program: `fake_prober.py SCENARIO.JSON --period 0.05`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pynvml
from telemetry.fake_nvml import FakeCard, FakeLibrary, install

from hubgov.telemetry.nvml_child import main


def fake_prober(period: float = 0.05, **scenario: object) -> tuple[str, ...]:
    """The command that runs this program: keys of a scenario are those that `run` reads."""
    return (sys.executable, __file__, json.dumps(scenario), "--period", str(period))


def script(code: str) -> tuple[str, ...]:
    """The command of a prober that does this instead."""
    return (sys.executable, "-c", code)


def _no_library(_name: str) -> Any:
    raise OSError("cannot open shared object file")


def run(scenario: dict[str, Any], arguments: list[str]) -> int:
    """`cards`: how many; `errors`: codes by symbol; `hang_after`: memory calls that return; `library`: false
    for none; `pids`: a file to which the process adds its pid.
    """
    if scenario.get("library") is False:
        pynvml.CDLL = _no_library
    else:
        library = FakeLibrary([FakeCard(f"GPU-{n}") for n in range(scenario.get("cards", 1))])
        library.errors.update(scenario.get("errors", {}))
        library.hang_after = scenario.get("hang_after")
        install(library)
    if "pids" in scenario:
        with Path(scenario["pids"]).open("a", encoding="ascii") as pids:
            print(os.getpid(), file=pids)
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run(json.loads(sys.argv[1]), sys.argv[2:]))
