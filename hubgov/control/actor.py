"""Who asks, and what that allows (semantics §13). Made by the service from the hub's word, never from a body."""

from __future__ import annotations

from dataclasses import dataclass

from hubgov.core.model import Workload
from hubgov.core.policy import Policy
from hubgov.errors import NotAllowed, NotFound

ADMIN = "custom:hubgov:admin"
APPROVE = "custom:hubgov:approve"
SPAWN = "custom:hubgov:spawn"
METRICS = "custom:hubgov:metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A principal of the hub. `from_server`: its token belongs to a notebook server, which any kernel there
    can read; such a token acts for its owner's own work and never with authority."""

    name: str
    kind: str = "user"
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    from_server: bool = False

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
        return self.approver and team in policy.teams and self.name in policy.leads_of(team)

    def teams(self, policy: Policy) -> tuple[str, ...]:
        """The teams whose work it sees by name: its own, and those it leads."""
        return policy.teams_of(self.name, self.groups)


def may_see(actor: Actor, policy: Policy, workload: Workload) -> bool:
    """Owners see theirs, team-mates each other's by name, leads and admins what they answer for."""
    if actor.admin or actor.spawner or workload.owner == actor.name:
        return True
    return workload.team in actor.teams(policy) or actor.leads(policy, workload.team)


def may_change(actor: Actor, policy: Policy, workload: Workload) -> bool:
    """Whether it may cancel, extend or otherwise steer this workload."""
    return workload.owner == actor.name or actor.admin or actor.leads(policy, workload.team)


def check_seen(actor: Actor, policy: Policy, workload: Workload) -> None:
    """NotFound for what the actor may not see: that it exists is none of his business either."""
    if not may_see(actor, policy, workload):
        raise NotFound(f"no workload {workload.id}", hint="hubgov list")


def check_change(actor: Actor, policy: Policy, workload: Workload) -> None:
    """NotFound for what may not be seen, NotAllowed for what may be seen but not steered."""
    check_seen(actor, policy, workload)
    if not may_change(actor, policy, workload):
        raise NotAllowed(f"{workload.id} belongs to {workload.owner}", hint="ask its owner or a lead of its team")


def check_admin(actor: Actor) -> None:
    """NotAllowed unless the token carries the admin scope and is not a server's."""
    if not actor.admin:
        raise NotAllowed("this needs the scope custom:hubgov:admin", hint="sign in as an admin of hubgov")
