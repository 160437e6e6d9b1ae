"""Bodies: JSON read strictly, then checked against a model of the contract. Whatever is sent, a 4xx at worst."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hubgov.errors import Invalid

Body = TypeVar("Body", bound=BaseModel)
MOST_DEPTH = 16
"""No body of the contract is deeper than a handful of levels."""
MOST_PROBLEMS = 20


def parse(kind: type[Body], raw: bytes) -> Body:
    """The body as `kind`, or Invalid that names the field, what was sent and what is expected."""
    try:
        data = json.loads(
            raw or b"{}", parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_each_key_once
        )
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the body is not JSON: {str(error)[:200]}", hint="send a JSON object") from None
    if not isinstance(data, dict):
        raise Invalid("the body must be a JSON object", hint="send {…}")
    _check_texts(data)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        problems = [_problem(e) for e in found[:MOST_PROBLEMS]]
        first = problems[0]
        code = "above_maximum" if first["type"] in _TOO_MUCH else "invalid"
        raise Invalid(
            f"{first['field'] or 'body'}: {first['message']}",
            code=code,
            hint="see /openapi.json for the fields and their limits",
            details={"problems": problems},
        ) from None


_TOO_MUCH = frozenset({"less_than_equal", "string_too_long", "too_long", "above_maximum"})


def _problem(error: Any) -> dict[str, str]:
    return {
        "field": ".".join(str(part) for part in error["loc"]),
        "message": str(error["msg"]).removeprefix("Value error, ")[:300],
        "type": str(error["type"]),
        "value": repr(error.get("input"))[:100].encode("ascii", "backslashreplace").decode(),
    }


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two equal keys the last would win silently: which one was meant can't be told."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _check_texts(value: Any) -> None:
    """Refuse what no database keeps, NUL and lone surrogates wherever they stand, and bottomless nesting."""
    waiting = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MOST_DEPTH:
            raise Invalid("the body is nested too deeply", hint=f"at most {MOST_DEPTH} levels")
        if isinstance(item, str):
            if "\x00" in item or any("\ud800" <= ch <= "\udfff" for ch in item):
                raise Invalid("texts must be valid Unicode without NUL characters", hint="remove them")
        elif isinstance(item, dict):
            waiting.extend((key, depth) for key in item)
            waiting.extend((below, depth + 1) for below in item.values())
        elif isinstance(item, list):
            waiting.extend((below, depth + 1) for below in item)
