"""The local endpoint of a gateway: its socket, its endpoint file, and the first line of a connection.

The socket is a Unix socket; on Windows, it is loopback TCP with a token from the endpoint file.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trayapp.model.errors import StorageError
from trayapp.wire.frames import FrameDispatcher
from trayapp.wire.framing import Pieces
from trayapp.wire.greeting import GREETING, USES_TCP, Endpoint, Hello, endpoint_file, read_endpoint
from trayapp.wire.jsonio import JsonError, dumps, loads
from trayapp.wire.lock import private_folder
from trayapp.wire.pipes import PipeTransport, pass_pipes
from trayapp.wire.rundir import socket_folder, socket_path

log = logging.getLogger(__name__)

SEND_BYTES = 4 << 20  # size of a socket's send buffer: a large answer leaves within a few turns of the event loop
GREETING_LIMIT = 64 * 1024  # bytes; far more than a working folder and a few names need
BACKLOG = 1024  # limit on connections not yet accepted; beyond that, connecting to a Unix socket fails immediately
WRITE_LIMIT = 256 * 1024 * 1024  # unread bytes after which a slow reader's connection is closed
PIPES_AFTER_S = 0.1  # delay after a session's first line, so that its first answers do not wait for pipes


def write_endpoint(run: str, endpoint: Endpoint) -> None:
    """Write the endpoint file, atomically and for this user only. Raises StorageError."""
    path = endpoint_file(run)
    fresh = path.with_suffix(".new")
    try:
        fresh.unlink(missing_ok=True)  # a crash may have left a file there, with any mode
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(dumps(endpoint._asdict()))
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        hint = "Free some space, or check the folder's permissions"
        raise StorageError(f"Cannot write {path}: {error.strerror}", hint) from None


Accept = Callable[[Hello, "Link"], FrameDispatcher]


class Link(asyncio.Protocol):
    """One connection to the local socket. After its first line, frames go to the dispatcher that `accept` returned.

    A shim that supports pipes receives them shortly afterwards. It then closes the socket and uses only the pipes.
    """

    def __init__(self, accept: Accept, token: str, pending: PendingConnections) -> None:
        self._accept = accept
        self._token = token
        self._pending = pending
        self._transport: asyncio.Transport | None = None
        self._socket: asyncio.BaseTransport | None = None  # set after the switch to pipes, until the shim closes it
        self._pipes: PipeTransport | None = None
        self._descriptor = -1  # for writing several buffers in one call (writev); -1 if not available
        self._dispatcher: FrameDispatcher | None = None
        self._head = b""
        self.room = asyncio.Event()  # cleared while the reader is behind: optional messages should wait until it is set
        self.room.set()
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        sock = transport.get_extra_info("socket")
        with suppress(OSError):  # the system caps it: about 400 KiB on Linux, twice the default
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        if hasattr(os, "writev"):
            self._descriptor = sock.fileno()
        if not peer_is_us(sock):
            log.warning("Refused a connection from another user")
            transport.abort()
            return
        self._pending.add(self, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Read the first line, and pass the rest to the dispatcher. Close the connection if the line is invalid."""
        self._head += data
        line, newline, rest = self._head.partition(b"\n")
        if not newline and len(line) < GREETING_LIMIT:
            return
        hello = self._read_greeting(line) if newline and len(line) < GREETING_LIMIT else None
        if hello is None:
            log.warning("Refused a connection that did not begin with the gateway's protocol line")
            self.close()
            return
        self._head = b""
        self._pending.discard(self)
        if hello.options.pop("pipes", None):
            asyncio.get_running_loop().call_later(PIPES_AFTER_S, self._pass_pipes)
        self._dispatcher = self._accept(hello, self)
        self.data_received = self._dispatcher.feed  # type: ignore[method-assign] # saves a call per read
        if rest:
            self._dispatcher.feed(rest)

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    def _pass_pipes(self) -> None:
        """Pass the shim two pipes and send over them, unless data is still buffered for the socket or passing fails."""
        socket_transport = self._transport
        if socket_transport is None or socket_transport.is_closing() or socket_transport.get_write_buffer_size():
            return
        with socket_transport.get_extra_info("socket").dup() as sock:
            pipes = pass_pipes(sock, self)
        if pipes is not None:
            self._socket, self._transport, self._pipes = socket_transport, pipes, pipes
            self._descriptor = pipes.writer

    def connection_lost(self, error: Exception | None) -> None:
        """Read from the pipes if the shim closed the socket for them. Otherwise end the connection."""
        if self._socket is not None and self._pipes is not None and self._dispatcher is not None:
            self._socket.close()
            self._socket = None
            if not self._pipes.is_closing():
                self._pipes.read_to(self._dispatcher.feed)
                return
        self.lost.set()
        self._pending.discard(self)
        if self._dispatcher is not None:
            self._dispatcher.close()

    def write(self, data: bytes | memoryview) -> None:
        """Send without blocking. A reader more than WRITE_LIMIT bytes behind loses its connection."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            transport.write(data)
        except MemoryError:
            log.warning("Closed a connection: not enough memory for its answers")
            transport.abort()  # part of a message may have been sent
            if self._descriptor >= 0:
                # asyncio keeps the writer even though nothing is left to write. It would then fail to watch the next
                # socket with that descriptor.
                asyncio.get_running_loop().remove_writer(self._descriptor)
            return
        if not self.room.is_set() and transport.get_write_buffer_size() > WRITE_LIMIT:
            log.warning("Closed a connection that does not read its answers")
            transport.abort()

    def write_pieces(self, pieces: Pieces) -> None:
        """Write one frame in pieces. Copy only the bytes that the socket does not accept immediately, and only once."""
        if self._transport is None or self._transport.is_closing():
            return
        at_once = self._descriptor >= 0 and not self._transport.get_write_buffer_size()
        for piece in self._unsent(pieces) if at_once else pieces:
            self.write(piece)

    def _unsent(self, pieces: Pieces) -> Pieces:
        """Send the bytes that the socket accepts immediately, and return the rest."""
        try:
            sent = os.writev(self._descriptor, pieces)
        except OSError:
            return pieces  # the transport gets the same error and handles it
        left: list[memoryview] = []
        for piece in pieces:
            if sent < len(piece):
                left.append(memoryview(piece)[sent:])
            sent = max(0, sent - len(piece))
        return left

    def close(self) -> None:
        """Close the connection once everything written has been sent."""
        if self._transport is not None:
            self._transport.close()

    def _read_greeting(self, line: bytes) -> Hello | None:
        if not line.startswith(GREETING):
            return None
        try:
            options = loads(line[len(GREETING) :])
        except JsonError:
            return None
        if not isinstance(options, dict):
            return None
        token, kind = options.pop("token", ""), options.pop("kind", None)
        if self._token and not hmac.compare_digest(str(token).encode(), self._token.encode()):
            return None
        return Hello(kind, options) if kind in ("session", "control") else None


# Socket option with a Unix socket's peer credentials: level, option, bytes (Linux: SO_PEERCRED, struct ucred; macOS:
# LOCAL_PEERCRED, struct xucred). In both structs the user id is the second 32-bit number.
PEER_QUESTIONS = {"linux": (1, 17, 12), "darwin": (0, 1, 76)}


def peer_is_us(sock: socket.socket | None) -> bool:
    """Return True if a Unix socket's peer is a process of this user, or if the system cannot tell."""
    question = PEER_QUESTIONS.get(sys.platform)
    if sock is None or question is None or sock.family != getattr(socket, "AF_UNIX", None):
        return True
    credentials = sock.getsockopt(*question)
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid()


class Listener:
    """A bound local socket. `close` stops listening, and removes the socket and the endpoint file."""

    def __init__(self, run: str, endpoint: Endpoint, server: asyncio.Server) -> None:
        self.run = run
        self.endpoint = endpoint
        self.server = server
        self.place = _place_of(endpoint.socket) if endpoint.socket else None

    def is_found(self) -> bool:
        """Return True if clients can still find this gateway: its endpoint file and socket exist and are its own."""
        published, own = read_endpoint(self.run), self.endpoint
        is_published = published is not None and (published.pid, published.port) == (os.getpid(), own.port)
        return is_published and (not own.socket or _place_of(own.socket) == self.place)

    def publish(self, http_url: str | None) -> None:
        """Write the URL for HTTP clients into the endpoint file. A failure, such as a full disk, is only logged."""
        self.endpoint = self.endpoint._replace(http_url=http_url)
        try:
            write_endpoint(self.run, self.endpoint)
        except StorageError as error:
            log.warning("%s", error)

    def close(self) -> None:
        """Stop listening, and remove the endpoint file and socket, unless a newer gateway has replaced them.

        Existing connections stay open: the caller closes them.
        """
        published, path = read_endpoint(self.run), self.endpoint.socket
        is_ours = bool(path) and _place_of(path) == self.place
        self.server.close()
        if published is None or published.pid == os.getpid():
            with suppress(OSError):
                endpoint_file(self.run).unlink()
        if is_ours:
            with suppress(OSError):
                Path(path).unlink()


async def listen(run: str, accept: Accept, version: str, token: str = "", tcp: bool = USES_TCP) -> Listener:
    """Bind the local socket, publish the endpoint file, and return the Listener. Raises StorageError.

    The caller must hold the GatewayLock.
    `token`: the secret that TCP clients send. If it is empty, a random one is made.
    """
    token = token or secrets.token_urlsafe(32)
    path = ""
    if not tcp:
        private_folder(Path(socket_folder(run)))
        path = socket_path(run)
    pending, loop = PendingConnections(), asyncio.get_running_loop()
    sock = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
    try:
        if tcp:
            sock.bind(("127.0.0.1", 0))
        else:
            Path(path).unlink(missing_ok=True)  # we hold the lock, so only a killed gateway can have left it
            sock.bind(path)
            Path(path).chmod(0o600)
        create = loop.create_server if tcp else loop.create_unix_server
        server = await create(lambda: Link(accept, token if tcp else "", pending), sock=sock, backlog=pending.burst)
    except OSError as error:
        sock.close()
        where = path or "127.0.0.1"
        raise StorageError(f"Cannot listen on {where}: {error.strerror}", "Check the folder's permissions") from None
    sock.listen(BACKLOG)  # asyncio set it to `backlog`, the number accepted in one turn
    port = sock.getsockname()[1] if tcp else 0
    listener = Listener(run, Endpoint(os.getpid(), version, path, port, token, time.time()), server)
    try:
        write_endpoint(run, listener.endpoint)
    except StorageError:
        listener.close()
        raise
    return listener


def _place_of(path: str) -> tuple[int, int] | None:
    try:
        facts = Path(path).stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


if sys.platform != "win32":
    import resource

IDENTIFY_S = 10.0  # ample: a client sends its first line, or the head of its first request, within milliseconds
PLACES_MOST = 1024  # limit on pending connections; two dozen sessions that each send twenty requests at once open 500
PART = 8  # pending connections may take one eighth of the process's descriptors
BURST_PART = 4  # one turn accepts a quarter of them: none is closed before asyncio reads from it two turns later


class PendingConnections:
    """The connections that have not identified themselves: at most `most`, each for at most `limit_s` seconds.

    A further connection closes the oldest.
    """

    def __init__(self, most: int | None = None, limit_s: float = IDENTIFY_S) -> None:
        self._most = most if most is not None else places(descriptor_limit())
        self._limit_s = limit_s
        self._pending: dict[object, tuple[Callable[[], None], asyncio.TimerHandle]] = {}  # oldest first

    @property
    def burst(self) -> int:
        """Return the number of connections to accept in one turn of the event loop (asyncio's `backlog`)."""
        return max(1, self._most // BURST_PART)

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, connection: object, end: Callable[[], None]) -> None:
        """Add a new connection. `end` is called to close it after `limit_s` or to make room for a newer one."""
        timer = asyncio.get_running_loop().call_later(self._limit_s, self._end, connection)
        self._pending[connection] = end, timer
        if len(self._pending) > self._most:
            self._end(next(iter(self._pending)))

    def discard(self, connection: object) -> None:
        """Forget a connection that has identified itself or is gone."""
        if (known := self._pending.pop(connection, None)) is not None:
            known[1].cancel()

    def _end(self, connection: object) -> None:
        end, timer = self._pending.pop(connection)
        timer.cancel()
        end()


def places(descriptors: int) -> int:
    """Return how many pending connections a process with this many descriptors can allow."""
    return max(2, min(PLACES_MOST, descriptors // PART))


# --- the limit on files and sockets that this process may have open

ENOUGH = 65_536  # more than a gateway ever needs; programs that close every possible descriptor still start quickly
MACOS_MOST = 10_240  # OPEN_MAX: macOS refuses more, even if the hard limit is higher
UNKNOWN = 8_192  # assumed on Windows, where handles have no limit that matters in practice


def descriptor_limit() -> int:
    if sys.platform == "win32":
        return UNKNOWN
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the soft limit on open descriptors (often 1,024) to the hard limit, at most to ENOUGH. Ignore a failure."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in (ENOUGH, MACOS_MOST):
        wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
        if soft == resource.RLIM_INFINITY or wanted <= soft:
            return
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return
