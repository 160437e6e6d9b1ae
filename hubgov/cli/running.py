"""One call of the program: find the verb, run it, turn what went wrong into one line, a hint and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from itertools import pairwise

from hubgov.catalogue import Texts
from hubgov.cli.cli_texts import FAILURES, HINTS, fill
from hubgov.cli.flags import as_flags
from hubgov.cli.help_texts import usage_in
from hubgov.cli.lazy import VERBS
from hubgov.cli.screen import Screen, asked_language, never_fail
from hubgov.errors import HubgovError, NotAllowed, Unavailable

DONE, FAILED, USAGE, DENIED, WAITING, UNREACHABLE, APPROVAL = range(7)
INTERRUPTED = 130


def run(arguments: Sequence[str]) -> int:
    """The exit code of `hubgov ARGUMENTS`."""
    never_fail(sys.stdout)
    never_fail(sys.stderr)
    screen = Screen()
    screen.lang = asked_language(arguments) or screen.lang
    try:
        if arguments and arguments[0] in VERBS and VERBS[arguments[0]].raw:
            module, _, function = VERBS[arguments[0]].target.partition(":")
            return int(getattr(importlib.import_module(module), function)(list(arguments[1:])))
        _check_texts(arguments)
        return _typed(arguments, screen)
    except HubgovError as error:
        return fail(error, screen, _verb_of(arguments))
    except BrokenPipeError:
        # Who read has read enough. What is buffered can go nowhere, at the end of the process neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _check_texts(arguments: Sequence[str]) -> None:
    """Usage for bytes that are no text: only a file may be called so."""
    for argument in arguments:
        if any("\ud800" <= ch <= "\udfff" for ch in argument) and not os.path.exists(argument):
            from hubgov.cli.options import Usage

            raise Usage("not_text", value=argument[:40])


def _typed(arguments: Sequence[str], screen: Screen) -> int:
    import typer

    from hubgov.cli.commands import root

    try:
        code = root(screen.lang).main(_valued(arguments), "hubgov", standalone_mode=False, obj=screen)
        return code if isinstance(code, int) else DONE
    except typer.Abort:
        return INTERRUPTED
    except typer.TyperException as error:
        screen.complain(
            screen.text("usage", message=usage_in(error.format_message(), screen.lang)), _help_of(error)
        )
        return USAGE


def _valued(arguments: Sequence[str]) -> list[str]:
    """The arguments, with an empty value for options that stand bare where their verb lets them."""
    verb = _verb_of(arguments)
    bare = VERBS[verb].bare if verb else ()
    found = list(arguments)
    for place, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument in bare and (place + 1 == len(arguments) or arguments[place + 1].startswith("-")):
            found[place] = f"{argument}="
    return found


def _help_of(error: Exception) -> str:
    ctx = getattr(error, "ctx", None)
    return f"{ctx.command_path} --help" if ctx is not None else "hubgov --help"


def _verb_of(arguments: Sequence[str]) -> str:
    """The verb that was called, of two words where it has two; empty for none."""
    words = [argument for argument in arguments if not argument.startswith("-")][:4]
    called = [f"{first} {second}" for first, second in pairwise(words)] + words
    return next((name for name in called if name in VERBS), "")


def fail(error: HubgovError, screen: Screen, verb: str = "") -> int:
    """Say what went wrong, in words and (for programs) as the error document, and give the exit code."""
    from hubgov.cli.options import Usage

    message = _said(FAILURES, error, screen) or error.message
    hint = _said(HINTS, error, screen) or error.hint
    if screen.json:
        document = dict(error.details) if error.details else {}
        about = {"code": error.code, "message": message, "details": document, "hint": hint}
        screen.document(approval_of(error) or {"error": about})
    screen.complain(as_flags(message, verb), as_flags(hint, verb))
    for problem in error.details.get("problems", ()) if error.code == "policy_invalid" else ():
        screen.complain(str(problem))
    if isinstance(error, Usage):
        return USAGE
    return _exit_code(error)


def approval_of(error: HubgovError) -> object:
    """The extension's own document, when it waits for somebody's yes: that is an answer, not an error."""
    extension = getattr(error, "extension", None)
    if extension is None:
        return None
    from hubgov.wire_json import to_json

    return to_json(extension)


def _exit_code(error: HubgovError) -> int:
    from hubgov.client.failures import NeedsApproval, PolicyDenied

    match error:
        case PolicyDenied() | NotAllowed():
            return DENIED
        case NeedsApproval():
            return APPROVAL
        case Unavailable():
            return UNREACHABLE
        case _:
            return FAILED


def _said(table: Texts, error: HubgovError, screen: Screen) -> str:
    """The table's text for an error of the program's own, in the reader's language; empty for one it hasn't got."""
    if error.code not in table:
        return ""
    return fill(table, error.code, screen.lang, {**error.details, "message": error.message})
