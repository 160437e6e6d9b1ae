"""The nodes: what is on each, and what draining it would mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubgov.clock import to_rfc3339
from hubgov.core.devices import Health, Node
from hubgov.core.release import free_by
from hubgov.core.state import nodes_of
from hubgov.service.documents import Desk


@dataclass(frozen=True, slots=True, kw_only=True)
class OnNode:
    """A session there, for who may see it by name."""

    workload: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node. `free_at`: when everything on it is over at the latest, if nobody extends; `endless` of its sessions
    have no end."""

    name: str
    pools: tuple[str, ...]
    devices: int
    healthy: int
    in_use: int
    simulated: bool
    drained: bool
    accepts: bool
    known: bool
    """Whether a probe has seen it: only then it can be drained."""
    sessions: int
    named: Sequence[OnNode]
    free_at: str | None
    endless: int


def node_rows(desk: Desk) -> list[NodeRow]:
    """Every node by name."""
    return [_row(desk, node) for node in sorted(desk.state.nodes.values(), key=lambda n: n.name)]


def _row(desk: Desk, node: Node) -> NodeRow:
    state = desk.state
    here = [a for a in state.allocations.values() if node.name in nodes_of(a)]
    ends = [free_by(state, a) for a in here]
    known = [end for end in ends if end is not None]
    workloads = [state.workload_of(a) for a in sorted(here, key=lambda a: a.id)]
    seen = state.seen.get(node.name)
    return NodeRow(
        name=node.name,
        pools=node.pools,
        devices=len(node.devices),
        healthy=sum(1 for d in node.devices if d.health is Health.OK),
        in_use=sum(1 for d in node.devices if state.on_device.get(d.key)),
        simulated=any(d.simulated for d in node.devices),
        drained=seen.drained if seen is not None else False,
        accepts=node.accepts,
        known=seen is not None,
        sessions=len(here),
        named=[OnNode(workload=w.id, owner=w.owner) for w in workloads if desk.reader.sees(w.owner, w.team)],
        free_at=to_rfc3339(max(known)) if known else None,
        endless=len(ends) - len(known),
    )
