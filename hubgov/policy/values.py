"""How one value of a policy is read: durations, sizes, GPUs, money, words, names, days and hours.

Each reader takes a plain value and gives whole numbers or text, or raises pydantic's custom error with the
problem's code as its type and the way out in its context.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from hubgov.core.policy import MICRO, Kind, Mode, Order, Placement, PriorityClass, Tier
from hubgov.wire import MAX_MILLI_GPUS, MAX_NAME, parse_memory, parse_span

from .problems import did_you_mean, shown

MAX_MONEY = 10**12
MAX_FACTOR = 1000
MAX_TEXT = 255
MAX_INDEX = 1023
MAX_PRIORITY = 1_000_000
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_SPREAD = re.compile(r"([0-9]{1,4})-([0-9]{1,4})", re.ASCII)
_UUID = re.compile(r"[A-Za-z][A-Za-z0-9._:-]*", re.ASCII)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

W = TypeVar("W", bound=StrEnum)


def wrong(code: str, message: str, hint: str = "") -> PydanticCustomError:
    """The error that carries a problem's code, message and hint through pydantic."""
    return PydanticCustomError(code, "{message}", {"message": message, "hint": hint})


def text(value: Any) -> str:
    """Text as it stands; anything else is `wrong_type`."""
    if not isinstance(value, str):
        hint = "put it in quotes" if isinstance(value, bool | int | Decimal) else ""
        raise wrong("wrong_type", f"{shown(value)} is not text", hint)
    return value


def visible(value: Any, most: int = MAX_NAME) -> str:
    """A name of a person, group or thing outside the policy: visible characters, no blanks around them."""
    name = text(value)
    if not name or name != name.strip():
        raise wrong("bad_name", f"{shown(name)} is empty or has blanks around it", "remove the blanks")
    if len(name) > most:
        raise wrong("bad_name", f"{shown(name)} has {len(name)} characters", f"use at most {most}")
    if any(unicodedata.category(char)[0] == "C" or (char.isspace() and char != " ") for char in name):
        raise wrong("bad_name", f"{shown(name)} has invisible characters", "type it anew")
    return name


def slug(value: Any) -> str:
    """A name that the policy gives: letters, digits, `.`, `_`, `-`."""
    name = visible(value)
    if not _SLUG.fullmatch(name):
        hint = "use letters, digits, '.', '_' and '-', a letter or digit first"
        raise wrong("bad_name", f"{shown(name)} can't be a name here", hint)
    return name


def whole(least: int, most: int) -> Callable[[Any], int]:
    """A reader of whole numbers from `least` to `most`."""

    def reader(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            hint = "write it in decimal, without quotes, such as 8"
            raise wrong("wrong_type", f"{shown(value)} is not a whole number", hint)
        if value < 0 <= least:
            raise wrong("negative", f"{shown(value)} is negative", f"use {least} or more")
        if not least <= value <= most:
            raise wrong("range", f"{shown(value)} is out of range", f"use {least} to {most}")
        return value

    return reader


def _scaled(value: Any, scale: int, most: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        hint = "write it in decimal, without quotes, such as 8 or 0.25"
        raise wrong("wrong_type", f"{shown(value)} is not {what}", hint)
    if value < 0:
        raise wrong("negative", f"{shown(value)} is negative", "use 0 or more")
    if value > most:
        raise wrong("range", f"{shown(value)} is more than {most}", f"use at most {most}")
    exact = Fraction(value) * scale
    if exact.denominator != 1:
        digits = len(str(scale)) - 1
        raise wrong("bad_value", f"{shown(value)} is too fine for {what}", f"use at most {digits} decimals")
    return exact.numerator


def milli(value: Any) -> int:
    """A number of GPUs in thousandths."""
    return _scaled(value, 1000, MAX_MILLI_GPUS // 1000, "a number of GPUs")


def money(value: Any) -> int:
    """An amount or price in millionths."""
    return _scaled(value, MICRO, MAX_MONEY, "an amount")


def factor(value: Any) -> int:
    """A factor in millionths."""
    return _scaled(value, MICRO, MAX_FACTOR, "a factor")


def span(value: Any) -> int:
    """A duration in milliseconds."""
    hint = "write 90s, 30m, 4h, 2d, 1h30m or PT1H30M"
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise wrong("wrong_type", f"{shown(value)} is not a duration", hint)
    if not isinstance(value, str):
        raise wrong("bad_duration", f"{shown(value)} has no unit", hint)
    try:
        return parse_span(value)
    except ValueError as error:
        if "ten years" in str(error):
            raise wrong("range", f"{shown(value)} is longer than ten years", "use at most 3650d") from error
        if value.startswith("-"):
            raise wrong("negative", f"{shown(value)} is negative", hint) from error
        raise wrong("bad_duration", f"{shown(value)} is not a duration", hint) from error


def some_span(value: Any) -> int:
    """A duration that can't be zero."""
    found = span(value)
    if not found:
        raise wrong("range", f"{shown(value)} is no time at all", "use 1s or more")
    return found


def memory(value: Any) -> int:
    """A size in MiB, at least one."""
    hint = "write 512MiB, 80GiB or 1TiB"
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise wrong("wrong_type", f"{shown(value)} is not a memory size", hint)
    try:
        size = parse_memory(value if isinstance(value, str) else "")
    except ValueError as error:
        if "larger" in str(error):
            raise wrong("range", f"{shown(value)} is more than 1PiB", "use at most 1PiB") from error
        raise wrong("bad_memory", f"{shown(value)} is not a memory size", hint) from error
    if not size:
        raise wrong("range", f"{shown(value)} is no memory at all", "use 1MiB or more")
    return size


def flag(value: Any) -> bool:
    """true or false, nothing else: `yes` and `on` are text."""
    if not isinstance(value, bool):
        raise wrong("wrong_type", f"{shown(value)} is neither true nor false", "write true or false")
    return value


def word(*known: str) -> Callable[[Any], str]:
    """A reader of one of the known words."""

    def reader(value: Any) -> str:
        given = text(value)
        if given not in known:
            hint = did_you_mean(given, known) or f"use one of {', '.join(known)}"
            raise wrong("bad_value", f"{shown(given)} is not known here", hint)
        return given

    return reader


def member(kind: type[W]) -> Callable[[Any], W]:
    """A reader of the words of an enumeration."""
    known = word(*(item.value for item in kind))
    return lambda value: kind(known(value))


def clock(value: Any) -> int:
    """A local time `HH:MM` in minutes after midnight; 24:00 is the midnight that ends the day."""
    given = text(value)
    if given == "24:00":
        return 0
    if not (found := _CLOCK.fullmatch(given)):
        raise wrong("bad_window", f"{shown(given)} is not a time of day", 'write it as "22:00"')
    return int(found[1]) * 60 + int(found[2])


def days(value: Any) -> tuple[int, ...]:
    """Days of the week, 0 = Monday, from `mon-fri`, `sat,sun` or a list of such."""
    parts = value if isinstance(value, list) else text(value).split(",")
    found: set[int] = set()
    for part in parts:
        ends = [name.strip().lower() for name in text(part).split("-")]
        if len(ends) > 2 or any(name not in DAYS for name in ends):
            hint = "write mon-fri, or a list of mon, tue, wed, thu, fri, sat, sun"
            raise wrong("bad_window", f"{shown(part)} is no day or span of days", hint)
        first, last = DAYS.index(ends[0]), DAYS.index(ends[-1])
        found.update((first + step) % 7 for step in range((last - first) % 7 + 1))
    if not found:
        raise wrong("bad_window", "no day is named", "write mon-sun for every day")
    return tuple(sorted(found))


def devices(value: Any) -> tuple[int | str, ...]:
    """Devices of a node by index, span of indexes (`1-5`) or UUID, spans written out."""
    if not isinstance(value, list):
        raise wrong("wrong_type", f"{shown(value)} is not a list of devices", "write [0, 2-5] or UUIDs")
    found: list[int | str] = []
    for item in value:
        if isinstance(item, int) and not isinstance(item, bool):
            found.append(whole(0, MAX_INDEX)(item))
        elif isinstance(item, str) and (ends := _SPREAD.fullmatch(item)):
            first, last = whole(0, MAX_INDEX)(int(ends[1])), whole(0, MAX_INDEX)(int(ends[2]))
            if last < first:
                raise wrong("range", f"{shown(item)} runs backwards", f"write {last}-{first}")
            found.extend(range(first, last + 1))
        elif isinstance(item, str) and len(item) <= MAX_TEXT and _UUID.fullmatch(item):
            found.append(item)
        else:
            hint = "write an index, a span such as 1-5, or a UUID"
            raise wrong("bad_value", f"{shown(item)} is not a device", hint)
    return tuple(found)


def priorities(value: Any) -> tuple[int, int]:
    """The lowest and the highest priority that may be asked for."""
    if not isinstance(value, list) or len(value) != 2:
        raise wrong("wrong_type", f"{shown(value)} is not a pair of priorities", "write [0, 100]")
    reader = whole(-MAX_PRIORITY, MAX_PRIORITY)
    low, high = reader(value[0]), reader(value[1])
    if high < low:
        raise wrong("priority_range", f"[{low}, {high}] runs backwards", f"write [{high}, {low}]")
    return low, high


def inside(value: Any) -> str:
    """A path below a configured root: relative, and never out of it."""
    given = visible(value, MAX_TEXT)
    if given.startswith(("/", "~")) or ".." in given.split("/"):
        raise wrong("bad_value", f"{shown(given)} leaves its root", "write a path below the root, as runs/")
    return given


def texts(value: Any) -> Mapping[str, str]:
    """Short text by language, or labels: a block of visible text."""
    if not isinstance(value, dict):
        raise wrong("wrong_type", f"{shown(value)} is not a block", "write {name: text}")
    return {slug(key): visible(item, MAX_TEXT) for key, item in value.items()}


@dataclass(frozen=True, eq=False)
class Reads:
    """Tells pydantic which reader makes a field's value, and JSON Schema what to expect of the text."""

    reader: Callable[[Any], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.reader)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(self.schema)


def counts(most: int, least: int = 0) -> Reads:
    """A whole number from `least` to `most`."""
    return Reads(whole(least, most), {"type": "integer", "minimum": least, "maximum": most})


def known(*words: str) -> Reads:
    """One of these words."""
    return Reads(word(*words), {"enum": list(words)})


def _words(kind: type[StrEnum]) -> Reads:
    return Reads(member(kind), {"enum": [item.value for item in kind]})


_SPAN = {"type": "string", "examples": ["90s", "30m", "4h", "2d", "1h30m", "PT1H30M"]}
_SHORT = {"type": "string", "maxLength": MAX_NAME}
_LONG = {"type": "string", "maxLength": MAX_TEXT}
_NUMBER = {"type": "number", "minimum": 0}

Name = Annotated[str, Reads(slug, {**_SHORT, "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"})]
Visible = Annotated[str, Reads(visible, _SHORT)]
Text = Annotated[str, Reads(lambda value: visible(value, MAX_TEXT), _LONG)]
Inside = Annotated[str, Reads(inside, _LONG)]
Texts = Annotated[Mapping[str, str], Reads(texts, {"type": "object", "additionalProperties": {"type": "string"}})]
Span = Annotated[int, Reads(span, _SPAN)]
SomeSpan = Annotated[int, Reads(some_span, _SPAN)]
Memory = Annotated[int, Reads(memory, {"type": "string", "pattern": "^[0-9]+(MiB|GiB|TiB|PiB)$"})]
Gpus = Annotated[int, Reads(milli, _NUMBER)]
Amount = Annotated[int, Reads(money, _NUMBER)]
Factor = Annotated[int, Reads(factor, {**_NUMBER, "maximum": MAX_FACTOR})]
Count = Annotated[int, counts(1_000_000)]
Positive = Annotated[int, counts(1_000_000, 1)]
Priority = Annotated[int, counts(MAX_PRIORITY, -MAX_PRIORITY)]
Priorities = Annotated[
    tuple[int, int],
    Reads(priorities, {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
]
Flag = Annotated[bool, Reads(flag, {"type": "boolean"})]
Clock = Annotated[int, Reads(clock, {"type": "string", "pattern": "^[0-9]{1,2}:[0-9]{2}$"})]
Days = Annotated[tuple[int, ...], Reads(days, {"type": ["string", "array"]})]
DeviceList = Annotated[
    tuple[int | str, ...],
    Reads(devices, {"type": "array", "items": {"type": ["integer", "string"]}}),
]
KindWord = Annotated[Kind, _words(Kind)]
ClassWord = Annotated[PriorityClass, _words(PriorityClass)]
OrderWord = Annotated[Order, _words(Order)]
PlacementWord = Annotated[Placement, _words(Placement)]
ModeWord = Annotated[Mode, _words(Mode)]
TierWord = Annotated[Tier, _words(Tier)]
