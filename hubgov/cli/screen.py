"""What the reader gets to see: tables for terminals, plain TSV for pipes, JSON for programs; nothing hostile.

Names and reasons come from other people. Whatever could steer a terminal, turn a line around or hide is written
out as an escape, and no text is ever read as markup.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from hubgov.cli.cli_texts import COLUMNS, text
from hubgov.texts import LANGUAGES

if TYPE_CHECKING:
    from rich.console import Console

_HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
NONE = "—"
_GAP = 2


class Cell(NamedTuple):
    """A text with a style; a plain text has none."""

    text: str
    style: str = ""


class Table(NamedTuple):
    """Rows under named columns: `columns` are keys of the texts' table of columns.

    `spare` are columns that a terminal too narrow for all goes without, the first of them first; a pipe has all.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    spare: Sequence[str] = ()


def visible(text_: str) -> str:
    """The text on one line, with every character that a terminal would obey or hide written out."""
    return _HOSTILE.sub(_written_out, text_)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Screen:
    """Where a verb writes. The four attributes are the options that every verb takes."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self.json = False
        self.lang = language(environment)
        self.no_color = bool(environment.get("NO_COLOR"))
        self.quiet = False
        self.tty = sys.stdout.isatty()

    def text(self, key: str, **facts: object) -> str:
        """A sentence of the command line's own in the reader's language."""
        return text(key, self.lang, **facts)

    def document(self, document: Any, *, compact: bool = False) -> None:
        """The document as JSON, with JSON's own escapes for what could fool a terminal."""
        written = json.dumps(document, ensure_ascii=False, indent=None if compact else 2)
        self._out(_HOSTILE.sub(_json_escape, written))

    def line(self, text_: str) -> None:
        """A line of what was asked for."""
        self._out(visible(text_))

    def remark(self, text_: str) -> None:
        """A line that -q leaves out, and that no pipe gets."""
        if not self.quiet and self.tty and not self.json:
            self._out(visible(text_))

    def done(self, text_: str) -> None:
        """What was done, for people: left out by -q and where the document says it."""
        if not self.quiet and not self.json:
            self._out(visible(text_))

    def raw(self, text_: str) -> None:
        """A text of several lines as it is, but for what a terminal would obey."""
        lines = text_.split("\n")
        self._out("\n".join(visible(line) for line in lines) if self.tty else text_, end="")

    def table(self, table: Table) -> None:
        """Rows under their columns: drawn for a terminal, else TSV with a line of names at the top."""
        if not self.tty:
            self._out("\t".join(key.upper().replace("_", "-") for key in table.columns))
            for row in table.rows:
                self._out("\t".join(visible(_text(cell)) for cell in row))
            return
        from rich.table import Table as Drawn
        from rich.text import Text

        console = self._console()
        kept = self._kept(table, console.width)
        drawn = Drawn(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for place in kept:
            drawn.add_column(Text(self._title(table.columns[place])), overflow="fold")
        for row in table.rows:
            cells = [row[place] for place in kept]
            drawn.add_row(*(Text(visible(_text(c)), style=c.style if isinstance(c, Cell) else "") for c in cells))
        console.print(drawn)
        if left_out := [self._title(key) for place, key in enumerate(table.columns) if place not in kept]:
            self.remark(self.text("left_out", columns=", ".join(left_out)))

    def _title(self, column: str) -> str:
        return COLUMNS.pick(column, self.lang)

    def _kept(self, table: Table, width: int) -> list[int]:
        """The places of the columns that there is room for."""
        from rich.cells import cell_len

        widths = [
            max(cell_len(self._title(key)), *(cell_len(visible(_text(row[place]))) for row in table.rows), 0) + _GAP
            for place, key in enumerate(table.columns)
        ]
        kept = list(range(len(widths)))
        for key in table.spare:
            if sum(widths[place] for place in kept) - _GAP <= width:
                break
            kept = [place for place in kept if table.columns[place] != key]
        return kept

    def facts(self, pairs: Sequence[tuple[str, str | Cell]]) -> None:
        """Names and values, one pair a line."""
        if not self.tty:
            for key, value in pairs:
                self._out(f"{key.upper().replace('_', '-')}\t{visible(_text(value))}")
            return
        from rich.table import Table as Drawn
        from rich.text import Text

        drawn = Drawn.grid(padding=(0, 2))
        drawn.add_column(style="bold", no_wrap=True)
        drawn.add_column(overflow="fold")
        for key, value in pairs:
            style = value.style if isinstance(value, Cell) else ""
            drawn.add_row(Text(self._title(key)), Text(visible(_text(value)), style=style))
        self._console().print(drawn)

    def clear(self) -> None:
        """Begin at the top again; in a pipe an empty line parts what follows."""
        if self.tty:
            self._console().clear()
        elif not self.json:
            self._out("")

    def complain(self, message: str, hint: str = "") -> None:
        """What went wrong, on stderr: one line, and one with the next step."""
        print(f"hubgov: {visible(message)}", file=sys.stderr)
        if hint:
            print(self.text("hint", what=visible(hint)), file=sys.stderr)

    def _console(self) -> Console:
        from rich.console import Console

        return Console(markup=False, emoji=False, highlight=False, no_color=self.no_color or None)

    def _out(self, text_: str, end: str = "\n") -> None:
        sys.stdout.write(text_ + end)
        sys.stdout.flush()


def language(environment: Mapping[str, str]) -> str:
    """The language that the environment asks for; English for one we don't have."""
    for name in ("HUBGOV_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        if given := environment.get(name, ""):
            return given[:2].lower() if given[:2].lower() in LANGUAGES else "en"
    return "en"


def asked_language(arguments: Sequence[str]) -> str | None:
    """The language that `--lang` asks for, before anything else is read: for help, and for what is wrong."""
    for place, argument in enumerate(arguments):
        if argument == "--":
            return None
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        given = following if argument == "--lang" else argument.removeprefix("--lang=")
        if argument.startswith("--lang") and given in LANGUAGES:
            return given
    return None


def never_fail(stream: TextIO) -> None:
    """Let a stream write what its encoding hasn't got as escapes: output never dies of a name."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")


def _text(cell: str | Cell) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def _json_escape(found: re.Match[str]) -> str:
    """JSON's escape of a hostile character; the line breaks are the layout's own, texts have theirs escaped."""
    return found[0] if found[0] == "\n" else "\\u007f" if found[0] == "\x7f" else json.dumps(found[0])[1:-1]
