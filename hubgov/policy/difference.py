"""What an edit of the policy changes, and what it would take away from work that is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from hubgov.core.policy import NodeRule, Policy

from .notation import Notation, flow, notation

_ORDERED = ("flavors", "spawn_profiles")
"""Sections whose order means something: flavors are tried, and profiles shown, as declared."""

Users = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Edit:
    """One value that differs, in the notation of the file; None where there was or is no such key."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Which names live workloads hold or wait on, each with the workloads that do.

    `nodes` are the names of single nodes (`gpu-b-3`), `devices` (node, index) of devices held.
    """

    teams: Users = field(default_factory=lambda: MappingProxyType({}))
    projects: Users = field(default_factory=lambda: MappingProxyType({}))
    queues: Users = field(default_factory=lambda: MappingProxyType({}))
    pools: Users = field(default_factory=lambda: MappingProxyType({}))
    flavors: Users = field(default_factory=lambda: MappingProxyType({}))
    nodes: Users = field(default_factory=lambda: MappingProxyType({}))
    devices: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class InUse:
    """One thing that the edit removes though workloads need it."""

    kind: str
    name: str
    workloads: tuple[str, ...]
    way_out: str = "mark it retired: true first"

    def __str__(self) -> str:
        """What is in use, by whom, and the way out."""
        return f"{self.kind} {self.name} is in use by {', '.join(self.workloads)}; {self.way_out}"


def diff(old: Policy, new: Policy) -> tuple[Edit, ...]:
    """Every value that differs between two policies, sorted by path; nothing when they say the same."""
    before, after = notation(old), notation(new)
    edits = list(_edits("", before, after))
    for section in _ORDERED:
        edits.extend(_moved(section, before[section], after[section]))
    return tuple(sorted(edits, key=lambda edit: edit.path))


def in_use(old: Policy, new: Policy, usage: Usage) -> tuple[InUse, ...]:
    """What the new policy lacks though work holds or waits on it; what it keeps as retired is no such thing."""
    found: list[InUse] = []
    for section in ("teams", "projects", "queues", "pools", "flavors"):
        users: Users = getattr(usage, section)
        gone: set[str] = set(getattr(old, section)) - set(getattr(new, section))
        found.extend(_taken(section.removesuffix("s"), gone, users))
    for name in sorted(set(old.projects) & set(new.projects) & set(usage.projects)):
        # Charges and sight go by the team that the work was submitted under.
        if old.projects[name].team != new.projects[name].team:
            way_out = f"move it from team {old.projects[name].team} when these have ended"
            live = tuple(sorted(usage.projects[name]))
            found.append(InUse(kind="project", name=name, workloads=live, way_out=way_out))
    found.extend(_taken("node", _node_names(old) - _node_names(new), usage.nodes))
    kept = _node_names(new)
    lost = _devices(old) - _devices(new)
    for node, index in sorted(lost & set(usage.devices)):
        # A node that is gone as a whole was named already.
        if node in kept:
            workloads = tuple(sorted(usage.devices[node, index]))
            way_out = "wait until these have ended"  # a device can't be retired
            found.append(InUse(kind="device", name=f"{node}/{index}", workloads=workloads, way_out=way_out))
    return tuple(sorted(found))


def _taken(kind: str, gone: set[str], users: Users) -> Iterator[InUse]:
    for name in sorted(gone & set(users)):
        if users[name]:
            yield InUse(kind=kind, name=name, workloads=tuple(sorted(users[name])))


def _node_names(policy: Policy) -> set[str]:
    return {name for rule in policy.nodes.values() for name in _names(rule)}


def _names(rule: NodeRule) -> tuple[str, ...]:
    """A matched node may be known by its rule or by its host's name."""
    return (rule.name, rule.match_hostname) if rule.match_hostname is not None else rule.names


def _devices(policy: Policy) -> set[tuple[str, int]]:
    """The devices that the policy names by index; UUIDs are known only where the node is."""
    found: set[tuple[str, int]] = set()
    for rule in policy.nodes.values():
        named = [index for indexes in rule.pools.values() for index in indexes if isinstance(index, int)]
        for name in _names(rule):
            found.update((name, index) for index in (named or range(rule.devices)))
    return found


def _edits(path: str, before: Notation, after: Notation) -> Iterator[Edit]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(set(before) | set(after)):
            inner = _join(path, key)
            if key not in before:
                yield Edit(path=inner, before=None, after=flow(after[key]))
            elif key not in after:
                yield Edit(path=inner, before=flow(before[key]), after=None)
            else:
                yield from _edits(inner, before[key], after[key])
    elif before != after:
        yield Edit(path=path, before=flow(before), after=flow(after))


def _join(path: str, key: str) -> str:
    # The names of quota rows are whole phrases.
    return f"{path}[{key}]" if " " in key else f"{path}.{key}".removeprefix(".")


def _moved(section: str, before: Any, after: Any) -> Iterator[Edit]:
    """An edit where the entries that both have come in another order."""
    was, now = [name for name in before if name in after], [name for name in after if name in before]
    if was != now:
        yield Edit(path=f"{section} (order)", before=", ".join(was), after=", ".join(now))
