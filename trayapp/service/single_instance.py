"""The rule of one tray per runtime folder. The first tray holds a lock; any other sends it a request and exits.

The system releases the lock however the process ends. The next tray replaces a socket that a killed tray left.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trayapp.wire.greeting import USES_TCP
from trayapp.wire.lock import FileLock, private_folder
from trayapp.wire.rundir import socket_folder

log = logging.getLogger(__name__)

TRAY_LOCK = "tray.lock"
SOCKET = "tray.sock"
ADDRESS = "tray.addr"  # port and token, for Windows, where Unix sockets are unavailable
LINE_LIMIT = 4096  # bytes of a request or an answer
ANSWER_S = 3.0  # limit for an answer. To answer, the first tray only checks its own state
LISTENS_WITHIN_S = 2.0  # limit from the first tray's lock to its socket; another tray may start in between

Answer = Callable[[str], str]


class SingleTray:
    """The single tray of a runtime folder, with its lock and its socket, which uses TCP on Windows."""

    def __init__(self, run: str, tcp: bool = USES_TCP) -> None:
        self._run = run
        self._tcp = tcp
        self._lock = FileLock(run, TRAY_LOCK)
        self._listener: socket.socket | None = None

    def take(self) -> int | None:
        """Take the lock and return None, or return the process id of its holder (0: unknown). Raises StorageError."""
        return self._lock.take()

    def serve(self, answer: Answer) -> None:
        """Answer requests in a thread until `close`. `answer` must not raise. Raises OSError, StorageError."""
        token = secrets.token_urlsafe(32) if self._tcp else ""
        listener = socket.socket(socket.AF_INET if self._tcp else socket.AF_UNIX)
        if self._tcp:
            listener.bind(("127.0.0.1", 0))
            path = Path(self._run) / ADDRESS
            path.unlink(missing_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(f"{listener.getsockname()[1]} {token}")
        else:
            place = self._socket()
            private_folder(place.parent)
            place.unlink(missing_ok=True)  # we hold the lock, so only a killed tray can have left it
            listener.bind(str(place))
            place.chmod(0o600)
        listener.listen()
        self._listener = listener
        threading.Thread(target=self._serve, args=(listener, token, answer), name="second starts", daemon=True).start()

    def send(self, request: str) -> str | None:
        """Send a request to the running tray. Return its answer, or None if there is none in time."""
        end = time.monotonic() + LISTENS_WITHIN_S
        while True:
            try:
                return self._request(request)
            except (ConnectionError, FileNotFoundError, ValueError):
                if time.monotonic() > end:
                    return None
                time.sleep(0.05)
            except OSError:
                return None

    def close(self) -> None:
        """Stop answering and release the lock."""
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self._lock.release()

    def _serve(self, listener: socket.socket, token: str, answer: Answer) -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer, suppress(OSError):  # the peer has closed the connection
                peer.settimeout(ANSWER_S)
                given, _, request = _line(peer).partition(" ")
                if hmac.compare_digest(given.encode(), (token or "-").encode()):
                    peer.sendall(answer(request).replace("\n", "\v").encode()[: LINE_LIMIT - 1] + b"\n")

    def _request(self, request: str) -> str | None:
        token = "-"
        with socket.socket(socket.AF_INET if self._tcp else socket.AF_UNIX) as sock:
            sock.settimeout(ANSWER_S)
            if self._tcp:
                port, token = (Path(self._run) / ADDRESS).read_text(encoding="utf-8").split()
                sock.connect(("127.0.0.1", int(port)))
            else:
                sock.connect(str(self._socket()))
            sock.sendall(f"{token} {request}\n".encode())
            return _line(sock).replace("\v", "\n") or None

    def _socket(self) -> Path:
        return Path(socket_folder(self._run)) / SOCKET


def _line(sock: socket.socket) -> str:
    data = b""
    while not data.endswith(b"\n") and len(data) < LINE_LIMIT:
        piece = sock.recv(LINE_LIMIT)
        if not piece:
            break
        data += piece
    return data.decode(errors="replace").rstrip("\n")
