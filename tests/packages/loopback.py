"""An HTTP server for package registries on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol, TypeVar


class Registry(Protocol):
    """A registry to serve. `url` is set before the first request. Unless `online`, no request gets an answer."""

    url: str
    online: bool

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return the content type and the body at a path, or None if there is nothing."""


R = TypeVar("R", bound=Registry)


@contextmanager
def running(registry: R) -> Iterator[R]:
    """Serve a registry until the block ends, and yield the registry."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            if not registry.online:
                self.close_connection = True
                return
            kind, data = registry.answer(self.path) or ("text/plain", None)
            self.send_response(200 if data is not None else 404)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data or b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
