"""Answers a confined program's requests for Internet sockets: none, or one that reaches the proxy alone.

A socket bound to the loopback device leads nowhere else, and nobody without privileges can bind it to another
(SO_BINDTODEVICE); of the loopback's ports Landlock leaves the proxy's. What the program asks for stands in registers,
so that it cannot change between the look and the answer. Without the gateway every request fails.
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

# linux/seccomp.h
_RECEIVE, _ANSWER, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40182103
_AND_ANSWER = 2  # SECCOMP_ADDFD_FLAG_SEND
_REQUEST = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_DESCRIPTOR = struct.Struct("=QIIII")
_NONBLOCK, _CLOEXEC, _TYPE = 0o4000, 0o2000000, 0xF
_BIND_TO_DEVICE = 25


class SocketRequests:
    """Listens on one program's `listener` until the last of its processes has ended, on the running event loop.

    `leads_out`: there is a proxy, so that TCP sockets to it are handed out. `refused` hears of all others.
    """

    def __init__(self, listener: int, *, leads_out: bool, refused: Callable[[], None]) -> None:
        self._listener = listener
        self._leads_out = leads_out
        self._refused = refused
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener, self._serve)

    def close(self) -> None:
        """End: whoever asks from now on is refused."""
        if self._listener >= 0:
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = -1

    def _serve(self) -> None:
        events = self._poll.poll(0)
        if not events:
            return
        if not events[0][1] & select.POLLIN:
            self.close()  # nobody is left who could ask
            return
        import fcntl  # for programs whose network is limited

        request = bytearray(_REQUEST.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, request)
        except OSError:
            return  # it was killed meanwhile
        number, _, _, _, _, _, family, kind, protocol, *_ = _REQUEST.unpack(request)
        tcp = kind & _TYPE == socket.SOCK_STREAM and protocol in (0, socket.IPPROTO_TCP)
        with suppress(OSError):  # it was killed meanwhile
            if not (self._leads_out and tcp and self._hand_out(number, family, kind)):
                fcntl.ioctl(self._listener, _ANSWER, _RESPONSE.pack(number, 0, -errno.EACCES, 0))
                if not self._leads_out:
                    self._refused()

    def _hand_out(self, number: int, family: int, kind: int) -> bool:
        import fcntl

        try:
            made = socket.socket(family & 0xFFFFFFFF, socket.SOCK_STREAM | kind & _NONBLOCK)
        except OSError:
            return False
        with made:
            made.setsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, b"lo\0")
            told = _DESCRIPTOR.pack(number, _AND_ANSWER, made.fileno(), 0, kind & _CLOEXEC)
            fcntl.ioctl(self._listener, _ADD_DESCRIPTOR, told)
        return True
