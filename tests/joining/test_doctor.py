"""`hubgov doctor` on real files: what it sees without a hub that runs, and that it leaves no trace."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hubgov.cli.local import doctor, init
from hubgov.ledger.ledger import Ledger

SITE = "c.JupyterHub.authenticator_class = 'dummy'\nc.JupyterHub.load_groups = {'vision': ['ann']}\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A configuration joined by init; no hub runs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "jupyterhub_config.py"
    path.write_text(SITE)
    assert init.run(["--simulated", "--apply", "--yes", "--state", str(tmp_path / "state")]) == 0
    capsys.readouterr()
    return path


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = doctor.run(["--json", *arguments])
    return code, {row["check"]: row for row in json.loads(capsys.readouterr().out)["checks"]}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def a_ledger(site: Path, revision: str = "head") -> Path:
    """A ledger of the site as a service left it."""
    state = site.parent / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    ledger = Ledger(f"sqlite:///{state / 'hubgov.sqlite'}", lambda text, version: None)  # type: ignore[arg-type, return-value]
    ledger.upgrade()
    ledger.close()
    path = state / "hubgov.sqlite"
    path.chmod(0o600)
    return path


def test_before_the_first_start_it_says_what_is_to_come_and_changes_nothing(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(site.parent)
    _, found = rows(capsys)
    assert files(site.parent) == before
    assert not (site.parent / "state").exists()
    assert found["config"]["colour"] == "green"
    for check in ("hub", "service", "leader", "ledger", "private_files"):
        assert found[check]["colour"] == "amber", found[check]
    assert found["devices"]["text"].startswith("GPUs: 0 real, 6 simulated")
    assert found["isolation"]["text"].startswith("devices are ADVISORY: LocalProcessSpawner")


def test_a_ledger_is_read_without_a_trace(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = a_ledger(site)
    before = files(site.parent)
    _, found = rows(capsys)
    assert found["ledger"]["colour"] == "green", found["ledger"]
    assert files(site.parent) == before
    with sqlite3.connect(path) as database:
        database.execute("update alembic_version set version_num = '0001'")
    database.close()
    assert "at 0001" in rows(capsys)[1]["ledger"]["text"]


def test_a_damaged_ledger_and_an_open_folder_are_broken(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = a_ledger(site)
    path.write_bytes(b"not a database, by far" * 100)
    path.parent.chmod(0o755)
    code, found = rows(capsys)
    assert code == 1
    assert found["ledger"]["colour"] == "red"
    assert "not a database" in found["ledger"]["text"]
    assert found["private_files"]["mend"] == f"chmod 700 {path.parent}"


def test_a_password_of_the_database_is_not_shown(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBGOV_DATABASE_URL", "postgresql+psycopg://hubgov:geheim@127.0.0.1:1/x")
    code = doctor.run([])
    said = capsys.readouterr().out
    assert code == 1
    assert "geheim" not in said
    assert "hubgov:***@127.0.0.1:1" in said


@pytest.mark.parametrize("text", ["x = (\n", "raise SystemExit\n"])
def test_a_configuration_that_cannot_be_read_is_broken(
    text: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write_text(text)
    code, found = rows(capsys)
    assert code == 1
    assert found["config"]["colour"] == "red"
    assert set(found) == {"python", "jupyterhub", "config"}


def test_a_configuration_that_is_not_there_is_broken(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = rows(capsys, "--config", str(site.with_name("absent.py")))
    assert code == 1
    assert "isn't there" in found["config"]["text"]


def test_people_read_a_word_an_icon_and_the_command(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.run(["--lang", "zh"])
    said = capsys.readouterr().out
    assert f"✓ 正常 {site} 已接入 hubgov" in said
    assert "! 注意 hub 没有运行\n    修复：python -m jupyterhub" in said
    assert "项正常" in said.splitlines()[-1]
