"""The redirect URI of a sign-in: a listener on a random port of 127.0.0.1 that takes one answer and closes.

An answer is valid if its state is ours (RFC 6749 10.12) and its issuer is the expected one (RFC 9207).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs

import anyio
import anyio.abc

from trayapp.auth.asking import Answer
from trayapp.auth.grant import SignInError
from trayapp.auth.page import POLICY, CallbackPage, Outcome, html

log = logging.getLogger(__name__)

PATH = "/callback"
HOST = "127.0.0.1"
READ_S = 10.0  # for a request to arrive: browsers open spare connections
HEAD_MAX = 32 * 1024  # bytes of a request; codes and states have a few hundred
SHOWN_S = 3.0  # for the browser to receive the page after the outcome is decided
DENIED = "access_denied"  # RFC 6749 4.1.2.1
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 410: "Gone"}


@dataclass(frozen=True, slots=True)
class Expected:
    """The parameters that an answer must carry."""

    state: str
    issuer: str | None
    iss_required: bool


class Callback:
    """The listener of one sign-in. `server`: its name, for the page."""

    def __init__(self, server: str, port: int) -> None:
        self.redirect_uri = f"http://{HOST}:{port}{PATH}"
        self._server = server
        self._port = port
        self._expected: Expected | None = None
        self._taken = False  # a valid answer arrived
        self._come = anyio.Event()
        self._answer: Answer | SignInError | None = None
        self._decided = anyio.Event()
        self._page: CallbackPage | None = None
        self._shown = anyio.Event()
        self._is_shown_to_somebody = False

    def expect(self, expected: Expected) -> None:
        """Set the parameters of a valid answer."""
        self._expected = expected

    async def answer(self) -> Answer:
        """Wait for the valid answer. Raise SignInError if it is a refusal."""
        await self._come.wait()
        assert self._answer is not None
        if isinstance(self._answer, SignInError):
            raise self._answer
        return self._answer

    def paste(self, address: str) -> None:
        """Take the answer from the address where a browser on another machine ended.

        Raise SignInError for an invalid one; the sign-in keeps waiting.
        """
        text = address.strip().partition("#")[0]
        query = text.partition("?")[2] or text
        if self._taken:
            raise SignInError("This sign-in was already answered", "Start a new one")
        if self._judge(query) is None:
            hint = "Paste the whole address that the browser ended up at, starting with http://127.0.0.1"
            raise SignInError("This is not the address of this sign-in", hint)

    def decide(self, error: SignInError | None) -> None:
        """End the sign-in and show its outcome in the waiting browser."""
        if self._page is None:
            outcome: Outcome = "success" if error is None else "error"
            self._page = CallbackPage(outcome, self._server, error.title if error else "")
        self._decided.set()

    async def shown(self) -> None:
        """Wait, up to SHOWN_S, until the waiting browser has received the page."""
        if self._is_shown_to_somebody:
            with anyio.move_on_after(SHOWN_S, shield=True):
                await self._shown.wait()

    # -- judging -------------------------------------------------------------------------------------------------

    def _judge(self, query: str) -> bool | None:
        """Return None if a query is not our answer, True if it is valid and holds a code, else False."""
        said = {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}
        expected = self._expected
        state = said.get("state", "")
        if expected is None or self._taken or not secrets.compare_digest(state.encode(), expected.state.encode()):
            return None
        self._taken = True
        self._answer = self._read(said, expected)
        if isinstance(self._answer, SignInError):
            denied = said.get("error") == DENIED
            self._page = CallbackPage(
                "denied" if denied else "error", self._server, "" if denied else self._answer.title
            )
        self._come.set()
        return isinstance(self._answer, Answer)

    @staticmethod
    def _read(said: dict[str, str], expected: Expected) -> Answer | SignInError:
        iss = said.get("iss")
        if (iss is None and expected.iss_required) or (iss is not None and iss != expected.issuer):
            return SignInError(
                "The answer came from a different sign-in service than the one that was asked", "Try again"
            )
        if said.get("error") == DENIED:
            return SignInError("The sign-in was declined", "Try again, and allow it")
        if "error" in said:
            kind = "".join(letter for letter in said["error"][:60] if letter.isalnum() or letter in "_-")
            return SignInError(f"The sign-in service refused ({kind or 'no reason given'})", "Try again")
        if not said.get("code"):
            return SignInError("The sign-in service sent no code", "Try again")
        return Answer(said["code"], said["state"], iss)

    # -- HTTP ----------------------------------------------------------------------------------------------------

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        """Serve one connection, from a browser or anyone on this machine. A boundary: its failure stops here."""
        try:
            async with stream:
                head = await _head(stream)
                if head is not None:
                    await self._respond(stream, head)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError):
            return  # the client disconnected
        except Exception:
            log.exception("Unexpected error in a connection to the sign-in page")

    async def _respond(self, stream: anyio.abc.SocketStream, head: bytes) -> None:
        method, target, host = _parsed(head)
        path, _, query = target.partition("?")
        if host not in (f"{HOST}:{self._port}", f"localhost:{self._port}"):
            await _send(stream, 400, b"")  # a page elsewhere under another host name (DNS rebinding)
        elif method != "GET":
            await _send(stream, 405, b"")
        elif path != PATH:
            await _send(stream, 404, b"")
        elif self._judge(query) is None:
            await _send(stream, 410, html(CallbackPage("unknown", self._server)))
        else:
            await self._await_outcome(stream)

    async def _await_outcome(self, stream: anyio.abc.SocketStream) -> None:
        """Wait for the outcome of the sign-in, then send the page that shows it."""
        self._is_shown_to_somebody = True
        try:
            await self._decided.wait()
            assert self._page is not None
            await _send(stream, 200, html(self._page))
        finally:
            self._shown.set()


@asynccontextmanager
async def listening(server: str, port: int = 0) -> AsyncIterator[Callback]:
    """Yield a Callback that listens until the end of the block. `port` 0 = a random one. Raise SignInError."""
    try:
        listener = await anyio.create_tcp_listener(local_host=HOST, local_port=port)
    except OSError as error:
        title = f"Cannot listen on port {port} of this machine: {error.strerror}"
        raise SignInError(title, "Close the program that uses it, or remove callback_port from servers.yaml") from None
    chosen: int = listener.extra(anyio.abc.SocketAttribute.local_port)
    callback = Callback(server, chosen)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, callback.serve)
        try:
            yield callback
            await callback.shown()
        finally:
            tasks.cancel_scope.cancel()


async def _head(stream: anyio.abc.SocketStream) -> bytes | None:
    """Return a request up to its empty line, or None if none arrives."""
    data = b""
    with anyio.move_on_after(READ_S):
        while b"\r\n\r\n" not in data:
            data += await stream.receive()
            if len(data) > HEAD_MAX:
                return None
        return data
    return None


def _parsed(head: bytes) -> tuple[str, str, str]:
    """Return method, target and host, each "" if it cannot be read."""
    first, *lines = head.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    words = first.split(" ")
    named = dict(line.partition(":")[::2] for line in lines)
    host = next((value.strip() for name, value in named.items() if name.strip().lower() == "host"), "")
    return (words[0], words[1], host.lower()) if len(words) == 3 else ("", "", host.lower())


async def _send(stream: anyio.abc.SocketStream, status: int, body: bytes) -> None:
    lines = [
        f"HTTP/1.1 {status} {REASONS[status]}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        f"Content-Security-Policy: {POLICY}",
        "Referrer-Policy: no-referrer",  # the address of the page contains the code
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    await stream.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
