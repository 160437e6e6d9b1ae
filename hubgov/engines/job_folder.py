"""What is on the disk of one job: files that its supervisor writes and the engine reads, and the reverse.

The supervisor outlives the service, so all that must be known of a job is here and in the ledger. A file that is
there is whole. Nothing in it is in reach of the job itself but the folder `told`, which it may read.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hubgov.core.model import ProcessId

DEADLINE = "deadline"
T = TypeVar("T")


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


Trouble = Callable[[Path, Exception], None]
"""Is told of a file that can't be read, and why."""


class JobFolder:
    """The folder of one allocation. A file in it that isn't whole, as a crash may leave it, says nothing."""

    def __init__(self, path: Path, trouble: Trouble = lambda path, error: None) -> None:
        self.path, self._trouble = path, trouble

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
        return self._read("begun", _process)

    def close(self) -> bool:
        """Let no supervisor take the job any more; False when one has. The disk decides: exactly one is first."""
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Empty, since a full disk has room for a name: of who took it there is always a line in it.
            os.close(os.open(self.path / "begun", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return self.supervisor() is None

    def status(self) -> Status:
        """As the supervisor last wrote it."""
        return self._read("status.json", _status) or Status()

    def end(self) -> End | None:
        """How it ended; None while it didn't, or nobody was left to say so."""
        return self._read("end.json", _end)

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
            if path.read_bytes() == occasion.encode():
                return False
        draft = self.path / ".asked"
        draft.write_text(occasion, encoding="ascii")
        draft.replace(path)
        return True

    def forget_signal(self) -> None:
        """It goes on after all: at its own end nothing of it has to be waited for."""
        with contextlib.suppress(OSError):
            (self.path / "asked").unlink()

    def _read(self, name: str, made_of: Callable[[Any], T]) -> T | None:
        path = self.path / name
        try:
            content = path.read_bytes()
            return made_of(json.loads(content)) if content else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            self._trouble(path, error)
            return None


def _process(found: Any) -> ProcessId | None:
    if found is None:
        return None
    pid, start_ticks, boot_id = found
    return ProcessId(pid=int(pid), start_ticks=int(start_ticks), boot_id=str(boot_id))


def _status(found: Any) -> Status:
    running_at = found["running_at"]
    return Status(
        init=_process(found["init"]),
        main=_process(found["main"]),
        running_at_ms=int(running_at) if running_at is not None else None,
    )


def _end(found: Any) -> End:
    code, signal = (None if found[name] is None else int(found[name]) for name in ("code", "signal"))
    return End(
        at_ms=int(found["at"]),
        code=code,
        signal=signal,
        failure=found["failure"],
        log_bytes=int(found["log_bytes"]),
        log_trouble=str(found["log_trouble"]),
    )
