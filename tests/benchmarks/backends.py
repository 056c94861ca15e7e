"""The servers of the behavior benchmark, one for each transport and era. Each records its observations in a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil

from tests.benchmarks.client import BrokenError
from tests.e2e.cell import MODERN

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
Carrier = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True)
class Kind:
    """The transport and protocol revision of a client or server."""

    carrier: Carrier
    version: str

    @property
    def modern(self) -> bool:
        """True if the revision is 2026-07-28."""
        return self.version == MODERN

    def __str__(self) -> str:
        return f"{NAMES[self.carrier]}, {self.version}"


NAMES = {"stdio": "stdio", "http": "HTTP", "sse": "SSE"}
OLDER = "2025-11-25"
STDIO = Kind("stdio", OLDER)
KINDS = (STDIO, Kind("stdio", MODERN), Kind("http", OLDER), Kind("http", MODERN), Kind("sse", OLDER))


@dataclass
class Backend:
    """A test server. The benchmark starts its process for HTTP and SSE, and the client starts it for stdio."""

    name: str
    kind: Kind
    folder: Path
    hangs: bool = False
    port: int = 0
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def notes(self) -> Path:
        """The file of the server's notes, one JSON value per line."""
        return self.folder / f"{self.name}.notes"

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line of the server's process."""
        if self.kind.carrier == "stdio":
            more: tuple[str, ...] = ("era_server.py", self.kind.version, str(self.notes))
        else:
            more = ("era_http.py", self.kind.version, str(self.notes), str(self.port))
            more += ("--sse",) if self.kind.carrier == "sse" else ()
        program, *arguments = more
        hang = ("--hang",) if self.hangs else ()
        return (sys.executable, "-I", "-S", str(FIXTURES / program), *arguments, *hang)

    @property
    def url(self) -> str | None:
        """The server's URL, or None for stdio."""
        path = {"stdio": "", "http": "/mcp", "sse": "/sse"}[self.kind.carrier]
        return f"http://127.0.0.1:{self.port}{path}" if path else None

    @property
    def entry(self) -> dict[str, Any]:
        """The server's entry for servers.yaml."""
        url = self.url
        return {"command": list(self.argv)} if url is None else {"url": url, "type": self.kind.carrier}

    def noticed(self, what: str) -> list[Any]:
        """Return the values of all notes about `what`, in order."""
        lines = self.notes.read_text(encoding="utf-8").splitlines() if self.notes.exists() else []
        return [note["value"] for note in map(json.loads, lines) if note["what"] == what]

    def start(self) -> None:
        """Start the process unless it runs or uses stdio. A restarted server keeps its port. Raises BrokenError."""
        if self.kind.carrier == "stdio" or self.process is not None:
            return
        # The environment is empty, without MARK, because the process belongs to no stage.
        self.process = subprocess.Popen(self.argv, env={}, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if not said:
            raise BrokenError(f"{self.name} does not start: code {self.process.wait()}")
        self.port = int(said)

    def kill(self) -> None:
        """Kill every process of the server, as `kill -9` does."""
        if self.process is not None:
            self.end()
            return
        for pid in set(self.noticed("started")):
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the process that `start` started, if any."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None


@contextmanager
def running(backends: Sequence[Backend]) -> Iterator[Sequence[Backend]]:
    """Start the backends, and end them with the block."""
    try:
        for backend in backends:
            backend.start()
        yield backends
    finally:
        for backend in backends:
            backend.end()


def one_of_each(folder: Path, kinds: Sequence[Kind] = KINDS, prefix: str = "", hangs: bool = False) -> list[Backend]:
    """Return a server of each kind, not yet started."""
    return [Backend(f"{prefix}{kind.carrier}-{kind.version}", kind, folder, hangs) for kind in kinds]
