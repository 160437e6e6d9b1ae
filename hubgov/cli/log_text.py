"""What a program wrote, made fit for a terminal: lines, tabs and colours pass, whatever else steers it doesn't."""

from __future__ import annotations

import re

from hubgov.cli.screen import visible

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,40}m")
_UNFINISHED = re.compile(r"\x1b(\[[0-9;]{0,40})?\Z|\r\Z")
_KEPT = re.compile(rf"({_COLOUR.pattern}|[\n\t])")
RESET = "\x1b[0m"


class TerminalText:
    """Text that comes in pieces; what may go on in the next one is held back until then."""

    def __init__(self) -> None:
        self._held = ""
        self._coloured = False

    def shown(self, text: str) -> str:
        """What of it can be shown now. A carriage return begins a line: progress bars draw over what was there."""
        text = self._held + text
        unfinished = _UNFINISHED.search(text)
        self._held = unfinished[0] if unfinished else ""
        return self._safe(text[: len(text) - len(self._held)])

    def end(self) -> str:
        """The rest, with colours as they were before."""
        rest, self._held = self._safe(self._held), ""
        reset, self._coloured = RESET if self._coloured else "", False
        return rest + reset

    def _safe(self, text: str) -> str:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        parts = _KEPT.split(text)
        self._coloured |= any(_COLOUR.fullmatch(part) for part in parts[1::2])
        return "".join(part if place % 2 else visible(part) for place, part in enumerate(parts))
