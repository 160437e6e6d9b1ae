"""A stand-in service with everyday answers, and the program as a real child process that asks it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cli.standin import TOKEN, Standin, script


class Ran(NamedTuple):
    """What a call of the program gave."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The lines of TSV."""
        return [line.split("\t") for line in self.out.splitlines()]

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Program:
    """Calls `hubgov` as people do: in a process of its own, with the environment that the test sets."""

    def __init__(self, standin: Standin, home: Path) -> None:
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TZ": "Asia/Shanghai",
            "LANG": "C.UTF-8",
            "HUBGOV_URL": standin.url,
            "HUBGOV_TOKEN": TOKEN,
            # Long-running children would count as a leak of the test run; a child that hangs is the test's failure.
            "PYTHONWARNINGS": "error",
        }

    def __call__(self, *arguments: str, given: str | bytes = "", **environment: str | None) -> Ran:
        """Run it to its end. `environment` adds variables, None takes one away."""
        done = subprocess.run(
            [sys.executable, "-m", "hubgov.cli", *arguments],
            input=given.encode() if isinstance(given, str) else given,
            capture_output=True,
            env=self.with_(environment),
            timeout=60,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def with_(self, changes: dict[str, str | None]) -> dict[str, str]:
        every = {**self.environment, **changes}
        return {name: value for name, value in every.items() if value is not None}

    def on_terminal(self, *arguments: str, **environment: str | None) -> Terminal:
        """Start it on a terminal of its own, 160 columns wide."""
        return Terminal(arguments, self.with_({"TERM": "xterm-256color", "COLUMNS": "160", **environment}))


class Terminal:
    """A call of the program on a pseudo-terminal."""

    def __init__(self, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hubgov.cli", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
            # Whoever runs the tests in the background has SIGINT ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(theirs)
        self._seen = b""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def until(self, awaited: str) -> str:
        """What the terminal showed up to this text. Reads; it ends when the program does."""
        while awaited.encode() not in self._seen:
            assert self._read(), f"it ended without {awaited!r}: {self._seen.decode(errors='replace')}"
        seen, self._seen = self._seen, b""
        return seen.decode(errors="replace")

    def end(self) -> tuple[int, str]:
        """Exit code, and what was shown since the last `until`."""
        while self._read():
            pass
        code = self.process.wait(30)
        os.close(self._ours)
        return code, self._seen.decode(errors="replace")

    def _read(self) -> bool:
        assert select.select([self._ours], [], [], 60)[0], "the program neither says anything nor ends"
        try:
            got = os.read(self._ours, 65536)
        except OSError:  # how Linux says that nobody holds the other end any more
            return False
        self._seen += got
        return bool(got)


@pytest.fixture
def standin() -> Iterator[Standin]:
    service = Standin()
    script(service)
    yield service
    service.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def hubgov(standin: Standin, home: Path) -> Program:
    return Program(standin, home)
