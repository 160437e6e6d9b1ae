"""How a policy file becomes a policy, or all the reasons why it can't."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hubgov.core.policy import Policy

from .building import build
from .checking import check
from .problems import Findings, Places, Problem
from .reading import plain, read


class Loaded(NamedTuple):
    """A policy and what there is to say about it: the policy is None as soon as one problem is an error."""

    policy: Policy | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What must be put right before the policy can be used."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is allowed but probably not meant."""
        return tuple(problem for problem in self.problems if problem.severity == "warning")


def load(text: str, *, name: str = "policy.yaml", version: int = 0) -> Loaded:
    """The policy that a YAML text says; never raises for what the text holds.

    `name` is the file's name in messages, `version` the number of edits applied at this site.
    """
    reading = read(text, file=name)
    places = {(): (1, 1), **reading.places}  # an empty file has no place of its own
    return _load(reading.values, places, reading.problems, name, version)


def load_values(values: Any, *, name: str = "policy", version: int = 0, places: Places | None = None) -> Loaded:
    """The policy of values read elsewhere, such as the inline policy of a scenario; problems as in `load`.

    `places` maps paths inside `values` to (line, column); without it problems carry line 0.
    """
    try:
        values = plain(values)
    except ValueError as error:
        problem = Problem(line=0, path="", code="too_deep", message=str(error), file=name)
        return Loaded(None, (problem,))
    return _load(values, places or {}, (), name, version)


def _load(values: Any, places: Mapping[Any, Any], before: tuple[Problem, ...], name: str, version: int) -> Loaded:
    found = Findings(places, name)
    found.take(before)
    document = check(values, found)
    policy = build(document, version) if document is not None and not found.failed else None
    return Loaded(policy, found.sorted())
