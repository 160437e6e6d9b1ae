"""A job's files: who is first to take it, and reading what it wrote by the byte."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubgov.engines import job_log
from hubgov.engines.job_folder import JobFolder, Status
from hubgov.engines.local import PLAIN_PYTHON
from hubgov.service.handlers.logs import whole

SUPERVISOR = str(Path(job_log.__file__).with_name("supervise.py"))


def end(folder: Path, size: int, trouble: str = "") -> None:
    told = {"at": 1, "code": 0, "signal": None, "failure": None, "log_bytes": size, "log_trouble": trouble}
    (folder / "end.json").write_text(json.dumps(told))


def test_who_is_first_has_the_job(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "tr-1.1")
    assert not job.begun
    assert job.close()
    assert job.begun
    assert job.close(), "closed twice is closed once"
    order = {"argv": ["/bin/true"], "outer_env": {}, "files": {}, "fds": {}, "boxed": False, "grace_seconds": 0}
    done = subprocess.run(
        [sys.executable, *PLAIN_PYTHON, SUPERVISOR, str(job.path)],
        input=json.dumps(order | {"command": ["true"], "env": {}, "home": "/", "cwd": ""}).encode(),
        capture_output=True,
        timeout=20,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert sorted(path.name for path in job.path.iterdir()) == ["begun"], "it left at once"


def test_a_job_that_was_taken_is_not_closed(tmp_path: Path) -> None:
    job = JobFolder(tmp_path)
    (tmp_path / "begun").write_text(json.dumps([1, 2, "boot"]))
    assert not job.close()
    supervisor = job.supervisor()
    assert supervisor is not None
    assert supervisor.pid == 1


def test_it_is_asked_once_on_each_occasion(tmp_path: Path) -> None:
    job = JobFolder(tmp_path)
    assert [job.note_signal(word) for word in ("1", "1", "2", "2")] == [True, False, True, False]


def test_the_deadline_is_for_others_to_read(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "tr-1.1")
    job.make()
    job.tell_deadline("2026-03-02T10:00:00.000Z")
    assert (job.told / "deadline").read_text() == "2026-03-02T10:00:00.000Z"
    assert (job.told / "deadline").stat().st_mode & 0o777 == 0o644
    assert job.path.stat().st_mode & 0o777 == 0o700


def test_reading_goes_on_over_segments_and_tells_gaps(tmp_path: Path) -> None:
    (tmp_path / "log.0").write_bytes(b"0123456789")
    (tmp_path / "log.30").write_bytes(b"abcdef")
    assert job_log.read(tmp_path, 0, 4).data == b"0123"
    assert job_log.read(tmp_path, 4, 100).data == b"456789"
    gap = job_log.read(tmp_path, 10, 3)
    assert (gap.data, gap.left_out, gap.next_offset, gap.end) == (b"abc", 20, 33, False)
    assert job_log.read(tmp_path, 36, 9) == job_log.LogPart(data=b"", next_offset=36, left_out=0, end=False)
    end(tmp_path, 36)
    assert job_log.read(tmp_path, 33, 9).end
    end(tmp_path, 50, "No space left on device")
    assert not job_log.read(tmp_path, 33, 9).end
    last = job_log.read(tmp_path, 36, 9)
    assert (last.left_out, last.next_offset, last.end, last.trouble) == (14, 50, True, "No space left on device")
    assert job_log.read(tmp_path, 99, 9).end
    assert job_log.read(tmp_path / "none", 0, 9).data == b""


@given(st.text(max_size=30), st.integers(1, 9))
def test_pieces_of_a_text_are_texts(text: str, size: int) -> None:
    data, offset, pieces = text.encode("utf-8", "ignore"), 0, []
    while offset < len(data):
        piece = data[offset : offset + max(4, size)]
        kept = piece if offset + len(piece) == len(data) else whole(piece)
        assert kept, "always some way on"
        pieces.append(kept.decode("utf-8"))
        offset += len(kept)
    assert "".join(pieces).encode() == data


@pytest.mark.parametrize(
    ("data", "kept"), [(b"\xff\xff", b"\xff"), (b"a\xe4\xb8", b"a"), (b"\xbf" * 5, b"\xbf" * 5)]
)
def test_what_is_no_text_does_not_hold_up(data: bytes, kept: bytes) -> None:
    assert whole(data) == kept


NAMES = ["begun", "status.json", "end.json"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "content", [b"{", b"\xff\xfe", b"null", b"[]", b"[1]", b"{}", b'"x"', b"7", b'{"at": "x"}', b"\0" * 2048]
)
def test_a_file_that_is_not_whole_says_nothing(tmp_path: Path, name: str, content: bytes) -> None:
    told: list[Path] = []
    job = JobFolder(tmp_path, lambda path, error: told.append(path))
    (tmp_path / name).write_bytes(content)
    assert (job.supervisor(), job.status(), job.end()) == (None, Status(), None)
    assert set(told) == ({tmp_path / name} if (name, content) != ("begun", b"null") else set())


@pytest.mark.parametrize("name", NAMES)
def test_one_that_can_not_be_read_says_nothing_either(tmp_path: Path, name: str) -> None:
    told: list[str] = []
    (tmp_path / name).mkdir()  # the nearest to a broken disk
    job = JobFolder(tmp_path, lambda path, error: told.append(type(error).__name__))
    assert (job.supervisor(), job.status(), job.end()) == (None, Status(), None)
    assert told == ["IsADirectoryError"]


def test_what_it_was_asked_may_be_unreadable(tmp_path: Path) -> None:
    (tmp_path / "asked").write_bytes(b"\xff")
    assert JobFolder(tmp_path).note_signal("1")
