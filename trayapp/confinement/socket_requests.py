"""Answers to a confined program's requests: Internet sockets above all, either none or ones that reach the proxy alone.

A socket that is bound to the loopback device reaches nothing else, and binding it to another device takes privileges
(SO_BINDTODEVICE). Of the loopback ports, Landlock allows only the proxy's. Without Landlock, the program has its own
network namespace: each socket that it gets is already connected to the proxy, and its `connect` does nothing. The
arguments of a request are in registers, so they cannot change between check and answer. Without the gateway every
request fails.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

from trayapp.confinement.seccomp import CONNECT, SOCKET
from trayapp.confinement.trace import Trace

# linux/seccomp.h
_RECEIVE, _ANSWER, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40182103
_GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_AND_ANSWER = 2  # SECCOMP_ADDFD_FLAG_SEND
_REQUEST = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_DESCRIPTOR = struct.Struct("=QIIII")
_NONBLOCK, _CLOEXEC, _TYPE = 0o4000, 0o2000000, 0xF
_BIND_TO_DEVICE = 25


class SocketRequests:
    """Answers requests from one program's `listener` on the running event loop until its last process has ended.

    `port`: the proxy's, if there is one. TCP sockets for it are handed out, already connected if `connected`. `refused`
    is called for other sockets, with True for a Unix socket. `trace` records files, in a trial.
    """

    def __init__(
        self,
        listener: int,
        port: int | None,
        refused: Callable[[bool], None],
        *,
        connected: bool = False,
        trace: Trace | None = None,
    ) -> None:
        self._listener = listener
        self._port = port
        self._connected = connected
        self._refused = refused
        self._trace = trace
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener, self._serve)

    def close(self) -> None:
        """Stop answering: later requests are refused."""
        if self._listener >= 0:
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = -1

    def _serve(self) -> None:
        events = self._poll.poll(0)
        if not events:
            return
        if not events[0][1] & select.POLLIN:
            self.close()  # no process is left that could ask
            return
        import fcntl  # only for programs with limited network

        request = bytearray(_REQUEST.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, request)
        except OSError:
            return  # the program was killed meanwhile
        number, pid, _, call, _, _, *arguments = _REQUEST.unpack(request)
        if self._trace is not None and call not in SOCKET:
            self._trace.note(pid, call, arguments)
            with suppress(OSError):
                fcntl.ioctl(self._listener, _ANSWER, _RESPONSE.pack(number, 0, 0, _GO_ON))
            return
        if self._connected and call in CONNECT:
            with suppress(OSError):
                fcntl.ioctl(self._listener, _ANSWER, _RESPONSE.pack(number, 0, 0, 0))
            return
        family, kind, protocol = (argument & 0xFFFFFFFF for argument in arguments[:3])
        tcp = family != socket.AF_UNIX and kind & _TYPE == socket.SOCK_STREAM and protocol in (0, socket.IPPROTO_TCP)
        with suppress(OSError):  # the program was killed meanwhile
            if not (self._port and tcp and self._hand_out(number, family, kind)):
                fcntl.ioctl(self._listener, _ANSWER, _RESPONSE.pack(number, 0, -errno.EACCES, 0))
                if family == socket.AF_UNIX or not self._port:
                    self._refused(family == socket.AF_UNIX)

    def _hand_out(self, number: int, family: int, kind: int) -> bool:
        import fcntl

        try:
            made = socket.socket(family, socket.SOCK_STREAM | kind & _NONBLOCK)
        except OSError:
            return False
        with made:
            if self._connected:
                made.setblocking(False)  # this same thread serves the proxy
                made.connect_ex(("127.0.0.1", self._port))
                os.set_blocking(made.fileno(), not kind & _NONBLOCK)
            else:
                made.setsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, b"lo\0")
            told = _DESCRIPTOR.pack(number, _AND_ANSWER, made.fileno(), 0, kind & _CLOEXEC)
            fcntl.ioctl(self._listener, _ADD_DESCRIPTOR, told)
        return True
