"""The HTTP port: bound when the gateway starts, so that its number is known. The server is loaded for the first client.

A user without HTTP clients does not pay for the web server: 30 ms and some MB (DESIGN, decision 2).
"""

from __future__ import annotations

import errno
import logging
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import anyio

from trayapp.gateway.http.tokens import ClientTokens
from trayapp.model.errors import Problem
from trayapp.model.settings import HttpSettings
from trayapp.wire.endpoint import BACKLOG
from trayapp.wire.loopback import holder_words, is_ours, port_holder

if TYPE_CHECKING:
    from trayapp.gateway.gateway import Gateway
    from trayapp.gateway.http.manage import FileEdits
    from trayapp.panel.host import PanelHost

log = logging.getLogger(__name__)

HOST = "127.0.0.1"  # never another address: anyone who can reach the port can use every server
PORTS_TRIED = 20  # ports to try from the wanted one on, before taking any free one


class BoundPort(NamedTuple):
    """Listening socket. `taken`: the ports tried before it that others hold, with the user if known."""

    sock: socket.socket
    taken: dict[int, int | None]

    @property
    def port(self) -> int:
        """Return the port number."""
        port: int = self.sock.getsockname()[1]
        return port

    @property
    def exposed(self) -> list[int]:
        """Return the ports not known to be held by this user: others may have read what is sent there."""
        return [port for port, user in self.taken.items() if not is_ours(user)]


class HttpPort:
    """HTTP port, open or closed by the settings. `changed` gets the URL, None while it is closed. `owner_token`:
    returns the endpoint file's token.
    """

    def __init__(
        self,
        gateway: Gateway,
        file: FileEdits,
        tokens: ClientTokens,
        owner_token: Callable[[], str],
        changed: Callable[[str | None], None],
        panel: Callable[[], PanelHost] | None = None,
    ) -> None:
        self._panel = panel
        self._gateway = gateway
        self._file = file
        self._tokens = tokens
        self._owner_token = owner_token
        self._changed = changed
        self._wanted: HttpSettings | None = None
        self._news = anyio.Event()

    def follow(self, settings: HttpSettings) -> None:
        """Open, move or close the port if the settings have changed."""
        if settings != self._wanted:
            self._wanted = settings
            self._news.set()

    async def serve(self) -> None:
        """Keep the port as the settings say for as long as the gateway runs."""
        while True:
            settings, self._news = self._wanted, anyio.Event()
            async with anyio.create_task_group() as tasks:
                if settings is not None and settings.enabled:
                    tasks.start_soon(self._open, settings)
                await self._news.wait()
                tasks.cancel_scope.cancel()

    async def _open(self, settings: HttpSettings) -> None:
        bound = bind(settings.port)
        if bound is None:
            log.warning("No free port for HTTP clients")
            return
        with bound.sock:
            token = await anyio.to_thread.run_sync(self._tokens.take, bound.port, settings.port, bound.exposed)
            place = f"{self._tokens.name(bound.port, settings.port)} beside servers.yaml"
            if bound.port != settings.port in bound.taken:
                self._gateway.http_problem = taken_port(bound, settings.port, place)
                log.warning("%s. %s", self._gateway.http_problem.message, self._gateway.http_problem.hint)
            self._changed(f"http://{HOST}:{bound.port}/mcp")
            try:
                await anyio.wait_readable(bound.sock)
                server = await anyio.to_thread.run_sync(import_module, "trayapp.gateway.http.server")
                access = server.Access(token if settings.token else "", self._owner_token(), place)
                await server.serve(self._gateway, self._file, bound.sock, access, panel=self._panel)
            finally:
                self._tokens.release()
                self._gateway.http_problem = None
                self._changed(None)


def taken_port(bound: BoundPort, wanted: int, place: str) -> Problem:
    """Return the problem of a port that another program holds: what that program may know, and what to do."""
    what = f"Port {wanted} is held by {holder_words(bound.taken[wanted])}; HTTP clients find the gateway at "
    what += f"{HOST}:{bound.port}, with the token in {place}"
    if wanted in bound.exposed:
        what += f". AI tools that still use port {wanted} send their token there, so that token is no longer valid"
    hint = "AI tools that start multi-mcp themselves are not affected. For those that use HTTP, set settings.http.port "
    hint += "to a free port and give them the new address and token, or connect them without HTTP: multi-mcp connect"
    return Problem("", 0, what, hint, fatal=False)


def bind(wanted: int) -> BoundPort | None:
    """Listen on the wanted port, or on the next free one; None if no port is free."""
    taken: dict[int, int | None] = {}
    # Try the wanted port twice: a program that is just ending, such as an earlier gateway, is no reason to move.
    for port in (wanted, *range(wanted, min(wanted + PORTS_TRIED, 65_536)), 0):
        try:
            sock = _listening(port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE or sys.platform == "win32":  # there it may also be EACCES
                taken[port] = taken.get(port) or port_holder(port)
            elif error.errno != errno.EACCES or port == wanted:  # a port below 1,024 may be forbidden
                log.warning("Cannot listen on %s:%d: %s", HOST, port, error.strerror)
            continue
        if taken.get(port) is None:
            taken.pop(port, None)
        return BoundPort(sock, taken)
    return None


def _listening(port: int) -> socket.socket:
    """Return a listening socket. Raises OSError."""
    # With the protocol given, asyncio disables Nagle's algorithm: otherwise an answer in two writes takes 40 ms longer.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # Windows: otherwise another program could take over the port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock
