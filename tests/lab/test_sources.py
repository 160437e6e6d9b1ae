"""What the Lab extension's files promise: texts in both languages, no addresses in the lock file, arithmetic."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

LAB = Path(__file__).parents[2] / "extensions" / "lab"
CALL = re.compile(r"(?:__|\bsay)\(\s*'((?:[^'\\]|\\.)*)'")
PO = LAB / "locale" / "zh_CN.po"
WORST = {
    # The longest values that a policy with readable names brings: each is filled in before the count.
    "%1 left (%2). Extend now, or save what you need: variables are lost.": ("59 m", "Wed 23:59"),
    "%1 left (%2). Notebooks are being saved now.": ("1 m 59 s", "Wed 23:59"),
    "%1 left (%2, grace to %3). Notebooks are being saved now.": ("1 m 59 s", "Wed 23:59", "Wed 23:59"),
    "This session stops at %1 (%2). Files are kept, variables are lost.": ("Wed 23:59", "23 h 59 m"),
    "No GPU or kernel activity for %1. This GPU is returned at %2 unless you run something or choose Keep.": (
        "23 h 59 m",
        "Wed 23:59",
    ),
    "No GPU or kernel activity for %1. This GPU is returned at %2 unless you run something.": (
        "23 h 59 m",
        "Wed 23:59",
    ),
    "%1: its kernel was idle for %2 and was shut down. The document is saved.": ("n" * 40, "23 h 59 m"),
    "Extended to %1 (+%2). Extensions left: %3.": ("Wed 23:59", "23 h 59 m", "99"),
    "Documents are being saved; then the GPU is given back.": (),
    "More time was approved, until %1.": ("Wed 23:59",),
    "%1 stops this session at %2. Documents are being saved.": ("a-lead-with-a-long-name", "Wed 23:59"),
}


def sources() -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in sorted((LAB / "src").glob("*.ts"))}


def texts() -> set[str]:
    return {text for source in sources().values() for text in CALL.findall(source)}


def chinese() -> dict[str, str]:
    with PO.open("rb") as file:
        return {str(m.id): str(m.string) for m in read_po(file) if m.id and not m.fuzzy}


def test_every_text_is_there_in_chinese_and_none_is_left_over() -> None:
    assert len(texts()) > 60
    assert texts() == set(chinese())


def test_the_bundle_has_the_catalogue() -> None:
    found = json.loads(PO.with_suffix(".json").read_text(encoding="utf-8"))
    assert found == chinese(), "deploy/texts compile makes it; deploy/install.sh builds the bundle from it"


def test_both_languages_fill_in_the_same_values() -> None:
    assert chinese()
    for english, translated in chinese().items():
        assert sorted(re.findall(r"%\d", english)) == sorted(re.findall(r"%\d", translated)), english
        assert re.search(r"[\u4e00-\u9fff]", translated) or english.startswith("%"), english


def test_the_fixed_terms_are_used() -> None:
    catalogue = chinese()
    for english, term in (("queue", "队列"), ("extend", "延长"), ("returned", "收回")):
        for text, translated in catalogue.items():
            if english in text.lower():
                assert term in translated, text


@pytest.mark.parametrize("text", WORST)
def test_a_toast_fits(text: str) -> None:
    assert text in texts()
    for written in (text, chinese()[text]):
        filled = re.sub(r"%(\d)", lambda found: WORST[text][int(found[1]) - 1], written)
        assert len(filled) <= 140, filled


def test_toasts_with_foreign_words_are_cut_to_fit() -> None:
    toast = r"Notification\.(?:error|warning|info|success)\(\s*([^,]{0,40})"
    calls = [(name, call) for name, source in sources().items() for call in re.findall(toast, source)]
    assert calls
    assert [one for one in calls if not one[1].startswith(("fitting(", "noticeText(", "__('"))] == []


def test_texts_reach_the_user_through_the_translator() -> None:
    assert sources()
    for name, source in sources().items():
        shown = re.findall(r"(?:textContent|title|label|placeholder)\s*[:=]\s*'([^']*[A-Za-z]{3}[^']*)'", source)
        assert shown == [], name


def test_the_lock_file_names_no_address() -> None:
    assert "http" not in (LAB / "yarn.lock").read_text(encoding="utf-8")


def test_no_markup_is_made_from_texts() -> None:
    assert not [name for name, source in sources().items() if "innerHTML" in source]


def test_the_countdown_counts(tmp_path: Path) -> None:
    compiled = LAB / "lib" / "src" / "remaining.js"
    assert compiled.exists(), "deploy/install.sh builds the extension before the tests run"
    module = tmp_path / "remaining.mjs"
    module.write_bytes(compiled.read_bytes())
    # Where the machine has no node, the installation brought one from PyPI beside this Python.
    node = shutil.which("node") or str(Path(sys.prefix) / "bin" / "node")
    done = subprocess.run(
        [node, "--test", str(Path(__file__).with_name("remaining.test.mjs"))],
        env={**os.environ, "HUBGOV_REMAINING": module.as_uri()},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
