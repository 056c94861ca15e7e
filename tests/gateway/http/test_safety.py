"""Attacks on the HTTP port: oversized and malformed input, and a page in the user's own browser."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import psutil
import pytest

from tests.gateway.http.place import TOKEN, Place, place
from tests.gateway.world import server
from tests.tools import chromium
from trayapp.gateway.http.guard import HEADER_BYTES, HEADERS_MOST
from trayapp.wire.framing import MAX_FRAME_BYTES

pytestmark = pytest.mark.anyio

BROWSER_S = 50.0
HOSTILE = 10_000  # requests and frames in all
GROWTH_MOST = 1.10


def raw(url: str, data: bytes, read: int = 200) -> bytes:
    """Send the bytes over a plain connection and return the answer, or b"" if the connection just ends."""
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), parts.port or 0), 10) as sock, contextlib.suppress(OSError):
        sock.settimeout(10)
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return sock.recv(read)
    return b""


async def status_of(there: Place, data: bytes) -> int:
    answer = await anyio.to_thread.run_sync(raw, there.url, data)
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def request(head: str, there: Place, token: str = TOKEN, body: bytes = b"") -> bytes:
    host = there.url.removeprefix("http://")
    lines = [head + " HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}", "Connection: close"]
    return "\r\n".join(lines).encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.requirement("safe-limits")
async def test_headers_and_bodies_have_bounds(tmp_path: Path) -> None:
    async with place(tmp_path) as there:
        async with there.http() as http:
            assert (await http.get("/health")).status_code in (200, 503)
            many = {f"x-{number}": "1" for number in range(HEADERS_MOST + 1)}
            assert (await http.get("/health", headers=many)).status_code == 431
            assert (await http.get("/health", headers={"x": "a" * (HEADER_BYTES + 1)})).status_code == 431
        host = there.url.removeprefix("http://")
        head = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n"
        assert await status_of(there, f"{head}Content-Length: {MAX_FRAME_BYTES + 1}\r\n\r\n".encode()) == 413
        assert await status_of(there, f"{head}X: {'a' * 1_000_000}\r\n\r\n".encode()) in (0, 400, 431)


@pytest.mark.requirement("safe-limits")
async def test_ten_thousand_hostile_requests_and_frames_harm_nobody(tmp_path: Path) -> None:
    """The gateway does not crash, its memory does not grow, and another client's session still works."""
    dice = random.Random(7)
    async with place(tmp_path) as there:
        await there.made.known(server("s"))
        client = await there.made.ready()
        async with there.http() as http:
            await http.get("/health")
        for part in range(4):
            await anyio.to_thread.run_sync(hostile_requests, there, dice, HOSTILE // 40)
            await hostile_frames(there, dice, HOSTILE // 4 - HOSTILE // 40)
            if part == 0:
                before = psutil.Process().memory_info().rss
            assert "s_echo" in await client.names()
        assert psutil.Process().memory_info().rss <= before * GROWTH_MOST
        assert list(there.made.gateway.sessions) == [client.session]
        assert there.edits.servers == []
        async with there.http() as http:
            assert (await http.get("/health")).status_code == 200


def hostile_requests(there: Place, dice: random.Random, number: int) -> None:
    """Send many kinds of requests, all of which must be refused."""
    for _ in range(number):
        noise = dice.randbytes(dice.randrange(1, 300))
        raw(
            there.url,
            dice.choice(
                [
                    noise,
                    request("GET /" + noise.hex(), there, token=noise.hex()),
                    request("POST /mcp", there, token="", body=noise),
                    request("POST /mcp_servers", there, token=TOKEN[:-1], body=b'{"name":"x","command":"x"}'),
                    request("GET /mcp", there).replace(b"Host: 127.0.0.1", b"Host: evil.test"),
                    request("GET /mcp", there).replace(b"Connection", b"Origin: http://evil.test\r\nConnection"),
                    request("POST /mcp", there, body=b"x" * 10).replace(b"Content-Length: 10", b"Content-Length: -1"),
                    request("POST /mcp", there, token="", body=noise).replace(
                        b"Content-Length", b"Transfer-Encoding: chunked\r\nX"
                    ),
                    b"GET /" + b"a" * 70_000,
                ]
            ),
        )


async def hostile_frames(there: Place, dice: random.Random, number: int) -> None:
    """Send hostile frames in a separate session, and end the session."""
    evil = there.made.client()
    assert evil.dispatcher is not None
    for step in range(number):
        noise = dice.randbytes(dice.randrange(0, 200)).replace(b"\n", b"")
        evil.dispatcher.feed(
            dice.choice(
                [
                    noise + b"\n",
                    b"[" * 3000 + b"\n",
                    b'{"jsonrpc":"2.0","id":%d,"method":"%b"}\n' % (step, noise.hex().encode()),
                    b'{"jsonrpc":"2.0","id":null,"result":{}}\n',
                    b'{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call"}\n',
                    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":[%d]}\n' % (step, step),
                    b'{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}\n',
                    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n' % step,
                ]
            )
        )
        if step % 100 == 0:
            await anyio.lowlevel.checkpoint()
            evil.heard.clear()
            evil.frames.clear()
    evil.end()
    await anyio.sleep(0.01)


# -- a page in the user's browser ------------------------------------------------------------------------------------

PAGE = """<!doctype html><title>evil</title><script>
const say = text => fetch('/said?' + encodeURIComponent(text));
const body = JSON.stringify({name: 'evil', command: 'x'});
const tries = [];
for (const base of ['http://127.0.0.1:PORT', 'http://localhost:PORT', 'http://evil.test:PORT'])
  for (const path of ['/mcp_servers', '/mcp', '/mcp_tools', '/health', '/sse'])
    for (const method of ['GET', 'POST'])
      for (const mode of ['cors', 'no-cors'])
        tries.push([base + path, {method, mode, body: method == 'POST' ? body : undefined}]);
Promise.all(tries.map(async ([url, how]) => {
  try { const got = await fetch(url, how); return got.type == 'opaque' ? 'opaque' : 'read ' + got.status; }
  catch (error) { return 'failed'; }
})).then(all => say('done ' + all.join(',')));
</script>"""


class Pages(ThreadingHTTPServer):
    """A local website: serves `page`, and keeps the last report that the page sends in `said`."""

    daemon_threads = True
    page = ""
    said = ""


class Handler(BaseHTTPRequestHandler):
    """The request handler that serves the page and records its reports."""

    server: Pages

    def do_GET(self) -> None:
        if self.path.startswith("/said?"):
            self.server.said = self.path
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.page.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextlib.contextmanager
def web_site(page: str) -> Iterator[Pages]:
    """Yield a running web site that serves `page`."""
    with Pages(("127.0.0.1", 0), Handler) as site:
        site.page = page
        thread = Thread(target=site.serve_forever)
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()


def visit(address: str) -> None:
    """Open the address in real Chromium, which resolves evil.test to this machine (DNS rebinding)."""
    browser = chromium()
    folder = Path(tempfile.mkdtemp(prefix="mm-evil-"))
    argv = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={folder}"),
        *("--host-resolver-rules=MAP evil.test 127.0.0.1", "--disable-background-networking"),
        *("--disable-component-update", "--virtual-time-budget=8000", "--dump-dom", address),
    ]
    try:
        subprocess.run(argv, timeout=BROWSER_S, capture_output=True, check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.requirement("safe-web-page")
@pytest.mark.parametrize("name", ["evil.test", "127.0.0.1"])
async def test_a_page_in_a_real_browser_reaches_nothing(tmp_path: Path, name: str) -> None:
    """The page is loaded from 127.0.0.1, and from a foreign name that resolves to this machine."""
    async with place(tmp_path) as there:
        await there.made.known(server("s"))
        asked = len(there.made.net["s"].heard)
        port = there.url.rpartition(":")[2]
        with web_site(PAGE.replace("PORT", port)) as site:
            await anyio.to_thread.run_sync(visit, f"http://{name}:{site.server_address[1]}/")
            assert "done" in site.said, "the page ran"
            assert "read" not in site.said, "no answer may be read by a page"
        assert there.edits.servers == []
        assert list(there.made.gateway.sessions) == []
        assert len(there.made.net["s"].heard) == asked
