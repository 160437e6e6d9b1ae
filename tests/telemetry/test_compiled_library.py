"""The prober over a library compiled from C, found by its name as NVIDIA's is: real ctypes, real symbols."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hubgov.telemetry.lines import decode
from hubgov.telemetry.probe import DeviceProcess

if compiler := shutil.which("gcc") or shutil.which("cc"):

    @pytest.mark.slow
    def test_a_compiled_library_is_read_through_its_real_symbols(tmp_path: Path) -> None:
        source, library = Path(__file__).with_name("fake_nvml.c"), tmp_path / "libnvidia-ml.so.1"
        build = [compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library, source]
        subprocess.run(build, check=True, timeout=60)
        with subprocess.Popen(
            [sys.executable, "-m", "hubgov.telemetry.nvml_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        ) as prober:
            assert prober.stdin is not None
            assert prober.stdout is not None
            said = decode(prober.stdout.readline())
            prober.stdin.close()
            assert prober.wait(30) == 0
        assert isinstance(said, tuple)
        idle, busy = said
        assert (idle.uuid, idle.minor, idle.memory_mib, idle.used_mib) == ("GPU-00000000", 4, 81559, 3)
        assert (idle.utilisation_percent, idle.processes) == (0, ())
        assert (busy.model, busy.used_mib, busy.utilisation_percent) == ("NVIDIA Stub", 1003, 97)
        assert busy.processes == (DeviceProcess(4242, 999),)
        assert busy.unknown_because == "power: not supported by this driver"
