"""Tests of code for Windows and macOS, run on Linux in a process that pretends to be on the other system.

Stand-ins for the other system's modules and programs record their calls.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
if sys.platform != "linux":
    pytest.skip("each system has its own branches", allow_module_level=True)

# Pretends to be on another system before loading our modules, evaluates the expressions and prints their values.
CHILD = """
import json, os, pathlib, sys, types
class Notes(types.ModuleType):
    LK_NBLCK, REG_SZ = 2, 1
    def locking(self, descriptor, mode, size):
        noted.append(["locking", mode, size])
noted = []
import asyncio, ctypes, multiprocessing, shutil, subprocess, tempfile, logging.handlers, zoneinfo  # as on Linux
from trayapp.model import errors
sys.modules["msvcrt"] = Notes("msvcrt")
sys.platform = {platform!r}
if sys.platform == "win32":
    del os.O_NONBLOCK, os.O_CLOEXEC  # Windows has neither
os.startfile = lambda what: noted.append(["startfile", str(what)])
class Popen:
    returncode = 0
    def __init__(self, argv, **more):
        noted.append([argv[0], *argv[1:]])
    def wait(self, patience_s=None):
        return 0
subprocess.Popen = Popen
home = str(pathlib.Path.home())
print(json.dumps([eval(line) for line in json.loads({lines!r})]))
"""
IMPORT = "__import__({module!r}, fromlist=['x'])"
MAC: list[tuple[str, str, Any]] = [
    ("wire.rundir", "run_dir({})", "HOME/Library/Caches/multi-mcp/run"),
    ("service.desktop_programs", "open_file(pathlib.Path('/x'), {}), noted.pop()", [None, ["open", "-t", "/x"]]),
    ("service.desktop_programs", "open_url('https://a/', {}), noted.pop()", [True, ["open", "https://a/"]]),
    (
        "service.autostart",
        "find_autostart({}, ['/a']).entry.where",
        "HOME/Library/LaunchAgents/dev.multimcp.tray.plist",
    ),
    ("service.desktop_programs", "CLIPBOARD[sys.platform]", "pbcopy"),
    ("config.files", "watch_folders_of(pathlib.Path('/x'))", None),
    ("backends.wake.watch", "suspended_s()", 0.0),
    ("backends.stdio.npx", "str(npx_folder({}, {}, pathlib.Path('/h')))", "/h/.npm/_npx"),
    ("wire.memory", "give_back_freed_memory()", None),
]
WINDOWS: list[tuple[str, str, Any]] = [
    ("wire.rundir", "run_dir({'LOCALAPPDATA': '/l'})", "/l/multi-mcp/run"),
    ("wire.greeting", "USES_TCP", True),
    ("wire.lock", "_lock_now(os.open('/dev/null', os.O_RDWR)), noted.pop()", [True, ["locking", 2, 1]]),
    ("service.desktop_programs", "open_file(pathlib.Path('/x'), {}), noted.pop()", [None, ["startfile", "/x"]]),
    ("service.desktop_programs", "open_url('https://a/', {}), noted.pop()", [True, ["startfile", "https://a/"]]),
    ("service.desktop_programs", "CLIPBOARD[sys.platform]", "clip"),
    ("config.files", "watch_folders_of(pathlib.Path('/x'))", None),
    ("backends.wake.watch", "suspended_s()", 0.0),
    (
        "backends.stdio.npx",
        "str(npx_folder({}, {'LOCALAPPDATA': '/l'}, pathlib.Path('/h')))",
        "/l/npm-cache/_npx",
    ),
    ("backends.launch", "'APPDATA' in DEFAULT_VARIABLES and 'HOME' not in DEFAULT_VARIABLES", True),
    ("auth.os_keyring", "KeyringEntries('x').limit", 1280),
    ("wire.memory", "give_back_freed_memory()", None),
]


@cache
def values(platform: str) -> list[Any]:
    """Return the values of all expressions for a platform, evaluated in one process, because a start takes 0.25 s."""
    rows = {"darwin": MAC, "win32": WINDOWS}[platform]
    lines = [
        f"eval({line!r}, {{**globals(), **vars({IMPORT.format(module='trayapp.' + room)})}})" for room, line, _ in rows
    ]
    code = CHILD.format(platform=platform, lines=json.dumps(lines))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


@pytest.mark.requirement("package-elsewhere")
@pytest.mark.parametrize(
    ("platform", "number"),
    [
        pytest.param(platform, number, id=f"{platform} {room} {number}")
        for platform, rows in (("darwin", MAC), ("win32", WINDOWS))
        for number, (room, _, _) in enumerate(rows)
    ],
)
def test_the_branch_for_another_system_has_its_own_result(platform: str, number: int) -> None:
    expected = {"darwin": MAC, "win32": WINDOWS}[platform][number][2]
    if isinstance(expected, str):
        expected = expected.replace("HOME", str(Path.home()))
    assert values(platform)[number] == expected
