"""`hubgov init` on configurations of every make: what it writes, what it refuses, and that nothing is half done."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hubgov.cli.local import init
from hubgov.cli.running import run as hubgov
from hubgov.joining import block, finding, plan
from hubgov.joining.looking import look
from hubgov.policy import load

SITE = """
print("noise on stdout")
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.bind_url = "http://0.0.0.0:9001/lab/"
c.JupyterHub.load_groups = {"vision": ["ann"], "nlp": {"users": ["bo"]}, "x" * 90: []}
c.JupyterHub.services = [{"name": "idle", "command": ["python", "-m", "jupyterhub_idle_culler"]}]
c.Authenticator.admin_users = {"ada", "al"}
c.Spawner.args = ["--MappingKernelManager.cull_idle_timeout=600"]
c.JupyterHub.db_url = "sqlite:///absent.sqlite"
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration in the present folder, in which no hub runs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "jupyterhub_config.py"
    path.write_text(SITE)
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = init.run(["--simulated", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_configuration_is_read_as_the_hub_reads_it(site: Path) -> None:
    seen = look(site)
    assert seen.trouble == ""
    assert (seen.authenticator, seen.base_url, seen.port) == ("dummy", "/lab/", 9001)
    assert dict(seen.groups) == {"vision": ["ann"], "nlp": ["bo"], "x" * 90: []}
    assert seen.admins == ["ada", "al"]
    assert seen.cullers == ["idle", "--MappingKernelManager.cull_idle_timeout=600"]
    assert not seen.spawner_set
    assert not (site.parent / "hubgov-state").exists()


def test_a_dry_run_writes_nothing_and_names_the_command(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(site.parent)
    code, out, _ = call(capsys)
    assert code == 0
    assert files(site.parent) == before
    assert f"hubgov init --config {site} --apply" in out
    assert "Groups that become teams: nlp, vision" in out
    assert "x" * 90 in out.split("Left out")[1]
    assert "ATTENTION: idle, --MappingKernelManager.cull_idle_timeout=600" in out


def test_what_it_writes_can_be_read_and_is_a_policy(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--apply", "--yes", "--state", str(site.parent / "s"))[0] == 0
    seen = look(site)
    assert (seen.trouble, seen.setups) == ("", 1)
    assert seen.spawner == "jupyterhub.spawner.LocalProcessSpawner"
    assert seen.settings["state_dir"] == str(site.parent / "s")
    loaded = load((site.parent / "hubgov-policy.yaml").read_text())
    assert loaded.policy is not None
    assert loaded.policy.teams["vision"].groups == ("vision",)
    assert loaded.policy.projects_of("ann", frozenset({"vision"})) == ("vision",)
    assert "admins=('ada', 'al')" in site.read_text()
    assert not (site.parent / "s").exists()


def test_a_second_time_changes_nothing_and_removing_gives_it_back(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "--apply", "--yes")
    before = files(site.parent)
    code, out, _ = call(capsys, "--apply", "--yes")
    assert (code, files(site.parent)) == (0, before)
    assert "nothing to write" in out
    code, out, _ = call(capsys, "--remove")
    assert files(site.parent) == before
    assert "--remove --apply" in out
    assert call(capsys, "--remove", "--apply")[0] == 0
    assert site.read_text() == SITE
    assert "nothing to take away" in call(capsys, "--remove", "--apply")[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = (\n", ":1: SyntaxError"),
        ("c.JupyterHub.port = 1\nnothing\n", ":2: NameError"),
        ("import sys\nsys.exit(3)\n", "SystemExit"),
        ("import os\nos._exit(3)\n", "ends the process"),
        ("c.JupyterHub.spawner_class = 'no.such'\n", "can't be loaded"),
        ("c.JupyterHub.internal_ssl = True\n", "internal_ssl"),
        ("import hubgov\nhubgov.setup(c)\n", "calls hubgov.setup(c) already"),
        (block.BEGIN.decode(), "don't pair"),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_cannot_be_joined_is_refused_and_left_as_it_is(
    text: str, says: str, lang: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write_text(text)
    code, _, err = call(capsys, "--apply", "--yes", "--lang", lang)
    assert code == 1
    assert files(site.parent) == {site.name: text.encode()}
    if lang == "en":
        assert says in err
    assert len(err.strip().splitlines()) == 2


def test_a_policy_that_is_there_is_kept_and_a_bad_one_refused(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = site.parent / "hubgov-policy.yaml"
    policy.write_text("version: 1\nteams: [\n")
    code, _, err = call(capsys, "--apply", "--yes")
    assert code == 1
    assert "hubgov policy check" in err
    assert site.read_text() == SITE


def test_what_fails_in_the_middle_is_taken_back(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(site.parent)
    made = plan.plan(plan.Wish(config=site, devices="simulated"))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(block, "put", full)
    with pytest.raises(OSError, match="No space"):
        plan.carry_out(made)
    assert files(site.parent) == before


def test_a_line_that_breaks_the_configuration_is_found_before_it_counts(site: Path) -> None:
    made = plan.plan(plan.Wish(config=site, devices="simulated"))
    site.write_text(SITE + "\nraise SystemExit(1)\n")
    with pytest.raises(ValueError, match=r"changed meanwhile|could not read") as refused:
        plan.carry_out(
            plan.Plan(**{name: getattr(made, name) for name in made.__slots__} | {"after": b"raise ValueError\n"})
        )
    assert "ValueError" in str(refused.value)
    assert "hubgov-policy.yaml" not in files(site.parent)


def test_a_box_without_a_hub_gets_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new.py"
    code, out, _ = call(capsys, "--config", str(path), "--apply", "--yes", "--unit", "--state", str(tmp_path / "s"))
    assert code == 0
    assert "(new)" in out
    assert "[Service]" in out
    seen = look(path)
    assert (seen.trouble, seen.setups, seen.boxed) == ("", 1, True)


def test_json_is_one_document(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["written"], document["nothing_to_do"], document["simulated"]) == (False, False, True)
    assert document["groups"] == ["nlp", "vision"]


def test_without_a_configuration_it_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(finding, "_USUAL", (tmp_path,))
    monkeypatch.setattr(finding, "running", lambda config=None: [])
    code, _, err = call(capsys, "--lang", "zh")
    assert code == 1
    assert "--config FILE" in err
    assert "当前目录" in err


def test_policy_init_prints_one_or_writes_a_new_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hubgov(["policy", "init", "--simulated", "--group", "a", "--group", "b"]) == 0
    printed = load(capsys.readouterr().out).policy
    assert printed is not None
    assert {"a", "b"} <= set(printed.teams)
    path = tmp_path / "p.yaml"
    assert hubgov(["policy", "init", "--simulated", "-q", str(path)]) == 0
    before = path.read_bytes()
    assert hubgov(["policy", "init", "--simulated", str(path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert os.path.exists(path)
