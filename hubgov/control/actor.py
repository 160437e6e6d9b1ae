"""Who asks, and what that allows (semantics §13). Made by the service from the hub's word, never from a body."""

from __future__ import annotations

from dataclasses import dataclass

from hubgov.clock import Instant
from hubgov.core.model import Workload
from hubgov.core.policy import Policy
from hubgov.errors import NotAllowed, NotFound

ADMIN = "custom:hubgov:admin"
APPROVE = "custom:hubgov:approve"
SPAWN = "custom:hubgov:spawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A principal of the hub. `from_server`: its token belongs to a notebook server, which any kernel there
    can read; such a token acts for its owner's own work and never with authority."""

    name: str
    kind: str = "user"
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    from_server: bool = False
    since: Instant = Instant(0)
    """Since when this user has had the name: what is older was a deleted user's."""
    server: str = ""
    """Of a notebook server's own token: which one, `owner/name`."""

    @property
    def principal(self) -> str:
        """Its name among all principals: a service called like a user is somebody else."""
        return self.name if self.kind == "user" else f"{self.kind}:{self.name}"

    def owns(self, workload: Workload) -> bool:
        """Whether the workload is this user's own."""
        return self.is_user(workload.owner) and workload.submitted_at >= self.since

    def is_user(self, name: str) -> bool:
        """Whether it is the user of that name, and no service called so."""
        return self.kind == "user" and self.name == name

    @property
    def admin(self) -> bool:
        return ADMIN in self.scopes and not self.from_server

    @property
    def approver(self) -> bool:
        return (APPROVE in self.scopes or ADMIN in self.scopes) and not self.from_server

    @property
    def spawner(self) -> bool:
        return SPAWN in self.scopes and self.kind == "service"

    def leads(self, policy: Policy, team: str) -> bool:
        """Whether it has a lead's rights over a team: the policy's word and the token's scope, both."""
        return self.approver and team in policy.teams and self.principal in policy.leads_of(team)

    def teams(self, policy: Policy) -> tuple[str, ...]:
        """The teams whose work it sees by name: its own, and those it leads."""
        return policy.teams_of(self.principal, self.groups)


def may_see(actor: Actor, policy: Policy, workload: Workload) -> bool:
    """Owners see theirs, team-mates each other's by name, leads and admins what they answer for."""
    if actor.admin or actor.spawner or actor.owns(workload):
        return True
    return workload.team in actor.teams(policy) or actor.leads(policy, workload.team)


def may_change(actor: Actor, policy: Policy, workload: Workload) -> bool:
    """Whether it may cancel, extend or otherwise steer this workload."""
    return actor.owns(workload) or actor.admin or actor.leads(policy, workload.team)


def may_read(actor: Actor, policy: Policy, workload: Workload) -> bool:
    """Whether it may read what is inside: documents, kernels, labels, notes, the journal. Who may steer may, and
    the spawner, which shows it to the owner; a team-mate sees that the work is there, and no more."""
    return actor.spawner or may_change(actor, policy, workload)


def check_seen(actor: Actor, policy: Policy, workload: Workload) -> None:
    """NotFound for what the actor may not see: that it exists is none of his business either."""
    if not may_see(actor, policy, workload):
        raise NotFound(f"no workload {workload.id}", hint="hubgov list")


def check_change(actor: Actor, policy: Policy, workload: Workload) -> None:
    """NotFound for what may not be seen, NotAllowed for what may be seen but not steered."""
    check_seen(actor, policy, workload)
    if not may_change(actor, policy, workload):
        raise _belongs(workload)


def check_own(actor: Actor, policy: Policy, workload: Workload) -> None:
    """As `check_read`, of what is the owner's alone: what his work writes. Admins may too; leads may not."""
    check_seen(actor, policy, workload)
    if not (actor.owns(workload) or actor.admin):
        raise NotAllowed(f"{workload.id} belongs to {workload.owner}", hint="ask its owner")


def check_read(actor: Actor, policy: Policy, workload: Workload) -> None:
    """NotFound for what may not be seen, NotAllowed for what may be seen and not read."""
    check_seen(actor, policy, workload)
    if not may_read(actor, policy, workload):
        raise _belongs(workload)


def _belongs(workload: Workload) -> NotAllowed:
    return NotAllowed(f"{workload.id} belongs to {workload.owner}", hint="ask its owner or a lead of its team")


def approvers(
    policy: Policy, workload: Workload, requested_by: str, delayed: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Who may agree to more time than the queue gives by itself, by name; nobody agrees to his own request.

    `delayed`: the teams that would wait longer; then it is for who leads all of them, or an admin.
    """
    if delayed:
        of_all = frozenset.intersection(*(policy.leads_of(team) for team in delayed | {workload.team}))
        named = [*sorted(of_all), "admin"]
    else:
        rule = policy.queues[workload.queue].extension
        named = []
        for approver in rule.approvers if rule is not None else ():
            named.extend(sorted(policy.leads_of(workload.team)) if approver == "team-lead" else (approver,))
    return tuple(dict.fromkeys(name for name in named if name != requested_by))


def check_admin(actor: Actor) -> None:
    """NotAllowed unless the token carries the admin scope and is not a server's."""
    if not actor.admin:
        raise NotAllowed("this needs the scope custom:hubgov:admin", hint="sign in as an admin of hubgov")
