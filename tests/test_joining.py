"""Joining a hub that is configured already, and what a demo that was set up before can't change any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hubgov_spawner import isolation
from hubgov_spawner.isolation import Isolation, Mode
from traitlets.config import Config

import hubgov
from hubgov import app
from hubgov.cli.local import demo
from hubgov.demo import settings
from hubgov.errors import Unavailable


def configured(state: Path) -> Any:
    config: Any = Config()
    config.HubGov.state_dir = str(state)
    return config


def test_what_a_hub_has_stays(tmp_path: Path) -> None:
    c = configured(tmp_path)
    c.JupyterHub.services = [{"name": "other"}]
    c.JupyterHub.template_paths = ["/srv/templates"]
    c.Spawner.server_token_scopes = ["read:users!user"]
    hubgov.setup(c)
    assert [service["name"] for service in c.JupyterHub.services] == ["other", "hubgov", "hubgov-spawner"]
    assert c.JupyterHub.template_paths[0] == "/srv/templates"
    assert {"read:users!user", "access:servers!server"} <= set(c.Spawner.server_token_scopes)


@pytest.mark.parametrize(
    ("url", "ledger"),
    [
        ("", ["{0}/hubgov.sqlite"]),
        ("sqlite:////srv/x/hubgov.sqlite?timeout=3", ["/srv/x/hubgov.sqlite"]),
        ("postgresql+psycopg://hubgov@/postgres", []),
    ],
)
def test_the_spawner_is_told_what_no_box_may_show(url: str, ledger: list[str], tmp_path: Path) -> None:
    c = configured(tmp_path)
    if url:
        c.HubGov.database_url = url
    c.JupyterHub.cookie_secret_file = "/srv/secret"
    c.BoxedSpawner.private_paths = ["/srv/own"]
    hubgov.setup(c)
    wanted = ["/srv/own", *(path.format(tmp_path) for path in ledger), "/srv/secret"]
    assert list(c.BoxedSpawner.private_paths) == wanted


@pytest.mark.parametrize(
    ("found", "label"),
    [
        (Isolation(mode=Mode.ROOT, reason=""), "enforced"),
        (Isolation(mode=Mode.USERNS, reason=""), "enforced"),
        (Isolation(mode=Mode.SINGLE_USER, reason=""), "advisory"),
        (Unavailable("no box"), "advisory"),
    ],
)
def test_isolation_is_called_enforced_only_where_a_box_can_be_made(
    found: Isolation | Unavailable, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def detect(wanted: str) -> Isolation:
        if isinstance(found, Unavailable):
            raise found
        return found

    monkeypatch.setattr(isolation, "detect", detect)
    assert app._isolation_here("auto") == label


@pytest.mark.parametrize(
    "option", [["--port", "9"], ["--fast"], ["--simulated"], ["--timezone", "UTC"], ["--policy", "p.yaml"]]
)
def test_an_option_that_comes_too_late_is_refused(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, _ = settings.fresh(
        port=settings._free_ports(1)[0], devices="auto", clock_rate=1, timezone="Asia/Shanghai", policy_file=""
    )
    settings.save(tmp_path, kept)
    assert demo.run(["--state", str(tmp_path), "--no-browser", *option]) == 1
    assert "hint: use another folder with --state" in capsys.readouterr().err
