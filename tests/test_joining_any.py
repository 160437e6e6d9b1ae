"""Joining hubs of every make: both orders, spawners of every kind, and the site's own settings beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hubgov_spawner import GovernedMixin, HubGovSpawner
from hubgov_spawner.boxed import BoxedSpawner
from hubgov_spawner.over_any import OverAny, governed
from jupyterhub.app import JupyterHub
from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner
from traitlets.config import Config

import hubgov
from hubgov.errors import Invalid, Unavailable


class Own(LocalProcessSpawner):  # type: ignore[misc]
    """A site's own spawner."""


@pytest.fixture
def c(tmp_path: Path) -> Any:
    config: Any = Config()
    config.HubGov.state_dir = str(tmp_path / "state")
    return config


@pytest.mark.parametrize(
    ("given", "wraps"),
    [
        (Own, Own),
        ("jupyterhub.spawner.LocalProcessSpawner", LocalProcessSpawner),
        ("simple", SimpleLocalProcessSpawner),
        ("LocalProcess", LocalProcessSpawner),
    ],
)
def test_whatever_spawner_a_site_has_is_governed_as_it_is(given: Any, wraps: type, c: Any) -> None:
    c.JupyterHub.spawner_class = given
    hubgov.setup(c)
    made = c.JupyterHub.spawner_class
    assert issubclass(made, wraps)
    assert issubclass(made, GovernedMixin)
    assert issubclass(made, OverAny)
    assert made.__name__ == f"Governed{wraps.__name__}"
    assert "--HubGov.isolation=none" in c.JupyterHub.services[0]["command"]


def test_a_site_that_names_no_spawner_gets_boxes(c: Any) -> None:
    hubgov.setup(c)
    assert c.JupyterHub.spawner_class is HubGovSpawner
    assert issubclass(c.JupyterHub.spawner_class, BoxedSpawner)


def test_a_governed_class_is_taken_as_it_is() -> None:
    class Mine(GovernedMixin, LocalProcessSpawner):  # type: ignore[misc]
        pass

    assert governed(Mine) is Mine


@pytest.mark.parametrize("given", ["no.such.Spawner", "nonsense", "json.JSONDecoder", 7])
def test_what_is_no_spawner_is_refused_by_name(given: Any, c: Any) -> None:
    c.JupyterHub.spawner_class = given
    with pytest.raises(Invalid, match="spawner_class") as refused:
        hubgov.setup(c)
    assert "LocalProcessSpawner" in refused.value.hint


def test_a_config_that_is_read_twice_gets_nothing_twice(c: Any) -> None:
    c.JupyterHub.services = [{"name": "culler"}]
    c.JupyterHub.load_roles = [{"name": "own", "scopes": []}]
    c.JupyterHub.spawner_class = "simple"
    hubgov.setup(c, admins=("ada",))
    once = {section: dict(c[section]) for section in ("JupyterHub", "Spawner", "GovernedMixin", "BoxedSpawner")}
    hubgov.setup(c, admins=("ada",))
    assert {section: dict(c[section]) for section in once} == once
    assert [service["name"] for service in c.JupyterHub.services] == ["culler", "hubgov", "hubgov-spawner"]


def test_a_service_of_the_sites_own_with_our_name_is_refused(c: Any) -> None:
    c.JupyterHub.services = [{"name": "hubgov", "command": ["own"]}]
    with pytest.raises(Invalid, match="isn't hubgov's"):
        hubgov.setup(c)


def test_a_state_folder_that_cannot_be_is_told_with_the_setting(c: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    c.HubGov.state_dir = str(tmp_path / "file" / "state")
    with pytest.raises(Unavailable, match=r"c\.HubGov\.state_dir: .* can't be used: Not a directory"):
        hubgov.setup(c)


def test_encryption_inside_the_hub_is_refused_by_name(c: Any) -> None:
    c.JupyterHub.internal_ssl = True
    with pytest.raises(Invalid, match="internal_ssl"):
        hubgov.setup(c)


def test_servers_outlive_a_restart_whatever_the_site_says(c: Any, caplog: pytest.LogCaptureFixture) -> None:
    c.JupyterHub.cleanup_servers = True
    hubgov.setup(c)
    assert c.JupyterHub.cleanup_servers is False
    assert "cleanup_servers = True is not followed" in caplog.text


def test_computed_scopes_are_computed_and_ours_added(c: Any) -> None:
    c.JupyterHub.spawner_class = Own
    c.Own.server_token_scopes = lambda spawner: ["read:users!user"]
    hubgov.setup(c)
    scopes = c.Own.server_token_scopes(None)
    assert scopes[0] == "read:users!user"
    assert "access:services!service=hubgov" in scopes
    assert "server_token_scopes" not in c.Spawner


def test_what_a_site_set_for_its_own_class_is_not_set_anew_below(c: Any) -> None:
    c.JupyterHub.spawner_class = Own
    c.Own.default_url, c.LocalProcessSpawner.poll_interval = "/tree", 17
    hubgov.setup(c)
    assert c.Own.default_url == "/tree"
    assert "default_url" not in c.Spawner
    assert "poll_interval" not in c.Spawner


@pytest.mark.parametrize(
    ("section", "prefix"),
    [({"base_url": "/jupyter/"}, "/jupyter/"), ({"bind_url": "http://:8000/x"}, "/x/"), ({}, "/")],
)
def test_the_service_is_looked_for_below_the_hubs_own_address(section: dict[str, str], prefix: str, c: Any) -> None:
    c.JupyterHub.update(section)
    hubgov.setup(c)
    assert c.GovernedMixin.waiting_url == f"{prefix}services/hubgov/wait"


# --- both orders, with the hub's own reading of its configuration ------------------------------------------------

BEFORE = "import hubgov\nhubgov.setup(c, admins=('ada',))\n"
SITE = """
from jupyterhub.spawner import SimpleLocalProcessSpawner
c.JupyterHub.spawner_class = SimpleLocalProcessSpawner
c.JupyterHub.services = [{"name": "other", "api_token": "x" * 32}]
c.JupyterHub.load_roles = [{"name": "own", "services": ["other"], "scopes": ["list:users"]}]
c.JupyterHub.template_paths = ["/srv/templates"]
c.JupyterHub.template_vars = {"announcement": "hello"}
c.JupyterHub.custom_scopes = {"custom:site:x": {"description": "x"}}
c.Spawner.options_form = "<input name='image'>"
c.Spawner.pre_spawn_hook = lambda spawner: None
c.Spawner.server_token_scopes = ["read:users!user"]
c.Spawner.default_url = "/tree"
c.HubGov.state_dir = STATE
"""


def read(tmp_path: Path, text: str, *arguments: str) -> JupyterHub:
    """A hub that has read this configuration and does nothing else."""
    state = tmp_path / "state"
    path = tmp_path / "jupyterhub_config.py"
    path.write_text(text.replace("STATE", repr(str(state))))
    JupyterHub.clear_instance()
    try:
        app = JupyterHub.instance()
        super(JupyterHub, app).initialize([f"--config={path}", *arguments])
        app.load_config_file(app.config_file)
        return app
    finally:
        JupyterHub.clear_instance()


@pytest.mark.parametrize("text", [BEFORE + SITE, SITE + BEFORE], ids=["before", "after"])
def test_where_in_the_file_the_line_stands_makes_no_difference(text: str, tmp_path: Path) -> None:
    app = read(tmp_path, text)
    assert app.spawner_class.__name__ == "GovernedSimpleLocalProcessSpawner"
    assert [service["name"] for service in app.services] == ["other", "hubgov", "hubgov-spawner"]
    assert [role["name"] for role in app.load_roles] == [
        "own", "hubgov-service", "hubgov-spawner", "hubgov-admin",
    ]  # fmt: skip
    assert app.template_paths[0] == "/srv/templates"
    assert app.template_vars == {"announcement": "hello"}
    assert {"custom:site:x", "custom:hubgov:spawn"} <= set(app.custom_scopes)
    assert app.config.Spawner.options_form == "<input name='image'>"
    assert callable(app.config.Spawner.pre_spawn_hook)
    assert "read:users!user" in app.config.Spawner.server_token_scopes
    assert "access:servers!server" in app.config.Spawner.server_token_scopes
    assert app.config.Spawner.default_url == "/tree"
    assert f"--HubGov.state_dir={tmp_path / 'state'}" in app.services[1]["command"]


def test_the_command_line_of_the_hub_counts_too(tmp_path: Path) -> None:
    app = read(tmp_path, BEFORE + SITE, "--JupyterHub.spawner_class=localprocess")
    assert app.spawner_class.__name__ == "GovernedLocalProcessSpawner"


def test_two_calls_in_one_file_are_one(tmp_path: Path) -> None:
    app = read(tmp_path, BEFORE + SITE + BEFORE)
    assert [service["name"] for service in app.services] == ["other", "hubgov", "hubgov-spawner"]


def test_a_hub_that_cannot_be_joined_ends_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read(tmp_path, BEFORE + SITE + "c.JupyterHub.spawner_class = 'no.such'\n")
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "hubgov: c.JupyterHub.spawner_class: 'no.such' can't be loaded" in said
    assert "hint: name a class" in said
