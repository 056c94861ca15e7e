"""The tray: how soon its icon appears, how soon it shows a change, and what it costs while idle.

It runs on its own session bus, with a minimal panel.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import psutil

from tests.benchmarks.calls import SMALL
from tests.benchmarks.client import BrokenError, Client, echo
from tests.benchmarks.figures import OURS, Figure, Target
from tests.benchmarks.idle import MIB, Meter
from tests.benchmarks.starts import MS
from tests.benchmarks.ways import Home, fresh_home, through
from tests.benchmarks.workloads import NULL_SERVER
from tests.fixtures.ending import end
from trayapp.service.command_line import own_command

if TYPE_CHECKING:
    from tests.tray.bus import NotificationServer

ALLOW = "Allow once"  # a button of the notification
LIMIT_S = 20.0  # limit of every wait
LOOK_S = 0.002  # polling interval, and therefore the error of a figure
REST_S = 3.0  # enough for a start's work to end
CLICKS = 5  # per start
DRAWN_S = 0.2  # people take at least this long to read a notification
READY, DISABLED = "1 of 1 server ready", "all servers are disabled"


def measure_tray(starts: int, changes: int, seconds: float) -> Iterator[Figure]:
    """Yield the tray's figures, or none if this is not Linux with a D-Bus daemon. Raises BrokenError."""
    if sys.platform != "linux" or not shutil.which("dbus-daemon"):
        return
    started = Figure("tray: spawn -> registered", "ms", target=Target("value", 500))
    told = Figure("tray: server switched in servers.yaml -> tooltip", "ms", target=Target("value", 300))
    with fresh_home() as home:
        home.configure()
        for _ in range(starts):
            with tray(home) as running:
                started.add(OURS, running.seconds * MS)
        yield started
        yield clicks(starts * CLICKS)
        with tray(home) as running:
            running.until(READY)
            for number in range(2 * changes):
                told.add(OURS, changed(home, running, off=number % 2 == 0) * MS)
            yield told
            yield from idle(running.pid, seconds)


def changed(home: Home, running: Running, *, off: bool) -> float:
    """Switch the server on or off in servers.yaml. Return the seconds until the tooltip shows it."""
    text = (home.path / "servers.yaml").read_text(encoding="utf-8")
    home.write(
        "servers.yaml",
        text.replace("{command", "{disabled: true, command") if off else text.replace("disabled: true, ", ""),
    )
    start = time.perf_counter()
    running.until(DISABLED if off else READY)
    return time.perf_counter() - start


def clicks(number: int) -> Figure:
    """Measure the time from a click on a notification's Allow once until the waiting call is answered."""
    figure = Figure("tray: click on Allow once -> the call's answer", "ms", target=Target("value", 50))
    with fresh_home() as home:
        argv = ", ".join(f"'{word}'" for word in NULL_SERVER)
        home.write("servers.yaml", f"settings: {{expose: tools, ask: all}}\nservers:\n  null: {{command: [{argv}]}}\n")
        with tray(home, notifications=True) as running:
            running.until(READY)
            way = through(home)
            with way.connect() as client, ThreadPoolExecutor(1) as beside:
                for mark in range(number):
                    waiting = beside.submit(answered, client, echo(1_000 + mark, way.tool, SMALL))
                    allow = running.asked()
                    time.sleep(DRAWN_S)
                    start = time.perf_counter()
                    allow()
                    figure.add(OURS, (waiting.result(LIMIT_S) - start) * MS)
    return figure


def answered(client: Client, frame: bytes) -> float:
    """Return when a request was answered. Raises BrokenError if the answer is an error."""
    line = client.exchange(frame)
    moment = time.perf_counter()
    if b'"error"' in line:
        raise BrokenError(line.decode())
    return moment


def idle(pid: int, seconds: float) -> Iterator[Figure]:
    """Measure the tray's processor use, wake-ups and memory while nothing happens in the gateway."""
    time.sleep(REST_S)
    meter = Meter(pid)
    time.sleep(seconds)
    for name, unit, value, target in (
        ("tray idle", "% of a core", meter.percent(), Target("value", 0.1)),
        ("tray idle", "wake-ups/s", meter.wake_ups(), None),
        ("tray resident, RSS", "MiB", psutil.Process(pid).memory_info().rss / MIB, Target("value", 45)),
    ):
        figure = Figure(name, unit, target=target)
        figure.add(OURS, value)
        yield figure


class Running:
    """A tray whose icon is registered. `seconds`: from its spawn to the registration. `notifications`: the server that
    shows its notifications, if any.
    """

    def __init__(
        self, pid: int, seconds: float, tooltip: Callable[[], str], notifications: NotificationServer | None
    ) -> None:
        self.pid, self.seconds, self._tooltip, self._notifications = pid, seconds, tooltip, notifications

    def asked(self) -> Callable[[], None]:
        """Wait for a notification with Allow once. Return a function that clicks it. Raises BrokenError."""
        assert self._notifications is not None
        deadline = time.monotonic() + LIMIT_S
        while True:
            for number, shown in list(self._notifications.shown.items()):
                if shown["actions"][:1] and shown["actions"][1] == ALLOW:
                    return partial(self._click, number, shown["actions"][0])
            if time.monotonic() > deadline:
                raise BrokenError(f"no notification asks after {LIMIT_S:g} s: {self._notifications.shown}")
            time.sleep(LOOK_S)

    def _click(self, number: int, action: str) -> None:
        assert self._notifications is not None
        del self._notifications.shown[number]
        self._notifications.choose(number, action)

    def until(self, words: str) -> None:
        """Wait until the tooltip contains these words. Raises BrokenError."""
        deadline = time.monotonic() + LIMIT_S
        while words not in self._tooltip():
            if time.monotonic() > deadline:
                raise BrokenError(f"the tooltip says {self._tooltip()}, not {words}, after {LIMIT_S:g} s")
            time.sleep(LOOK_S)


@contextmanager
def tray(home: Home, program: tuple[str, ...] = (), *, notifications: bool = False) -> Iterator[Running]:
    """Run `multi-mcp tray`, or `program`, and end it with its gateway after the block. Raises BrokenError."""
    from tests.tray.bus import Item, NotificationServer, Watcher, session_bus  # imported late, because it needs D-Bus

    with session_bus() as (address, _):
        watcher = Watcher(address)
        shows = NotificationServer(address) if notifications else None
        env = {**home.env, "DBUS_SESSION_BUS_ADDRESS": address, "DISPLAY": "", "HOME": str(home.path)}
        start, null = time.perf_counter(), subprocess.DEVNULL
        process = subprocess.Popen(program or [*own_command(), "tray"], env=env, stdin=null, stdout=null, stderr=null)
        try:
            while not watcher.items:
                if process.poll() is not None or time.perf_counter() - start > LIMIT_S:
                    raise BrokenError(f"the tray did not register its icon (exit code {process.returncode})")
                time.sleep(LOOK_S)
            seconds = time.perf_counter() - start
            item = Item(address, *watcher.items[0])
            yield Running(process.pid, seconds, lambda: str(item.property("Title")), shows)
            item.close()
        finally:
            end(process, LIMIT_S)
            watcher.close()
            if shows is not None:
                shows.close()
