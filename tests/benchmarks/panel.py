"""The panel in a real browser with 70 servers: first paint, live updates and filters.

It also measures what the history costs per call. Without Chromium, a note replaces the browser's figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tests.benchmarks import workloads
from tests.benchmarks.calls import MS, SMALL, connected, without_collections
from tests.benchmarks.catalog import THINGS, VERBS
from tests.benchmarks.client import BrokenError
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.idle import cpu_s
from tests.benchmarks.run import Measured
from tests.benchmarks.ways import Home, fresh_home, gateway, through
from trayapp.config.paths import find_paths
from trayapp.history.ended_call import Caller, EndedCall
from trayapp.history.record import Row
from trayapp.history.recorder import FILE_NAME, FLUSH_S, Recorder
from trayapp.history.store import HistoryFile
from trayapp.model.config import HistorySettings
from trayapp.model.errors import MultiMcpError
from trayapp.wire import control
from trayapp.wire.control import ControlClient

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

US = 1e6  # microseconds per second
KEPT = 100_000  # calls in the history
BATCH = 5_000  # calls per write
SIZE = 50_000_000  # bytes, the history's size limit
TURN = 100  # calls per turn
LIMIT_MS = 20_000.0  # limit of any wait in the browser
STREAM_OPEN_S = 0.5  # enough for a loaded page to receive live updates
TAB_OPEN_S = 1.0  # enough for a new page's browser processes to start, on the two cores shared with the gateway
CLIENTS = ("claude-code", "codex", "cursor")
PAGES = {"Overview": "", "Tools": "tools", "Activity": "activity", "AI tools": "clients", "Health": "health"}
FILTERS = {"words": "words=invoice", "a tool": "tool=create_invoice", "failures": "failed=yes", "no call": "words=zzz"}
SEARCHES = {"one letter": "q=s", "two words": "q=create+invoice", "nothing": "q=zzzz"}
# Returns the milliseconds from the request to the first byte and to the first paint, and the page's size in bytes. The
# times include redirects and connecting.
PAINTED = """() => new Promise(done => new PerformanceObserver((list, one) => {
  const painted = list.getEntriesByName("first-contentful-paint")[0];
  if (!painted) return;  // a background alone
  one.disconnect();
  const asked = performance.getEntriesByType("navigation")[0];
  const began = asked.redirectStart || asked.fetchStart;
  done([asked.responseStart - began, painted.startTime - began, asked.encodedBodySize]);
}).observe({type: "paint", buffered: true}))"""
# Returns how many milliseconds a path takes to fetch, or -1 if the answer has no rows.
FETCHED = """async path => {
  const before = performance.now();
  const came = await (await fetch(path)).text();
  return came.includes('id="rows"') ? performance.now() - before : -1;
}"""
# Sets `window.seen` to the time (ms since 1970) when the element's text has changed and contains the words. If `there`
# is false, the words must be gone instead.
WATCH = """([selector, words, there]) => {
  const text = () => (document.querySelector(selector) || {}).id + (document.querySelector(selector) || {}).textContent;
  const before = text();
  window.seen = 0;
  if (window.watcher) window.watcher.disconnect();
  window.watcher = new MutationObserver(() => {
    const now = text();
    if (!window.seen && now !== before && now.includes(words) === there) window.seen = Date.now();
  });
  window.watcher.observe(document.body, {subtree: true, childList: true, characterData: true});
}"""
LIVE = "live"  # the server that the events happen to
DRAFT = {"name": "draft", "description": "Draft 0", "inputSchema": {"type": "object"}}
LOGGED = 'tail -n0 -F "$0" >&2 & exec "$@"'  # copies lines appended to a file into the server's log


@dataclass(frozen=True, slots=True)
class News:
    """An event, and how an open page shows it: `words` appear or, if `there` is False, disappear.

    In `words`, `{}` is replaced by a word that is unique to the round.
    """

    name: str
    path: str
    selector: str
    words: str
    there: bool
    happen: Callable[[ControlClient, str], object]


def measure_panel(rounds: int, calls: int, live: int, data: Path | None = None) -> Iterator[Measured]:
    """Yield the figures of the history and of the browser.

    `calls`: how many calls to make with the history, and as many without it.
    `live`: rounds for each event.
    """
    yield from measure_history(calls)
    yield measure_note(max(calls // TURN, 7))
    program = shutil.which("chromium")
    if program is None:
        yield "The panel is not measured: chromium is not installed"
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield from measure_pages(browser, rounds, data)
            yield from measure_news(browser, live, data)
        finally:
            browser.close()


def measure_pages(browser: Browser, rounds: int, data: Path | None) -> Iterator[Measured]:
    """Yield the load times of pages, and the response times of filters and searches."""
    floor(browser, TAB_OPEN_S)  # the browser's first page also starts its processes
    with fresh_home() as home:
        work = workloads.large(home.path / "shelf", data)
        title, target = f"panel, {work.name}: request -> first", Target("value", 100.0)
        byte = Figure(f"{title} byte", "ms", compared=False)
        painted = Figure(f"{title} paint", "ms", target=target, compared=False)
        size = Figure(f"panel, {work.name}: HTML of a page, its styles included", "bytes", compared=False)

        def note(way: str, page: Sequence[float]) -> None:
            for figure, value in zip((byte, painted, size), page, strict=True):
                figure.add(way, value)

        work.fill(home.path, http={"enabled": True, "port": free_port()})
        fill_history(home, list(work.servers))
        for _ in range(rounds):
            for beside, wait_s in (("", TAB_OPEN_S), (", while its tab still starts", 0.0)):
                note(f"one heading{beside}", floor(browser, wait_s))
                with settled(home), opened(browser, home, wait_s) as page:
                    note(f"{OURS}, a gateway's first page{beside}", page.evaluate(PAINTED))
                    for name, path in PAGES.items() if wait_s else ():
                        time.sleep(STREAM_OPEN_S)  # people click only after the previous page has loaded its scripts
                        page.goto(f"{root(page)}/{path}")
                        note(f"{OURS}, {name}", page.evaluate(PAINTED))
        yield from (byte, painted, size)
        with settled(home), opened(browser, home) as page:
            yield asked(page, f"Activity, {KEPT:,} calls: a filter's answer", "activity", FILTERS, rounds)
            yield asked(page, f"{work.name}: a search's answer as typed", "tools", SEARCHES, rounds)


def measure_news(browser: Browser, rounds: int, data: Path | None) -> Iterator[Figure]:
    """Measure how soon an open page shows each event of `news_of`."""
    seen = Figure("event -> open page", "ms", target=Target("value", 300.0), compared=False)
    with fresh_home() as home:
        large = workloads.large(home.path / "shelf", data)
        shelf, log = home.path / "live.json", home.path / "live.log"
        log.touch()
        tools = [workloads.ECHO, DRAFT]
        shelf.write_text(json.dumps({"tools": tools}), encoding="utf-8")
        argv = ("sh", "-c", LOGGED, str(log), *workloads.NULL_SERVER, str(shelf))
        servers, shelves = {LIVE: argv, **large.servers}, {LIVE: tools, **large.shelf}
        work = replace(large, servers=servers, shelf=shelves)
        work.fill(home.path, http={"enabled": True, "port": free_port()}, ask="writes")
        fill_history(home, list(large.servers))
        with settled(home), opened(browser, home) as page, home.control() as gateway:
            gateway.call(control.RECONNECT, {"server": LIVE})
            for one in news_of(home, shelf, log):
                page.goto(f"{root(page)}/{one.path}", wait_until="load")
                for number in range(rounds):
                    time.sleep(STREAM_OPEN_S)
                    seen.add(f"{OURS}, {one.name}", shown_after(page, gateway, one, f"round-{number}."))
                    after(gateway, one)
    yield seen


def news_of(home: Home, shelf: Path, log: Path) -> Sequence[News]:
    """Return the events to measure."""

    def line(gateway: ControlClient, word: str) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{word}\n")

    def change(gateway: ControlClient, word: str) -> None:
        text = shelf.read_text(encoding="utf-8")
        before = json.loads(text)["tools"][-1]["description"]
        shelf.write_text(text.replace(before, f"Draft {word}"), encoding="utf-8")
        gateway.call(control.REFRESH, {"server": LIVE})

    def ask(gateway: ControlClient, word: str) -> None:
        def call() -> None:
            with suppress(MultiMcpError), home.control() as caller:
                caller.call(control.CALL, {"tool": f"{LIVE}_draft", "args": {"word": word}})

        threading.Thread(target=call).start()

    return (
        News("a server's new process", f"server/{LIVE}", ".figures", "process", True,
             lambda gateway, _: gateway.call(control.RECONNECT, {"server": LIVE})),
        News("a server that died, Overview", "", f"#server-{LIVE}", "connected", False,
             lambda gateway, _: os.kill(pid_of(gateway), signal.SIGKILL)),
        News("a line in a server's log", f"server/{LIVE}", "pre.log", "{}", True, line),
        News("a call", "activity", "tbody tr", "", True,
             lambda gateway, _: gateway.call(control.CALL, {"tool": f"{LIVE}_echo", "args": {"size": 1}})),
        News("a call that asks", "approvals", "#main", "{}", True, ask),
        News("a tool that changed", "approvals", "#main", "{}", True, change),
    )  # fmt: skip


def shown_after(page: Page, gateway: ControlClient, news: News, word: str) -> float:
    """Trigger the event. Return the milliseconds until the open page shows it."""
    page.evaluate(WATCH, [news.selector, news.words.format(word), news.there])
    began = time.time()
    news.happen(gateway, word)
    page.wait_for_function("() => window.seen", timeout=LIMIT_MS)
    return float(page.evaluate("window.seen")) - began * MS


def after(gateway: ControlClient, news: News) -> None:
    """Deny the calls that wait for approval, and restart the server if the event killed it."""
    for row in gateway.call(control.ASKS)["asks"]:
        gateway.call(control.DENY, {"id": row["id"]})
    if not news.there:
        gateway.call(control.RECONNECT, {"server": LIVE})


def pid_of(gateway: ControlClient) -> int:
    """Return the process ID of the live server."""
    servers = gateway.call(control.SNAPSHOT)["servers"]
    return next(int(one["pid"]) for one in servers if one["name"] == LIVE)


def asked(page: Page, name: str, path: str, queries: Mapping[str, str], rounds: int) -> Figure:
    """Measure how long the browser waits for the rows of each query. Raises BrokenError if a page has none."""
    figure = Figure(name, "ms", target=Target("value", 50.0), compared=False)
    for _ in range(rounds):
        for way, query in queries.items():
            took = page.evaluate(FETCHED, f"/panel/{path}?{query}")
            if took < 0:
                raise BrokenError(f"{path}?{query} has no rows")
            figure.add(f"{OURS}, {way}", took)
    return figure


def measure_history(calls: int) -> Iterator[Figure]:
    """Measure calls with and without the history, in alternating turns through one gateway.

    Two gateways would differ by more than the history costs, for example in memory layout and core. A turn ends before
    its first row is written, so its processor time contains only the calls.
    """
    took = Figure("call 100 B, history switched in turns, p50", "us", target=Target("added", 3.0))
    spent = Figure("CPU of the gateway a call, history switched in turns", "us", target=Target("added", 3.0))
    with fresh_home() as home:
        configure(home, history=True)
        way = through(home)
        with gateway(home) as started, connected([way]) as clients, home.control() as control_client:
            home.settle()
            for turn in range(calls // TURN):
                for kept in (True, False) if turn % 2 else (False, True):
                    configure(home, history=kept)
                    control_client.call(control.RELOAD)
                    time.sleep(2 * FLUSH_S)  # by then, the previous turn's rows are written
                    name = f"{OURS}, history" if kept else "no history"
                    with without_collections():
                        before = cpu_s(started.pid)
                        seconds = clients[way.name].timed(way.tool, SMALL, TURN)
                        spent.add(name, (cpu_s(started.pid) - before) / TURN * US)
                    took.add(name, median(seconds) * US)
    yield from (took, spent)


def measure_note(rounds: int) -> Figure:
    """Measure how long recording a call blocks the event loop, which is all that the history adds to a call.

    A whole call takes 100 times as long and varies by more than this.
    """
    figure = Figure("noting a call on the event loop", "us", target=Target("added", 3.0))
    answer = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"' + b"x" * 100 + b'"}]}}'
    caller, params = Caller("benchmark"), {"name": "echo", "arguments": {"size": 100}}

    async def measure() -> None:
        with fresh_home() as home:
            recorder = Recorder(home.path, HistorySettings, Facts())
            for _ in range(rounds):
                for way in ("no history", OURS):
                    with without_collections():
                        began = time.perf_counter()
                        for _ in range(TURN):
                            if way == OURS:
                                recorder.note(
                                    EndedCall(
                                        time.perf_counter(), began, caller, "null", "tools/call", params, answer,
                                        len(answer), None, "", "",
                                    )
                                )  # fmt: skip
                        figure.add(way, (time.perf_counter() - began) / TURN * US)
            await recorder.close()

    asyncio.run(measure())
    return figure


class Facts:
    """A CallLookup for calls that no gateway has handled."""

    def caller(self, caller: Caller) -> Caller:
        return caller

    def kind(self, server: str, tool: str) -> str:
        return ""


def configure(home: Home, *, history: bool) -> None:
    """Write a servers.yaml with one server, and switch the history on or off."""
    argv = ", ".join(f"'{word}'" for word in workloads.NULL_SERVER)
    settings = f"settings: {{expose: tools, history: {str(history).lower()}}}"
    home.write("servers.yaml", f"{settings}\nservers:\n  null: {{command: [{argv}]}}\n")


# -- homes, pages and rows -------------------------------------------------------------------------------------------


@contextmanager
def settled(home: Home) -> Iterator[None]:
    """Run a gateway, and wait until its start-up work is done."""
    with gateway(home):
        home.settle()
        yield


@contextmanager
def opened(browser: Browser, home: Home, wait_s: float = TAB_OPEN_S) -> Iterator[Page]:
    """Open the panel by its link in a fresh browser context, and yield the page.

    `wait_s`: how long the tab is open before it loads the panel.
    """
    with home.control() as gateway:
        link = gateway.call(control.PANEL)["url"]
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(LIMIT_MS)
        time.sleep(wait_s)
        page.goto(link)
        yield page
    finally:
        context.close()


def root(page: Page) -> str:
    """Return the panel's URL."""
    return page.url.partition("/panel")[0] + "/panel"


def floor(browser: Browser, wait_s: float) -> Sequence[float]:
    """Return what PAINTED measures for a page with one heading: the browser's share of the time.

    `wait_s`: how long the tab is open before it loads the page.
    """
    with served(b"<!doctype html><title>x</title><h1>One heading</h1>") as address:
        context = browser.new_context()
        page = context.new_page()
        time.sleep(wait_s)
        page.goto(address)
        took: Sequence[float] = page.evaluate(PAINTED)
        context.close()
        return took


@contextmanager
def served(body: bytes) -> Iterator[str]:
    """Serve one page and yield its URL."""

    class OnePage(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Suppress the request log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), OnePage) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def fill_history(home: Home, servers: Sequence[str]) -> None:
    """Write a history of 100,000 calls."""
    path = find_paths(home.env).state_dir / FILE_NAME
    file = HistoryFile(path, lambda: (30.0, SIZE))
    now = time.time()
    for first in range(0, KEPT, BATCH):
        file.add([kept_call(number, now - (KEPT - number) * 20, servers) for number in range(first, first + BATCH)])
    file.close()


def kept_call(number: int, at: float, servers: Sequence[str]) -> Row:
    """Return the history's row for the call with this number."""
    server, verb, thing = servers[number % len(servers)], VERBS[number % len(VERBS)], THINGS[number % len(THINGS)]
    failed = number % 23 == 0
    arguments = f'{{"query":"{thing} {number}","limit":{number % 100}}}'
    return Row(
        at, CLIENTS[number % len(CLIENTS)], f"stdio {number % 9}", "/home/me/src", server, f"{verb}_{thing}", "read",
        "error" if failed else "ok", number % 900 / 7, 120, 900, 220, "", "not found" if failed else "", arguments,
        f'{{"content":[{{"type":"text","text":"{verb} {thing} {number}: done"}}]}}',
    )  # fmt: skip
