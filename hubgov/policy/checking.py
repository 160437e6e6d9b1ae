"""How plain values become the shapes of a policy, with every problem of form reported at once.

What is wrong is reported and taken out, and the rest is read again: so a bad reference in one queue is found in
the same run as a misspelt key in another.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from . import doubts, references, rules, windows
from .problems import Findings, Path, path_text, shown
from .reading import UNREAD
from .shapes import Document

_ROUNDS = 20
"""Taking out a value can only uncover a few more problems around it, never a chain this long."""

_BLOCKS = {"model_type", "model_attributes_type", "dict_type", "tuple_type", "list_type"}
_KEY = "[key]"


def check(values: Any, found: Findings) -> Document | None:
    """The policy's shape with all references checked; None where nothing could be made of it."""
    document = _shape(values, found)
    if document is not None:
        names = _names(values)
        references.check(document, names, found)
        rules.check(document, found)
        windows.check(document, found)
        if found.broken and not found.failed:
            path = min(found.broken, key=str)
            found.error("not_yaml", path, f"{path_text(path)} was refused when the file was read")
        if not found.failed:
            doubts.check(document, found)
    return document


def _shape(values: Any, found: Findings) -> Document | None:
    if values is UNREAD:
        return None
    gone: set[Path] = set()
    for _ in range(_ROUNDS):
        found.origins = {}
        tree = _kept(values, (), gone, found)
        try:
            return Document.model_validate(tree)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                _report(one, gone, found)
            if found.full:
                return None
        if () in gone:
            return None
    return None


def _kept(value: Any, path: Path, gone: set[Path], found: Findings) -> Any:
    """A copy without what was taken out; `found.origins` keeps where the items of each list were."""
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            if item is UNREAD:
                found.broken.add((*path, key))
            elif (*path, key) not in gone:
                kept[key] = _kept(item, (*path, key), gone, found)
        return kept
    if isinstance(value, list):
        found.origins[path] = []
        items = []
        for index, item in enumerate(value):
            if item is UNREAD:
                found.broken.add((*path, index))
            elif (*path, index) not in gone:
                found.origins[path].append(index)
                items.append(_kept(item, (*path, index), gone, found))
        return items
    return value


def _report(error: Any, gone: set[Path], found: Findings) -> None:
    """Turn one of pydantic's errors into a problem, and take what it is about out of the next round."""
    kind, given = error["type"], error["input"]
    path = found.original(tuple(part for part in error["loc"] if part != _KEY))
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        gone.add(path)
        where = f"in {path_text(path[:-1])}" if len(path) > 1 else "at the top"
        hint = found.near(str(path[-1]), _known_keys(path[:-1]))
        found.error("unknown_key", path, f"there is no key {shown(str(path[-1]))} {where}", hint)
        return
    if kind == "missing":
        gone.add(path[:-1])
        if not found.is_broken(path):
            message = f"{path_text(path[:-1])} needs {shown(str(path[-1]))}"
            found.error("missing_key", path, message, f"add {path[-1]}: …")
        found.broken.add(path[:-1])
        return
    gone.add(path)
    found.broken.add(path)
    where = f"{path_text(path)}: " if path else ""
    if "hint" in context:
        found.error(kind, path, where + error["msg"], context["hint"])
    elif kind in _BLOCKS:
        wanted = "a list" if kind in ("tuple_type", "list_type") else "a block of keys"
        hint = "leave it out to get the defaults" if given is None else ""
        found.error("wrong_type", path, f"{where}{shown(given)} is not {wanted}", hint)
    else:
        found.error("bad_value", path, where + error["msg"])


def _known_keys(path: Path) -> list[str]:
    """The keys that the block at `path` may have."""
    shape: Any = Document
    for part in path:
        if isinstance(shape, type) and issubclass(shape, BaseModel):
            by_key = {field.alias or name: field.annotation for name, field in shape.model_fields.items()}
            shape = _bare(by_key.get(str(part)))
        else:
            arguments = typing.get_args(shape)
            shape = _bare(arguments[0] if isinstance(part, int) else arguments[-1]) if arguments else None
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        return [field.alias or name for name, field in shape.model_fields.items()]
    return []


def _bare(annotation: Any) -> Any:
    """The annotation without `| None`."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next(arg for arg in typing.get_args(annotation) if arg is not type(None))
    return annotation


def _names(values: Any) -> Mapping[str, frozenset[str]]:
    """Every name that the file gives by section, broken entries included: a reference to one is no mistake."""
    sections = ("flavors", "pools", "nodes", "teams", "projects", "queues", "windows")
    given = {section: values.get(section) for section in sections} if isinstance(values, dict) else {}
    return {
        section: frozenset(block) if isinstance(block, dict) else frozenset()
        for section, block in ((section, given.get(section)) for section in sections)
    }
