"""Small programs of the tests' own, run beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


def start(code: str, *argv: str, **more: Any) -> subprocess.Popen[str]:
    """Return a Python program given as text, with pipes for stdin and stdout, that can import this project."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *argv],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        **more,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that it prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    """Close its stdin, which ends it, and wait."""
    process.communicate(timeout=20)
