"""`hubgov login`: a token from the hub, kept where only its owner reads it."""

from __future__ import annotations

import getpass
import os
import sys
from typing import Annotated

import typer

from hubgov.cli import cells, options
from hubgov.cli.running import DONE
from hubgov.cli.screen import Screen
from hubgov.client import connection
from hubgov.client.signin import DAYS, sign_in

_MOST_BYTES = 10_000


def login(
    ctx: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", metavar="URL", help="Of the hub or its service; else HUBGOV_URL, else this machine's hub."
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="NAME", help="Your name at the hub; else the one on this machine."),
    ] = None,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
    days: Annotated[
        int, typer.Option("--days", metavar="N", min=1, max=3650, help="For how many days the token is good.")
    ] = DAYS,
) -> int:
    """Get a token from the hub for this service and keep it, readable by you only. It is never printed."""
    screen = options.screen_of(ctx)
    file = connection.login_file()
    address = connection.service_url(url or os.environ.get("HUBGOV_URL") or connection.DEFAULT_URL)
    name = user or getpass.getuser()
    password = _from_stdin() if password_stdin else _asked(screen, name, address)
    found = sign_in(address, name, password, days)
    connection.write_login(file, found)
    if screen.json:
        screen.document({"url": found.url, "user": found.user, "expires_at": found.expires_at, "file": str(file)})
    else:
        until = cells.clock(found.expires_at) if found.expires_at else screen.text("for_ever")
        screen.done(screen.text("signed_in", user=found.user, url=found.url, until=until))
    return DONE


def _from_stdin() -> str:
    """All of stdin but its last line break, so that `echo PASSWORD |` works."""
    return _text(sys.stdin.buffer.read(_MOST_BYTES).removesuffix(b"\n").removesuffix(b"\r"))


def _asked(screen: Screen, user: str, url: str) -> str:
    if not sys.stdin.isatty():
        raise options.Usage("no_password")
    return _text(getpass.getpass(screen.text("password", user=user, url=url)).encode(errors="surrogateescape"))


def _text(password: bytes) -> str:
    """Whatever the locale makes of other bytes, the hub would not take it."""
    try:
        return password.decode()
    except UnicodeDecodeError:
        raise options.Usage("password_not_text") from None
