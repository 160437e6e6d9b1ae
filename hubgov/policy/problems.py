"""What is wrong with a policy, and where: problems with line, path, stable code and a way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from hubgov import texts

from . import problem_texts

Path = tuple[str | int, ...]
Places = Mapping[Path, tuple[int, int]]
Severity = Literal["error", "warning"]

MAX_PROBLEMS = 200
"""More are not listed: a file with so many is the wrong file, and each costs a search for the nearest word."""
_MAX_CANDIDATES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong. `line` is 0 where the values came without a text; a warning stops nothing."""

    line: int
    path: str
    code: str
    message: str
    hint: str = ""
    severity: Severity = "error"
    file: str = "policy.yaml"
    column: int = 0

    def __str__(self) -> str:
        return self.told("en")

    def told(self, lang: str) -> str:
        """`FILE:LINE: CODE: message; hint`, the form that editors and terminals can jump by, in a language."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        text = problem_texts.message(self.message, lang)
        if self.hint:
            text = texts.joined((text, problem_texts.hint(self.hint, lang)), lang)
        mark = problem_texts.MARKS.pick(self.severity, lang)
        return f"{where}: {mark}{self.code}: {text}"


def problem_at(
    place: tuple[int, int],
    path: Path,
    code: str,
    message: str,
    hint: str,
    *,
    file: str,
    severity: Severity = "error",
) -> Problem:
    """The problem with the value at `path`, which stands at (line, column)."""
    return Problem(
        line=place[0],
        column=place[1],
        path=path_text(path),
        code=code,
        message=message,
        hint=hint,
        severity=severity,
        file=file,
    )


def path_text(path: Path) -> str:
    """The path as people write it: `queues.experiment.kinds[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def shown(value: Any) -> str:
    """A value as a message shows it: short, on one line, without control characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a block"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int | Decimal):
        # str() of a number beyond some thousand digits is refused by Python itself.
        return str(value) if -(10**40) < value < 10**40 else "a huge number"
    text = str(value)
    return repr(text if len(text) <= 40 else text[:39] + "…")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean X?` for the nearest of the known words, or the empty text when none is near."""
    if len(word) > 100:
        return ""
    candidates = [name for name in known if abs(len(name) - len(word)) <= 8][:_MAX_CANDIDATES]
    near = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    if not near:
        near = [name for name in candidates if name.casefold() == word.casefold()][:1]
    return f"did you mean {near[0]}?" if near else ""


def _place_of(problem: Problem) -> tuple[int, int, str, str, str]:
    return problem.line, problem.column, problem.path, problem.code, problem.message


class Findings:
    """All problems of one policy while it is being checked, and which values were too broken to build on."""

    def __init__(self, places: Places, file: str = "policy.yaml") -> None:
        self._places = places
        self._file = file
        self._errors: list[Problem] = []
        self._warnings: list[Problem] = []
        self._cut = False
        self.broken: set[Path] = set()
        self.origins: dict[Path, list[int]] = {}

    def original(self, path: Path) -> Path:
        """The path in the text of what lies at `path` after broken list items were taken out."""
        found: Path = ()
        for part in path:
            kept = self.origins.get(found)
            if isinstance(part, int) and kept is not None and part < len(kept):
                found = (*found, kept[part])
            else:
                found = (*found, part)
        return found

    def is_broken(self, *paths: Path) -> bool:
        """Whether one of the values was already reported, so that comparing it would only add noise."""
        return any(path[:end] in self.broken for path in paths for end in range(1, len(path) + 1))

    def is_hurt(self, path: Path) -> bool:
        """Whether the value, or a part of it, was already reported."""
        return self.is_broken(path) or any(broken[: len(path)] == path for broken in self.broken)

    def error(self, code: str, path: Path, message: str, hint: str = "") -> None:
        """Record what makes the policy unusable."""
        self._add("error", code, path, message, hint)

    def warning(self, code: str, path: Path, message: str, hint: str = "") -> None:
        """Record what is allowed but probably not meant."""
        self._add("warning", code, path, message, hint)

    def take(self, errors: Iterable[Problem]) -> None:
        """Record what the reader refused."""
        self._errors.extend(errors)

    def near(self, word: str, known: Iterable[str]) -> str:
        """`did you mean X?`, unless the list is full: the search is what costs time in a hopeless file."""
        return "" if self.full else did_you_mean(word, sorted(known))

    @property
    def full(self) -> bool:
        """Whether so much is wrong that looking further is of no use."""
        return len(self._errors) >= MAX_PROBLEMS

    @property
    def failed(self) -> bool:
        """Whether any of the problems is an error."""
        return bool(self._errors)

    def sorted(self) -> tuple[Problem, ...]:
        """All of them from the top of the file down: `MAX_PROBLEMS`, errors before warnings, and a word on more."""
        every = [*sorted(self._errors, key=_place_of), *sorted(self._warnings, key=_place_of)]
        items = sorted(every[:MAX_PROBLEMS], key=_place_of)
        if not self._cut and len(every) <= MAX_PROBLEMS:
            return tuple(items)
        last = Problem(
            line=items[-1].line,
            path="",
            code="too_many",
            message="there are more problems than these",
            hint="put these right first",
            severity="error" if self.failed else "warning",
            file=self._file,
        )
        return (*items, last)

    def _add(self, severity: Severity, code: str, path: Path, message: str, hint: str) -> None:
        items = self._errors if severity == "error" else self._warnings
        if len(items) >= MAX_PROBLEMS:
            self._cut = True
            return
        items.append(problem_at(self._place(path), path, code, message, hint, file=self._file, severity=severity))

    def _place(self, path: Path) -> tuple[int, int]:
        for end in range(len(path), -1, -1):
            if (place := self._places.get(path[:end])) is not None:
                return place
        return (1, 1) if self._places else (0, 0)
