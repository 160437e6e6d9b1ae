"""`hubgov doctor`: what is wrong with an installation, and the command that mends it."""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hubgov import texts
from hubgov.cli.cli_texts import text
from hubgov.cli.lazy import VERBS
from hubgov.cli.local.printing import parser, said
from hubgov.cli.screen import Screen, asked_language, language
from hubgov.errors import HubgovError
from hubgov.joining import checks, scene
from hubgov.joining.checks import Colour, Line
from hubgov.joining.doctor_texts import COLOURS, ICONS, LINES
from hubgov.joining.init_texts import HELP

_STYLES = {Colour.GREEN: "\x1b[32m", Colour.AMBER: "\x1b[33m", Colour.RED: "\x1b[31m"}


def run(arguments: Sequence[str]) -> int:
    """The verb's exit status: 0 when nothing is broken, 1 when something is."""
    lang = asked_language(arguments) or language(os.environ)
    verb = VERBS["doctor"]
    made = parser("doctor", texts.word(LINES, "about", lang), f"{text('example', lang)} {verb.example}", lang)
    made.add_argument("--config", metavar="FILE", help=HELP.pick("config", lang))
    made.add_argument("--json", action="store_true", help=HELP.pick("json", lang))
    options = made.parse_args(arguments)
    logging.getLogger("hubgov").addHandler(logging.NullHandler())
    screen = Screen()
    screen.lang, screen.json = lang, options.json
    try:
        found = scene.gather(Path(options.config).expanduser() if options.config else None)
    except (HubgovError, OSError) as error:
        return said("doctor", error, screen)
    lines = checks.all_of(found)
    counts = Counter(line.colour for line in lines)
    if screen.json:
        rows = [_document(line, lang) for line in lines]
        screen.document({"ok": not counts[Colour.RED], "config": found.config, "checks": rows})
    else:
        for line in lines:
            _print(line, screen)
        screen.line("")
        screen.line(texts.word(LINES, "sum", lang, **{colour.value: counts[colour] for colour in Colour}))
    return 1 if counts[Colour.RED] else 0


def _print(line: Line, screen: Screen) -> None:
    word = COLOURS.pick(line.colour, screen.lang)
    head = f"{ICONS[line.colour]} {word}"
    if screen.tty and not screen.no_color:
        sys.stdout.write(f"{_STYLES[line.colour]}{head}\x1b[0m ")
        screen.line(_said(line, screen.lang))
    else:
        screen.line(f"{head} {_said(line, screen.lang)}")
    if line.mend:
        screen.line(texts.word(LINES, "mend", screen.lang, command=line.mend))


def _said(line: Line, lang: str) -> str:
    return texts.word(LINES, line.key, lang, **line.facts)


def _document(line: Line, lang: str) -> dict[str, object]:
    return {
        "check": line.check,
        "colour": line.colour.value,
        "text": _said(line, lang),
        "mend": line.mend,
        "facts": line.facts,
    }
