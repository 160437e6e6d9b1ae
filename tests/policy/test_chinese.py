"""Problems of a policy in Chinese: every message and every way out that the checker writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from policy.test_mistakes import BASE, MISTAKES
from spoken import blanks, calls, sentences, untranslated

import hubgov.policy
from hubgov.catalogue import translated
from hubgov.phrases import Phrases
from hubgov.policy import load
from hubgov.policy.problem_texts import _HINTS, _MESSAGES, HINTS, MESSAGES

FOLDER = Path(hubgov.policy.__file__).parent
PLACES = {"error": (2, 3), "warning": (2, 3), "wrong": (1, 2), "_refuse": (3, 4), "_stop": (2, 3)}
"""At which places of which call the message and the hint stand."""


def written() -> Iterator[tuple[str, str]]:
    """("message" or "hint", text) of everything that the sources of the checker say."""
    for call in calls(FOLDER, PLACES):
        name = getattr(call.func, "id", "") or getattr(call.func, "attr", "")
        for kind, place in zip(("message", "hint"), PLACES[name], strict=True):
            if place < len(call.args):
                yield from ((kind, text) for text in sentences(call.args[place]))
    for call in calls(FOLDER, {"Problem"}):
        for keyword in call.keywords:
            if keyword.arg in ("message", "hint"):
                yield from ((keyword.arg, text) for text in sentences(keyword.value))
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and (kind := getattr(node.targets[0], "id", "")) in ("message", "hint"):
                yield from ((kind, text) for text in sentences(node.value))


def test_the_search_finds_what_there_is() -> None:
    found = set(written())
    assert ("hint", "put it in quotes") in found
    assert ("message", "an alias is not read") in found
    assert ("message", "X1 GPUs are guaranteed on X2, X3X4, X5 are declared") in found
    assert len(found) > 110


@pytest.mark.parametrize(("kind", "phrases"), [("message", _MESSAGES), ("hint", _HINTS)])
def test_everything_that_is_said_has_chinese(kind: str, phrases: Phrases) -> None:
    assert untranslated({text for which, text in written() if which == kind}, phrases) == []


@pytest.mark.parametrize(("name", "rows"), [("policy.MESSAGES", MESSAGES), ("policy.HINTS", HINTS)])
def test_both_languages_fill_the_same_blanks(name: str, rows: tuple[str, ...]) -> None:
    assert len(set(rows)) == len(rows)
    for english in rows:
        chinese = translated(name, english, "zh")
        assert blanks(english) == blanks(chinese), english
        assert re.search(r"[\u4e00-\u9fff]", chinese), english


@pytest.mark.parametrize("name", [row[0] for row in MISTAKES])
def test_a_mistake_is_told_in_chinese_on_the_same_line(name: str) -> None:
    _, old, new, code, _ = next(row for row in MISTAKES if row[0] == name)
    for problem in load(BASE.replace(old, new, 1), name="p.yaml").problems:
        told = problem.told("zh")
        assert told.startswith(f"p.yaml:{problem.line}: ")
        assert f"{problem.code}: " in told
        message = told.split(f"{problem.code}: ", 1)[1]
        assert re.search(r"[\u4e00-\u9fff]", message.split("；")[0]), (code, told)
        # What stays is names and values of the file, and examples.
        left = re.sub(r"'[^']*'|\[[^]]*\]", "", message)
        if code == "not_yaml":  # what the YAML library says is English
            continue
        assert not re.search(r"[a-z]{3,} (is|are|has|not|the|a|of|to|and|or) [a-z]", left), told


def test_names_and_values_stay_as_they_are() -> None:
    text = BASE.replace("    grace: 5m", "    grase: 5m")
    assert [p.told("zh") for p in load(text, name="p.yaml").errors] == [
        "p.yaml:32: unknown_key: queues.train 中没有键 'grase'；是否想写 grace？"
    ]
    text = BASE.replace("currency: CNY", "currency: is not")
    assert [p.told("zh") for p in load(text, name="p.yaml").errors] == [
        "p.yaml:3: bad_value: 'is not' 不是货币代码；请写三个大写字母，如 CNY"
    ]
