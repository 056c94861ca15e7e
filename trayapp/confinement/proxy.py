"""An HTTP proxy for one confined server. It connects only to the hosts in the server's `confine`.

It accepts CONNECT (for HTTPS) and plain requests, and reports requests for other hosts.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

HEAD_BYTES = 65_536
HEAD_S = 30.0  # time for a program to send its request
CONNECT_S = 30.0
CHUNK = 65_536
OF_THE_HOP = (b"proxy-connection", b"proxy-authorization", b"connection")  # headers for the proxy, not passed on
_LOCAL_NAMES = ("localhost",)


class HostProxy:
    """The proxy of one server's programs, on a loopback port. `refused` is called with each refused host."""

    def __init__(self, hosts: tuple[str, ...], refused: Callable[[str], None]) -> None:
        self._hosts = tuple(host.strip("[]").rstrip(".").lower() for host in hosts)
        self._refused = refused
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Start the proxy and return its port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_BYTES)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Stop the proxy and end all its connections."""
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def allows(self, host: str) -> bool:
        """Return True if the server may reach a host. `*.example.com` does not include example.com itself."""
        host = host.strip("[]").rstrip(".").lower()
        return any(
            host.endswith(one[1:]) and len(host) > len(one) - 1 if one.startswith("*.") else host == one
            for one in self._hosts
        )

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ValueError):
            pass  # a failed connection affects only the program that opened it
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        first, _, rest = head.partition(b"\r\n")
        method, target, version = first.decode("ascii").split(" ")
        whole = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = whole.hostname or "", whole.port or (443 if method == "CONNECT" else 80)
        if not self.allows(host):
            self._refused(host)
            await _refuse(writer, "403 Forbidden", f"{host} is not among the hosts that this server may reach")
            return
        try:
            far_reader, far_writer = await self._connect(host, port)
        except (OSError, TimeoutError) as error:
            await _refuse(writer, "502 Bad Gateway", f"Cannot reach {host}: {error}")
            return
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:  # one request per connection: the next one might name another host
                path = (whole.path or "/") + (f"?{whole.query}" if whole.query else "")
                named = [(line.partition(b":")[0].strip().lower(), line) for line in rest.split(b"\r\n") if line]
                kept = [line for name, line in named if name not in OF_THE_HOP]
                lines = [f"{method} {path} {version}".encode(), *kept, b"Connection: close", b"", b""]
                far_writer.write(b"\r\n".join(lines))
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            far_writer.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a host, except at addresses that `_is_meant` rejects. Return the streams. Raises OSError."""
        async with asyncio.timeout(CONNECT_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            error: OSError = OSError(f"no address for {host}")
            for address in (str(where[0]) for *_, where in found):
                if not _is_meant(host, address):
                    error = OSError("its address is a loopback, link-local or unspecified one")
                    continue
                try:
                    return await asyncio.open_connection(address, port)
                except OSError as failure:
                    error = failure
            raise error


def _is_meant(host: str, address: str) -> bool:
    """Return False if a name other than localhost resolved to a loopback, link-local or unspecified `address`.

    If `host` is itself an address, return True.
    """
    if host in _LOCAL_NAMES:
        return True
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return True  # the host was given as an address
    where = ipaddress.ip_address(address.partition("%")[0])
    where = getattr(where, "ipv4_mapped", None) or where
    return not (where.is_loopback or where.is_link_local or where.is_unspecified)


async def _refuse(writer: asyncio.StreamWriter, status: str, words: str) -> None:
    body = f"multi-mcp: {words}\n".encode("ascii", "replace")
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    with suppress(OSError, RuntimeError):
        writer.write_eof()


def proxy_environment(port: int) -> dict[str, str]:
    """Return the variables that make programs use the proxy. Node's own fetch needs NODE_USE_ENV_PROXY."""
    address = f"http://127.0.0.1:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return {**dict.fromkeys(names, address), "NO_PROXY": "", "no_proxy": "", "NODE_USE_ENV_PROXY": "1"}
