"""What the verbs of this machine share: a parser in the reader's language, and how a failure is said."""

from __future__ import annotations

import argparse

from hubgov import texts
from hubgov.cli.help_texts import help_in
from hubgov.cli.screen import Screen
from hubgov.errors import HubgovError
from hubgov.joining.init_texts import HELP, told


def parser(verb: str, about: str, example: str, lang: str) -> argparse.ArgumentParser:
    """A parser with `--help` and `--lang` in a language."""
    made = argparse.ArgumentParser(
        prog=f"hubgov {verb}", description=about, epilog=example, add_help=False, allow_abbrev=False
    )
    made.add_argument("-h", "--help", action="help", help=help_in("show this help message and exit", lang))
    made.add_argument("--lang", choices=texts.LANGUAGES, help=HELP.pick("lang", lang))
    return made


def said(verb: str, error: HubgovError | OSError, screen: Screen) -> int:
    """Say what went wrong and what to do, and give the exit status."""
    if isinstance(error, HubgovError):
        message, hint, code = *told(error.message, error.hint, screen.lang), error.code
    else:
        where = f"{error.filename}: " if error.filename else ""
        message, hint, code = f"{where}{error.strerror or error}", "", "system"
    if screen.json:
        screen.document({"error": {"code": code, "message": message, "details": {}, "hint": hint}})
    screen.complain(f"{verb}: {message}", hint)
    return 1
