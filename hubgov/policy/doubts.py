"""What is allowed in a policy but probably not meant."""

from __future__ import annotations

from collections import Counter

from hubgov.core.policy import Kind
from hubgov.wire import gpus

from .ownership import project_team, team_owner, teams_without_projects
from .problems import Findings
from .shapes import Document


def check(document: Document, found: Findings) -> None:
    """Report each doubt as a warning."""
    devices = declared(document)
    _guarantees(document, devices, found)
    _rows(document, devices, found)
    _queues(document, devices, found)
    _flavors(document, devices, found)
    for team in teams_without_projects(document):
        if team_owner(document, team) is None or document.defaults.environment is None:
            message = f"team {team} has no project, and without defaults none can be made for it"
            found.warning("no_project", ("teams", team), message, "add owner and environment to defaults")
    served = {project_team(document, project) for project in document.projects.values()}
    for name in document.teams:
        if name not in served and name in document.projects:
            message = f"team {name} has no project, and its name is another team's project"
            found.warning("no_project", ("teams", name), message, f"declare a project of team {name}")


def declared(document: Document) -> Counter[tuple[str, str | None]]:
    """How many devices each (pool, flavor) has; the flavor is None where only the card will tell."""
    count: Counter[tuple[str, str | None]] = Counter()
    for node in document.nodes.values():
        if node.pool is not None and node.devices:
            count[node.pool, node.flavor] += node.devices * node.count
        for pool, devices in node.pools.items():
            if devices:
                count[pool, node.flavor] += len(devices)
    return count


def _guarantees(document: Document, devices: Counter[tuple[str, str | None]], found: Findings) -> None:
    base: Counter[tuple[str, str]] = Counter()
    own: dict[tuple[str | None, ...], int] = {}
    last: dict[tuple[str, str], int] = {}
    for index, row in enumerate(document.quotas):
        if row.pool is not None and row.flavor is not None and row.window is None:
            base[row.pool, row.flavor] += row.guaranteed
            own[row.team, row.project, row.pool, row.flavor] = row.guaranteed
            if row.guaranteed:
                last[row.pool, row.flavor] = index
    windowed: Counter[tuple[str, str, str | None]] = Counter({(*key, None): value for key, value in base.items()})
    for row in document.quotas:
        if row.pool is not None and row.flavor is not None and row.window is not None:
            key = (row.pool, row.flavor, row.window)
            usual = own.get((row.team, row.project, row.pool, row.flavor), 0)
            windowed[key] += row.guaranteed - usual if row.gives("guaranteed") else 0
    for (pool, flavor, window), extra in sorted(windowed.items(), key=str):
        promised = extra + (base[pool, flavor] if window is not None else 0)
        have = (devices[pool, flavor] + devices[pool, None]) * 1000
        if promised <= have or (window is not None and base[pool, flavor] >= promised):
            continue
        index = last.get((pool, flavor), 0)
        if window is not None:
            index = next(
                place
                for place, row in enumerate(document.quotas)
                if (row.pool, row.flavor, row.window) == (pool, flavor, window)
            )
        when = f" in window {window}" if window is not None else ""
        message = f"{gpus(promised)} GPUs are guaranteed on {pool}, {flavor}{when}, {gpus(have)} are declared"
        found.warning("over_guaranteed", ("quotas", index, "guaranteed"), message, "not all can be kept")


def _rows(document: Document, devices: Counter[tuple[str, str | None]], found: Findings) -> None:
    base = {(row.team, row.project, row.pool, row.flavor) for row in document.quotas if row.window is None}
    for index, row in enumerate(document.quotas):
        who = row.team or row.project
        if row.window is not None and (row.team, row.project, row.pool, row.flavor) not in base:
            message = f"the quota of {who} on {row.pool}, {row.flavor} has no row outside {row.window}"
            hint = "outside it nothing is guaranteed and all may be borrowed"
            found.warning("no_base_row", ("quotas", index), message, hint)
        pool = row.pool or ""
        if not devices[pool, row.flavor] and not devices[pool, None]:
            message = f"pool {pool} has no device of flavor {row.flavor}"
            found.warning("flavor_not_in_pool", ("quotas", index, "flavor"), message, "check the nodes")


def _queues(document: Document, devices: Counter[tuple[str, str | None]], found: Findings) -> None:
    filled = {pool for (pool, _), count in devices.items() if count}
    for name, queue in document.queues.items():
        if not filled & set(queue.pools) and set(queue.kinds) != {Kind.DATA}:
            message = f"no pool of queue {name} has a device"
            found.warning("no_devices", ("queues", name, "pools"), message, "work for GPUs would wait for ever")


def _flavors(document: Document, devices: Counter[tuple[str, str | None]], found: Findings) -> None:
    used = {flavor for (_, flavor), count in devices.items() if count}
    open_ended = None in used or any(node.match and not node.flavor for node in document.nodes.values())
    kinds: dict[tuple[str, str, int], str] = {}
    for name, flavor in document.flavors.items():
        if name not in used and not open_ended and not flavor.retired:
            found.warning("unused_flavor", ("flavors", name), f"no node has cards of flavor {name}")
        kind = (flavor.vendor, flavor.model, flavor.memory)
        if kind in kinds:
            message = f"flavor {name} is the same card as {kinds[kind]}: a card found joins only one"
            found.warning("same_flavor", ("flavors", name), message, "keep one")
        kinds.setdefault(kind, name)
