"""The HTTP port, the access tokens of its clients, and links to the panel behind it.

The port is bound when the gateway starts, so that its number is known. The web server is loaded only for the first
client, which saves 30 ms and some MB in a gateway without HTTP clients.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import anyio
import anyio.to_thread

from trayapp.backends.clock import first_of
from trayapp.gateway.permissions import close_to_others
from trayapp.model.config import HttpSettings
from trayapp.model.errors import MultiMcpError, Problem
from trayapp.wire.endpoint import BACKLOG
from trayapp.wire.lock import FileLock, hold
from trayapp.wire.loopback import holder_words, is_ours, port_holder

if TYPE_CHECKING:
    from trayapp.gateway.gateway import Gateway
    from trayapp.gateway.servers_file import ServersFile
    from trayapp.panel.host import PanelHost

log = logging.getLogger(__name__)

HOST = "127.0.0.1"  # never another address: anyone who can reach the port can use every server
PORTS_TRIED = 20  # number of ports to try, from the wanted one on, before any free one is used
TOKEN_BYTES = 32
TOKEN_NAME = "http-token"  # file with the token for the configured port. For another port, `-PORT` is appended
PANEL_MODULES = ("trayapp.gateway.http.server", "trayapp.panel.app")  # imported before a link to the panel is opened


class BoundPort(NamedTuple):
    """A listening socket. `taken`: each port that was in use when tried -> uid of its holder, or None if unknown."""

    sock: socket.socket
    taken: dict[int, int | None]

    @property
    def port(self) -> int:
        return int(self.sock.getsockname()[1])

    @property
    def exposed(self) -> list[int]:
        """Return the taken ports that another user may hold. That user may have read tokens sent there."""
        return [port for port, user in self.taken.items() if not is_ours(user)]


class HttpPort:
    """The HTTP port that the settings require. `changed` is called with its URL, or with None when it is closed."""

    def __init__(
        self,
        gateway: Gateway,
        file: ServersFile,
        tokens: ClientTokens,
        owner_token: Callable[[], str],
        changed: Callable[[str | None], None],
        panel: Callable[[], PanelHost],
    ) -> None:
        self._panel = panel
        self._gateway = gateway
        self._file = file
        self._tokens = tokens
        self._owner_token = owner_token
        self._changed = changed
        self._wanted: HttpSettings | None = None
        self._news = anyio.Event()
        self._url: str | None = None
        self._settled = anyio.Event()  # set once the port matches the settings, or cannot be opened
        self._settled.set()
        self._expected = anyio.Event()  # set once a client has connected or is about to connect

    def follow(self, settings: HttpSettings) -> None:
        """Make `serve` open, move or close the port if the settings have changed. `settle` waits for this."""
        if settings != self._wanted:
            self._wanted = settings
            self._settled.set()  # wake the waiting tasks, which then wait for the new event
            self._settled = anyio.Event()
            self._news.set()

    async def settle(self) -> None:
        """Make the web server load. Wait until the port is open, moved or closed as required, or this has failed."""
        self._expected.set()
        while not self._settled.is_set():
            await self._settled.wait()

    async def panel_link(self, asked: dict[str, Any]) -> Any:
        """Wait while the port opens or moves, and return a link to the panel. Raises MultiMcpError if it is closed.

        `asked`: may name the page to show (`page`, `what`).
        """
        await self.settle()
        if self._url is None:
            raise MultiMcpError("The panel needs the HTTP port, which is closed", "Set settings.http to true")
        for module in PANEL_MODULES:
            await anyio.to_thread.run_sync(import_module, module)
        query = {"code": self._gateway.panel_access.code()}
        query |= {name: str(asked[name]) for name in ("what", "page") if asked.get(name)}
        return {"url": f"{self._url.removesuffix('/mcp')}/panel/enter?{urlencode(query)}"}

    async def serve(self) -> None:
        """Keep the port in the state that the settings require, while the gateway runs."""
        while True:
            settings, settled, self._news = self._wanted, self._settled, anyio.Event()
            try:
                async with anyio.create_task_group() as tasks:
                    if settings is not None and settings.enabled:
                        tasks.start_soon(self._open, settings, settled)
                    else:
                        self._tell(None, settled)
                    await self._news.wait()
                    if self._wanted is None or not self._wanted.enabled:
                        self._tell(None, settled)  # reported before the server ends its streams, which takes a while
                    tasks.cancel_scope.cancel()
            finally:
                if not self._news.is_set():  # true after an error or when the gateway ends, not when the port moves
                    self._tell(None, settled)

    def _tell(self, url: str | None, settled: anyio.Event) -> None:
        if url is not None or self._url is not None:
            self._url = url
            self._changed(url)
        settled.set()

    async def _open(self, settings: HttpSettings, settled: anyio.Event) -> None:
        bound = bind(settings.port)
        if bound is None:
            log.warning("No free port for HTTP clients")
            self._tell(None, settled)
            return
        with bound.sock:
            token = await anyio.to_thread.run_sync(self._tokens.take, bound.port, settings.port, bound.exposed)
            place = f"{self._tokens.name(bound.port, settings.port)} beside servers.yaml"
            if bound.port != settings.port in bound.taken:
                self._gateway.http_problem = taken_port(bound, settings.port, place)
                log.warning("%s. %s", self._gateway.http_problem.message, self._gateway.http_problem.hint)
            self._tell(f"http://{HOST}:{bound.port}/mcp", settled)
            try:
                await first_of(partial(anyio.wait_readable, bound.sock), self._expected.wait)
                self._expected.set()
                server = await anyio.to_thread.run_sync(import_module, "trayapp.gateway.http.server")
                access = server.Access(token if settings.token else "", self._owner_token(), place)
                await server.serve(self._gateway, self._file, bound.sock, access, self._panel)
            finally:
                self._tokens.release()
                self._gateway.http_problem = None


def taken_port(bound: BoundPort, wanted: int, place: str) -> Problem:
    """Return the problem to report if another program holds the wanted port."""
    what = f"Port {wanted} is held by {holder_words(bound.taken[wanted])}. HTTP clients find the gateway at "
    what += f"{HOST}:{bound.port}, with the token in {place}"
    if wanted in bound.exposed:
        what += f". AI tools that still use port {wanted} send their token there, so that token is no longer valid"
    hint = "AI tools that start multi-mcp themselves are not affected. For those that use HTTP, set settings.http.port "
    hint += "to a free port and give them the new address and token, or connect them without HTTP: multi-mcp connect"
    return Problem("", 0, what, hint, fatal=False)


def bind(wanted: int) -> BoundPort | None:
    """Listen on one of PORTS_TRIED ports from the wanted one on, or else on any free port.

    Return None if no port is free.
    """
    taken: dict[int, int | None] = {}
    # Try the wanted port twice: the program that holds it, such as an earlier gateway, may be about to end.
    for port in (wanted, *range(wanted, min(wanted + PORTS_TRIED, 65_536)), 0):
        try:
            sock = _listening(port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE or sys.platform == "win32":  # on Windows it may also be EACCES
                taken[port] = taken.get(port) or port_holder(port)
            elif error.errno != errno.EACCES or port == wanted:  # a port below 1,024 may be forbidden
                log.warning("Cannot listen on %s:%d: %s", HOST, port, error.strerror)
            continue
        if taken.get(port) is None:
            taken.pop(port, None)
        return BoundPort(sock, taken)
    return None


def _listening(port: int) -> socket.socket:
    """Open a socket that listens on the port, and return it. Raises OSError."""
    # Name the protocol, because asyncio disables Nagle's algorithm only for sockets that name it. With the algorithm,
    # an answer in two writes takes 40 ms longer.
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


# -- access tokens -----------------------------------------------------------------------------------------------------


class ClientTokens:
    """The token files in one folder, one for each port.

    An AI tool sends its token to any program that listens at its configured address, perhaps to another user's. So a
    token begins with the only port for which it is valid, and `take` revokes tokens that such a program may have read.
    Gateways with separate runtime folders may share this folder, so each locks its token's file while it listens.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: int | None = None  # the open descriptor of the locked file

    def name(self, port: int, wanted: int) -> str:
        """Return the name of the file with the token of a port. `wanted`: the configured port."""
        return TOKEN_NAME if wanted in (0, port) else f"{TOKEN_NAME}-{port}"

    def take(self, port: int, wanted: int, exposed: Iterable[int]) -> str:
        """Return the token of `port`, on which the gateway listens now, and lock the token's file. Blocks.

        The token stays the same unless it is revoked or cannot be stored. `wanted`: the configured port. `exposed`:
        ports on which another user's program may have read a token. The tokens of these ports are revoked, and so are
        those of ports on which no gateway listens now.
        """
        self.release()
        name = self.name(port, wanted)
        ended = [self._folder / self.name(one, wanted) for one in exposed]
        for one in sorted(self._folder.glob(f"{TOKEN_NAME}-*")):
            is_of_a_port = one.name.removeprefix(f"{TOKEN_NAME}-").isdecimal()  # otherwise, it is a user's copy
            if is_of_a_port and one.name != name and not FileLock(str(self._folder), one.name).is_held():
                ended.append(one)
        for old in ended:
            with suppress(OSError):
                old.unlink()
                log.warning("The token in %s is no longer valid: no gateway listens on its port", old)
        path = self._folder / name
        token = _known(path, port) or _made(path, port)
        self._held = hold(path)
        return token

    def release(self) -> None:
        """Unlock the token's file, since the gateway no longer listens on its port."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _known(path: Path, port: int) -> str | None:
    try:
        known = path.read_text(encoding="ascii").strip()
        made_for, dot, _ = known.partition(".")
        # Refuse a token in a symbolic link or in another user's file: others could read it.
        if len(known) >= TOKEN_BYTES and (not dot or made_for == str(port)) and not close_to_others([path]):
            return known
    except (OSError, ValueError):
        pass
    return None


def _made(path: Path, port: int) -> str:
    token = f"{port}.{secrets.token_urlsafe(TOKEN_BYTES)}"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(token + "\n", encoding="ascii")
    except OSError as error:
        log.warning("Cannot write %s: %s. HTTP clients need a new token after each start", path, error.strerror)
    return token
