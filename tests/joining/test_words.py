"""What goes wrong when a hub is joined is said in Chinese too, and every line of the doctor."""

from __future__ import annotations

import re
from pathlib import Path

from spoken import calls, sentences, spoken, untranslated

import hubgov.joining
from hubgov.joining.doctor_texts import LINES
from hubgov.joining.init_texts import _HINTS, _MESSAGES, HELP, INIT, told

FOLDER = Path(hubgov.joining.__file__).parent


def test_every_error_has_chinese() -> None:
    messages: set[str] = set()
    hints: set[str] = set()
    for call in calls(FOLDER, {"Invalid", "Conflict", "NotFound", "NotAllowed", "Unavailable"}):
        messages.update(sentences(call.args[0]))
        hints.update(s for keyword in call.keywords if keyword.arg == "hint" for s in sentences(keyword.value))
    assert len(messages) > 8
    assert len(hints) > 8
    worded = {m for m in messages if re.search("[a-z]{3,}", m)}  # "FILE: …" has no word of its own
    assert untranslated(worded, _MESSAGES) == []
    assert untranslated({h for h in hints if spoken(h)}, _HINTS) == []
    assert told("./c.py is no file", "call this again", "zh") == ("./c.py 不是文件", "请重新运行")
    assert told("./c.py is no file", "call this again", "en") == ("./c.py is no file", "call this again")


def test_every_line_has_chinese() -> None:
    for table in (LINES, INIT, HELP):
        for key, english in table.items():
            if re.search(r"[a-z]{2,} [a-z]{2,}", re.sub(r"{\w+}|`[^`]*`", "", english)):
                assert re.search(r"[\u4e00-\u9fff]", table.pick(key, "zh")), key
