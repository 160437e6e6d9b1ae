"""Every word of the command line's tables: both languages, the same blanks, nothing forgotten."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from spoken import calls, sentences

import hubgov
from hubgov import event_texts, texts
from hubgov.catalogue import Texts, translated
from hubgov.cli import cli_texts
from hubgov.cli.commands import command
from hubgov.cli.flags import FLAGS, as_flags
from hubgov.cli.lazy import VERBS
from hubgov.core.events import ACTS, DAILY
from hubgov.core.model import ExtensionState
from hubgov.core.states import AllocationState, WorkloadState
from hubgov.event_texts import event_word, state_word
from hubgov.service.error_texts import HINTS

CLI = Path(hubgov.__file__).parent / "cli"
TABLES: Mapping[str, Texts] = {
    "TEXTS": cli_texts.TEXTS,
    "COLUMNS": cli_texts.COLUMNS,
    "OUTCOMES": cli_texts.OUTCOMES,
    "EXTENSION_STATES": texts.EXTENSION_STATES,
    "DOCUMENTS": cli_texts.DOCUMENTS,
    "UNITS": cli_texts.UNITS,
    "FAILURES": cli_texts.FAILURES,
    "HINTS": cli_texts.HINTS,
    "EVENTS": event_texts.EVENTS,
}
SAME = {"MiB"}
"""What is the same word in both languages."""


@pytest.mark.parametrize("table", TABLES)
def test_both_languages_fill_the_same_blanks(table: str) -> None:
    for key, english in TABLES[table].items():
        chinese = TABLES[table].pick(key, "zh")
        blanks = [sorted(re.findall(r"{(\w+)", text)) for text in (english, chinese)]
        if english != "{message}":  # English as it was raised; the Chinese may leave that out
            assert set(blanks[1]) == set(blanks[0]), key
        assert english.strip(), key
        spoken = re.sub(r"{\w+!?\w*}|\$?--?\w+|hubgov|chmod|[A-Z_]{3,}", "", english)
        if re.search(r"[a-z]{2,} [a-z]{2,}", spoken):
            assert re.search(r"[\u4e00-\u9fff]", chinese), f"{table}: {key} has no Chinese"


@pytest.mark.parametrize("table", ["COLUMNS", "OUTCOMES", "EXTENSION_STATES", "DOCUMENTS", "UNITS", "EVENTS"])
def test_every_header_and_word_is_in_chinese(table: str) -> None:
    for key in TABLES[table]:
        chinese = TABLES[table].pick(key, "zh")
        assert re.search(r"[\u4e00-\u9fff]", chinese) or chinese in SAME, key


def columns() -> Iterator[str]:
    """The columns that the sources of the command line name: of tables, and of facts."""
    for path in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Table":
                yield from constants(node.args[0])
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").strip("_").lower() == "columns":
                yield from constants(node.value)


def constants(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Tuple):
        yield from (item.value for item in node.elts if isinstance(item, ast.Constant))  # type: ignore[misc]


def test_every_column_has_a_header() -> None:
    from hubgov.cli import workload_rows

    found = {*columns(), *workload_rows.KNOWN}
    assert {"at", "event", "code", "need", "team", "requested_by", "isolation", "saved_at"} <= found
    assert found <= set(cli_texts.COLUMNS)


def test_hints_of_the_service_name_flags() -> None:
    assert as_flags("?workload=ID shows that of one workload", "audit") == (
        "--workload ID shows that of one workload"
    )
    assert as_flags("?workload=ID 可查看单个任务的审计", "audit") == "--workload ID 可查看单个任务的审计"
    assert as_flags('If-Match: "3"', "policy apply") == "--from 3"
    assert as_flags("see /openapi.json for the fields and their limits", "plan") == "hubgov plan --help"
    assert as_flags("字段及其上限见 /openapi.json", "plan") == "hubgov plan --help"
    assert as_flags("by_seconds: Field required", "extend") == "--by: Field required"
    assert as_flags("lease：'4 hours' 不是时长；请写 4h", "plan") == "--lease：'4 hours' 不是时长；请写 4h"
    assert as_flags("Above the maximum: bounds.by_seconds allows 3650d", "") == (
        "Above the maximum: --by allows 3650d"
    )
    assert as_flags("queues.train.lease.max allows 4h", "plan") == "queues.train.lease.max allows 4h"


def test_no_hint_of_the_service_is_shown_with_what_only_programs_send() -> None:
    root = Path(hubgov.__file__).parent
    errors = {"Invalid", "NotFound", "NotAllowed", "Conflict", "Ended", "PolicyMoved", "TooMany", "Unavailable"}
    told = [
        text
        for folder in ("service", "service/handlers", "service/panel", "control")
        for call in calls(root / folder, errors)
        for keyword in call.keywords
        if keyword.arg == "hint"
        for text in sentences(keyword.value)
    ]
    assert any("?" in text for text in told)
    for text in (*told, *(translated("service.HINTS", english, "zh") for english in HINTS)):
        shown = as_flags(text, "audit")
        assert not re.search(r'\?\w+=|{"|If-Match|openapi', shown) or "user=" in shown, shown


def test_every_flag_is_one_of_some_verb() -> None:
    known = {
        option
        for name, verb in VERBS.items()
        if not verb.raw
        for param in command(name, "en").params
        for option in param.opts
    }
    assert set(FLAGS.values()) - known == set()


def test_every_event_of_the_journal_has_words() -> None:
    assert set(event_texts.EVENTS) == ACTS | DAILY


def test_every_state_of_a_record_has_words() -> None:
    for states in (AllocationState, WorkloadState, ExtensionState):
        for state in states:
            assert re.search(r"[\u4e00-\u9fff]", state_word(state.value, "zh") or ""), state
    assert state_word(None, "zh") is None
    assert event_word("of_a_newer_service", "zh") == "of_a_newer_service"
