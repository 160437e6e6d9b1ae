"""What survives a restart of the server: small files in the home, each replaced at once or not at all."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = ".hubgov"
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", re.ASCII)
_KEPT_MEMORIES = 20


def is_safe_name(name: str) -> bool:
    """Whether an id may name a file or folder: no separators, no leading dot, at most 100 characters."""
    return _SAFE.fullmatch(name) is not None


def replace_file(path: Path, text: str) -> None:
    """Write the file so that a reader sees the old text or the new one, and a crash leaves one of the two."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the folder's entries durable: without it a crash may lose a file whose content was synced."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_deadline(path: Path, expires_at: str | None) -> None:
    """The end of the session as one line for terminals and jobs; no file when there is no end."""
    if expires_at is None:
        path.unlink(missing_ok=True)
    else:
        replace_file(path, f"{expires_at}\n")


@dataclass(slots=True)
class Memory:
    """What was already shown, saved and opened for one workload, so that it happens once over restarts."""

    file: Path
    shown: set[str] = field(default_factory=set)
    saved: set[str] = field(default_factory=set)
    resumed: bool = False

    @classmethod
    def of(cls, home: Path, workload: str) -> Memory:
        """The memory kept for the workload; empty when there is none or it can't be read."""
        name = workload if is_safe_name(workload) else "workload-" + workload.encode().hex()[:80]
        memory = cls(home / FOLDER / "lab" / f"{name}.json")
        try:
            kept = json.loads(memory.file.read_text(encoding="utf-8"))
            memory.shown = _words(kept.get("shown"))
            memory.saved = _words(kept.get("saved"))
            memory.resumed = kept.get("resumed") is True
        except FileNotFoundError:
            pass
        except (OSError, ValueError, AttributeError):
            # A damaged memory costs a repeated warning at most; refusing to start would cost the countdown.
            memory.shown, memory.saved, memory.resumed = set(), set(), False
        return memory

    def text(self) -> str:
        """The memory as it is written."""
        kept = {"shown": sorted(self.shown), "saved": sorted(self.saved), "resumed": self.resumed}
        return json.dumps(kept) + "\n"

    def store(self, text: str) -> None:
        """Write the text of this memory and drop the memories of workloads long gone."""
        replace_file(self.file, text)
        kept = sorted(self.file.parent.glob("*.json"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in kept[_KEPT_MEMORIES:]:
            file.unlink(missing_ok=True)


def _words(value: object) -> set[str]:
    return {word for word in value if isinstance(word, str)} if isinstance(value, Iterable) else set()
