"""What people see on a terminal: tables that line up, the quota below, a watch that redraws on change."""

from __future__ import annotations

import os
import re
import signal

from cli.conftest import Program
from cli.standin import Standin, listed, quota, waiting, workload
from rich.cells import cell_len
from waiting import until


def _plain(shown: str) -> list[str]:
    return re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", shown).replace("\r\n", "\n").splitlines()


def test_wide_characters_line_up(hubgov: Program, standin: Standin) -> None:
    rows = [workload(id="nb-1", name="训练任务", owner="王伟"), workload(id="nb-2", name="ab", owner="ann")]
    standin.set("GET", "/workloads", listed(*rows))
    code, shown = hubgov.on_terminal("list", "--columns", "id,name,owner", "--lang", "zh").end()
    assert code == 0
    lines = _plain(shown)
    places = []
    for words in (("名称", "所有者"), ("训练任务", "王伟"), ("ab", "ann")):
        line = next(text for text in lines if all(word in text for word in words))
        places.append([cell_len(line[: line.index(word)]) for word in words])
    assert places[0] == places[1] == places[2]


def test_the_quota_stands_below(hubgov: Program, standin: Standin) -> None:
    standin.set("GET", "/quotas", listed(quota(borrowed=1, used=5), quota(team="speech")))
    code, shown = hubgov.on_terminal("list").end()
    assert code == 0
    assert _plain(shown)[-1] == "Quota of team vision: dev SIMULATED l40s-48g 5 of 4 used, 3 available (1 borrowed)"
    quiet = hubgov.on_terminal("list", "-q").end()[1]
    assert "Quota" not in quiet


def test_simulated_is_said_in_words(hubgov: Program) -> None:
    shown = hubgov.on_terminal("devices", COLUMNS="240").end()[1]
    assert shown.count("SIMULATED") == 2
    assert "模拟" in hubgov.on_terminal("show", "nb-7", "--lang", "zh").end()[1]
    assert "SIMULATED: no card" in hubgov.on_terminal("why", "nb-8").end()[1]


def test_a_narrow_terminal_goes_without_what_matters_least_and_says_so(hubgov: Program) -> None:
    lines = _plain(hubgov.on_terminal("devices", COLUMNS="100").end()[1])
    assert all(cell_len(line.rstrip()) <= 100 for line in lines[:3])
    assert lines[0].split()[:2] == ["DEVICE", "STATE"]
    assert all("SIMULATED" in line for line in lines[1:3])
    assert lines[-1].startswith("Left out for lack of room: ")
    assert "left out" not in hubgov.on_terminal("devices", COLUMNS="250").end()[1].lower()


def test_colours_can_be_left_out(hubgov: Program) -> None:
    colour = re.compile("\x1b\\[(?:[0-9]+;)*3[0-7]m")
    assert colour.search(hubgov.on_terminal("list").end()[1])
    assert not colour.search(hubgov.on_terminal("list", "--no-color").end()[1])
    assert not colour.search(hubgov.on_terminal("list", NO_COLOR="1").end()[1])


def test_an_empty_list_says_what_to_do(hubgov: Program, standin: Standin) -> None:
    standin.set("GET", "/workloads", listed())
    assert "hubgov queues" in hubgov.on_terminal("list").end()[1]
    assert hubgov("list").out.count("\n") == 1


def test_a_watch_draws_again_when_something_changes_and_asks_nothing_meanwhile(
    hubgov: Program, standin: Standin
) -> None:
    terminal = hubgov.on_terminal("list", "--watch", "--columns", "id,state")
    terminal.until("Quota of team")
    until(lambda: sum("wait" in a.query for a in standin.asked) == 2, 20, "both to be waited for")
    asked = len(standin.asked)
    changed = waiting(state="running", version=4)
    standin.set("GET", "/workloads", listed(workload(state="stopping"), changed))
    assert len(standin.asked) == asked
    standin.change("/workloads/nb-8", changed)
    assert "stopping" in terminal.until("Quota of team")
    os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.end()[0] == 0


def test_a_watch_ends_when_the_service_does(hubgov: Program, standin: Standin) -> None:
    terminal = hubgov.on_terminal("list", "--watch")
    terminal.until("Quota of team")
    until(lambda: sum("wait" in a.query for a in standin.asked) == 2, 20, "both to be waited for")
    standin.close()
    code, shown = terminal.end()
    assert code == 5
    assert "hint:" in shown


def test_apply_asks_first(hubgov: Program, standin: Standin, tmp_path: object) -> None:
    file = f"{tmp_path}/policy.yaml"
    with open(file, "w") as stream:
        stream.write("version: 1\n")
    refused = hubgov.on_terminal("policy", "apply", file)
    assert "~ queues.experiment.grace: 5m -> 10m" in refused.until("[y/N]")
    refused.type("n\n")
    assert refused.end()[0] == 1
    assert not [a for a in standin.asked if a.method == "PUT"]
    agreed = hubgov.on_terminal("policy", "apply", file)
    agreed.until("[y/N]")
    agreed.type("y\n")
    code, shown = agreed.end()
    assert (code, "Version 4 is in force." in shown) == (0, True)
