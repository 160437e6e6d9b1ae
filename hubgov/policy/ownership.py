"""To whom pools and projects belong once `defaults` and what a team says are taken into account."""

from __future__ import annotations

from .shapes import Document, ProjectShape


def project_team(document: Document, project: ProjectShape) -> str | None:
    """The team that a project belongs to."""
    return project.team or document.defaults.team


def project_owner(document: Document, project: ProjectShape) -> str | None:
    """Who answers for a project: its owner, else the first lead of its team, else the default owner."""
    return project.owner or team_owner(document, project_team(document, project))


def team_owner(document: Document, team: str | None) -> str | None:
    """Who answers for what a team has when nothing says it: its first lead, else the default owner."""
    shape = document.teams.get(team or "")
    return shape.leads[0] if shape and shape.leads else document.defaults.owner


def pool_team(document: Document, pool: str) -> str | None:
    """The team of a pool: its own word, else its project's team, else the default."""
    shape = document.pools[pool]
    if shape.team:
        return shape.team
    project = document.projects.get(shape.project or "")
    if project is not None:
        return project_team(document, project)
    # A team's own project bears its name.
    return shape.project if shape.project in document.teams else document.defaults.team


def teams_without_projects(document: Document) -> tuple[str, ...]:
    """The teams that have a project of their own name made for them, in the file's order.

    Every team has one that declares none, unless that name is another team's project already.
    """
    served = {project_team(document, project) for project in document.projects.values()}
    return tuple(name for name in document.teams if name not in served and name not in document.projects)
