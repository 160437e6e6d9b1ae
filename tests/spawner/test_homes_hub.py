"""Whose files a real hub's users see: after deletions, and after the hub's database was lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_under_test import HubUnderTest

pytestmark = pytest.mark.boxed


@pytest.fixture(params=["root", "userns"])
def hub(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HubUnderTest]:
    hub = HubUnderTest(tmp_path, request.param, {})
    try:
        hub.start()
        yield hub
    finally:
        hub.close()


def home_of(hub: HubUnderTest, user: str) -> Path:
    """The home that the user's server has, once it is up; the server is stopped again."""
    assert hub.launch(user).status_code in (201, 202), (hub.state / "hub.log").read_text()[-3000:]
    state = hub.server(user)["state"]
    main = state["main"][0]
    inside = Path(f"/proc/{main}/environ").read_text().split("HOME=")[1].split("\0")[0]
    home = Path(state["home"])
    assert os.path.samefile(f"/proc/{main}/root{inside}", home), "what the hub notes is what the server has"
    hub.stop(user)
    return home


def test_files_fall_to_nobody_but_their_owner(hub: HubUnderTest) -> None:
    amy, bo = home_of(hub, "amy"), home_of(hub, "bo")
    (bo / "secret").write_text("bo's")
    assert hub.api("DELETE", "/users/bo").status_code == 204
    lena = home_of(hub, "lena")
    assert len({amy, bo, lena}) == 3
    assert not (lena / "secret").exists()
    owners = {path.stat().st_uid for path in (amy, bo, lena)}
    assert len(owners) == (3 if hub.environment["TEST_ISOLATION"] == "root" else 1)

    hub.end(signal.SIGTERM)
    (hub.state / "jupyterhub.sqlite").unlink()
    hub.start()
    assert home_of(hub, "lena") == lena, "first in the new database, where amy was in the old one"
    again = home_of(hub, "bo")
    assert again not in (amy, bo, lena), "he was deleted: whoever has the name now is another"
    assert home_of(hub, "amy") == amy
    assert (bo / "secret").read_text() == "bo's"
