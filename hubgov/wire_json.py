"""Documents of the contract (`wire`) to JSON values and back. Standard library only, as they are."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """The document as plain JSON values; a trailing underscore of a field name (`class_`) is dropped."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name.rstrip("_"): to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    return value


def from_json(kind: type[T], data: Mapping[str, Any]) -> T:
    """The dataclass `kind` from its JSON. Keys it doesn't know are left out: a newer service may add some."""
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    known = {f.name: data[f.name.rstrip("_")] for f in fields if f.name.rstrip("_") in data}
    return kind(**{name: _convert(hints[name], value) for name, value in known.items()})


def _convert(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        for option in args:
            if dataclasses.is_dataclass(option) and isinstance(value, Mapping):
                return _convert(option, value)
        return value
    if origin is tuple:
        return tuple(_convert(args[0], item) for item in value)
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return from_json(typing.cast("type[Any]", hint), value)
    return value
