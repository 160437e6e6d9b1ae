"""Whatever the core and the use cases can say has a sentence in both languages, with the same blanks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hubgov import texts
from hubgov.catalogue import Texts
from hubgov.core import explain
from hubgov.core.states import AllocationState, WorkloadState, public_state

HUBGOV = Path(texts.__file__).parent
FOLDERS = ("core", "control")
_NOT_SENTENCES = frozenset({"what_if"})
TABLES: Mapping[str, Texts] = {
    "SENTENCES": texts.SENTENCES,
    "STEPS": texts.STEPS,
    "STATES": texts.STATES,
    "END_REASONS": texts.END_REASONS,
    "WORDS": texts.WORDS,
    "DEVICE_STATES": texts.DEVICE_STATES,
    "LOST": texts.LOST,
    "SIGNALS": texts.SIGNALS,
    "LEVELS": texts.LEVELS,
    "EVIDENCE": texts.EVIDENCE,
    "HTTP_ERRORS": texts.HTTP_ERRORS,
    "HTTP_HINTS": texts.HTTP_HINTS,
}


def _trees() -> Iterator[tuple[Path, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((HUBGOV / folder).glob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def _words(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be: constants, both sides of a condition."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _words(node.body)
        yield from _words(node.orelse)
    elif isinstance(node, ast.Tuple | ast.List):
        for item in node.elts:
            yield from _words(item)


_REFUSING = {"_refused": 2, "_refusal": 0, "_unknown": 0, "_never": 1, "refused": 0}
"""Functions that make a Decision or Blocker, and at which place their code stands."""


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node


CONTRACT = frozenset(
    {
        "above_maximum", "impossible", "invalid", "unknown_queue", "unknown_project", "unknown_flavor",
        "not_allowed", "data_access", "fit_guard", "too_many_pending", "held",
    }
)  # fmt: skip
"""Refusal codes of the public contract that come as a Decision."""


def decision_codes() -> set[str]:
    """Codes of the contract, and of every Decision and Blocker that the sources of core and control make."""
    found: set[str] = {*explain.WHY, *CONTRACT}
    for _, tree in _trees():
        for name, call in _calls(tree):
            if name in ("Decision", "Blocker", "replace", "_over"):
                for keyword in call.keywords:
                    if keyword.arg == "code":
                        found.update(_words(keyword.value))
                if name == "_over":
                    found.update(_words(call.args[3]))
            elif name in _REFUSING and len(call.args) > _REFUSING[name]:
                found.update(_words(call.args[_REFUSING[name]]))
    return found - _NOT_SENTENCES


def keyword_words(wanted: str) -> set[str]:
    found: set[str] = set()
    for _, tree in _trees():
        for _, call in _calls(tree):
            for keyword in call.keywords:
                if keyword.arg == wanted:
                    found.update(_words(keyword.value))
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == wanted:
                        found.update(_words(value))
    return found


def test_the_search_finds_what_there_is() -> None:
    found = decision_codes()
    assert {"above_maximum", "waiting_window", "max_total", "unknown_queue", "fits_now", "extended"} <= found
    assert {"change_request", "ask_approver"} <= keyword_words("next_steps") | keyword_words("steps")
    assert {"unclaimed", "start_failed"} <= keyword_words("end_reason")


def test_every_code_has_a_sentence() -> None:
    assert decision_codes() - set(texts.SENTENCES) == set()


def test_every_next_step_has_words() -> None:
    steps = keyword_words("next_steps") | keyword_words("steps")
    steps |= {step for code in texts.SENTENCES for step in explain._next_steps(code)}
    assert steps - set(texts.STEPS) == set()


def test_every_end_reason_of_the_contract_and_of_the_sources_has_words() -> None:
    contract = {
        "completed", "failed", "start_failed", "start_deadline", "environment_unavailable", "cancelled", "max_wait",
        "admin", "lease", "max", "window", "idle", "unclaimed", "preempted", "node_lost",
    }  # fmt: skip
    assert set(texts.END_REASONS) >= contract | keyword_words("end_reason")


def test_every_public_state_has_a_word() -> None:
    states = {public_state(w, a, held) for w in WorkloadState for a in (None, *AllocationState) for held in (0, 1)}
    assert states | {"refused"} == set(texts.STATES)


@pytest.mark.parametrize("table", TABLES)
def test_both_languages_fill_the_same_blanks(table: str) -> None:
    for key, english in TABLES[table].items():
        chinese = TABLES[table].pick(key, "zh")
        blanks = [set(re.findall(r"{(\w+)}", text)) for text in (english, chinese)]
        assert blanks[0] == blanks[1], key
        assert english.strip(), key
        assert chinese.strip(), key
        assert english != chinese, key
        if re.search(r"[A-Za-z]{2,}", re.sub(r"{\w+}", "", english)):  # "{kind}: {text}" has no word
            assert re.search(r"[\u4e00-\u9fff]", chinese), f"{key} has no Chinese"


def test_of_several_tables_the_first_that_has_a_key_says_it() -> None:
    one, two = Texts("ONE", {"a": "first"}), Texts("TWO", {"a": "second", "b": "other"})
    assert [texts.having(key, one, two)[key] for key in ("a", "b")] == ["first", "other"]
    assert texts.having("c", one, two) is two


def test_a_missing_fact_shows_as_a_dash_and_never_fails() -> None:
    for code in texts.SENTENCES:
        for lang in (*texts.LANGUAGES, "fr"):
            assert "{" not in texts.say(code, lang)


@pytest.mark.parametrize(
    ("accept", "language"),
    [
        (None, "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,zh;q=0.5", "en"),
        ("fr,zh;q=0.5", "zh"),
        ("fr", "en"),
        ("", "en"),
        (";;;,,", "en"),
    ],
)
def test_the_first_known_language_is_taken(accept: str | None, language: str) -> None:
    assert texts.best_language(accept) == language
