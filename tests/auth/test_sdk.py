"""The SDK, loaded late and by more than one thread. Never here: what is used of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Whatever imports parts of the SDK, in the order in which threads come to it.
PARTS = ["trayapp.backends.http.streamable", "trayapp.auth.login"]
TOGETHER = """
import importlib, sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from trayapp.auth.sdk import load_sdk
parts = sys.argv[1:]
together = Barrier(len(parts))

def load(name):
    together.wait()
    load_sdk()
    return importlib.import_module(name)

with ThreadPoolExecutor(len(parts)) as threads:
    assert [module.__name__ for module in threads.map(load, parts)] == parts
import mcp
from mcp.client import Client
assert mcp.Client is Client
"""


@pytest.mark.parametrize("parts", [PARTS, PARTS[::-1], PARTS * 4], ids=["http-first", "login-first", "many"])
def test_threads_that_need_the_sdk_at_once_all_get_it_whole(parts: list[str]) -> None:
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-W", "error", "-c", TOGETHER, *parts], check=True, cwd=root)
