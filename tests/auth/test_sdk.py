"""The parts of the SDK, loaded late and by more than one thread. Never here: what is used of them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from trayapp.auth.sdk import NARROW, load_sdk

ALL = ["trayapp.backends.http.streamable", "trayapp.auth.login"]
TOGETHER_S = 0.2  # within this two threads that may would both be there

LOADING = f"""
from threading import BrokenBarrierError
from meeting_of_threads import BARRIER
try:
    BARRIER.wait({TOGETHER_S})
    MET = True
except BrokenBarrierError:
    MET = False
"""


def loaded(name: str, narrow: Sequence[str] = NARROW) -> Any:
    return load_sdk(lambda: importlib.import_module(name), narrow)


def test_threads_load_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each may find the other's module half done, where packages import each other: ImportError."""
    (tmp_path / "meeting_of_threads.py").write_text("from threading import Barrier\nBARRIER = Barrier(2)\n")
    names = ["loading_here", "loading_there"]
    for name in names:
        (tmp_path / f"{name}.py").write_text(LOADING)
    monkeypatch.syspath_prepend(str(tmp_path))
    with ThreadPoolExecutor(2) as threads:
        assert [module.MET for module in threads.map(loaded, names)] == [False, False]
    for name in [*names, "meeting_of_threads"]:
        del sys.modules[name]


@pytest.mark.parametrize("first", ALL)
def test_of_the_sdk_only_what_is_needed_is_loaded_and_the_rest_when_it_is_wanted(first: str) -> None:
    """Whatever is loaded first, by itself; nothing of it may hang on the package's own code having run."""
    program = f"""
import importlib, sys
from trayapp.auth.sdk import load_sdk
load_sdk(lambda: importlib.import_module({first!r}))
assert "mcp.server.mcpserver" not in sys.modules
for name in {ALL}:
    load_sdk(lambda: importlib.import_module(name))
assert "mcp.server.mcpserver" not in sys.modules, "a package of the SDK's was completed"
import mcp
from mcp.server import MCPServer
from mcp.client import Client
assert mcp.Client is Client and "MCPServer" in mcp.server.__all__
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_what_needs_more_of_a_package_than_its_modules_is_loaded_even_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an SDK whose modules hang on what their package did before them."""
    folder = tmp_path / "built_otherwise"
    folder.mkdir()
    (folder / "__init__.py").write_text("import sys\nsys.built_otherwise = 1\nMORE = 2\n")
    (folder / "part.py").write_text(
        "import sys\nif not hasattr(sys, 'built_otherwise'):\n    raise ImportError('not yet')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert loaded("built_otherwise.part", ["built_otherwise"]) is sys.modules["built_otherwise.part"]
    assert sys.modules["built_otherwise"].MORE == 2
    for name in ("built_otherwise.part", "built_otherwise"):
        del sys.modules[name]
    del sys.built_otherwise  # type: ignore[attr-defined]


def test_what_cannot_be_loaded_says_why_and_can_be_when_that_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by an SDK that lacks a package which ours has."""
    folder = tmp_path / "broken_now"
    folder.mkdir()
    (folder / "__init__.py").write_text("import the_lacking_one\nMORE = the_lacking_one.THERE\n")
    (folder / "part.py").write_text("from broken_now import MORE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for _ in range(2):
        with pytest.raises(ImportError, match="the_lacking_one"):
            loaded("broken_now.part", ["broken_now", "broken_now.nowhere"])
    (tmp_path / "the_lacking_one.py").write_text("THERE = 3\n")
    importlib.invalidate_caches()
    assert loaded("broken_now.part", ["broken_now", "broken_now.nowhere"]).MORE == 3
    for name in ("broken_now.part", "broken_now", "the_lacking_one"):
        del sys.modules[name]


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
    return load_sdk(lambda: importlib.import_module(name))

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
