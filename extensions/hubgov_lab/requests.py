"""Which code requests each kernel works on: the set of them, from what the kernel itself publishes.

The server keeps one state for a kernel, which a request to a subshell, to the debugger or to a widget turns to idle
while the cell still runs. Here each request is known by its own id: it begins with its `busy` and ends with its
own `idle`, and what isn't a request to run code neither begins nor ends anything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from jupyter_server.utils import ensure_async

_RUNS_CODE = "execute_request"
_RESTARTED = ("starting", "restarting")
_BEFORE = "before"
"""Stands for what a kernel was busy with when it was first looked at."""


@dataclass(slots=True)
class Requests:
    """The code requests of one kernel that aren't answered yet, and those that wait for input."""

    open: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    ended_at: float | None = None
    """When the last one ended, on the steady clock."""

    @property
    def waits(self) -> bool:
        """Whether all it does is wait for somebody's input."""
        return bool(self.open) and self.open <= self.waiting

    def took(self, state: str, kind: str, request: str) -> None:
        """A status message: `state` of the kernel for a request of that kind."""
        if state in _RESTARTED:
            self.died()
        elif kind == _RUNS_CODE and state == "busy":
            self.open.add(request)
        elif kind == _RUNS_CODE and state == "idle":
            self._end({request, _BEFORE})

    def asks(self, request: str) -> None:
        """The request waits for input from now on."""
        self.waiting.add(request)

    def answered(self) -> None:
        """Somebody has given the input that was waited for."""
        self.waiting.clear()

    def died(self) -> None:
        """Its kernel is gone: what it worked on is over."""
        self._end(set(self.open))

    def _end(self, requests: set[str]) -> None:
        if self.open & requests:
            self.ended_at = time.monotonic()
        self.open -= requests
        self.waiting &= self.open


@dataclass(slots=True, kw_only=True)
class KernelWatch:
    """Listens to the kernels of one manager. `changed` is called whenever one begins or ends to work."""

    manager: Any
    changed: Callable[[], None]
    log: logging.Logger
    found: dict[str, Requests] = field(default_factory=dict)
    _streams: dict[str, Any] = field(default_factory=dict)

    def attend(self) -> None:
        """Begin with kernels that are new, let go of those that are gone."""
        there = set(self.manager.list_kernel_ids())
        for name in there - set(self._streams):
            self._begin(name)
        for name in set(self._streams) - there:
            self._streams.pop(name).close()
            self.found.pop(name, None)
            self.changed()

    async def bury(self) -> None:
        """A kernel whose process is gone works on nothing, though it never said so."""
        for name, requests in list(self.found.items()):
            if not requests.open or name not in self.manager:
                continue
            if not await ensure_async(self.manager.get_kernel(name).is_alive()):
                requests.died()
                self.changed()

    def close(self) -> None:
        """Let go of all."""
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()

    def _begin(self, name: str) -> None:
        kernel = self.manager.get_kernel(name)
        try:
            stream = kernel.connect_iopub()
        except (OSError, RuntimeError) as error:
            self.log.debug("hubgov: kernel %s can't be listened to yet: %s", name, error)
            return
        requests = self.found[name] = Requests()
        if getattr(kernel, "execution_state", "") == "busy":
            requests.open.add(_BEFORE)
        reader = Session(config=kernel.session.config, key=kernel.session.key)
        stream.on_recv(lambda parts: self._heard(requests, reader, parts))
        self._streams[name] = stream
        self.changed()

    def _heard(self, requests: Requests, reader: Session, parts: list[Any]) -> None:
        message = _message(reader, parts)
        if message is None or message["header"].get("msg_type") != "status":
            return
        parent = message.get("parent_header") or {}
        was = (set(requests.open), requests.waits)
        state = str(message["content"].get("execution_state", ""))
        requests.took(state, str(parent.get("msg_type", "")), str(parent.get("msg_id", "")))
        if (requests.open, requests.waits) != was:
            self.changed()

    def asks_for_input(self, kernel: str, request: str) -> None:
        """A kernel's request waits for input."""
        if (requests := self.found.get(kernel)) is not None:
            requests.asks(request)
            self.changed()

    def answered(self, kernel: str) -> None:
        """Input was sent to a kernel."""
        if (requests := self.found.get(kernel)) is not None and requests.waiting:
            requests.answered()
            self.changed()


def _message(reader: Session, parts: list[Any]) -> dict[str, Any] | None:
    """The message; None for what is none. What a kernel sends is nobody's to trust."""
    try:
        _, rest = reader.feed_identities(parts)
        found: dict[str, Any] = reader.deserialize(rest)
    except (ValueError, TypeError, KeyError, IndexError):
        return None
    return found


def listening(base: type[Any], watch: KernelWatch) -> type[Any]:
    """The server's class of connections between browsers and kernels, which also notes who waits for input: that is
    told to the browser alone. Another kind of connection stays as it is."""
    if not issubclass(base, ZMQChannelsWebsocketConnection):
        return base

    reader = Session()

    class Listening(base):  # type: ignore[misc]
        def handle_outgoing_message(self, stream: Any, outgoing_msg: list[Any]) -> None:
            if getattr(stream, "channel", None) == "stdin":
                request = _asks_for_input(reader, outgoing_msg)
                if request is not None:
                    watch.asks_for_input(self.kernel_id, request)
            super().handle_outgoing_message(stream, outgoing_msg)

        def handle_incoming_message(self, incoming_msg: Any) -> None:
            requests = watch.found.get(self.kernel_id)
            if requests is not None and requests.waiting and _is_input(incoming_msg):
                watch.answered(self.kernel_id)
            super().handle_incoming_message(incoming_msg)

    return Listening


def _asks_for_input(reader: Session, parts: list[Any]) -> str | None:
    """The id of the request that waits for input. Only read: the connection itself checks who signed it."""
    try:
        _, rest = reader.feed_identities(parts)
        header, parent = (reader.unpack(part) for part in rest[1:3])
    except (ValueError, TypeError, IndexError):
        return None
    if not isinstance(header, dict) or header.get("msg_type") != "input_request" or not isinstance(parent, dict):
        return None
    return str(parent.get("msg_id", ""))


def _is_input(message: Any) -> bool:
    """Whether it is an answer to a kernel that waits for input, in either of the protocols of the websocket."""
    return b"input_reply" in message if isinstance(message, bytes) else "input_reply" in message
