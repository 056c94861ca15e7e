"""The packaged program in a separate home folder, without Python or Node.js on PATH."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.client import RawClient, client_of
from tests.tray.running import TrayApp
from trayapp.model.errors import MultiMcpError
from trayapp.wire.control import SNAPSHOT, STOP, ControlClient
from trayapp.wire.rundir import run_dir

RUN_S = 50.0
END_S = 30.0
NO_PROGRAMS = "/nonexistent"  # a PATH without Python and Node.js


class Packaged:
    """A home folder, and the three packaged programs that use it."""

    def __init__(self, bundle: Path, home: Path, **environ: str) -> None:
        self.bundle, self.home = bundle, home
        self.env = {"PATH": NO_PROGRAMS, "HOME": str(home), "MULTI_MCP_HOME": str(home), **environ}

    def program(self, name: str = "") -> str:
        """Return the path of `multi-mcp`, `multi-mcp-tray` or `multi-mcp-shim`."""
        return str(self.bundle / "-".join(filter(None, ["multi-mcp", name])))

    def run(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run `multi-mcp ARGV ...` to its end and return the result."""
        return subprocess.run(
            [self.program(), *argv],
            cwd=self.home,
            env=self.env,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=RUN_S,
            check=False,
        )

    def servers(self, servers: dict[str, dict[str, Any]], http: bool = False) -> None:
        """Save servers.yaml. `http`: listen on any free port."""
        settings = {"expose": "tools", "http": {"enabled": http, "port": 0}}
        (self.home / "servers.yaml").write_text(json.dumps({"settings": settings, "servers": servers}), "utf-8")

    @property
    def sample(self) -> dict[str, Any]:
        """The entry of the bundled sample server."""
        return {"command": [self.program("shim"), "sample-server"]}

    def client(self) -> AbstractAsyncContextManager[RawClient]:
        """Return a client through the shim, which starts the gateway."""
        return client_of([self.program("shim"), "stdio"], self.env, self.home)

    def ask(self, method: str) -> Any:
        """Send a control request to the gateway and return its result."""
        with ControlClient(run_dir(self.env), RUN_S) as client:
            return client.call(method, {})

    def gateway(self) -> int:
        """Return the gateway's process id, or 0 if none runs."""
        try:
            return int(self.ask(SNAPSHOT)["gateway"]["pid"])
        except MultiMcpError:
            return 0

    def end(self) -> None:
        """Stop the gateway if one runs, and assert that all processes of this home end."""
        with suppress(MultiMcpError):
            self.ask(STOP)
        _, alive = psutil.wait_procs(self.processes(), END_S)
        assert alive == []

    def processes(self) -> list[psutil.Process]:
        """Return all processes that run a packaged program for this home."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                ours = process.exe().startswith(f"{self.bundle}/")
                if ours and process.environ().get("MULTI_MCP_HOME") == str(self.home):
                    found.append(process)
        return found


@contextmanager
def packaged(bundle: Path, home: Path, **environ: str) -> Iterator[Packaged]:
    """Yield a home whose processes end with the context."""
    made = Packaged(bundle, home, **environ)
    try:
        yield made
    finally:
        made.end()


class PackagedTray(TrayApp):
    """The packaged tray, started without a console, as a desktop does."""

    def __init__(self, home: Path, address: str, bundle: Path) -> None:
        super().__init__(home, address)
        self.bundle = bundle
        del self.env["PYTHONIOENCODING"]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a process of the packaged tray and return it."""
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        argv = [str(self.bundle / "multi-mcp-tray"), *words]
        process = subprocess.Popen(
            argv, env=self.env, cwd=self.home, stdin=null, stdout=pipe, stderr=pipe, encoding="utf-8"
        )
        self.processes.append(process)
        return process


@contextmanager
def packaged_tray(home: Path, address: str, bundle: Path, **environ: str) -> Iterator[PackagedTray]:
    """Yield a running tray, which ends together with its gateway. `environ`: additional environment variables."""
    made = PackagedTray(home, address, bundle)
    made.env.update(environ)
    made.servers("sample", sample={"command": [str(bundle / "multi-mcp-shim"), "sample-server"]})
    made.start()
    try:
        yield made
    finally:
        made.end()
