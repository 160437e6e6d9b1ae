"""A stream of what changed (server-sent events)."""

from __future__ import annotations

import asyncio
import json
import time

from tornado.http1connection import HTTP1Connection
from tornado.iostream import StreamClosedError

from hubgov.service.base import Base
from hubgov.service.feed import Event, Subscription

HEARTBEAT_SECONDS = 15.0
STREAM_SECONDS = 300.0
"""A stream ends after that; the browser opens the next by itself, and signs in anew."""


class Events(Base):
    slow_seconds = 30.0
    """A reader that takes nothing for so long is let go."""
    _subscription: Subscription | None = None

    async def get(self) -> None:
        """Names and versions of what changed, of what the caller may see, as it happens. `reset` comes first, and
        whenever more changed than is kept: look at everything anew. Comments keep the connection alive."""
        with self.services.feed.subscribed(self.actor) as subscription:
            self._subscription = subscription
            self.set_header("Content-Type", "text/event-stream; charset=utf-8")
            self.set_header("X-Accel-Buffering", "no")
            self.write("retry: 3000\n\n")
            until = time.monotonic() + STREAM_SECONDS
            while not subscription.closed and time.monotonic() < until:
                events = await subscription.next(HEARTBEAT_SECONDS)
                self.write("".join(map(_line, events)) or ": nothing new\n\n")
                try:
                    await asyncio.wait_for(self.flush(), self.slow_seconds)
                except StreamClosedError:
                    return
                except TimeoutError:
                    self._let_go()
                    return

    def _let_go(self) -> None:
        """The connection ends with the reader's share: what it didn't take would else be kept for as long as it
        holds the socket open."""
        connection = self.request.connection
        assert isinstance(connection, HTTP1Connection)
        connection.stream.close()

    def on_connection_close(self) -> None:
        """The reader left."""
        if self._subscription is not None:
            self._subscription.close()


def _line(event: Event) -> str:
    return f"event: {event.kind}\ndata: {json.dumps(event.data)}\n\n"
