"""The stream of what changes: to whom what is told, how much is kept, when it ends."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from builders import START, a_policy
from service.answers import refused
from service_under_test import PREFIX, ServiceUnderTest
from tornado import web
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from waiting import until

from hubgov.control.actor import ADMIN, Actor
from hubgov.core.model import Change, QueueHold
from hubgov.core.state import State
from hubgov.errors import TooMany
from hubgov.service.feed import MOST_STREAMS, MOST_WAITING, RESET, Event, Feed
from hubgov.service.handlers.events import Events

Told = tuple[str, dict[str, Any]]


@contextmanager
def stream(service: ServiceUnderTest, who: str) -> Iterator[Iterator[Told]]:
    """The events of an open stream, comments left out."""
    url = f"http://127.0.0.1:{service.port}{PREFIX}api/v1/events"
    with (
        httpx.Client(timeout=30, trust_env=False) as client,
        client.stream("GET", url, headers={"Authorization": f"token {who}-token"}) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        yield _events(answer.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[Told]:
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def test_each_is_told_what_he_may_see(service: ServiceUnderTest) -> None:
    with stream(service, "amy") as of_amy, stream(service, "bo") as of_bo, stream(service, "admin") as of_all:
        assert next(of_amy) == next(of_bo) == next(of_all) == ("reset", {})
        mine = service.ask("amy").json()["id"]
        kind, data = next(of_amy)
        assert (kind, data["id"]) == ("workload", mine)
        assert data["version"] >= 1
        assert set(data) == {"id", "version"}, "names and versions, never contents"
        his = service.ask("bo").json()["id"]
        assert next(of_bo)[1]["id"] == his, "of amy's work he was told nothing"
        assert {next(of_all)[1]["id"], next(of_all)[1]["id"]} == {mine, his}
        held = service.call("admin", "POST", "/queues/experiment/hold", {"reason": "repair"})
        assert held.status_code == 200
        assert ("queue", {"name": "experiment", "held": True}) in (next(of_bo) for _ in count())
        service.call("admin", "POST", "/queues/experiment/release", {})
        for workload in (mine, his):
            service.call("admin", "DELETE", f"/workloads/{workload}", {"now": True, "reason": "tidying up"})


def test_a_reader_that_left_makes_room_and_one_too_many_is_told(service: ServiceUnderTest) -> None:
    with ExitStack() as open_:
        readers = [open_.enter_context(stream(service, "ava")) for _ in range(MOST_STREAMS)]
        assert {next(reader)[0] for reader in readers} == {"reset"}
        error = refused(service.call("ava", "GET", "/events"), 429, "too_many_streams")
        assert error["details"] == {"open": MOST_STREAMS, "most": MOST_STREAMS, "retry_after_seconds": 5}
        with stream(service, "bo") as other:
            assert next(other) == ("reset", {}), "each has his own share"

    def again() -> bool:
        url = f"http://127.0.0.1:{service.port}{PREFIX}api/v1/events"
        with httpx.stream("GET", url, headers={"Authorization": "token ava-token"}, trust_env=False) as answer:
            return answer.status_code == 200

    until(again, 10, "the streams that were closed to be free again")


def test_nobody_without_a_sign_in_is_told_anything(service: ServiceUnderTest) -> None:
    refused(service.http.get(f"{PREFIX}api/v1/events"), 401, "unauthorized")


# --- what is kept ---------------------------------------------------------------------------------------


def _held(queue: str) -> Change:
    hold = QueueHold(queue=queue, held=True, closed=False, by="admin", reason="", at=START)
    return Change(event="queue_held", before=None, after=hold, actor="admin")


@pytest.fixture
def feed() -> Feed:
    return Feed(State(a_policy().build()))


def test_a_record_that_changed_often_is_told_once(feed: Feed) -> None:
    async def story() -> None:
        with feed.subscribed(Actor(name="amy")) as reader:
            assert await reader.next(5) == [RESET]
            for _ in range(50):
                feed.publish([_held("train"), _held("online")])
            names = [event.data["name"] for event in await reader.next(5)]
            assert names == ["train", "online"]
            assert await reader.next(0.01) == []

    asyncio.run(story())


def test_a_reader_that_takes_nothing_is_told_to_look_anew(feed: Feed) -> None:
    async def story() -> None:
        with feed.subscribed(Actor(name="amy")) as reader:
            await reader.next(5)
            feed.publish([_held(f"q{i}") for i in range(MOST_WAITING + 1)])
            assert await reader.next(5) == [RESET]
            feed.publish([_held("train")])
            assert await reader.next(5) == [Event("queue", {"name": "train", "held": True})]

    asyncio.run(story())


class Impatient(Events):
    """The handler for one reader who is known; it waits half a second for him instead of half a minute."""

    slow_seconds = 0.5

    def initialize(self, feed: Feed) -> None:
        self._feed = feed

    @property
    def services(self) -> Any:
        return SimpleNamespace(feed=self._feed)

    async def prepare(self) -> None:
        self.actor = Actor(name="amy")

    def set_default_headers(self) -> None:
        """As tornado has them."""

    def log_exception(self, *error: Any) -> None:
        raise AssertionError(error)


@pytest.mark.parametrize("takes", [False, True])
def test_a_reader_that_takes_nothing_is_let_go_with_its_connection(feed: Feed, takes: bool) -> None:
    """The kernel's buffers are small, so that they are soon full; a reader that takes what comes stays."""

    async def story() -> None:
        [listener] = bind_sockets(0, "127.0.0.1")
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        server = HTTPServer(web.Application([("/events", Impatient, {"feed": feed})]))
        server.add_socket(listener)
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(listener.getsockname())
            client.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
            client.setblocking(False)
            loop = asyncio.get_running_loop()

            async def drained() -> bytes:
                """All that comes until the connection ends."""
                found = bytearray()
                while piece := await loop.sock_recv(client, 1 << 20):
                    found += piece
                return bytes(found)

            reading = asyncio.create_task(drained()) if takes else None
            began, seen = time.monotonic(), False
            while not (seen and not feed.open_streams) and time.monotonic() < began + (2 if takes else 20):
                feed.publish([_held(f"{'q' * 2000}{i}") for i in range(50)])
                await asyncio.sleep(0.02)
                seen = seen or feed.open_streams == 1
            assert seen
            assert feed.open_streams == (1 if takes else 0)
            if reading is not None:
                assert not reading.done()
                reading.cancel()
            else:
                rest = await asyncio.wait_for(drained(), 5)
                assert b"event: reset" in rest
                assert not rest.endswith(b"0\r\n\r\n"), "cut off, not ended well"
        server.stop()
        await server.close_all_connections()

    asyncio.run(story())


def test_the_share_is_of_a_principal_whatever_its_token(feed: Feed) -> None:
    async def story() -> None:
        readers = [feed.subscribed(Actor(name="amy", scopes=frozenset({ADMIN}))) for _ in range(MOST_STREAMS)]
        for reader in readers:
            reader.__enter__()
        with pytest.raises(TooMany), feed.subscribed(Actor(name="amy", from_server=True)):
            pass
        readers.pop().__exit__(None, None, None)
        with feed.subscribed(Actor(name="amy")) as again:
            assert await again.next(5) == [RESET]

    asyncio.run(story())
