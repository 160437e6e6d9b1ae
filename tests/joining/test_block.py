"""hubgov's lines in somebody's configuration: in, found again, out, and never a byte of the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubgov.errors import Conflict, HubgovError, Invalid, NotAllowed
from hubgov.joining import block

CONTENTS = st.binary(max_size=200).filter(lambda b: block.BEGIN not in b and block.END not in b)


@given(content=CONTENTS, lines=st.sampled_from(["", "import hubgov\n", "x = 1\n# ü 中\n"]))
def test_what_is_put_in_comes_out_to_the_byte(content: bytes, lines: str) -> None:
    joined = block.joined(content, lines)
    assert block.block_of(joined) is not None
    assert block.parted(joined) == content
    assert block.parted(joined + b"later = 1\n") == content + b"later = 1\n"


def test_without_a_block_nothing_is_taken() -> None:
    assert block.parted(b"c = 1\n") == b"c = 1\n"


@pytest.mark.parametrize(
    "content",
    [
        block.BEGIN,
        block.END,
        block.END + block.BEGIN,
        block.BEGIN + block.BEGIN + block.END + block.END,
    ],
)
def test_marks_that_do_not_pair_are_refused(content: bytes) -> None:
    with pytest.raises(Invalid, match="pair"):
        block.block_of(content)


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("x = 1\n")
    (tmp_path / "link.py").symlink_to(tmp_path / "real.py")
    with pytest.raises(NotAllowed, match="link") as refused:
        block.read(tmp_path / "link.py")
    assert str(tmp_path / "real.py") in refused.value.hint


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAllowed, match="no file"):
        block.read(tmp_path)


def test_another_users_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.py"
    path.write_text("x = 1\n")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(NotAllowed, match="belongs to uid"):
        block.read(path)


def test_mode_stays_and_a_change_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "c.py"
    path.write_bytes(b"x = 1\n")
    path.chmod(0o640)
    drafted = block.draft(path, b"x = 2\n", like=path)
    path.write_bytes(b"x = 3\n")
    with pytest.raises(Conflict, match="changed meanwhile"):
        block.put(drafted, path, b"x = 1\n")
    block.put(drafted, path, b"x = 3\n")
    assert path.read_bytes() == b"x = 2\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["c.py"]


def test_a_backup_never_takes_another_ones_place(tmp_path: Path) -> None:
    path = tmp_path / "c.py"
    path.write_bytes(b"x = 1\n")
    kept = {block.keep(path, content) for content in (b"1", b"2", b"3")}
    assert sorted(p.read_bytes() for p in kept) == [b"1", b"2", b"3"]


def test_a_file_that_is_too_large_is_no_configuration(tmp_path: Path) -> None:
    path = tmp_path / "c.py"
    with path.open("wb") as file:
        file.truncate(5 * 2**20)
    with pytest.raises(HubgovError, match="4 MiB"):
        block.read(path)
