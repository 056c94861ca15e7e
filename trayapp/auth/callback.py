"""The redirect URI of a sign-in: a listener on 127.0.0.1 that takes one answer and closes.

The port is random unless the server's `callback_port` names one. An answer must carry our state (RFC 6749 10.12), and
the expected issuer if it names or must name one (RFC 9207). The browser gets a page with the outcome.
"""

from __future__ import annotations

import logging
import secrets
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Literal, NamedTuple
from urllib.parse import parse_qs

import anyio
import anyio.abc

from trayapp.auth.grant import SignInError

Outcome = Literal["success", "denied", "error", "unknown"]
DETAIL_MAX = 240  # longest error text that the page shows, in characters
_MARKS: dict[Outcome, str] = {
    "success": '<path d="M20 33.5l8.5 8.5L45 25"/>',
    "denied": '<path d="M20 32h24"/>',
    "error": '<path d="M32 19v17"/><path d="M32 44.5v.5"/>',
    "unknown": '<path d="M25.5 26.5a6.7 6.7 0 1 1 9.6 6c-2 1-3.1 2.3-3.1 4.5"/><path d="M32 45v.5"/>',
}
_RENEWED = "Your AI tools can use the server now. multi-mcp renews the sign-in automatically if the service allows."
_TEXTS: dict[Outcome, tuple[str, str]] = {  # title and paragraph
    "success": ("Signed in to {}", _RENEWED),
    "denied": ("Not signed in to {}", "The request was declined. Nothing was changed."),
    "error": ("The sign-in to {} failed", ""),
    "unknown": (
        "This sign-in is over",
        "This address belongs to no sign-in in progress. It has expired or was already used.",
    ),
}
_STYLE = """
:root{color-scheme:light dark;--back:#f4f5f8;--card:#fff;--ink:#1a1d26;--soft:#5b6170;--line:#e3e6ec;
--shade:0 1px 2px rgba(20,24,40,.06),0 12px 40px rgba(20,24,40,.08)}
.success{--mark:#15803d;--tint:#dcfce7}.denied{--mark:#a16207;--tint:#fef3c7}
.error{--mark:#b91c1c;--tint:#fee2e2}.unknown{--mark:#475569;--tint:#e8ecf2}
@media (prefers-color-scheme:dark){
:root{--back:#0f1116;--card:#191c24;--ink:#eceef3;--soft:#a2a9b8;--line:#2b303b;--shade:0 12px 40px rgba(0,0,0,.45)}
.success{--mark:#4ade80;--tint:#12301f}.denied{--mark:#fbbf24;--tint:#33280d}
.error{--mark:#f87171;--tint:#3a1719}.unknown{--mark:#94a3b8;--tint:#252b37}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:flex;align-items:center;justify-content:center;padding:24px;
background:var(--back);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{width:100%;max-width:440px;background:var(--card);border:1px solid var(--line);border-radius:16px;
box-shadow:var(--shade);padding:40px 36px 28px;text-align:center}
svg{width:64px;height:64px;display:block;margin:0 auto 20px}
svg circle{fill:var(--tint)}svg path{transform:scale(1.2);transform-origin:center;fill:none;stroke:var(--mark);
stroke-width:4;stroke-linecap:round;stroke-linejoin:round}
h1{margin:0 0 8px;font-size:22px;line-height:1.3;font-weight:650;letter-spacing:-.01em;overflow-wrap:anywhere}
p{margin:0;color:var(--soft);overflow-wrap:anywhere}
.detail{margin:16px 0 0;padding:12px 14px;border:1px solid var(--line);border-radius:10px;background:var(--back);
color:var(--ink);font-size:14px;text-align:left}
.again{margin:18px 0 0;font-size:14px}
.again code{display:inline-block;margin-top:6px;padding:5px 12px;border-radius:8px;background:var(--back);
border:1px solid var(--line);color:var(--ink)}
footer{margin:26px -36px 0;padding:16px 36px 0;border-top:1px solid var(--line);font-size:13px;color:var(--soft)}
footer b{color:var(--ink);font-weight:600}
code{font:.92em ui-monospace,SFMono-Regular,Consolas,"DejaVu Sans Mono",monospace}
@media (max-width:420px){main{padding:32px 22px 22px}footer{margin:22px -22px 0;padding:14px 22px 0}}
"""
# The page needs only its own style: no script, no picture, no frame, no form.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
POLICY += "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
log = logging.getLogger(__name__)
PATH = "/callback"
HOST = "127.0.0.1"
READ_S = 10.0  # limit on the wait for a request: browsers open spare connections
HEAD_MAX = 32 * 1024  # limit on a request's head, in bytes; codes and states have a few hundred
SHOWN_S = 3.0  # time for the browser to receive the page after the outcome is decided
DENIED = "access_denied"  # RFC 6749 4.1.2.1
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 410: "Gone"}


class Expected(NamedTuple):
    """The parameters that an answer must carry."""

    state: str
    issuer: str | None
    iss_required: bool


@dataclass(frozen=True, slots=True)
class AuthorizationResponse:
    """The parameters of a successful answer. State and issuer are already checked."""

    code: str = field(repr=False)
    state: str = field(repr=False)
    iss: str | None = None


class Callback:
    """The listener of one sign-in. `server` is the server's name, for the page."""

    def __init__(self, server: str, port: int) -> None:
        self.redirect_uri = f"http://{HOST}:{port}{PATH}"
        self._server = server
        self._port = port
        self._expected: Expected | None = None
        self._taken = False  # an answer with our state arrived
        self._come = anyio.Event()
        self._answer: AuthorizationResponse | SignInError | None = None
        self._decided = anyio.Event()
        self._page = b""  # empty until the outcome is known
        self._shown = anyio.Event()
        self._browser_waits = False

    def expect(self, expected: Expected) -> None:
        self._expected = expected

    async def answer(self) -> AuthorizationResponse:
        """Wait for the answer and return it. Raises SignInError for an error, a missing code or a wrong issuer."""
        await self._come.wait()
        assert self._answer is not None
        if isinstance(self._answer, SignInError):
            raise self._answer
        return self._answer

    def paste(self, address: str) -> None:
        """Accept the address that a browser on another machine was sent to, with the answer in it.

        Raises SignInError if the sign-in was already answered, or if the address is not an answer to it. After a
        wrong address, the sign-in keeps waiting.
        """
        text = address.strip().partition("#")[0]
        query = text.partition("?")[2] or text
        if self._taken:
            raise SignInError("This sign-in was already answered", "Start a new one")
        if not self._takes(query):
            hint = "Paste the whole address that the browser ended up at, starting with http://127.0.0.1"
            raise SignInError("This is not the address of this sign-in", hint)

    def decide(self, error: SignInError | None) -> None:
        """End the sign-in and show its outcome in the waiting browser."""
        if not self._page:
            self._page = html("error", self._server, error.title) if error else html("success", self._server)
        self._decided.set()

    async def shown(self) -> None:
        """Wait, up to SHOWN_S, until the waiting browser has received the page."""
        if self._browser_waits:
            with anyio.move_on_after(SHOWN_S, shield=True):
                await self._shown.wait()

    def _takes(self, query: str) -> bool:
        """Take an answer, valid or not. Return True if it was taken.

        An answer is not taken if it belongs to another sign-in, comes too early, or is the second one.
        """
        parameters = {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}
        expected = self._expected
        state = parameters.get("state", "")
        if expected is None or self._taken or not secrets.compare_digest(state.encode(), expected.state.encode()):
            return False
        self._taken = True
        self._answer = self._read(parameters, expected)
        if isinstance(self._answer, SignInError):
            denied = parameters.get("error") == DENIED
            self._page = html("denied" if denied else "error", self._server, self._answer.title)
        self._come.set()
        return True

    @staticmethod
    def _read(parameters: dict[str, str], expected: Expected) -> AuthorizationResponse | SignInError:
        iss = parameters.get("iss")
        if (iss is None and expected.iss_required) or (iss is not None and iss != expected.issuer):
            title = "The answer came from a different sign-in service than the one that was asked"
        elif parameters.get("error") == DENIED:
            return SignInError("The sign-in was declined", "Try again, and allow access")
        elif "error" in parameters:
            kind = "".join(letter for letter in parameters["error"][:60] if letter.isalnum() or letter in "_-")
            title = f"The sign-in service rejected the sign-in: {kind or 'no reason given'}"
        elif parameters.get("code"):
            return AuthorizationResponse(parameters["code"], parameters["state"], iss)
        else:
            title = "The sign-in service sent no code"
        return SignInError(title, "Try again")

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        """Serve one connection from any local program. Exception boundary: its failure affects no other connection."""
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
        first, *lines = head.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        words = first.split(" ")
        method, target = words[:2] if len(words) == 3 else ("", "")
        named = dict(line.partition(":")[::2] for line in lines)
        host = next((value.strip() for name, value in named.items() if name.strip().lower() == "host"), "").lower()
        path, _, query = target.partition("?")
        if host not in (f"{HOST}:{self._port}", f"localhost:{self._port}"):
            await _send(stream, 400, b"")  # another site's page that reaches us by its own host name (DNS rebinding)
        elif method != "GET":
            await _send(stream, 405, b"")
        elif path != PATH:
            await _send(stream, 404, b"")
        elif not self._takes(query):
            await _send(stream, 410, html("unknown", self._server))
        else:
            self._browser_waits = True
            try:
                await self._decided.wait()
                await _send(stream, 200, self._page)
            finally:
                self._shown.set()


@asynccontextmanager
async def listening(server: str, port: int = 0) -> AsyncIterator[Callback]:
    """Yield a Callback that listens until the end of the block. Port 0 means a random port. Raises SignInError."""
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
    """Read a request up to the end of its head, and return the bytes, or None if it is too slow or too large."""
    data = b""
    with anyio.move_on_after(READ_S):
        while b"\r\n\r\n" not in data and len(data) <= HEAD_MAX:
            data += await stream.receive()
        return data if len(data) <= HEAD_MAX else None
    return None


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


def html(outcome: Outcome, server: str, error: str = "") -> bytes:
    """Return the page as UTF-8 HTML. `server` is the name in servers.yaml. All texts from outside are escaped."""
    title, words = _TEXTS[outcome]
    title = title.format(server)
    detail = " ".join(error.split())[:DETAIL_MAX] if outcome == "error" else ""
    paragraph = f"<p>{words}</p>" if words else ""
    box = f'<p class="detail">{escape(detail)}</p>' if detail else ""
    command = escape("multi-mcp auth " + ("SERVER" if outcome == "unknown" else shlex.quote(server)))
    again = f'<p class="again">Try again from the tray icon, or with<br><code>{command}</code></p>'
    again = "" if outcome == "success" else again
    return f"""<!doctype html>
<html lang="en" class="{outcome}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><link rel="icon" href="data:,">
<title>{escape(title)} - multi-mcp</title><style>{_STYLE}</style></head>
<body><main>
<svg viewBox="0 0 64 64" aria-hidden="true"><circle cx="32" cy="32" r="32"/>{_MARKS[outcome]}</svg>
<h1>{escape(title)}</h1>
{paragraph}{box}{again}
<footer><b>multi-mcp</b> &middot; You can close this tab.</footer>
</main></body></html>
""".encode()
