"""The HTTP port: bound when the gateway starts, so that its number is known; all behind it comes with the first client.

A user without HTTP clients pays nothing for what is behind it (DESIGN, decision 2): a web server, 30 ms and some MB,
and later the SDK (app). Never here: requests.
"""

from __future__ import annotations

import errno
import logging
import secrets
import socket
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from trayapp.gateway.private import close_to_others
from trayapp.model.settings import HttpSettings

if TYPE_CHECKING:
    from trayapp.gateway.core import Gateway
    from trayapp.gateway.http.manage import FileEdits

log = logging.getLogger(__name__)

HOST = "127.0.0.1"  # never another: who can reach the port can use every server
PORTS_TRIED = 20  # from the wanted one on, before any free one will do
BACKLOG = 128
TOKEN_BYTES = 32
TOKEN_NAME = "http-token"  # beside servers.yaml


class Door:
    """At most one listening port. `changed` is told the URL, None when there is none."""

    def __init__(self, gateway: Gateway, file: FileEdits, token: str, changed: Callable[[str | None], None]) -> None:
        self._gateway = gateway
        self._file = file
        self._token = token
        self._changed = changed
        self._wanted: HttpSettings | None = None
        self._news = anyio.Event()

    def follow(self, settings: HttpSettings) -> None:
        """Settings were read; other ones than before open, move or close the port."""
        if settings != self._wanted:
            self._wanted = settings
            self._news.set()

    async def serve(self) -> None:
        """Keep the port open as the settings say, for as long as the gateway runs."""
        while True:
            settings, self._news = self._wanted, anyio.Event()
            async with anyio.create_task_group() as tasks:
                if settings is not None and settings.enabled:
                    tasks.start_soon(self._open, settings)
                await self._news.wait()
                tasks.cancel_scope.cancel()

    async def _open(self, settings: HttpSettings) -> None:
        sock = bind(settings.port)
        if sock is None:
            log.warning("No port for HTTP clients is free")
            return
        port = sock.getsockname()[1]
        if port != settings.port != 0:
            log.warning("Port %d is taken; HTTP clients find the gateway at %d", settings.port, port)
        self._changed(f"http://{HOST}:{port}/mcp")
        try:
            await anyio.wait_readable(sock)
            # Not in turn: a client would wait for the SDK, where a server on HTTP has it loaded. Uvicorn, which the SDK
            # loads too, is a package that all enter by the same door, so that no two threads get half of it.
            app = await anyio.to_thread.run_sync(import_module, "trayapp.gateway.http.app")
            await app.serve(self._gateway, self._file, sock, self._token if settings.token else "")
        finally:
            self._changed(None)
            sock.close()


def bind(wanted: int) -> socket.socket | None:
    """A listening socket on the wanted port, else on the next free one; None when there is none at all."""
    for port in (*range(wanted, min(wanted + PORTS_TRIED, 65_536)), 0):
        # With the protocol named, asyncio turns Nagle's algorithm off: else an answer in two writes takes 40 ms longer.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # Windows: else another program could take the port from us
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, port))
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                log.warning("Cannot listen on %s:%d: %s", HOST, port, error.strerror)
            continue
        sock.setblocking(False)
        return sock
    return None


def kept_token(path: Path) -> str:
    """The secret by which HTTP clients come in: the same after every start, since it stands in their configuration.

    Blocks. Where it cannot be kept, a new one.
    """
    try:
        known = path.read_text(encoding="ascii").strip()
        if len(known) >= TOKEN_BYTES and not close_to_others([path]):
            return known  # one that is linked, or another user's, is known to others
    except (OSError, ValueError):
        pass
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(token + "\n", encoding="ascii")
    except OSError as error:
        log.warning("HTTP clients need a new token after each start: cannot write %s: %s", path, error.strerror)
    return token
