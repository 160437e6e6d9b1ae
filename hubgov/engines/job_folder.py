"""What is on the disk of one job: files that its supervisor writes and the engine reads, and the reverse.

The supervisor outlives the service, so all that must be known of a job is here and in the ledger. A file that is
there is whole. Nothing in it is in reach of the job itself but the folder `told`, which it may read.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubgov.core.model import ProcessId

DEADLINE = "deadline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Which processes a job is; `running_at_ms` (of the wall clock) once its command has taken over."""

    init: ProcessId | None = None
    main: ProcessId | None = None
    running_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a job ended, at `at_ms` of the wall clock. `failure` names what kept it from running."""

    at_ms: int
    code: int | None = None
    signal: int | None = None
    failure: str | None = None
    log_bytes: int = 0
    """All that it wrote, also what the log left out."""
    log_trouble: str = ""
    """Why the disk took some of it not; empty if it took all."""


class JobFolder:
    """The folder of one allocation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Make it, and what the job may read of it."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.told.mkdir(mode=0o755, exist_ok=True)
        self.told.chmod(0o755)

    @property
    def told(self) -> Path:
        """The folder that the job sees, read-only."""
        return self.path / "told"

    # --- what the supervisor says ---

    @property
    def begun(self) -> bool:
        """Whether a supervisor took the job, or none may any more."""
        return (self.path / "begun").exists()

    def supervisor(self) -> ProcessId | None:
        """Who stands by the job; None as long as nobody took it, and when nobody may."""
        return _process(self._read("begun"))

    def close(self) -> bool:
        """Let no supervisor take the job any more; False when one has. The disk decides: exactly one is first."""
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Empty, since a full disk has room for a name: of who took it there is always a line in it.
            os.close(os.open(self.path / "begun", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return self.supervisor() is None

    def status(self) -> Status:
        """As the supervisor last wrote it."""
        found = self._read("status.json") or {}
        return Status(
            init=_process(found.get("init")),
            main=_process(found.get("main")),
            running_at_ms=found.get("running_at"),
        )

    def end(self) -> End | None:
        """How it ended; None while it didn't, or nobody was left to say so."""
        found = self._read("end.json")
        if found is None:
            return None
        return End(
            at_ms=found["at"],
            code=found["code"],
            signal=found["signal"],
            failure=found["failure"],
            log_bytes=found["log_bytes"],
            log_trouble=found["log_trouble"],
        )

    # --- what the engine notes ---

    def tell_deadline(self, text: str) -> None:
        """The end of its lease, for the job to read: in one step, so that it never reads half of one."""
        draft = self.told / f".{DEADLINE}"
        draft.write_text(text, encoding="ascii")
        draft.chmod(0o644)
        draft.replace(self.told / DEADLINE)

    def note_signal(self, occasion: str) -> bool:
        """Note that the job is asked to end on this occasion; False when it was before. Before it is sent: rather
        none than two, since the second ends what cleans up after the first."""
        path = self.path / "asked"
        with contextlib.suppress(FileNotFoundError):
            if path.read_text(encoding="ascii") == occasion:
                return False
        draft = self.path / ".asked"
        draft.write_text(occasion, encoding="ascii")
        draft.replace(path)
        return True

    def forget_signal(self) -> None:
        """It goes on after all: at its own end nothing of it has to be waited for."""
        with contextlib.suppress(OSError):
            (self.path / "asked").unlink()

    def _read(self, name: str) -> Any:
        try:
            content = (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return json.loads(content) if content else None


def _process(found: Any) -> ProcessId | None:
    if not isinstance(found, list):
        return None
    pid, start_ticks, boot_id = found
    return ProcessId(pid=pid, start_ticks=start_ticks, boot_id=boot_id)
