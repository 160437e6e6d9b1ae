"""What a program wrote, shown on a terminal: it may colour and end lines, and steer nothing."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hubgov.cli.log_text import RESET, TerminalText

_ALLOWED = re.compile(r"\x1b\[[0-9;]*m|[\n\t]")
_STEERING = "\x1b\x9b\x00\x07\x08\r\x0b\x0c\x7f\u202e\u2066\u200b"
hostile = st.text(alphabet=st.sampled_from(_STEERING + "[]0;1;31mHJ?25lab中\n\t"), max_size=60)


def shown(*pieces: str) -> str:
    text = TerminalText()
    return "".join([*(text.shown(piece) for piece in pieces), text.end()])


def test_lines_tabs_and_colours_pass() -> None:
    plain = "epoch 1\tloss 0.5\n中文 🚀\n"
    assert shown(plain) == plain
    assert shown("\x1b[1;31mred\x1b[0m\n") == f"\x1b[1;31mred\x1b[0m\n{RESET}"


def test_what_steers_a_terminal_is_written_out() -> None:
    assert shown("\x1b]0;title\x07") == "\\x1b]0;title\\x07"
    assert shown("a\x1b[2Jb\x1b[Hc\x1b[?25l") == "a\\x1b[2Jb\\x1b[Hc\\x1b[?25l"
    assert shown("user\u202etxt.exe") == "user\\u202etxt.exe"


def test_a_progress_bar_becomes_lines() -> None:
    assert shown("10%\r20%\r\ndone\r\n") == "10%\n20%\ndone\n"


def test_what_is_cut_in_two_is_seen_whole() -> None:
    assert shown("a\x1b", "[31", "mred\x1b[0", "m") == f"a\x1b[31mred\x1b[0m{RESET}"
    assert shown("a\r", "\nb") == "a\nb"
    assert shown("a\x1b[3") == "a\\x1b[3"


@given(st.lists(hostile, max_size=6))
def test_however_it_is_cut_nothing_else_gets_through(pieces: list[str]) -> None:
    seen = shown(*pieces)
    assert not re.search(f"[{re.escape(_STEERING)}]", _ALLOWED.sub("", seen))
    assert seen == shown("".join(pieces)), "pieces are as good as the whole"
