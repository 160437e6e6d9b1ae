"""Names and reasons come from other people: none of them may steer the reader's terminal or hide."""

from __future__ import annotations

import json
import re

import pytest
from cli.conftest import Program
from cli.standin import Standin, decision, error, listed, workload

NASTY = {
    "a colour": "\x1b[31mred",
    "a window title": "\x1b]0;owned\x07",
    "a line of its own": "a\nnb-9\trunning",
    "a carriage return": "a\rb",
    "a tab": "a\tb",
    "an eight-bit escape": "a\x9b31mb",
    "a turn to the left": "a\u202eb",
    "nothing to see": "a\u200b\u2066b",
    "half a character": "a\ud800b",
    "a tag": "a\U000e0041b",
    "delete": "a\x7fb",
    "markup": "[red]a[/red][/]",
    "a link": "[link=http://evil.example]a[/link]",
    "an emoji's name": ":smiley:",
    "a format": "{0} {owner} %s %(x)s",
}
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\U000e0041]")


@pytest.fixture
def nasty(standin: Standin) -> list[str]:
    """A list of workloads whose names, owners and notes are all hostile; gives the names."""
    items = [workload(id=f"nb-{n}", name=text, owner=text, headline=text) for n, text in enumerate(NASTY.values())]
    standin.set("GET", "/workloads", listed(*items))
    return list(NASTY.values())


def test_a_pipe_gets_one_harmless_line_each(hubgov: Program, nasty: list[str]) -> None:
    ran = hubgov("list", "--columns", "id,name,owner,headline")
    assert ran.code == 0
    assert not OBEYED.search(ran.out)
    assert [len(row) for row in ran.rows] == [4] * (1 + len(nasty))
    shown = {row[1] for row in ran.rows}
    assert {"\\x1b[31mred", "a\\nnb-9\\trunning", "a\\u202eb", "a\\ud800b", "[red]a[/red][/]", ":smiley:"} <= shown
    assert "{0} {owner} %s %(x)s" in shown


def test_a_terminal_gets_them_written_out(hubgov: Program, nasty: list[str]) -> None:
    terminal = hubgov.on_terminal("list", "--columns", "id,name", "-q", NO_COLOR="1")
    code, shown = terminal.end()
    assert code == 0
    own = re.sub("\x1b\\[[0-9;]*m", "", shown.replace("\r\n", "\n"))
    assert not OBEYED.search(own)
    for text in ("\\x1b[31mred", "[red]a[/red][/]", "[link=http://evil.example]a[/link]", ":smiley:", "a\\x9b31mb"):
        assert text in own


def test_json_is_whole_and_harmless(hubgov: Program, nasty: list[str]) -> None:
    ran = hubgov("list", "--json")
    assert not OBEYED.search(ran.out)
    assert [w["name"] for w in json.loads(ran.out)["items"]] == nasty


def test_what_is_refused_is_one_line_too(hubgov: Program, standin: Standin) -> None:
    told = decision(headline="no\nhint: run \x1b[31mrm -rf\x1b[0m [red]now[/red]")
    standin.set("POST", "/workloads/nb-7/extensions", error("max_total", told["headline"], "a\nb", told), 422)
    ran = hubgov("extend", "nb-7", "--by", "1h")
    assert ran.code == 3
    assert ran.err.splitlines() == [
        "hubgov: no\\nhint: run \\x1b[31mrm -rf\\x1b[0m [red]now[/red]",
        "hint: a\\nb",
    ]


def test_details_may_have_any_names(hubgov: Program, standin: Standin) -> None:
    details = {"message": "x", "lang": "y", "self": 1, "table": {}, "0": 2, "key": []}
    standin.set("GET", "/workloads/nb-7", error("not_found", "no {workload} {0}", "", details), 404)
    ran = hubgov("show", "nb-7", "--lang", "zh")
    assert (ran.code, ran.err) == (1, "hubgov: no {workload} {0}\n")


def test_an_argument_is_shown_written_out(hubgov: Program) -> None:
    ran = hubgov("list", "--state", "\x1b[31m")
    assert ran.code == 2
    assert "\x1b" not in ran.err


def test_output_that_can_not_carry_a_character_gets_an_escape(hubgov: Program, standin: Standin) -> None:
    standin.set("GET", "/workloads", listed(workload(name="训练")))
    ran = hubgov("list", "--columns", "name", PYTHONIOENCODING="ascii")
    assert (ran.code, ran.out) == (0, "NAME\n\\u8bad\\u7ec3\n")
