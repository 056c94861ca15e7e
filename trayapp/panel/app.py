"""The panel as an ASGI application: access control, routing, response headers, and server-sent events.

The first request for the panel loads this module.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode

import anyio
import anyio.abc
import anyio.to_thread

from trayapp.model.errors import MultiMcpError
from trayapp.model.redact import redacted
from trayapp.panel import pages
from trayapp.panel.actions import ACTIONS, ActionResult, Form
from trayapp.panel.host import PanelHost
from trayapp.wire.control import ASKS
from trayapp.wire.messages import RpcError

log = logging.getLogger(__name__)

ROOT = "/panel"
COOKIE = "multi_mcp_panel"
LARGEST_FORM = 1 << 20
THROTTLE_S = 0.1  # changes within this time cause only one page reload
REST = 4  # pause after each page, in multiples of its build time, so that reloads take at most a fifth of a core
KEEP_ALIVE_S = 20.0
# Allow only our own style sheet, scripts, and images, and no frames. Cross-Origin-Opener-Policy is not set:
# it makes a browser discard the process that it started for the page, which costs 80 ms. Another origin that opens
# the panel cannot read it anyway.
POLICY = "; ".join(
    ("default-src 'none'", f"script-src 'self' {pages.source_of(pages.SCRIPT)}",
     f"style-src {pages.source_of(pages.STYLE)}", "img-src 'self'", "connect-src 'self'",
     "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'")
)  # fmt: skip
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
NO_STORE = (b"cache-control", b"no-store")
FRESH = (b"cache-control", b"no-cache")
IMMUTABLE = (b"cache-control", b"max-age=31536000, immutable")  # for a file whose address changes with its content
# Pages that always exist. Their head is sent before the rest is built: a browser takes 15 ms to leave the previous
# page, and does so during that time.
ALWAYS_THERE = {name for name, _ in pages.NAV}
NEWS = ("change", "calls", "logs")  # event names, in the order of the numbers that `PanelHost.seen` returns
HTML = "text/html; charset=utf-8"
EVENTS = "text/event-stream; charset=utf-8"
SEE_LOG = "See the gateway's log: multi-mcp logs"

Line = tuple[bytes, bytes]


class Panel:
    """The panel of one gateway on one port."""

    def __init__(self, host: PanelHost) -> None:
        self._host = host
        self._page_s = 0.0  # build time of the last page

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request. This is the boundary where exceptions become error pages."""
        if scope["type"] != "http":
            return
        reply = PanelResponse(scope, send)
        try:
            await self._route(scope, receive, reply)
        except (MultiMcpError, RpcError) as error:
            status = 404 if isinstance(error, pages.PageNotFoundError) else 400
            await reply.show(error_result(error), "error.html", status)
        except OSError as error:
            log.warning("Cannot answer a panel request: %s", error)
            what = f"Cannot use {error.filename}" if error.filename else "Cannot build the page"
            await reply.show(ActionResult(f"{what}: {error.strerror}", SEE_LOG, wrong=True), "error.html", 500)
        except Exception:
            log.exception("Unexpected error in the panel")
            if not reply.ended:
                await reply.show(ActionResult("Cannot build the page", SEE_LOG, wrong=True), "error.html", 500)

    async def _route(self, scope: Any, receive: Any, reply: PanelResponse) -> None:
        path, method = scope["path"].removeprefix(ROOT).strip("/"), scope["method"]
        if path.startswith("static/") and method in ("GET", "HEAD"):
            if (file := pages.FILES.get(path.removeprefix("static/"))) is None:
                await reply.send(b"Not Found", 404, "text/plain")
            else:
                is_newest = file.address.endswith(f"?{scope['query_string'].decode('latin-1')}")
                await reply.send(file.content, 200, file.kind, [IMMUTABLE if is_newest else FRESH])
            return
        query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
        if path == "enter":
            await self._enter(query, method, scope, reply)
            return
        cookie = cookie_of(scope)
        if cookie is None or not self._host.access.knows(cookie):
            await reply.html(pages.render("signin.html", ended=cookie is not None), 401)
        elif method == "POST":
            await self._change(path, cookie, scope, receive, reply)
        elif method not in ("GET", "HEAD"):
            await reply.show(ActionResult("This page accepts only GET and POST", wrong=True), "error.html", 405)
        elif path == "events":
            await self._send_events(query, receive, reply)
        else:
            is_news = (b"hx-request", b"true") in scope["headers"]
            await self._send_page(path, query, cookie, is_news, reply)

    async def _enter(self, query: dict[str, str], method: str, scope: Any, reply: PanelResponse) -> None:
        code, what = query.get("code", ""), query.get("what", "")
        cookie = self._host.access.redeem(code) if method == "GET" else None
        if cookie is None:
            await reply.html(pages.render("signin.html", used=bool(code)), 401)
            return
        value = f"{name_of(scope)}={cookie}; Path={ROOT}; HttpOnly; SameSite=Strict"
        reply.more = [(b"set-cookie", value.encode())]
        page = f"add?{urlencode({'what': what})}#found" if what else query.get("page", "")
        if what or page in ALWAYS_THERE - {""}:
            await reply.send(b"", 303, "", [(b"location", f"{ROOT}/{page}".encode()), NO_STORE])
        else:  # no redirect, which would cost a request. The page's script corrects the address
            await self._send_page("", {}, cookie, False, reply)

    async def _send_page(
        self, path: str, query: dict[str, str], cookie: str, is_news: bool, reply: PanelResponse
    ) -> None:
        name, _, rest = path.partition("/")
        page = pages.PAGES.get(name)
        if page is None:
            raise pages.PageNotFoundError("This page does not exist")
        began, seen = time.perf_counter(), "-".join(map(str, self._host.seen()))
        head = "" if is_news else pages.render("head.html", token=self._host.access.token(cookie))
        if head and not rest and name in ALWAYS_THERE:
            await reply.begin(head)
            head = ""
        context = await page(pages.Page(self._host, unquote(rest), query, is_news))
        waiting = 0 if is_news else await self._waiting()  # an update of an open page has no menu to show the number
        text = await anyio.to_thread.run_sync(
            lambda: pages.render(waiting=waiting, is_news=is_news, page=name, seen=seen, **context)
        )
        self._page_s = time.perf_counter() - began
        await reply.html(head + text)

    async def _waiting(self) -> int:
        """Return the number of calls and questions that wait for the user."""
        return len((await self._host.ask(ASKS, {}))["asks"])

    async def _change(self, path: str, cookie: str, scope: Any, receive: Any, reply: PanelResponse) -> None:
        """Carry out an action if the request has our origin and the page's token; otherwise, refuse it."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        own = f"http://{headers.get(b'host', '')}"
        if headers.get(b"origin") != own or not self._host.access.is_token(cookie, headers.get(b"x-panel-token", "")):
            await reply.show(ActionResult("This request did not come from the panel", wrong=True), status=403)
            return
        if (action := ACTIONS.get(path)) is None:
            await reply.show(ActionResult("This action does not exist", wrong=True), status=404)
            return
        if (body := await body_of(receive)) is None:
            await reply.show(ActionResult("The form is too large", wrong=True), status=413)
            return
        values = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=500)
        try:
            said = await action(self._host, Form(values))
        except (MultiMcpError, RpcError) as error:
            said = error_result(error)
        more = [(b"hx-trigger", b"panel-changed")] if said.changed else []
        if said.instead:
            more += [(b"hx-retarget", f"#{said.instead}".encode()), (b"hx-reswap", b"outerHTML")]
        await reply.show(said, more=more)

    async def _send_events(self, query: dict[str, str], receive: Any, reply: PanelResponse) -> None:
        """Send an event for each change that an open page should load, until the browser disconnects.

        The query's `seen` holds the numbers that `PanelHost.seen` returned when the page was built. The query of a page
        with a log also has `logs`.
        """
        host, news = self._host, anyio.Event()
        sources = {"change": host.changes, "calls": host.calls} | ({"logs": host.logs} if "logs" in query else {})
        current = zip(NEWS, host.seen(), query.get("seen", "").split("-"), strict=False)
        names = {name for name, number, known in current if known != str(number) and name in sources}

        def hear(name: str) -> None:
            names.add(name)
            news.set()

        ends = [listen(partial(hear, name)) for name, listen in sources.items()]

        async def watch(tasks: anyio.abc.TaskGroup) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        try:
            await reply.begin("retry: 500\n\n", EVENTS)
            with host.watched():
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(watch, tasks)
                    # The page is complete. Compile the other templates now, so that no later page waits for them.
                    tasks.start_soon(anyio.to_thread.run_sync, pages.compile_templates)
                    while True:
                        with anyio.move_on_after(0 if names else KEEP_ALIVE_S):
                            await news.wait()
                        news = anyio.Event()
                        told, names = names, set()
                        news_of = dict.fromkeys(sorted(told), ".")
                        if "change" in told:
                            news_of["waiting"] = pages.render("waiting.html", waiting=await self._waiting())
                        await reply.tell(news_of)
                        await anyio.sleep(max(THROTTLE_S, self._page_s * REST))
        finally:
            for end in ends:
                end()


class PanelResponse:
    """One HTTP response.

    `more`: additional headers. `ended`: True if the response is complete or is an event stream, so no page can follow.
    """

    def __init__(self, scope: Any, send: Any) -> None:
        self._head = scope["method"] == "HEAD"
        self._send = send
        self._begun = False
        self.more: Sequence[Line] = ()
        self.ended = False

    async def html(self, text: str, status: int = 200, more: Sequence[Line] = ()) -> None:
        """Send a page or a part of a page. If `begin` has sent its head, send the rest."""
        body = text.encode("utf-8", "replace")
        if self._begun:
            await self._send_body(body, more=False)
        else:
            await self.send(body, status, HTML, [NO_STORE, *more])

    async def show(
        self, said: ActionResult, template: str = "said.html", status: int = 200, more: Sequence[Line] = ()
    ) -> None:
        """Send the page or part of a page that shows the result of an action, or an error."""
        await self.html(pages.render(template, said=said), status, more)

    async def send(self, body: bytes, status: int, kind: str, more: Sequence[Line] = ()) -> None:
        headers = [*more, (b"content-length", str(len(body)).encode())]
        headers += [(b"content-type", kind.encode())] if kind else []
        await self._start(status, headers)
        await self._send_body(body, more=False)

    async def begin(self, text: str, kind: str = HTML) -> None:
        """Send the headers and the first text of a page or an event stream."""
        self.ended = kind != HTML
        await self._start(200, [NO_STORE, (b"content-type", kind.encode())])
        await self._send_body(text.encode(), more=True)

    async def _start(self, status: int, headers: Sequence[Line]) -> None:
        self._begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": [*HEADERS, *self.more, *headers]})

    async def _send_body(self, body: bytes, *, more: bool) -> None:
        self.ended = self.ended or not more
        await self._send({"type": "http.response.body", "body": b"" if self._head else body, "more_body": more})

    async def tell(self, events: Mapping[str, str]) -> None:
        """Send events (name -> one line of data), or a comment to keep the connection alive if there are none."""
        body = "".join(f"event: {name}\ndata: {data}\n\n" for name, data in events.items()) or ":\n\n"
        await self._send_body(body.encode(), more=True)


def error_result(error: MultiMcpError | RpcError) -> ActionResult:
    """Return an error in the form of an action's result, with secrets redacted."""
    if isinstance(error, MultiMcpError):
        return ActionResult(redacted(error.title), redacted(error.hint), wrong=True, field=error.field)
    hint = error.data.get("hint", "") if isinstance(error.data, dict) else ""
    return ActionResult(redacted(error.message), redacted(str(hint)), wrong=True)


def name_of(scope: Any) -> str:
    """Return the name of our cookie. It contains the port, because a host's cookies are sent to all its ports."""
    return f"{COOKIE}_{scope['server'][1]}"


def cookie_of(scope: Any) -> str | None:
    """Return the value of our cookie, or None if the request has none."""
    text = "; ".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie")
    try:
        morsel = SimpleCookie(text).get(name_of(scope))
    except CookieError:
        return None
    return morsel.value if morsel is not None else None


async def body_of(receive: Any) -> bytes | None:
    """Receive and return the request body. Return None if it is too large or the client disconnected."""
    body: bytes = b""
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return None
        body += event.get("body", b"")
        if len(body) > LARGEST_FORM:
            return None
        if not event.get("more_body"):
            return body
