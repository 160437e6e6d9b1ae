"""What a first start is given is looked at before anything is written; each mistake in one clear line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubgov.cli.local import demo
from hubgov.demo import checks, settings
from hubgov.demo.runner import Runner


class AtOnce(Runner):
    """A demo that is up at once."""

    def up(self) -> None:
        pass

    def running(self) -> bool:
        return False

    def health(self) -> dict[str, object]:
        return {}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "Runner", AtOnce)


def arguments(state: Path | str) -> list[str]:
    return ["--state", str(state), "--port", str(settings._free_ports(1)[0]), "--no-browser"]


MISTAKES = {
    "no such policy": (["--policy", "{0}/nope.yaml"], "nope.yaml can't be read"),
    "a folder as policy": (["--policy", "{0}"], "can't be read"),
    "not a policy": (["--policy", "{0}/bad.yaml"], "bad.yaml:2: "),
    "not text": (["--policy", "{0}/binary.yaml"], "not UTF-8"),
    "no such zone": (["--timezone", "Mars/Olympus"], "no time zone 'Mars/Olympus'"),
    "a rule, not a zone": (["--timezone", "CST-8"], "no time zone 'CST-8'"),
    "a path as zone": (["--timezone", "/etc/localtime"], "no time zone"),
    "half a zone": (["--timezone", "America"], "no time zone"),
    "no zone": (["--timezone", ""], "no time zone"),
}


@pytest.mark.parametrize(("wrong", "said"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_corrected_command_works_at_once(
    wrong: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("version: 1\ntimezone: nowhere\n")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    state = tmp_path / "state"
    asked = arguments(state)
    assert demo.run([*asked, *(word.format(tmp_path) for word in wrong)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["hubgov demo", "hint"]
    assert said in lines[0]
    assert not (state / "demo.json").exists()
    assert demo.run(asked) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "state", ["/dev/null", "/dev/null/x", "{0}/file", "{0}/file/x", "/proc/x", "~nobody-at-all/x"]
)
def test_a_state_that_can_be_no_folder_is_named(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("kept")
    for more in ([], ["--down"]):
        assert demo.run([*arguments(state.format(tmp_path)), *more]) == 1
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 2
        assert "can't be the demo's folder" in lines[0]
        assert "--state" in lines[1]
    assert (tmp_path / "file").read_text() == "kept"


ZONES = {
    "a name": ("Europe/Berlin", "Europe/Berlin"),
    "POSIX's way to write a name": (":Asia/Shanghai", "Asia/Shanghai"),
    "a rule": ("CST-8", None),
    "another rule": ("UTC0", None),
    "a file": (":/etc/localtime", None),
    "nothing": ("", None),
}


@pytest.mark.parametrize(("given", "zone"), ZONES.values(), ids=ZONES.keys())
def test_the_machines_zone_is_one_that_a_policy_can_have(
    given: str, zone: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    machines = checks.timezone(None)
    assert checks.timezone(machines) == machines
    monkeypatch.setenv("TZ", given)
    assert checks.timezone(None) == (zone or machines)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, with no room left but for a few small files."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.boxed
@pytest.mark.parametrize("filled", [False, True], ids=["little room", "none"])
def test_a_full_disk_is_called_one(filled: bool, full_disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = full_disk / "state"
    if filled:
        with open(full_disk / "filling", "wb", buffering=0) as filling, pytest.raises(OSError, match="space"):
            os.posix_fallocate(filling.fileno(), 0, 2**20)
        room = os.statvfs(full_disk)
        (full_disk / "filling").write_bytes(b"x" * room.f_bavail * room.f_frsize)
    assert demo.run(arguments(state)) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0] == f"hubgov demo: the disk of {state} is full"
    assert not (state / "demo.json").exists()
