"""The whole tray as a process, with a panel and a notification server on a test bus, and a real gateway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.cli.running import environment, quick_program
from tests.tray.bus import Item, NotificationServer, Watcher, until
from trayapp.model.errors import MultiMcpError
from trayapp.service.command_line import own_command, sample_command
from trayapp.wire.control import SNAPSHOT, STOP, ControlClient
from trayapp.wire.rundir import run_dir

QUICK_VERBS = str(Path(__file__).with_name("quick_verbs.py"))
HEADER = 1  # the number of the first line of the menu
END_S = 30.0
GLYPHS = "●○✗–… "  # prefixes of a server's name in the menu


class TrayApp:
    """A user's home with its tray. The desktop's programs are scripts that record their arguments."""

    def __init__(self, home: Path, address: str) -> None:
        self.home = home
        self.user = home / "user"  # the user's home folder
        self.user.mkdir()
        self.file = home / "servers.yaml"
        self.env = environment(
            home,
            HOME=str(self.user),
            DBUS_SESSION_BUS_ADDRESS=address,
            DISPLAY=":99",  # not used, but some programs check that it is set
            XDG_CONFIG_HOME=str(self.user / ".config"),
            PATH=f"{self.user / 'bin'}:{os.environ['PATH']}",
        )
        self.processes: list[subprocess.Popen[str]] = []
        self.offer_programs()

    # -- the environment -------------------------------------------------------------------------------------------

    def program(self, name: str, script: str) -> None:
        """Put a program first on the user's PATH."""
        folder = self.user / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)

    def offer_programs(self) -> None:
        """Install a fake opener of files and addresses, and delete its earlier record."""
        (self.user / "opened").unlink(missing_ok=True)
        self.program("xdg-open", f'echo "$1" >> {self.user}/opened')

    def servers(self, *names: str, **entries: dict[str, Any]) -> None:
        """Write servers.yaml with a sample server for each name and with the other entries."""
        samples = {name: {"command": sample_command()} for name in names}
        text = json.dumps(
            {"settings": {"expose": "tools", "http": {"enabled": False}}, "servers": {**samples, **entries}}
        )
        self.file.write_text(text, encoding="utf-8")

    def opened(self) -> list[str]:
        """Return the files and addresses that the fake opener has recorded."""
        path = self.user / "opened"
        return path.read_text().splitlines() if path.exists() else []

    def log(self) -> str:
        """Return the text of tray.log."""
        path = self.home / "logs" / "tray.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    # -- processes -------------------------------------------------------------------------------------------------

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a tray or another command, and return its process. The newest process is `tray`."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, QUICK_VERBS, json.dumps(quick_program()), *(words or ("tray",))],
            env=self.env,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            encoding="utf-8",
        )
        self.processes.append(process)
        return process

    def says(self, verb: str) -> str:
        """Run a verb that fails, and return its stderr. Its stdin stays open until the first line is printed."""
        command, pipe, nowhere = [*own_command(), verb], subprocess.PIPE, subprocess.DEVNULL
        with subprocess.Popen(
            command, env=self.env, cwd=self.home, stdin=pipe, stdout=nowhere, stderr=pipe, encoding="utf-8"
        ) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            first = process.stderr.readline()
            process.stdin.close()
            return first + process.stderr.read()  # communicate() would miss text that came with the first line

    @property
    def tray(self) -> subprocess.Popen[str]:
        return self.processes[-1]

    def ask(self, method: str, **params: Any) -> Any:
        """Send a control request and return its result."""
        with ControlClient(run_dir(self.env), 30.0) as client:
            return client.call(method, params)

    def snapshot(self) -> dict[str, Any] | None:
        """Return the gateway's snapshot, or None without a gateway."""
        with suppress(MultiMcpError):
            found: dict[str, Any] = self.ask(SNAPSHOT)
            return found
        return None

    def gateway(self) -> int:
        """Wait until a gateway serves, and return its process ID."""
        found: dict[str, Any] = until(self.snapshot, "a gateway answers")
        return int(found["gateway"]["pid"])

    def kill_gateway(self, number: int = signal.SIGKILL) -> int:
        """Send the gateway the signal `number`, and return its process ID."""
        pid = self.gateway()
        os.kill(pid, number)
        return pid

    def next_gateway(self, before: int) -> int:
        """Wait until a gateway other than `before` serves, and return its process ID."""
        until(lambda: self.gateway() != before, "another gateway")
        return self.gateway()

    def end(self) -> None:
        """End all trays and the gateway of this home."""
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=END_S)
            if process.poll() is None:
                process.kill()
                process.communicate()
        snapshot = self.snapshot()
        if snapshot is not None:
            with suppress(MultiMcpError):
                self.ask(STOP)
            _, alive = psutil.wait_procs([psutil.Process(snapshot["gateway"]["pid"])], END_S)
            assert not alive


class Panel:
    """The user's panel and notification server."""

    def __init__(self, address: str) -> None:
        self.watcher = Watcher(address)
        self.server = NotificationServer(address)
        self._item: Item | None = None

    def close(self) -> None:
        if self._item is not None:
            self._item.close()
        self.watcher.close()
        self.server.close()

    @property
    def item(self) -> Item:
        """The item of the newest icon. Waits until there is an icon."""
        until(lambda: self.watcher.items, "an icon is registered")
        name, path = self.watcher.items[-1]
        if self._item is not None and self._item.bus_name != name:
            self._item.close()
            self._item = None
        if self._item is None:
            self._item = Item(self.watcher.address, name, path)
        return self._item

    def tooltip(self) -> str:
        return str(self.item.property("Title"))

    def header(self) -> str:
        return self.item.texts()[0]

    def until_header(self, *parts: str) -> str:
        """Wait until the first entry of the menu contains all of these parts, and return its text."""
        found: str = until(
            lambda: all(part in self.header() for part in parts) and self.header(), f"{parts} in the menu"
        )
        return found

    def click(self, text: str) -> None:
        """Wait for an entry and click on it. Each part of the path `text` is the beginning of an entry's text."""
        wanted = text.split(" > ")

        def find() -> tuple[int, dict[str, Any]] | None:
            """Return the entry's number and properties, or None. One layout is searched, because texts may change."""
            for line, number, properties in self.item.lines():
                parts = [part.lstrip(GLYPHS) for part in line.split(" > ")]
                if len(parts) == len(wanted) and all(a.startswith(b) for a, b in zip(parts, wanted, strict=True)):
                    return number, properties
            return None

        number, properties = until(find, f"{text} in the menu")
        assert properties.get("enabled", True)
        self.item.click_number(number)

    def checked(self, text: str) -> bool:
        properties = next(properties for line, _, properties in self.item.lines() if line.startswith(text))
        return bool(properties["toggle-state"])

    def told(self, *parts: str) -> dict[str, Any]:
        """Wait for a notification that contains all of these parts, and return it."""

        def find() -> dict[str, Any] | None:
            shown = list(self.server.shown.values())
            return next((n for n in shown if all(part in f"{n['title']}\n{n['text']}" for part in parts)), None)

        found: dict[str, Any] = until(find, f"a notification with {parts}")
        return found


@contextmanager
def tray_app(home: Path, address: str, prepare: Callable[[TrayApp], None] | None = None) -> Iterator[TrayApp]:
    """Run a tray, and yield it. End it and its gateway afterwards."""
    made = TrayApp(home, address)
    made.servers("sample")
    if prepare is not None:
        prepare(made)
    made.start()
    try:
        yield made
    finally:
        made.end()
