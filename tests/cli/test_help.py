"""Help is cheap and complete: it loads nothing that it doesn't need."""

from __future__ import annotations

import re
import resource
import subprocess
import sys

import pytest
from cli.conftest import Program
from spoken import blanks

from hubgov.catalogue import translated
from hubgov.cli import help_texts
from hubgov.cli.commands import command
from hubgov.cli.lazy import GROUPS, VERBS, verb_help, verb_more

MOST_CPU_SECONDS = 0.3
HEAVY = (
    "jupyterhub",
    "sqlalchemy",
    "pydantic",
    "yaml",
    "httpx",
    "rich",
    "tornado",
    "traitlets",
    "hubgov.cli.local",
)
_MODULES = """
import sys
from hubgov.cli.running import run
code = run(sys.argv[1:])
print("LOADED", *sorted(sys.modules))
sys.exit(code)
"""


def _loaded(program: Program, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _MODULES, *arguments],
        env=program.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_help_costs_little_cpu(hubgov: Program) -> None:
    def cost() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert hubgov("--help").code == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # The first call may have to compile; a neighbour on the machine may slow one down.
    assert min(cost() for _ in range(3)) <= MOST_CPU_SECONDS


@pytest.mark.parametrize("arguments", [["--help"], ["policy", "--help"]])
def test_help_loads_nothing_heavy(hubgov: Program, arguments: list[str]) -> None:
    loaded = _loaded(hubgov, *arguments)
    assert "typer" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_a_policy_check_loads_no_service(hubgov: Program, tmp_path: object) -> None:
    loaded = _loaded(hubgov, "policy", "check", "--help")
    assert [name for name in HEAVY if name in loaded] == []


def test_every_verb_is_listed_in_both_languages(hubgov: Program) -> None:
    english, chinese = hubgov("--help", COLUMNS="200").out, hubgov("--lang", "zh", COLUMNS="200").out
    for name, verb in VERBS.items():
        word = name.split(" ")[0]
        grouped = word in GROUPS
        assert f"  {word} " in english
        assert (GROUPS[word] if grouped else verb.help) in english
        said = GROUPS.pick(word, "zh") if grouped else verb_help(name, "zh")
        assert re.search(r"[\u4e00-\u9fff]", said)
        assert said in chinese


@pytest.mark.parametrize("name", [name for name, verb in VERBS.items() if verb.raw])
def test_a_verb_with_a_parser_of_its_own_has_an_example_too(hubgov: Program, name: str) -> None:
    ran = hubgov(name, "--help", COLUMNS="200")
    assert ran.code == 0
    assert VERBS[name].example in ran.out


def test_the_help_of_every_option_is_in_chinese() -> None:
    for name, verb in VERBS.items():
        if verb.raw:
            continue
        english, chinese = command(name, "en"), command(name, "zh")
        for there, here in zip(english.params, chinese.params, strict=True):
            assert there.help, (name, there.name)
            assert re.search(r"[\u4e00-\u9fff]", here.help), (name, there.name, there.help)
        assert bool(verb.more) == bool(re.search(r"[\u4e00-\u9fff]", verb_more(name, "zh"))), name


def test_help_and_usage_speak_chinese(hubgov: Program) -> None:
    shown = hubgov("show", "--help", "--lang", "zh").out
    assert "Usage: hubgov show [OPTIONS] ID\n" in shown
    assert "Show this message" not in shown
    assert "策略时间以 60 倍速度流逝" in hubgov("demo", "--help", LANG="zh_CN.UTF-8").out
    for arguments, said in (
        (["extend", "nb-7"], "缺少选项 --by。"),
        (["show"], "缺少参数 ID。"),
        (["show", "a", "b"], "多余的参数：b"),
        (["audit", "--limit", "0"], "--limit：不得小于 1"),
        (["audit", "--limit", "x"], "--limit：须为整数"),
        (["list", "--nonsense"], "没有选项 --nonsense"),
    ):
        ran = hubgov(*arguments, "--lang", "zh")
        assert ran.code == 2
        assert f"用法错误：{said}" in ran.err


@pytest.mark.parametrize(("name", "rows"), [("cli.HELP", help_texts.HELP), ("cli.USAGE", help_texts.USAGE)])
def test_both_languages_fill_the_same_blanks(name: str, rows: tuple[str, ...]) -> None:
    for english in rows:
        assert blanks(english) == blanks(translated(name, english, "zh")), english


@pytest.mark.parametrize("arguments", [["policy", "--lang", "zh", "check", "--help"], ["policy", "-q", "--help"]])
def test_a_group_takes_the_options_of_every_verb(hubgov: Program, arguments: list[str]) -> None:
    ran = hubgov(*arguments)
    assert ran.code == 0
    assert ("检查策略文件" in ran.out) == ("zh" in arguments)


@pytest.mark.parametrize("name", [name for name, verb in VERBS.items() if not verb.raw])
def test_every_verb_has_help_with_an_example(hubgov: Program, name: str) -> None:
    ran = hubgov(*name.split(" "), "--help", COLUMNS="200")
    assert ran.code == 0
    assert f"Example: {VERBS[name].example}" in " ".join(ran.out.split())
    assert not re.search(r"<(str|int|list)", ran.out.split("Options:")[1]), "each says what to give"
    for option in ("--json", "--lang", "--no-color", "--quiet"):
        assert option in ran.out


def test_a_mistyped_verb_is_guessed(hubgov: Program) -> None:
    assert "Did you mean 'devices'?" in hubgov("device").err
    assert "Did you mean 'check'?" in hubgov("policy", "chekc").err


def test_public_names_load_when_asked_for() -> None:
    code = (
        "import sys, hubgov; assert 'hubgov.client' not in sys.modules; from hubgov import Client, PolicyDenied;"
        "assert 'httpx' not in sys.modules; print(Client.__name__, PolicyDenied.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("Client PolicyDenied\n", "")
