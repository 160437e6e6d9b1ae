"""The policy file: check it here, compare, apply and show it at the service."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Annotated, Any

import typer

from hubgov.cli import cells, options
from hubgov.cli.files import read_text
from hubgov.cli.running import DONE, FAILED
from hubgov.cli.screen import Screen
from hubgov.client.documents import PolicyDifference, PolicyEdit

File = Annotated[str, typer.Argument(metavar="FILE", help="A policy file; - for stdin.")]


def check(ctx: typer.Context, file: File) -> int:
    """Every problem of a policy file as FILE:LINE: CODE: message, all at once. 1 when one is an error."""
    from hubgov.cli.local.policy import check as check_file

    screen = options.screen_of(ctx)
    return check_file(file, screen.json, screen=screen)


def init(
    ctx: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The file to write; must not be there.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="NAME", help="A group of the hub that gets a team.")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option("--timezone", metavar="NAME", help="Time zone; the machine's own by default.")
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Simulated devices even where there are real ones.")
    ] = False,
) -> int:
    """A policy to begin with, from the devices of this machine: printed, or written to a new file."""
    from hubgov.cli.local.init import write_policy

    return write_policy(
        file, tuple(group) if group else None, timezone, simulated=simulated, screen=options.screen_of(ctx)
    )


def schema(ctx: typer.Context) -> int:
    """The JSON Schema of the policy file, as one document."""
    from hubgov.cli.local.policy import document_schema

    options.screen_of(ctx).document(document_schema())
    return DONE


def diff(ctx: typer.Context, file: File) -> int:
    """What a file would change of the policy in force: + new, - gone, ~ changed."""
    screen = options.screen_of(ctx)
    text = read_text(file)
    client = options.client_of(ctx)
    found = client.policy_diff(text, _name(file))
    if screen.json:
        screen.document(client.document)
        return DONE
    _show(screen, found)
    return DONE


def _show(screen: Screen, found: PolicyDifference) -> None:
    for warning in found.warnings:
        screen.line(warning)
    for edit in found.edits:
        screen.line(edit_line(edit))
    if not found.edits:
        screen.done(screen.text("policy_no_edits", version=found.version))


def edit_line(edit: PolicyEdit) -> str:
    """An edit on one line."""
    if edit.before is None:
        return f"+ {edit.path}: {edit.after}"
    if edit.after is None:
        return f"- {edit.path}: {edit.before}"
    return f"~ {edit.path}: {edit.before} -> {edit.after}"


def apply(
    ctx: typer.Context,
    file: File,
    yes: Annotated[bool, typer.Option("--yes", help="Without asking.")] = False,
    begun: Annotated[
        int | None,
        typer.Option(
            "--from", metavar="VERSION", min=0, help="The version that the edit began with; else the present one."
        ),
    ] = None,
) -> int:
    """Put a file in force, all of it or nothing. On a terminal it shows the difference and asks first."""
    screen = options.screen_of(ctx)
    text = read_text(file)
    client = options.client_of(ctx)
    now = client.policy()
    if now.text == text:
        answer: Any = {"version": now.version, "applied_at": now.applied_at}
        screen.done(screen.text("policy_same", version=now.version))
        if screen.json:
            screen.document(answer)
        return DONE
    difference = client.policy_diff(text, _name(file))
    if not screen.json and not screen.quiet:
        _show(screen, difference)
    if not yes and screen.tty and not screen.json and sys.stdin.isatty() and not _agreed(screen):
        screen.line(screen.text("policy_left"))
        return FAILED
    # The version that the difference was shown for: an edit that came meanwhile is not overwritten unseen.
    based_on = begun if begun is not None else difference.version
    done = client.policy_apply(text, based_on, _name(file))
    if screen.json:
        screen.document(client.document)
    else:
        screen.done(screen.text("policy_applied", version=done.version))
    return DONE


def _agreed(screen: Screen) -> bool:
    try:
        return input(screen.text("policy_ask")).strip().lower() in ("y", "yes", "是")
    except EOFError:
        return False


def show(
    ctx: typer.Context,
    number: Annotated[bool, typer.Option("--version", help="Only the number of the version in force.")] = False,
) -> int:
    """The policy in force as it was written; in a pipe exactly that, so that it can be edited and applied."""
    screen = options.screen_of(ctx)
    client = options.client_of(ctx)
    found = client.policy()
    if screen.json:
        screen.document(client.document)
        return DONE
    if number:
        screen.line(str(found.version))
        return DONE
    at = cells.clock(found.applied_at)
    screen.remark(screen.text("policy_head", version=found.version, at=at, by=found.applied_by))
    screen.raw(found.text)
    return DONE


def _name(file: str) -> str:
    """The file's name as messages show it."""
    return "stdin" if file == "-" else PurePath(file).name[:200] or "policy.yaml"
