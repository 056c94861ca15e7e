"""Small programs that tests run as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


def start(code: str, *argv: str, **more: Any) -> subprocess.Popen[str]:
    """Start a process of Python code that can import this project. Return it with pipes for stdin and stdout."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *argv],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        **more,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that the process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    """Close the process's stdin, which ends it, and wait for its end."""
    process.communicate(timeout=20)
