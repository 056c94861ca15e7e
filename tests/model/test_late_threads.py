"""Modules that threads load."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trayapp.model.late import load_in_turn

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


def test_threads_load_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each may find the other's module half done, where packages import each other: ImportError."""
    (tmp_path / "meeting_of_threads.py").write_text("from threading import Barrier\nBARRIER = Barrier(2)\n")
    names = ["loading_here", "loading_there"]
    for name in names:
        (tmp_path / f"{name}.py").write_text(LOADING)
    monkeypatch.syspath_prepend(str(tmp_path))
    with ThreadPoolExecutor(2) as threads:
        assert [module.MET for module in threads.map(load_in_turn, names)] == [False, False]
    for name in [*names, "meeting_of_threads"]:
        del sys.modules[name]
