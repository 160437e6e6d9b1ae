"""Copies of documents that may be called saved: written, synced, read back equal, and of the root only."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hubgov.errors import Invalid
from hubgov.wire import SavedDocument, SaveReport
from hubgov.wire_json import to_json
from hubgov_lab.home import FOLDER, is_safe_name, replace_file, sync_folder
from hubgov_lab.settings import Limits

_CHUNK = 1024**2
_TRIES = 3
_REASONS = {
    errno.EDQUOT: "disk quota exceeded",
    errno.ENOSPC: "no space left on the disk",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "reached through something that is not a folder, such as a symbolic link",
    errno.ELOOP: "reached through a symbolic link, which is not followed",
    errno.EROFS: "the disk is read-only",
    errno.EFBIG: "larger than the disk or a limit allows",
    errno.ENAMETOOLONG: "its name is too long",
}


class NotSaved(Exception):
    """Why one document has no copy, in words for its owner."""


@dataclass(frozen=True, slots=True)
class Copied:
    bytes: int
    sha256: str


def parts_of(path: str) -> tuple[str, ...]:
    """The folders and the name of a document's path below the root; NotSaved when it leads anywhere else."""
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or len(path) > 4096:
        raise NotSaved("its path leads outside of the server's folder")
    return parts


def shown(path: str) -> str:
    """The path as text that can be written and sent: names on disk need not be."""
    printable = path.replace("\0", "\\x00")
    return printable.encode("utf-8", "backslashreplace").decode("utf-8")


def open_below(root: Path, parts: tuple[str, ...]) -> int:
    """A read handle of the regular file at `parts` below `root`. No component may be a symbolic link.

    Each component is opened relative to the one before, so nothing can be swapped for a link in between.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with ExitStack() as stack:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, folder)
        for part in parts[:-1]:
            folder = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            stack.callback(os.close, folder)
        # Without O_NONBLOCK opening a named pipe would wait for a writer.
        handle = os.open(parts[-1], flags | os.O_NONBLOCK, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise NotSaved("not a regular file")
        return handle


def copy_document(root: Path, path: str, target: Path, limit: int, too_large: str) -> Copied:
    """Copy one document of at most `limit` bytes, and prove the copy. NotSaved or OSError when that fails."""
    parts = parts_of(path)
    for _ in range(_TRIES):
        handle = open_below(root, parts)
        try:
            before = os.fstat(handle)
            if before.st_size > limit:
                raise NotSaved(too_large)
            copied = _write_copy(handle, target, limit, too_large)
            after = os.fstat(handle)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)
        if (
            (before.st_mtime_ns, before.st_size)
            == (after.st_mtime_ns, after.st_size)
            == (
                before.st_mtime_ns,
                copied.bytes,
            )
        ):
            return copied
    target.unlink(missing_ok=True)
    raise NotSaved("it kept changing while it was copied")


def _write_copy(handle: int, target: Path, limit: int, too_large: str) -> Copied:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    size = 0
    with open(target, "wb") as out:
        while chunk := os.read(handle, _CHUNK):
            size += len(chunk)
            if size > limit:
                raise NotSaved(too_large)
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    sync_folder(target.parent)
    with open(target, "rb") as back:
        reread = hashlib.file_digest(back, "sha256").hexdigest()
    if reread != digest.hexdigest():
        raise NotSaved("the copy reads back different from what was written")
    return Copied(size, reread)


def reason_of(error: OSError) -> str:
    """The failure in words for the document's owner, without paths."""
    if error.errno is None:
        return str(error)
    return _REASONS.get(error.errno, os.strerror(error.errno))


@dataclass(frozen=True, slots=True, kw_only=True)
class Saver:
    """Makes one folder per save under the home, with the copies and, last, their manifest."""

    home: Path
    root: Path
    limits: Limits
    now: Callable[[], str]

    def folder(self, save: str) -> Path:
        """Where a save lies; Invalid for an id that can't name a folder."""
        if not is_safe_name(save):
            raise Invalid(f"{save[:40]!r} is no id of a save")
        return self.home / FOLDER / "saves" / save

    def copy_all(self, save: str, paths: Iterable[str], lab_errors: dict[str, str]) -> tuple[SavedDocument, ...]:
        """A copy and an outcome for each document. `lab_errors`: what the browser couldn't save."""
        folder = self.folder(save)
        # Left over from a save that was cut short: it has no manifest, and its copies prove nothing.
        shutil.rmtree(folder, ignore_errors=True)
        done: list[SavedDocument] = []
        left = self.limits.total_bytes
        for count, path in enumerate(sorted(set(paths))):
            if count >= self.limits.documents:
                done.append(_failed(path, f"more than {self.limits.documents} documents are open"))
                continue
            document = self._copy(folder, path, left)
            left -= document.bytes
            done.append(_with_lab_error(document, lab_errors.get(path, "")))
        return tuple(done)

    def _copy(self, folder: Path, path: str, left: int) -> SavedDocument:
        """`left`: bytes that all copies together may still take."""
        limit, too_large = self.limits.document_bytes, f"larger than {_mib(self.limits.document_bytes)} MiB"
        if left < limit:
            limit, too_large = left, f"all copies together would be larger than {_mib(self.limits.total_bytes)} MiB"
        try:
            target = folder.joinpath("files", *parts_of(path))
            copied = copy_document(self.root, path, target, limit, too_large)
        except NotSaved as error:
            return _failed(path, str(error))
        except OSError as error:
            return _failed(path, reason_of(error))
        except UnicodeEncodeError:
            return _failed(path, "its name can't be written on this disk")
        return SavedDocument(
            path=shown(path),
            outcome="saved",
            bytes=copied.bytes,
            sha256=copied.sha256,
            saved_at=self.now(),
            copy=shown(str(target.relative_to(self.home))),
        )

    def finish(self, report: SaveReport) -> str:
        """Write the manifest, which makes the save complete, and drop all but the newest saves.

        The reason when that failed; empty when all is well.
        """
        folder = self.folder(report.save)
        text = json.dumps(to_json(report), ensure_ascii=False, indent=1) + "\n"
        try:
            replace_file(folder / "manifest.json", text)
        except OSError as error:
            return f"the list of copies was not written: {reason_of(error)}"
        try:
            self._prune()
        except OSError as error:
            return f"older saves were not removed: {reason_of(error)}"
        return ""

    def _prune(self) -> None:
        saves = [entry for entry in (self.home / FOLDER / "saves").iterdir() if entry.is_dir()]
        saves.sort(key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
        for old in saves[self.limits.kept_saves :]:
            shutil.rmtree(old)


def _mib(size: int) -> int:
    return size // 1024**2


def _failed(path: str, reason: str) -> SavedDocument:
    return SavedDocument(path=shown(path), outcome="not_saved", error=reason)


def _with_lab_error(document: SavedDocument, error: str) -> SavedDocument:
    """The browser's failure wins: the copy is whole, but it lacks what was typed since the last save."""
    if not error or document.outcome != "saved":
        return document
    return SavedDocument(
        path=document.path,
        outcome="not_saved",
        bytes=document.bytes,
        sha256=document.sha256,
        saved_at=document.saved_at,
        copy=document.copy,
        error=f"JupyterLab could not save it ({error[:200]}); the copy holds what was saved before",
    )
