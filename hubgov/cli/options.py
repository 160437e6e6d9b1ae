"""Values of options: read strictly, and refused with what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from hubgov import wire
from hubgov.errors import HubgovError

if TYPE_CHECKING:
    from hubgov.cli.screen import Screen
    from hubgov.client import Client

_GPUS = re.compile(r"\d{1,7}(\.\d{1,3})?", re.ASCII)


class Usage(HubgovError):
    """The command was not given as it must be. `code` is a key of the texts, `details` its facts."""

    code = "usage"

    def __init__(self, code: str, **facts: object) -> None:
        super().__init__(code, code=code, details=facts)


def screen_of(ctx: typer.Context) -> Screen:
    """Where to write, and in which language."""
    screen: Screen = ctx.find_root().obj
    return screen


def connect(screen: Screen) -> Client:
    """A client that asks in the reader's language; the caller closes it."""
    from hubgov.client import Client

    return Client(lang=screen.lang)


def client_of(ctx: typer.Context) -> Client:
    """The verb's client; its connections are closed when the verb is over, however it ends."""
    client = connect(screen_of(ctx))
    ctx.call_on_close(client.close)
    return client


def seconds(option: str, text: str, least: int = 1) -> int:
    """Whole seconds of a duration such as `90s`, `1h30m`."""
    try:
        found = wire.parse_span(text) // 1000
    except ValueError:
        raise Usage("bad_span", option=option, value=text[:40]) from None
    if found < least:
        raise Usage("bad_span", option=option, value=text[:40])
    return found


def memory(option: str, text: str) -> str:
    """A size such as `20GiB`, as it is sent."""
    try:
        wire.parse_memory(text)
    except ValueError:
        raise Usage("bad_memory", option=option, value=text[:40]) from None
    return text.strip()


def gpus(text: str) -> int | float | list[int | float]:
    """A number of GPUs, or the counts that would do, as they are sent."""
    counts = [_gpu_count(part.strip(), text) for part in text.split(",")]
    if len(counts) > 64:
        raise Usage("bad_gpus", value=text[:40])
    return counts[0] if len(counts) == 1 else counts


def _gpu_count(part: str, whole: str) -> int | float:
    if not _GPUS.fullmatch(part) or float(part) * 1000 > wire.MAX_MILLI_GPUS:
        raise Usage("bad_gpus", value=whole[:40])
    return int(part) if "." not in part else float(part)


def pairs(option: str, given: Iterable[str], *, empty: bool = False) -> dict[str, str]:
    """Name and value of each `k=v`; `empty` lets a value be so."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key or not (value or empty):
            raise Usage("bad_pair", option=option, value=text[:40])
        found[key] = value
    return found


def one_of(option: str, given: str, known: Iterable[str]) -> str:
    """The word if it is one of those known."""
    words = list(known)
    if given not in words:
        raise Usage("bad_word", option=option, value=given[:40], known=", ".join(words))
    return given


def sent(**fields: Any) -> Mapping[str, Any]:
    """A body without what was not given."""
    return {name: value for name, value in fields.items() if value not in (None, [], {}, ())}
