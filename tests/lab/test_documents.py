"""The copies: what is copied, what is refused, and that "saved" is only said of what was proved."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest
from hubgov_lab import documents
from hubgov_lab.documents import Saver
from hubgov_lab.home import Memory, replace_file
from hubgov_lab.settings import Limits

from hubgov.errors import Invalid
from hubgov.wire import SavedDocument, SaveReport


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "work" / "sub").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def saver(home: Path) -> Saver:
    limits = Limits(document_bytes=2000, total_bytes=5000, documents=5, kept_saves=3)
    return Saver(home=home, root=home / "work", limits=limits, now=lambda: "2026-03-02T09:00:00.000Z")


def one(saver: Saver, path: str, lab_error: str = "") -> SavedDocument:
    (document,) = saver.copy_all("s-1", [path], {path: lab_error})
    return document


def test_a_document_is_copied_and_proved(saver: Saver, home: Path) -> None:
    (home / "work" / "sub" / "笔记.ipynb").write_text("{}")
    document = one(saver, "sub/笔记.ipynb")
    assert (document.outcome, document.bytes, document.error) == ("saved", 2, "")
    assert document.sha256 == hashlib.sha256(b"{}").hexdigest()
    assert document.copy == ".hubgov/saves/s-1/files/sub/笔记.ipynb"
    assert (home / document.copy).read_text() == "{}"


@pytest.mark.parametrize("path", ["../secret", "sub/../../secret", "/etc/passwd", "", ".", "a\0b", "x/" * 3000])
def test_a_path_outside_of_the_root_is_refused(saver: Saver, home: Path, path: str) -> None:
    (home / "secret").write_text("secret")
    document = one(saver, path)
    assert document.outcome == "not_saved"
    assert "outside" in document.error
    assert not list((home / ".hubgov").rglob("*secret*"))


@pytest.mark.parametrize("name", [b"caf\xe9.ipynb", "\u7b14\u8bb0.ipynb".encode(), b"a\nb.ipynb"])
def test_an_odd_name_costs_no_other_document_its_report(saver: Saver, home: Path, name: bytes) -> None:
    (home / "work" / "good.ipynb").write_text("{}")
    odd = os.fsdecode(name)
    Path(os.fsdecode(os.fsencode(home / "work") + b"/" + name)).write_text("{}")
    found = saver.copy_all("s-1", [odd, "good.ipynb", "no\0name", "\ud800.txt"], {})
    assert {d.path: d.outcome for d in found if d.path == "good.ipynb"} == {"good.ipynb": "saved"}
    assert sorted(d.outcome for d in found) == ["not_saved", "not_saved", "saved", "saved"]
    report = SaveReport(save="s-1", asked_lab=False, documents=found, kernels=(), terminals=0)
    assert saver.finish(report) == ""
    for document in found:
        assert "\0" not in document.path.encode().decode(), "it can be sent and stored"


def test_what_all_copies_may_take_together_is_named(saver: Saver, home: Path) -> None:
    for number in range(4):
        (home / "work" / f"{number}").write_bytes(b"x" * 1900)
    found = saver.copy_all("s-1", [f"{n}" for n in range(4)], {})
    assert [d.outcome for d in found] == ["saved", "saved", "not_saved", "not_saved"]
    assert "all copies together" in found[-1].error


def test_a_symlinked_document_is_not_followed(saver: Saver, home: Path) -> None:
    (home / "secret").write_text("secret")
    (home / "work" / "link.txt").symlink_to(home / "secret")
    document = one(saver, "link.txt")
    assert (document.outcome, document.copy) == ("not_saved", None)
    assert "symbolic link" in document.error


def test_a_symlinked_folder_is_not_followed(saver: Saver, home: Path) -> None:
    (home / "other").mkdir()
    (home / "other" / "secret").write_text("secret")
    (home / "work" / "link").symlink_to(home / "other")
    document = one(saver, "link/secret")
    assert document.outcome == "not_saved"
    assert "symbolic link" in document.error


def test_a_named_pipe_is_refused_without_waiting(saver: Saver, home: Path) -> None:
    os.mkfifo(home / "work" / "pipe")
    assert one(saver, "pipe").error == "not a regular file"


def test_a_missing_document_is_named(saver: Saver) -> None:
    assert one(saver, "gone.ipynb").error == "no such file"


def test_a_large_document_is_refused(saver: Saver, home: Path) -> None:
    (home / "work" / "large").write_bytes(b"x" * 2001)
    document = one(saver, "large")
    assert document.outcome == "not_saved"
    assert document.error.startswith("larger than")
    assert not (home / ".hubgov" / "saves" / "s-1" / "files" / "large").exists()


def test_one_save_has_a_size_and_a_number(saver: Saver, home: Path) -> None:
    names = [f"d{n}" for n in range(7)]
    for name in names:
        (home / "work" / name).write_bytes(b"x" * 1500)
    found = saver.copy_all("s-1", names, {})
    assert [document.outcome for document in found] == ["saved"] * 3 + ["not_saved"] * 4
    assert found[3].error.startswith("all copies together")
    assert found[5].error == "more than 5 documents are open"


@pytest.mark.parametrize(
    ("number", "words"), [(errno.EDQUOT, "disk quota exceeded"), (errno.ENOSPC, "no space left on the disk")]
)
def test_a_full_disk_is_told(
    saver: Saver, home: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    (home / "work" / "a.ipynb").write_text("{}")

    def full(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(documents.os, "fsync", full)
    document = one(saver, "a.ipynb")
    assert (document.outcome, document.error, document.copy) == ("not_saved", words, None)
    assert not (home / ".hubgov" / "saves" / "s-1" / "files" / "a.ipynb").exists()


def test_a_copy_that_reads_back_different_is_not_saved(
    saver: Saver, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "work" / "a.ipynb").write_text("{}")

    def damage(folder: Path) -> None:
        (folder / "a.ipynb").write_text("[]")

    monkeypatch.setattr(documents, "sync_folder", damage)
    document = one(saver, "a.ipynb")
    assert document.outcome == "not_saved"
    assert "reads back different" in document.error


def test_a_document_that_keeps_changing_is_not_saved(
    saver: Saver, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "work" / "a.log").write_text("1")

    def grow(folder: Path) -> None:
        with (home / "work" / "a.log").open("a") as log:
            log.write("more")

    monkeypatch.setattr(documents, "sync_folder", grow)
    assert one(saver, "a.log").error == "it kept changing while it was copied"


def test_what_the_browser_could_not_save_is_not_called_saved(saver: Saver, home: Path) -> None:
    (home / "work" / "a.ipynb").write_text("{}")
    document = one(saver, "a.ipynb", "File changed on disk")
    assert document.outcome == "not_saved"
    assert document.copy == ".hubgov/saves/s-1/files/a.ipynb"
    assert "File changed on disk" in document.error


def test_the_manifest_comes_last_and_old_saves_go(saver: Saver, home: Path) -> None:
    (home / "work" / "a.ipynb").write_text("{}")
    for n in range(5):
        save = f"s-{n}"
        found = saver.copy_all(save, ["a.ipynb"], {})
        assert not (saver.folder(save) / "manifest.json").exists()
        assert saver.finish(SaveReport(save=save, asked_lab=False, documents=found)) == ""
        os.utime(saver.folder(save), (n, n))
    kept = sorted(folder.name for folder in (home / ".hubgov" / "saves").iterdir())
    assert kept == ["s-2", "s-3", "s-4"]
    manifest = json.loads((saver.folder("s-4") / "manifest.json").read_text())
    assert manifest["documents"][0]["copy"] == ".hubgov/saves/s-4/files/a.ipynb"


def test_a_manifest_that_cannot_be_written_is_told(saver: Saver, home: Path) -> None:
    (home / ".hubgov").write_text("in the way")
    assert "was not written" in saver.finish(SaveReport(save="s-1", asked_lab=False))


@pytest.mark.parametrize("save", ["../x", "a/b", "", ".hidden", "x" * 101])
def test_an_id_that_is_no_name_makes_no_folder(saver: Saver, save: str) -> None:
    with pytest.raises(Invalid):
        saver.folder(save)


def test_a_failed_replacement_leaves_the_old_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "deadline"
    replace_file(file, "old\n")

    def fail(source: str, target: Path) -> None:
        raise OSError(errno.EDQUOT, "quota")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="quota"):
        replace_file(file, "new\n")
    assert file.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("text", ["", "[]", '{"shown": 7}', "{not json"])
def test_a_damaged_memory_is_an_empty_one(tmp_path: Path, text: str) -> None:
    memory = Memory.of(tmp_path, "w-1")
    memory.store(text)
    again = Memory.of(tmp_path, "w-1")
    assert (again.shown, again.saved, again.resumed) == (set(), set(), False)


def test_memories_of_old_workloads_go(tmp_path: Path) -> None:
    for n in range(25):
        memory = Memory.of(tmp_path, f"w/{n}")
        memory.store(memory.text())
    assert len(list((tmp_path / ".hubgov" / "lab").iterdir())) == 20
