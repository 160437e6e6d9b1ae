"""How a policy file becomes a policy, or all the reasons why it can't."""

from __future__ import annotations

from typing import NamedTuple

from hubgov.core.policy import Policy

from .building import build
from .checking import check
from .problems import Findings, Problem
from .reading import read


class Loaded(NamedTuple):
    """A policy and what there is to say about it: the policy is None as soon as one problem is an error."""

    policy: Policy | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What must be put right before the policy can be used."""
        return tuple(problem for problem in self.problems if problem.severity == "error")


def load(text: str, *, name: str = "policy.yaml", version: int = 0) -> Loaded:
    """The policy that a YAML text says; never raises for what the text holds.

    `name` is the file's name in messages, `version` the number of edits applied at this site.
    """
    reading = read(text, file=name)
    found = Findings({(): (1, 1), **reading.places}, name)  # an empty file has no place of its own
    found.take(reading.problems)
    document = check(reading.values, found)
    policy = build(document, version) if document is not None and not found.failed else None
    return Loaded(policy, found.sorted())
