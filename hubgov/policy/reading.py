"""How YAML text becomes plain values with line numbers, safely and without YAML 1.1's surprises.

Only text, whole and decimal numbers, true, false, null, lists and blocks are read. `yes`, `on`, `22:00`, `010`
and `1e3` are text, decimals are exact. No aliases, anchors, merge keys or tags: what a file says is written out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import yaml

from .problems import Path, Places, Problem, problem_at, shown

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,29})", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,29})\.[0-9]{1,30}", re.ASCII)
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# libyaml's parser is twenty times faster, but not every build of PyYAML has it; both give the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Unread:
    """Stands for a value that was refused; the checker drops it without a second complaint."""


UNREAD: Final = _Unread()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read: plain values, the line and column of each path, and what was refused on the way."""

    values: Any
    places: Places
    problems: tuple[Problem, ...]


class _Stop(Exception):
    """Carries the problem that makes reading on useless."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def read(text: str, *, file: str = "policy.yaml") -> Reading:
    """The plain values of a YAML text and where each stands; never raises, whatever the text."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        message = f"the text has {size} bytes, the most is {MAX_BYTES}"
        return _nothing(Problem(line=1, path="", code="too_large", message=message, file=file))
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except _Stop as stop:
        return _nothing(stop.problem)
    except yaml.YAMLError as error:
        return _nothing(_not_yaml(error, file))
    except (ValueError, OverflowError) as error:
        # The scanner lets Python's own errors through for escapes of characters that don't exist.
        message = f"not YAML: {shown(str(error))}"
        return _nothing(Problem(line=builder.line, path="", code="not_yaml", message=message, file=file))
    return Reading(values=builder.root, places=builder.places, problems=tuple(builder.problems))


def _nothing(problem: Problem) -> Reading:
    return Reading(values=UNREAD, places={(): (problem.line, 1)}, problems=(problem,))


def _not_yaml(error: yaml.YAMLError, file: str) -> Problem:
    mark, around = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    if around and (mark is None or "flow" in str(getattr(error, "context", ""))):
        # A bracket left open is noticed lines later; where it was opened is what one looks for.
        mark = around
    said = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return Problem(
        line=mark.line + 1 if mark else 1,
        column=mark.column + 1 if mark else 0,
        path="",
        code="not_yaml",
        message=f"not YAML: {' '.join(str(said).split())[:120]}",
        hint="look for a missing quote, bracket or blank at this line or just above it",
        file=file,
    )


def _scalar(event: Any) -> Any:
    """The value of one scalar: only a plain one can be anything but text."""
    text: str = event.value
    if event.style is not None and event.style != "":
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return Decimal(text) if _DECIMAL.fullmatch(text) else text


@dataclass(slots=True)
class _Frame:
    """One open block or list. `key` is the key whose value comes next; `lost`: that value is thrown away."""

    path: Path
    holds: dict[str, Any] | list[Any]
    key: str | None = None
    lost: bool = False
    place: tuple[int, int] = (1, 1)
    seen: dict[str, int] = field(default_factory=dict)


class _Builder:
    """Builds the values from parser events with a stack of its own, so that depth can't exhaust Python's."""

    def __init__(self, file: str) -> None:
        self.root: Any = None
        self.places: dict[Path, tuple[int, int]] = {}
        self.problems: list[Problem] = []
        self.line = 1
        self._file = file
        self._stack: list[_Frame] = []
        self._documents = 0

    def take(self, event: Any) -> None:
        """Add one event to what was built so far."""
        self.line = event.start_mark.line + 1
        place = (self.line, event.start_mark.column + 1)
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents == 2:
                raise self._stop("not_yaml", place, "there is a second document", "keep one, without ---")
        elif isinstance(event, yaml.AliasEvent):
            self._refuse("alias", self._next_path(), place, "an alias is not read", "write the value out")
            self._put(UNREAD, place)
        elif isinstance(event, yaml.ScalarEvent):
            self._take_scalar(event, place)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event, place)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._stack.pop()

    def _take_scalar(self, event: Any, place: tuple[int, int]) -> None:
        frame = self._stack[-1] if self._stack else None
        as_key = frame is not None and isinstance(frame.holds, dict) and frame.key is None
        bare = self._bare(event, place)
        if as_key and frame is not None:
            self._take_key(frame, event, place)
        else:
            self._put(_scalar(event) if bare else UNREAD, place)

    def _take_key(self, frame: _Frame, event: Any, place: tuple[int, int]) -> None:
        key: str = event.value
        path = (*frame.path, key)
        frame.key, frame.place, frame.lost = key, place, False
        if key == "<<" and not event.style:
            self._refuse("alias", path, place, "a merge key is not read", "write the keys out")
            frame.lost = True
        elif key in frame.seen:
            first = f"the first is on line {frame.seen[key]}"
            self._refuse("duplicate_key", path, place, f"{shown(key)} is given twice", first)
            frame.lost = True
        else:
            frame.seen[key] = place[0]

    def _open(self, event: Any, place: tuple[int, int]) -> None:
        if len(self._stack) >= MAX_DEPTH:
            hint = f"nest at most {MAX_DEPTH} levels"
            raise self._stop("too_deep", place, "nested too deeply", hint)
        bare = self._bare(event, place)
        holds: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        frame = self._stack[-1] if self._stack else None
        path = self._next_path()
        if frame is not None and isinstance(frame.holds, dict) and frame.key is None:
            self._refuse("bad_name", path, place, "a block or list can't be a key", "use a plain word")
            frame.key, frame.lost = "?", True
        else:
            self._put(holds if bare else UNREAD, place)
        self._stack.append(_Frame(path=path, holds=holds))

    def _bare(self, event: Any, place: tuple[int, int]) -> bool:
        """Whether the node has neither anchor nor tag; says so if it has."""
        path = self._next_path()
        if event.anchor is not None:
            self._refuse("alias", path, place, "an anchor is not read", "write the value where it is used")
        # libyaml says "" where PyYAML says None.
        if event.tag:
            self._refuse("tag", path, place, f"the tag {shown(event.tag)} is not read", "leave it out")
        return not event.tag

    def _put(self, value: Any, place: tuple[int, int]) -> None:
        path = self._next_path()
        if not self._stack:
            self.root = value
            self.places.setdefault((), place)
            return
        frame = self._stack[-1]
        if isinstance(frame.holds, list):
            frame.holds.append(value)
            self.places.setdefault(path, place)
        elif frame.key is not None:
            if not frame.lost:
                frame.holds[frame.key] = value
            # A reader looks for the key, not for where its block begins.
            self.places.setdefault(path, frame.place)
            frame.key, frame.lost = None, False
        else:
            # Only an alias gets here: it stands where a key was due, and what follows is thrown away.
            frame.key, frame.lost = "*", True

    def _next_path(self) -> Path:
        if not self._stack:
            return ()
        frame = self._stack[-1]
        if isinstance(frame.holds, list):
            return (*frame.path, len(frame.holds))
        return frame.path if frame.key is None else (*frame.path, frame.key)

    def _stop(self, code: str, place: tuple[int, int], message: str, hint: str) -> _Stop:
        return _Stop(problem_at(place, (), code, message, hint, file=self._file))

    def _refuse(self, code: str, path: Path, place: tuple[int, int], message: str, hint: str) -> None:
        self.problems.append(problem_at(place, path, code, message, hint, file=self._file))
