"""An authenticator that manages groups: who it puts into one is in its team at once, also in several."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from existing_hub import ExistingHub
from waiting import until

MANAGED = """
import json
from jupyterhub.auth import DummyAuthenticator


class Directory(DummyAuthenticator):
    async def authenticate(self, handler, data):
        with open(os.path.join(os.path.dirname(__file__), "directory.json")) as file:
            return {"name": data["username"], "groups": json.load(file).get(data["username"], [])}


c.JupyterHub.authenticator_class = Directory
c.Directory.manage_groups = True
c.JupyterHub.load_groups = {}
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExistingHub]:
    """A hub whose groups come from a file, joined by init with a policy for two of them."""
    folder = tmp_path_factory.mktemp("managed")
    made = ExistingHub(folder, ["ann", "bo"], "simple", MANAGED)
    try:
        directory(made, {})
        call(folder, "policy", "init", "policy.yaml", "--simulated", "--group", "physics", "--group", "maths")
        rest = ("--state", str(folder / "state"), "--policy", str(folder / "policy.yaml"))
        call(folder, "init", "--simulated", "--apply", "--yes", *rest)
        text = made.config.read_text()
        made.config.write_text(text + f"c.HubGov.service_port = {made.service_port}\n")
        made.start()
        yield made
    finally:
        made.close()


def call(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "hubgov.cli", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def directory(hub: ExistingHub, members: dict[str, list[str]]) -> None:
    draft = hub.folder / "directory.draft"
    draft.write_text(json.dumps(members))
    os.replace(draft, hub.folder / "directory.json")


def form(hub: ExistingHub, user: str) -> str:
    """The spawn page of somebody who signs in now."""
    with closing(hub.browser(user)) as browser:
        return str(until(lambda: (p := browser.get("/spawn").text) and "hubgov" in p and p, 60, "hubgov's form"))


def test_who_is_in_no_team_is_told_and_is_in_one_at_the_next_sign_in(hub: ExistingHub) -> None:
    until(lambda: hub.service_pid(), 60, "the service")
    assert "You are in no team yet" in form(hub, "ann")
    directory(hub, {"ann": ["physics"]})
    page = form(hub, "ann")
    assert "You are in no team yet" not in page
    assert "physics" in page
    assert "maths" not in page


def test_who_is_in_several_teams_chooses_by_the_project(hub: ExistingHub) -> None:
    directory(hub, {"bo": ["physics", "maths"]})
    page = form(hub, "bo")
    assert "physics" in page
    assert "maths" in page
    with hub.service("bo") as service:
        body = {"queue": "experiment", "kind": "notebook", "gpus": 1}
        asked = service.post("/plan", json=body).json()
        assert "The project to charge is not named" in asked["headline"]
        for project in ("physics", "maths"):
            granted = service.post("/plan", json={**body, "project": project}).json()
            assert granted["outcome"] == "granted", granted


def test_who_left_a_team_starts_nothing_more_in_it(hub: ExistingHub) -> None:
    directory(hub, {"ann": []})
    assert "You are in no team yet" in form(hub, "ann")
    answer = hub.api("POST", "/users/ann/server", {"user_options": {"profile": "cpu-only", "project": "physics"}})
    assert answer.status_code in (403, 422)
    assert "team" in answer.json()["message"] or "Not allowed" in answer.json()["message"]
