"""`hubgov policy check` and `hubgov schema`: what is wrong with a policy file and what it may hold."""

from __future__ import annotations

from hubgov.cli.files import read_text
from hubgov.cli.screen import Screen
from hubgov.policy import Problem, load, schema


def check(path: str, as_json: bool, *, screen: Screen | None = None) -> int:
    """Print every problem as `FILE:LINE: CODE: message; …`, warnings too. 1 when one is an error, else 0."""
    screen = screen or Screen()
    text = read_text(path)
    loaded = load(text, name="stdin" if path == "-" else path)
    if as_json:
        screen.document(
            {"ok": loaded.policy is not None, "problems": [_document(p, screen.lang) for p in loaded.problems]}
        )
    else:
        for problem in loaded.problems:
            screen.line(problem.told(screen.lang))
        if loaded.policy is not None:
            screen.done(screen.text("policy_fine", file=path))
    return 0 if loaded.policy is not None else 1


def document_schema() -> object:
    """The JSON Schema of the policy file."""
    return schema()


def _document(problem: Problem, lang: str) -> dict[str, object]:
    """As POST /policy/check answers it."""
    return {
        "line": problem.line,
        "path": problem.path,
        "code": problem.code,
        "severity": problem.severity,
        "text": problem.told(lang),
    }
