"""The shim for systems on which pipes cannot be polled: one reader thread per side, over loopback TCP.

Only the connection and the waiting for data differ from `relay`.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections import deque
from contextlib import suppress

from trayapp.shim.relay import CHUNK, PartlyWritten, Shim, greeting
from trayapp.wire.greeting import read_endpoint

CONNECT_TIMEOUT_S = 2.0
CLIENT = 0  # source of an event from the client; any other number is a connection
NO_GATEWAY = -1

Event = tuple[int, bytes]  # (source, data); empty data means that the source closed


class ThreadedShim(Shim):
    """A Shim whose connection is a socket object. Threads read from it and the client; one thread does the rest."""

    def __init__(self, options: dict[str, str], run: str) -> None:
        super().__init__(b"", run)
        self._options = options
        self._events: queue.Queue[Event] = queue.Queue()
        self._postponed: deque[Event] = deque()
        self._socket: socket.socket | None = None
        self._number = 0  # number of the current connection; events of earlier ones are ignored

    def relay(self) -> None:
        """Relay until the client closes our stdin, on events from the reader threads."""
        threading.Thread(target=self._read_client, name="client", daemon=True).start()
        while True:
            event = self._next_event()
            if event is None:
                self._rest()
            elif event[0] == CLIENT and not event[1]:
                return
            elif event[0] == CLIENT:
                self._client_sent(event[1])
            elif event[0] == self._number and self._gateway > NO_GATEWAY:
                if event[1]:
                    self._gateway_sent(event[1])
                else:
                    self._gateway_lost()
            if self._asked_at:
                self._look_for_mute()
            if self._gateway == NO_GATEWAY and self._connect() and not self._replayed():
                self._drop()

    def _next_event(self) -> Event | None:
        if self._postponed:
            return self._postponed.popleft()
        patience_ms = self._patience_ms()
        try:
            return self._events.get(timeout=patience_ms / 1000 if patience_ms else None)
        except queue.Empty:
            return None

    def _read_client(self) -> None:
        while data := os.read(0, CHUNK):
            self._events.put((CLIENT, data))
        self._events.put((CLIENT, b""))

    def _read_gateway(self, sock: socket.socket, number: int) -> None:
        data = b"."
        while data:
            try:
                data = sock.recv(CHUNK)
            except OSError:
                data = b""
            self._events.put((number, data))

    # -- the connection (see Shim) -------------------------------------------------------------------------------

    def _connect(self) -> bool:
        endpoint = read_endpoint(self._run)
        if endpoint is None or not endpoint.port:
            return False
        try:
            sock = socket.create_connection(("127.0.0.1", endpoint.port), CONNECT_TIMEOUT_S)
            sock.settimeout(None)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(greeting({**self._options, "token": endpoint.token}))
        except (OSError, OverflowError):
            return False
        self._number += 1
        self._socket, self._gateway = sock, self._number
        self._new_connection()
        threading.Thread(target=self._read_gateway, args=(sock, self._number), name="gateway", daemon=True).start()
        return True

    def _hang_up(self) -> None:
        sock, self._socket = self._socket, None
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads it
            sock.close()
        self._gateway = NO_GATEWAY

    def _to_gateway(self, data: bytes) -> None:
        assert self._socket is not None
        written = 0
        try:
            while written < len(data):
                written += self._socket.send(memoryview(data)[written:])
        except OSError:
            raise PartlyWritten(written) from None

    def _next_of_gateway(self, patience_s: float) -> bytes | None:
        while True:
            try:
                source, data = self._events.get(timeout=patience_s)
            except queue.Empty:
                return None
            if source == self._number:
                return data
            if source == CLIENT:
                self._postponed.append((source, data))

    def _pause(self, seconds: float) -> bool:
        """Wait and return True. If the client disconnects meanwhile, an event reports it later."""
        time.sleep(seconds)
        return True
