"""What the service calls a parameter, said as the command line's own flag."""

from __future__ import annotations

import re
from collections.abc import Mapping

FLAGS: Mapping[str, str] = {
    "by_seconds": "--by", "reason": "--reason", "queue": "--queue", "gpus": "--gpus", "project": "--project",
    "kind": "--kind", "flavor": "--flavor", "memory": "--memory", "cpus": "--cpus", "ram": "--ram",
    "need": "--need", "lease": "--lease", "retry": "--retry", "name": "--name", "model": "--model",
    "labels": "--label", "after": "--after", "priority": "--priority", "nodes": "--nodes",
    "preemptible": "--non-preemptible", "override": "--override", "start_deadline": "--start-deadline",
    "workload": "--workload", "limit": "--limit", "state": "--state", "owner": "--owner", "team": "--team",
    "If-Match": "--from", "cwd": "--cwd", "env": "--env", "attempt": "--attempt",
}  # fmt: skip
"""Fields, queries and headers of the REST interface, each with the flag that sends it."""

_NAMES = "|".join(map(re.escape, sorted(FLAGS, key=len, reverse=True)))
_QUERY = re.compile(rf"\?({_NAMES})=(\S+)")
_HEADER = re.compile(r'(If-Match): "(\d+)"')
_BODY = re.compile(r'\{"by_seconds": \d+\}')
_FIELD = re.compile(rf"^({_NAMES})(?=[:：.])")
_BOUND = re.compile(rf"\bbounds\.({_NAMES})\b")
_PAGE = re.compile(r"see /openapi\.json for the fields and their limits|字段及其上限见 /openapi\.json")


def as_flags(text: str, verb: str) -> str:
    """A message or hint of the service for who called `verb`: flags instead of what is sent."""
    text = _QUERY.sub(lambda found: f"{FLAGS[found[1]]} {found[2]}", text)
    text = _HEADER.sub(lambda found: f"{FLAGS[found[1]]} {found[2]}", text)
    text = _BODY.sub("--by 1h", text)
    text = _FIELD.sub(lambda found: FLAGS[found[1]], text)
    text = _BOUND.sub(lambda found: FLAGS[found[1]], text)
    return _PAGE.sub(f"hubgov {verb} --help".replace("  ", " "), text)
