"""A registry of npm's on loopback, whose packages a test changes at will. Never here: what npm makes of it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROGRAM = "#!/usr/bin/env node\nconsole.log({text!r})\n"


class NpmRegistry:
    """Packages by name and version. `hidden`: versions that it no longer has."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0
        self._files: dict[tuple[str, str], bytes] = {}
        self._at: dict[tuple[str, str], float] = {}
        self._needs: dict[str, dict[str, str]] = {}

    def publish(self, name: str, version: str, text: str, at: float = 0.0, needs: dict[str, str] | None = None) -> None:
        """Add a version, or put other content in its place."""
        manifest = {"name": name, "version": version, "bin": {name: "cli.js"}, "dependencies": needs or {}}
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for path, data in (("package.json", json.dumps(manifest)), ("cli.js", PROGRAM.format(text=text))):
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size, entry.mode = len(data.encode()), 0o755
                archive.addfile(entry, io.BytesIO(data.encode()))
        self._files[name, version] = buffer.getvalue()
        self._at[name, version] = at
        self._needs[f"{name}@{version}"] = needs or {}

    def withdraw(self, name: str, version: str) -> None:
        """Have that version no more."""
        del self._files[name, version]

    def answer(self, path: str) -> bytes | None:
        """Return what stands there."""
        self.asked += 1
        name, _, file = path.lstrip("/").partition("/-/")
        if file:
            return self._files.get((name, file.removesuffix(".tgz").removeprefix(f"{name}-")))
        versions = {version: self._version(name, version) for one, version in self._files if one == name}
        if not versions:
            return None
        newest = max(versions, key=lambda text: [int(part) for part in text.split(".")])
        time = {version: datetime.fromtimestamp(self._at[name, version], UTC).isoformat() for version in versions}
        return json.dumps({"name": name, "versions": versions, "dist-tags": {"latest": newest}, "time": time}).encode()

    def _version(self, name: str, version: str) -> dict[str, object]:
        digest = base64.b64encode(hashlib.sha512(self._files[name, version]).digest()).decode()
        dist = {"tarball": f"{self.url}/{name}/-/{name}-{version}.tgz", "integrity": f"sha512-{digest}"}
        needs = self._needs[f"{name}@{version}"]
        return {"name": name, "version": version, "bin": {name: "cli.js"}, "dependencies": needs, "dist": dist}


@contextmanager
def running(registry: NpmRegistry) -> Iterator[NpmRegistry]:
    """Serve it until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = registry.answer(self.path)
            self.send_response(200 if data is not None else 404)
            self.send_header("content-length", str(len(data or b"")))
            self.end_headers()
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
