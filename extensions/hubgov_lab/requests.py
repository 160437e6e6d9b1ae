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
    garbled: bool = False
    """Whether what it said last can't be read: that may have been that it begins to work."""

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
    _deaf: set[str] = field(default_factory=set)
    """Kernels of which it was said that they can't be listened to."""

    def attend(self) -> None:
        """Begin with kernels that are new, or whose channel was closed; let go of those that are gone."""
        there = set(self.manager.list_kernel_ids())
        for name in [name for name, stream in self._streams.items() if name not in there or stream.closed()]:
            self._streams.pop(name).close()
            self.found.pop(name, None)
            self.changed()
        for name in there - set(self._streams):
            self._begin(name)
        self._deaf &= there

    def heard(self, name: str) -> bool:
        """Whether it is known what the kernel works on: it is listened to, and what it says can be read."""
        stream, requests = self._streams.get(name), self.found.get(name)
        return stream is not None and not stream.closed() and requests is not None and not requests.garbled

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
        """Listen to it. One that can't be listened to keeps nobody from the others, and is tried again."""
        try:
            kernel = self.manager.get_kernel(name)
            reader = Session(config=kernel.session.config, key=kernel.session.key)
            stream = kernel.connect_iopub()
        except Exception as error:
            if name not in self._deaf:
                self.log.warning("hubgov: kernel %s can't be listened to", name, exc_info=error)
                self._deaf.add(name)
            return
        requests = self.found[name] = Requests()
        if getattr(kernel, "execution_state", "") == "busy":
            requests.open.add(_BEFORE)
        stream.on_recv(lambda parts: self._took(requests, reader, parts))
        self._streams[name] = stream
        self._deaf.discard(name)
        self.changed()

    def _took(self, requests: Requests, reader: Session, parts: list[Any]) -> None:
        was = (set(requests.open), requests.waits, requests.garbled)
        try:
            status = _status(reader, parts)
        except Exception:  # what a kernel sends is nobody's to trust
            self.log.debug("hubgov: a kernel's message can't be read", exc_info=True)
            requests.garbled = True
        else:
            if status is not None:
                requests.garbled = False
                requests.took(*status)
        if (requests.open, requests.waits, requests.garbled) != was:
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


def _status(reader: Session, parts: list[Any]) -> tuple[str, str, str] | None:
    """(state, kind of the request, its id) of a status message; None for any other."""
    _, rest = reader.feed_identities(parts)
    message: dict[str, Any] = reader.deserialize(rest)
    if message["header"].get("msg_type") != "status":
        return None
    parent = message.get("parent_header") or {}
    state = message["content"].get("execution_state", "")
    return str(state), str(parent.get("msg_type", "")), str(parent.get("msg_id", ""))


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
