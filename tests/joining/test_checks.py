"""What doctor says of an installation: every check in each of its colours, from the facts alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubgov.joining import checks
from hubgov.joining.checks import ALWAYS, JOINED, Colour, Line, all_of
from hubgov.joining.doctor_texts import LINES
from hubgov.joining.finding import Devices, Running
from hubgov.joining.looking import Seen
from hubgov.joining.scene import FileSeen, LedgerSeen, Scene
from hubgov.policy import load, sample_policy
from hubgov.texts import LANGUAGES, word

CARDS = [(0, "GPU-0", "NVIDIA H200", 141 * 1024)]
POLICY = load(sample_policy(CARDS, hostname="h", timezone="UTC", groups=["vision"])).policy
OBSERVING = load(
    sample_policy(CARDS, hostname="h", timezone="UTC", groups=["vision"]).replace("mode: enforce", "mode: observe")
).policy
SEEN = Seen(setups=1, boxed=True, proxy="jupyterhub.proxy.ConfigurableHTTPProxy", settings={"service_port": 8083})
LEDGER = LedgerSeen(shown="sqlite:////s/hubgov.sqlite", there=True, revision="0005", head="0005", newest_at=1_000)
WELL = Scene(
    python=(3, 11),
    jupyterhub="6.1.1",
    hubgov="0.1.0",
    config="/etc/jupyterhub/jupyterhub_config.py",
    seen=SEEN,
    hub=Running(pid=7, uid=0, folder=Path("/srv"), program="/v/bin/python", config=Path("/c")),
    hub_answers=True,
    health={"version": "0.1.0", "status": "ok", "pid": 9, "epoch": 3, "probes": {"h": {"age_seconds": 2}}},
    ledger=LEDGER,
    policy=POLICY,
    devices=Devices(found=CARDS, simulated=False, why="NVML lists 1 devices"),
    nvidia_nodes=1,
    isolation="root",
    proxy="configurable-http-proxy 5.1.0",
    token=FileSeen(path="/s/spawner.token", mode=0o600, uid=0),
    folder=FileSeen(path="/s", mode=0o700, uid=0),
    now_ms=2_000,
    groups={"vision": ["ann"]},
    users=["ann"],
)


def seen(**change: Any) -> dict[str, Any]:
    return {"seen": replace(SEEN, **change)}


def ledger(**change: Any) -> dict[str, Any]:
    return {"ledger": replace(LEDGER, **change)}


A, R = Colour.AMBER, Colour.RED
ILL: list[tuple[str, dict[str, Any], Colour, str]] = [
    ("python", {"python": (3, 10)}, R, "3.10 is too old"),
    ("jupyterhub", {"jupyterhub": "5.4.0"}, R, "5.4.0"),
    ("jupyterhub", {"jupyterhub": ""}, R, "isn't installed"),
    ("config", {"config_trouble": "line 3: NameError: x"}, R, "line 3: NameError: x"),
    ("config", seen(setups=0), R, "doesn't call hubgov.setup(c)"),
    ("hub", {"hub_answers": False}, R, "pid 7"),
    ("hub", {"hub_answers": False, "hub": None}, A, "doesn't run"),
    ("service", {"health": None}, R, "port 8083"),
    ("service", {"health": None, "hub_answers": False}, A, "doesn't run"),
    ("service", {"health": {"version": "0.0.9"}}, R, "runs version 0.0.9, installed is 0.1.0"),
    ("service", {"health": {"version": "0.1.0", "status": "degraded", "trouble": "disk"}}, R, "can't write: disk"),
    ("leader", {"health": None}, A, "nobody leads"),
    ("port", seen(port=8083), R, "the hub's own"),
    ("port", {"health": None, "port_holder": "127.0.0.1:8083"}, R, "held by another"),
    ("ledger", ledger(trouble="no password"), R, "no password"),
    ("ledger", ledger(damage="row 3 missing"), R, "row 3 missing"),
    ("ledger", ledger(there=False, revision=""), A, "no ledger yet"),
    ("ledger", ledger(revision="0003"), A, "at 0003, not at 0005"),
    ("policy", {"policy_problems": ["p.yaml:3: cycle"]}, R, "p.yaml:3: cycle"),
    ("policy", {"policy": None}, A, "no policy yet"),
    ("policy", {"policy": OBSERVING}, A, "only observes"),
    ("devices", {"devices": Devices(found=(), simulated=False, why="no driver")}, R, "none (no driver)"),
    ("devices", {"devices": Devices(found=CARDS, simulated=True, why="no driver")}, R, "1 device nodes are there"),
    (
        "devices",
        {"devices": Devices(found=CARDS * 7, simulated=True, why="x"), "nvidia_nodes": 0},
        A,
        "GPUs: 0 real, 7 simulated",
    ),
    ("isolation", seen(boxed=False, spawner="a.GovernedX"), A, "ADVISORY: GovernedX"),
    ("isolation", {"isolation": "broken", "isolation_why": "no bwrap"}, R, "no server can start: no bwrap"),
    ("isolation", {"isolation": "userns"}, A, "one uid"),
    ("isolation", {"isolation": "none", "isolation_why": "no bwrap"}, A, "ADVISORY: no box can be made (no bwrap)"),
    ("proxy", {"proxy": ""}, R, "no configurable-http-proxy"),
    ("proxy", {"proxy": "old /usr/bin/configurable-http-proxy"}, R, "older than 4"),
    ("private_files", {"folder": FileSeen(path="/s")}, A, "isn't there yet"),
    ("private_files", {"folder": FileSeen(path="/s", mode=0o755, uid=0)}, R, "mode 755"),
    ("private_files", {"token": FileSeen(path="/s/t", mode=0o644, uid=0)}, R, "/s/t is open"),
    ("private_files", {"me": 5}, A, "uid 0"),
    ("cullers", seen(cullers=["idle"]), A, "idle ends idle servers"),
    ("lab", {"lab": "hubgov_lab"}, R, "hubgov_lab is missing"),
    ("clock", ledger(newest_at=99_000), R, "97 s behind"),
    ("clock", seen(settings={"clock_rate": 60}), A, "60 times"),
    ("clock", {"health": {"probes": {"h": {"age_seconds": 999}}}}, A, "devices of h"),
    ("disk", {"free_mib": 3}, R, "full"),
    ("disk", {"free_mib": 300}, A, "only 300 MiB"),
    ("disk", {"network_disk": "nfs4"}, R, "nfs4"),
    ("spawns", seen(concurrent_spawns=20), A, "all 20 starts"),
    ("named_servers", seen(named_servers=1), A, "allows 1 named servers"),
    ("groups", {"policy": None}, A, "no policy"),
    ("groups", {"groups": {}, "users": []}, A, "can't be read"),
    ("groups", {"groups": {"other": ["ann"]}}, A, "no group vision"),
    ("groups", {"users": ["ann", "bo"]}, A, "1 users are in no team and can start nothing: bo"),
    (
        "groups",
        {**seen(manage_groups=True), "groups": {"other": []}},
        A,
        "1 users are in no team and can start nothing: ann",
    ),
]


def said(line: Line, lang: str = "en") -> str:
    return word(LINES, line.key, lang, **line.facts)


def test_an_installation_that_is_well_is_green_in_every_line() -> None:
    lines = all_of(WELL)
    assert [(line.check, line.key) for line in lines if line.colour is not Colour.GREEN] == []
    assert [line.check for line in lines] == [check.__name__ for check in (*ALWAYS, *JOINED)]
    assert not any(line.mend for line in lines)


@pytest.mark.parametrize(("name", "change", "colour", "text"), ILL)
def test_what_is_wrong_is_said_with_the_command_that_mends_it(
    name: str, change: dict[str, Any], colour: Colour, text: str
) -> None:
    line = getattr(checks, name)(replace(WELL, **change))
    assert (line.check, line.colour) == (name, colour)
    assert text in said(line)
    assert line.mend
    assert re.search(r"[\u4e00-\u9fff]", said(line, "zh"))


def test_every_check_has_been_seen_in_a_colour_that_is_not_green() -> None:
    assert {name for name, *_ in ILL} == {check.__name__ for check in (*ALWAYS, *JOINED)}


def test_without_a_configuration_only_what_needs_none_is_said() -> None:
    assert [line.check for line in all_of(Scene(config_trouble="none"))] == [c.__name__ for c in ALWAYS]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_sentence_lacks_a_fact(lang: str) -> None:
    lines = [*all_of(WELL), *(getattr(checks, name)(replace(WELL, **change)) for name, change, *_ in ILL)]
    assert [line.key for line in lines if "—" in said(line, lang)] == []
