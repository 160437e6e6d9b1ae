"""What changed, told to whoever watches: names and versions, never contents, as far as the reader may see them.

A reader that is slow loses nothing and holds nothing up: what waits for him is kept once for each record, and
when even that is too much he is told to look at everything anew.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hubgov.control.actor import Actor, may_see
from hubgov.core.devices import SeenNode
from hubgov.core.model import Change, ExtensionRequest, PolicyText, QueueHold, Workload
from hubgov.core.state import State
from hubgov.errors import TooMany

MOST_STREAMS = 8
"""Open streams of one principal: tabs of the panel, `--watch`."""
MOST_WAITING = 1000
GATHER_SECONDS = 0.2
"""How long a reader's next batch gathers: a burst of commits is told once."""


@dataclass(frozen=True, slots=True)
class Event:
    """One record that changed: `kind` is workload, extension, queue, node, policy, or `reset` for everything."""

    kind: str
    data: Mapping[str, Any]


RESET = Event("reset", {})
"""Look at everything anew: at the beginning, and when more changed than is kept."""


@dataclass(slots=True)
class Subscription:
    """What one reader has not been told yet: the last event of each record."""

    actor: Actor
    _waiting: dict[tuple[str, str], Event] = field(default_factory=dict)
    _something: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    def put(self, key: tuple[str, str], event: Event) -> None:
        """Keep it for the reader, in place of an older one of the same record."""
        if len(self._waiting) >= MOST_WAITING and key not in self._waiting:
            self._waiting.clear()
            key, event = ("reset", ""), RESET
        if ("reset", "") not in self._waiting or key[0] == "reset":
            self._waiting[key] = event
        self._something.set()

    def close(self) -> None:
        """Nobody reads any more."""
        self.closed = True
        self._something.set()

    async def next(self, seconds: float) -> list[Event]:
        """What happened, the older first; empty when the time is over or the reader left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._something.wait()
                await asyncio.sleep(GATHER_SECONDS)
        self._something.clear()
        found = list(self._waiting.values())
        self._waiting.clear()
        return found


class Feed:
    """Hands the changes of every commit on to those who may see them."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._subscriptions: list[Subscription] = []

    @property
    def open_streams(self) -> int:
        """How many readers there are now."""
        return len(self._subscriptions)

    @contextlib.contextmanager
    def subscribed(self, actor: Actor) -> Iterator[Subscription]:
        """A subscription, which begins with a reset; TooMany when this principal has its share open already."""
        mine = sum(1 for s in self._subscriptions if s.actor.principal == actor.principal)
        if mine >= MOST_STREAMS:
            raise TooMany(
                f"{mine} streams are open",
                code="too_many_streams",
                hint="close some of them",
                details={"open": mine, "most": MOST_STREAMS, "retry_after_seconds": 5},
            )
        subscription = Subscription(actor)
        subscription.put(("reset", ""), RESET)
        self._subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.remove(subscription)

    def publish(self, changes: Sequence[Change]) -> None:
        """Called after each commit."""
        if not self._subscriptions:
            return
        for change in changes:
            told = _told(self._state, change)
            if told is None:
                continue
            event, workload = told
            key = (event.kind, str(event.data.get("id", event.data.get("name", ""))))
            for subscription in self._subscriptions:
                if workload is None or may_see(subscription.actor, self._state.policy, workload):
                    subscription.put(key, event)


def _told(state: State, change: Change) -> tuple[Event, Workload | None] | None:
    """(what is told of a change, the work it is about if any); None for what no reader follows.

    Every move of an allocation is a new version of its workload.
    """
    match change.after or change.before:
        case Workload() as workload:
            return Event("workload", {"id": workload.id, "version": workload.version}), workload
        case ExtensionRequest() as request:
            asked_for = state.workloads.get(request.workload)
            data = {"id": request.id, "workload": request.workload, "state": request.state.value}
            return (Event("extension", data), asked_for) if asked_for is not None else None
        case QueueHold() as hold:
            return Event("queue", {"name": hold.queue, "held": hold.held}), None
        case SeenNode() as node:
            return Event("node", {"name": node.name}), None
        case PolicyText() as text:
            return Event("policy", {"version": text.version}), None
        case _:
            return None
