"""Does every name that the policy uses exist, and does each pool and project belong to somebody?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .ownership import pool_team, project_owner, project_team, teams_without_projects
from .problems import Findings, Path, path_text, shown
from .shapes import Document

Names = Mapping[str, frozenset[str]]
MOST_LEVELS = 32
"""How deep the tree of teams may be."""


class _Checker:
    def __init__(self, names: Names, found: Findings) -> None:
        self.names = names
        self.found = found

    def one(self, section: str, name: str | None, path: Path) -> None:
        """Report a name that its section doesn't give."""
        if name is None or name in self.names[section]:
            return
        hint = self.found.near(name, self.names[section])
        message = f"{path_text(path)}: there is no {section.removesuffix('s')} {shown(name)}"
        self.found.error("bad_reference", path, message, hint or f"declare it under {section}")

    def each(self, section: str, names: Iterable[str], path: Path) -> None:
        """Report each name of a list that its section doesn't give, and each that comes twice."""
        seen: set[str] = set()
        for index, name in enumerate(names):
            place = self.found.original((*path, index))
            self.one(section, name, place)
            if name in seen:
                message = f"{path_text(path)} names {shown(name)} twice"
                self.found.error("bad_value", place, message, "name it once")
            seen.add(name)

    def needed(self, value: object, path: Path, what: str) -> None:
        """Report a key that must be given and isn't."""
        if not value and not self.found.is_hurt(path):
            message = f"{path_text(path[:-1])} needs {what}"
            self.found.error("missing_key", path, message, f"add {path[-1]}: …")


def check(document: Document, names: Names, found: Findings) -> None:
    """Report every reference to what isn't there, every cycle, and everything that nobody owns."""
    projects = names["projects"] | frozenset(teams_without_projects(document))
    checker = _Checker({**names, "projects": projects}, found)
    checker.one("teams", document.defaults.team, ("defaults", "team"))
    _pools(document, checker)
    _nodes(document, checker)
    _teams(document, checker)
    _projects(document, checker)
    _queues(document, checker)
    _quotas(document, checker)
    _profiles(document, checker)


def _pools(document: Document, checker: _Checker) -> None:
    found, defaults = checker.found, document.defaults
    for name, pool in document.pools.items():
        path: Path = ("pools", name)
        checker.one("teams", pool.team, (*path, "team"))
        checker.one("projects", pool.project, (*path, "project"))
        parts = {
            "team": pool_team(document, name),
            "environment": pool.environment or defaults.environment,
            "owner": pool.owner or defaults.owner,
        }
        missing = [
            part
            for part, value in parts.items()
            if value is None and not found.is_broken((*path, part), ("defaults", part))
        ]
        if missing:
            lacks = " and no ".join(missing)
            hint = f"add {missing[0]} to the pool or to defaults"
            found.error("unowned_pool", path, f"pool {shown(name)} has no {lacks}", hint)
        project = document.projects.get(pool.project or "")
        if project and pool.team and pool.team != (other := project_team(document, project)):
            message = f"pool {shown(name)} is {pool.team}'s, but its project {pool.project} is {other}'s"
            found.warning("other_team", path, message, "make them agree")


def _nodes(document: Document, checker: _Checker) -> None:
    for name, node in document.nodes.items():
        checker.one("pools", node.pool, ("nodes", name, "pool"))
        checker.one("flavors", node.flavor, ("nodes", name, "flavor"))
        for pool in node.pools:
            checker.one("pools", pool, ("nodes", name, "pools", pool))


def _teams(document: Document, checker: _Checker) -> None:
    known: set[str] = set()
    in_rings = False
    for name, team in document.teams.items():
        checker.one("teams", team.parent, ("teams", name, "parent"))
        walked: dict[str, None] = {}
        above: str | None = name
        while above is not None and above in document.teams and above not in known and above not in walked:
            walked[above] = None
            above = document.teams[above].parent
        if above is not None and above in walked:
            in_rings = True
            path = list(walked)
            ring = [*path[path.index(above) :], above]
            shown_ring = ring if len(ring) < 10 else [*ring[:4], "…", *ring[-4:]]
            message = f"the teams {' > '.join(shown_ring)} are each other's parents"
            checker.found.error("cycle", ("teams", ring[0], "parent"), message, "take one parent away")
        known.update(walked)
    if not in_rings:
        _depth(document, checker)


def _depth(document: Document, checker: _Checker) -> None:
    """Each decision walks the tree of teams: a chain without end would hold everybody up."""
    for name, team in document.teams.items():
        levels, above = 1, team.parent
        while above is not None and above in document.teams and levels <= MOST_LEVELS:
            levels, above = levels + 1, document.teams[above].parent
        if levels > MOST_LEVELS:
            message = f"team {name} lies more than {MOST_LEVELS} levels deep"
            checker.found.error("too_deep", ("teams", name, "parent"), message, "put it nearer to the top")
            return


def _projects(document: Document, checker: _Checker) -> None:
    found = checker.found
    for name, project in document.projects.items():
        path: Path = ("projects", name)
        checker.one("teams", project.team, (*path, "team"))
        parts = {
            "team": project_team(document, project),
            "environment": project.environment or document.defaults.environment,
            "owner": project_owner(document, project),
        }
        for part, value in parts.items():
            if value is None and not found.is_broken((*path, part), ("defaults", part)):
                message = f"project {shown(name)} has no {part}"
                found.error("missing_key", (*path, part), message, f"add {part} to the project or to defaults")


def _queues(document: Document, checker: _Checker) -> None:
    for name, queue in document.queues.items():
        path: Path = ("queues", name)
        checker.needed(queue.kinds, (*path, "kinds"), "the kinds of work it takes")
        checker.needed(queue.pools, (*path, "pools"), "the pools it runs in")
        checker.each("pools", queue.pools, (*path, "pools"))
        checker.each("flavors", queue.flavors or (), (*path, "flavors"))


def _quotas(document: Document, checker: _Checker) -> None:
    found = checker.found
    first: dict[tuple[str | None, ...], str] = {}
    for index, row in enumerate(document.quotas):
        path = found.original(("quotas", index))
        checker.needed(row.pool, (*path, "pool"), "a pool")
        checker.needed(row.flavor, (*path, "flavor"), "a flavor")
        checker.one("pools", row.pool, (*path, "pool"))
        checker.one("flavors", row.flavor, (*path, "flavor"))
        checker.one("teams", row.team, (*path, "team"))
        checker.one("projects", row.project, (*path, "project"))
        checker.one("windows", row.window, (*path, "window"))
        if found.is_broken(*((*path, key) for key in ("team", "project", "pool", "flavor", "window"))):
            continue
        if (row.team is None) == (row.project is None):
            message = f"{path_text(path)} must be of a team or of a project"
            found.error("missing_key", path, message, "give either team: or project:")
            continue
        key = (row.team, row.project, row.pool, row.flavor, row.window)
        if key in first:
            who = row.team or row.project
            message = f"{who} has a second row for {row.pool}, {row.flavor}"
            if row.window:
                message += f" in window {row.window}"
            found.error("duplicate_row", path, message, f"the first is {first[key]}; keep one")
        first.setdefault(key, path_text(path))


def _profiles(document: Document, checker: _Checker) -> None:
    found = checker.found
    names: set[str] = set()
    for index, profile in enumerate(document.spawn_profiles):
        path = found.original(("spawn_profiles", index))
        checker.needed(profile.queue, (*path, "queue"), "a queue")
        checker.one("queues", profile.queue, (*path, "queue"))
        checker.one("flavors", profile.flavor, (*path, "flavor"))
        if profile.name in names:
            message = f"there are two spawn profiles {shown(profile.name)}"
            found.error("duplicate_name", (*path, "name"), message, "rename one")
        names.add(profile.name)
