"""The panel in a real browser, with 70 servers: first paint, live updates, filters; and what the history costs a call.

Without Chromium there is a note instead. Never here: whether the pages are right (tests/panel).
"""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from trayapp.history.record import Row
from trayapp.history.recorder import FILE_NAME, FLUSH_S
from trayapp.history.store import HistoryFile
from trayapp.wire import control

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

US = 1e6  # in a second
KEPT = 100_000  # calls of the history
BATCH = 5_000  # of them written at once
SIZE = 50_000_000  # that they may take
TURN = 100  # calls
LIMIT_MS = 20_000.0  # of anything in the browser
STREAM_OPEN_S = 0.5  # a page that has loaded hears of news by then
CLIENTS = ("claude-code", "codex", "cursor")
PAGES = {"Overview": "", "Tools": "tools", "Activity": "activity", "AI tools": "clients", "Health": "health"}
FILTERS = {"words": "words=invoice", "a tool": "tool=create_invoice", "failures": "failed=yes", "no call": "words=zzz"}
SEARCHES = {"one letter": "q=s", "two words": "q=create+invoice", "nothing": "q=zzzz"}
# Milliseconds from the request until the page was painted first; the link's redirect counts.
PAINTED = """() => new Promise(done => new PerformanceObserver((list, one) => {
  const painted = list.getEntriesByName("first-contentful-paint")[0];
  if (!painted) return;  // a background alone
  one.disconnect();
  const asked = performance.getEntriesByType("navigation")[0];
  done(painted.startTime - (asked.redirectStart || asked.requestStart));
}).observe({type: "paint", buffered: true}))"""
# Milliseconds until the page has what it asked for.
FETCHED = """async path => {
  const before = performance.now();
  const came = await (await fetch(path)).text();
  return came.includes('id="rows"') ? performance.now() - before : -1;
}"""
# Note when what a selector finds has other text, in milliseconds of the day.
WATCH = """selector => {
  const text = () => (document.querySelector(selector) || {}).id + (document.querySelector(selector) || {}).textContent;
  const before = text();
  window.seen = 0;
  const look = () => { if (!window.seen && text() !== before) window.seen = Date.now(); };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


def measure_panel(rounds: int, calls: int, data: Path | None = None) -> Iterator[Measured]:
    """All of it. `calls`: of each way with and without a history, in turns of 100."""
    yield from measure_history(calls)
    program = shutil.which("chromium")
    if program is None:
        yield "The panel is not measured: chromium is not installed"
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield from measure_pages(browser, rounds, data)
        finally:
            browser.close()


def measure_pages(browser: Browser, rounds: int, data: Path | None) -> Iterator[Measured]:
    """What a person waits for."""
    floor(browser)  # the first page of all starts processes of the browser
    with fresh_home() as home:
        work = workloads.large(home.path / "shelf", data)
        painted = Figure(
            f"panel, {work.name}: request -> first paint", "ms", target=Target("value", 100.0), compared=False
        )
        work.fill(home.path, http={"enabled": True, "port": free_port()})
        fill_history(home, list(work.servers))
        for _ in range(rounds):
            painted.add("a page of one heading", floor(browser))
            with settled(home), opened(browser, home) as page:
                painted.add(f"{OURS}, a gateway's first page", page.evaluate(PAINTED))
                for name, path in PAGES.items():
                    time.sleep(STREAM_OPEN_S)  # nobody clicks while the page before is still loading its scripts
                    page.goto(f"{root(page)}/{path}")
                    painted.add(f"{OURS}, {name}", page.evaluate(PAINTED))
        yield painted
        with settled(home), opened(browser, home) as page:
            yield asked(page, f"Activity, {KEPT:,} calls: a filter's answer", "activity", FILTERS, rounds)
            yield asked(page, f"{work.name}: a search's answer as typed", "tools", SEARCHES, rounds)
            yield from measure_news(page, home, work.server, work.exposed, rounds)


def measure_news(page: Page, home: Home, server: str, tool: str, rounds: int) -> Iterator[Figure]:
    """From the event until an open page shows it. The event itself counts: a server's start, and a call."""
    seen = Figure("event -> open page", "ms", target=Target("value", 300.0), compared=False)
    with home.control() as gateway:
        for _ in range(rounds):
            for name, path, selector, method, params in (
                ("a server's new process", f"server/{server}", ".figures", control.RECONNECT, {"server": server}),
                ("a call", "activity", "tbody tr", control.CALL, {"tool": tool, "args": {"size": 1}}),
            ):
                page.goto(f"{root(page)}/{path}", wait_until="load")
                time.sleep(STREAM_OPEN_S)
                page.evaluate(WATCH, selector)
                began = time.time()
                gateway.call(method, params)
                page.wait_for_function("() => window.seen", timeout=LIMIT_MS)
                seen.add(f"{OURS}, {name}", page.evaluate("window.seen") - began * MS)
    yield seen


def asked(page: Page, name: str, path: str, queries: Mapping[str, str], rounds: int) -> Figure:
    """How long the browser waits for the rows. Raises BrokenError for a page without."""
    figure = Figure(name, "ms", target=Target("value", 50.0), compared=False)
    for _ in range(rounds):
        for way, query in queries.items():
            took = page.evaluate(FETCHED, f"/panel/{path}?{query}")
            if took < 0:
                raise BrokenError(f"{path}?{query} has no rows")
            figure.add(f"{OURS}, {way}", took)
    return figure


def measure_history(calls: int) -> Iterator[Figure]:
    """A call with its history and one without, in turns through one gateway whose file switches the history.

    Two gateways would differ by more than the history costs: where their memory lies, which core they are on. A turn is
    over before its first row is made, so the processor time is that of the calls alone.
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
                    time.sleep(2 * FLUSH_S)  # the rows of the turn before are written
                    name = f"{OURS}, history" if kept else "no history"
                    with without_collections():
                        before = cpu_s(started.pid)
                        seconds = clients[way.name].timed(way.tool, SMALL, TURN)
                        spent.add(name, (cpu_s(started.pid) - before) / TURN * US)
                    took.add(name, median(seconds) * US)
    yield from (took, spent)


def configure(home: Home, *, history: bool) -> None:
    """Write the file with one server, and a history or none."""
    argv = ", ".join(f"'{word}'" for word in workloads.NULL_SERVER)
    settings = f"settings: {{expose: tools, history: {str(history).lower()}}}"
    home.write("servers.yaml", f"{settings}\nservers:\n  null: {{command: [{argv}]}}\n")


# -- the scene -------------------------------------------------------------------------------------------------------


@contextmanager
def settled(home: Home) -> Iterator[None]:
    """A gateway that has nothing more to do."""
    with gateway(home):
        home.settle()
        yield


@contextmanager
def opened(browser: Browser, home: Home) -> Iterator[Page]:
    """The panel of a gateway that has just started, by its link, in a browser that knows nothing of it."""
    with home.control() as gateway:
        link = gateway.call(control.PANEL)["url"]
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(LIMIT_MS)
        page.goto(link)
        yield page
    finally:
        context.close()


def root(page: Page) -> str:
    """The panel's address."""
    return page.url.partition("/panel")[0] + "/panel"


def floor(browser: Browser) -> float:
    """Milliseconds until a page of one heading is painted first: what the browser takes by itself."""
    with served(b"<!doctype html><title>x</title><h1>One heading</h1>") as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        took: float = page.evaluate(PAINTED)
        context.close()
        return took


@contextmanager
def served(body: bytes) -> Iterator[str]:
    """The address of a web server with one page."""

    class OnePage(BaseHTTPRequestHandler):
        """It."""

        def do_GET(self) -> None:
            """Send it."""
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), OnePage) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def fill_history(home: Home, servers: Sequence[str]) -> None:
    """Write the file as 100,000 calls leave it."""
    path = find_paths(home.env).state_dir / FILE_NAME
    file = HistoryFile(path, lambda: (30.0, SIZE))
    now = time.time()
    for first in range(0, KEPT, BATCH):
        file.add([kept_call(number, now - (KEPT - number) * 20, servers) for number in range(first, first + BATCH)])
    file.close()


def kept_call(number: int, at: float, servers: Sequence[str]) -> Row:
    """One of many."""
    server, verb, thing = servers[number % len(servers)], VERBS[number % len(VERBS)], THINGS[number % len(THINGS)]
    failed = number % 23 == 0
    arguments = f'{{"query":"{thing} {number}","limit":{number % 100}}}'
    return Row(
        at, CLIENTS[number % len(CLIENTS)], f"stdio {number % 9}", "/home/me/src", server, f"{verb}_{thing}", "read",
        "error" if failed else "ok", number % 900 / 7, 120, 900, 220, "", "not found" if failed else "", arguments,
        f'{{"content":[{{"type":"text","text":"{verb} {thing} {number}: done"}}]}}',
    )  # fmt: skip
