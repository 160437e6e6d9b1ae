"""A stand-in for the hub's REST API: who a token belongs to, and starts and stops on record.

The real hub is in the journeys; here it is the service that is under test, and what it asks of a hub.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

USERS: dict[str, dict[str, Any]] = {
    "amy-token": {"name": "amy", "groups": ["vision"]},
    "ava-token": {"name": "ava", "groups": ["vision"]},
    "bo-token": {"name": "bo", "groups": ["nlp"]},
    "lena-token": {"name": "lena", "groups": [], "extra": ["custom:hubgov:approve"]},
    "vera-token": {"name": "vera", "groups": [], "extra": ["custom:hubgov:approve"]},
    "nora-token": {"name": "nora", "groups": [], "extra": ["custom:hubgov:approve"]},
    "admin-token": {
        "name": "admin",
        "groups": [],
        "extra": ["custom:hubgov:admin", "custom:hubgov:approve"],
    },
    # A site that wrongly puts authority into server tokens: they must have none all the same.
    "admin-server-token": {
        "name": "admin",
        "groups": [],
        "extra": ["custom:hubgov:admin", "access:servers!server=admin/", "custom:hubgov:approve"],
    },
    "amy-server-token": {"name": "amy", "groups": ["vision"], "extra": ["access:servers!server=amy/"]},
    "spawner-token": {"name": "hubgov-spawner", "kind": "service", "extra": ["custom:hubgov:spawn"]},
    # What a browser gets by OAuth: it belongs to a session.
    "amy-session-token": {"name": "amy", "groups": ["vision"], "session_id": "s1"},
    "lena-session-token": {
        "name": "lena",
        "groups": [],
        "session_id": "s2",
        "extra": ["custom:hubgov:approve"],
    },
    "admin-session-token": {
        "name": "admin",
        "groups": [],
        "session_id": "s3",
        "extra": ["custom:hubgov:admin", "custom:hubgov:approve"],
    },
    "metrics-token": {"name": "prometheus", "kind": "service", "extra": ["custom:hubgov:metrics"]},
    "outsider-token": {"name": "outsider", "groups": [], "outside": True},
    "stranger-token": {"name": "stranger", "groups": []},
}


class StandInHub:
    """Answers on a loopback port; `starts` and `stops` are what it was asked, `servers` what it says exists."""

    def __init__(self) -> None:
        self.starts: list[str] = []
        self.stops: list[str] = []
        self.servers: dict[str, dict[str, Any]] = {}
        self.signs_in = "amy"
        """Who comes out of the sign-in."""
        self.down = False
        self.quarters: Callable[[str], tuple[int, Any]] = lambda name: (501, {"message": "no homes here"})
        """What it says of where a user's jobs live."""
        self.on_stop: Callable[[str], None] = lambda path: None
        """Told of every stop: what the real hub would do to the server's process."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

            do_POST = do_DELETE = do_GET

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hub/api"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("Content-Length") or 0)
        request.rfile.read(length)
        path = unquote(request.path).partition("?")[0].removeprefix("/hub/api")
        status, document = self._document(request.command, path, request.headers.get("Authorization", ""))
        body = json.dumps(document).encode() if document is not None else b""
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _document(self, method: str, path: str, authorization: str) -> tuple[int, Any]:
        if self.down:
            return 503, {"status": 503, "message": "down"}
        token = authorization.partition(" ")[2]
        if path == "/oauth2/token":
            return 200, {"access_token": f"{self.signs_in}-session-token", "token_type": "Bearer"}
        if path == "/user":
            known = USERS.get(token) or _one_of_the_crowd(token)
            return (200, _model(known)) if known else (403, {"status": 403, "message": "unknown token"})
        if path.startswith("/hubgov/quarters/"):
            return self.quarters(path.removeprefix("/hubgov/quarters/"))
        if method == "POST":
            self.starts.append(path)
            return 201, None
        if method == "DELETE":
            self.stops.append(path)
            self.on_stop(path)
            _, user, _, *server = path.strip("/").split("/")
            self.servers.get(user, {}).pop("".join(server), None)
            return 204, None
        name = path.removeprefix("/users/")
        return 200, {"name": name, "servers": self.servers.get(name, {})}


def _one_of_the_crowd(token: str) -> dict[str, Any] | None:
    """`crowd-7-token` is crowd-7, a member of vision: as many people as a test wants."""
    name = token.removesuffix("-token")
    return {"name": name, "groups": ["vision"]} if name.startswith("crowd-") else None


def _model(known: dict[str, Any]) -> dict[str, Any]:
    access = [] if known.get("outside") else ["access:services!service=hubgov"]
    scopes = [*access, *known.get("extra", [])]
    return {"kind": "user", "admin": False, "session_id": None, **known, "scopes": scopes}
