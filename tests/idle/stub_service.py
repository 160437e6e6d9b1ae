"""As much of the service as a server's extension needs to report its activity; the last report is kept."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lab.standin import workload


class StubService:
    """Answers on a loopback port from a thread of its own."""

    def __init__(self) -> None:
        self.report: dict[str, Any] | None = None
        self.reports = 0
        self.end_kernels: list[str] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(workload())

            def do_PUT(self) -> None:
                stub.report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stub.reports += 1
                self._answer({"period_seconds": 1, "end_kernels": stub.end_kernels})

            def _answer(self, document: dict[str, Any]) -> None:
                body = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
