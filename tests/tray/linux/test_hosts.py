"""Tests of choosing the icon's host for each desktop. The choice itself uses no desktop."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from trayapp.tray.linux.icon import (
    DOCK_WAIT_S,
    PANEL_WAIT_S,
    STARTED_WAIT_S,
    HostSearch,
    LinuxIcon,
    SearchStep,
    may_have_xembed,
)
from trayapp.tray.painter import BaseIcon

FIRST, LATER = PANEL_WAIT_S, PANEL_WAIT_S + DOCK_WAIT_S
# name, whether there is a bus, whether there is a display, and steps: (second, whether a watcher runs, result)
STEPS: list[tuple[str, bool, bool, list[tuple[float, bool, SearchStep]]]] = [
    (
        "a panel is there",
        True,
        True,
        [(0, True, SearchStep("sni", False, None)), (99, True, SearchStep("sni", False, None))],
    ),
    (
        "a panel comes in time",
        True,
        True,
        [
            (0, False, SearchStep(None, False, FIRST)),
            (9, False, SearchStep(None, False, 1)),
            (9.5, True, SearchStep("sni", False, None)),
        ],
    ),
    (
        "a panel comes late",
        True,
        True,
        [
            (0, False, SearchStep(None, False, FIRST)),
            (FIRST, False, SearchStep("xembed", False, DOCK_WAIT_S)),
            (LATER, False, SearchStep("xembed", True, None)),
            (500, True, SearchStep("sni", False, None)),
        ],
    ),
    (
        "a panel starts again, long after the first",
        True,
        True,
        [
            (0, True, SearchStep("sni", False, None)),
            (500, False, SearchStep(None, False, FIRST)),
            (509, False, SearchStep(None, False, 1)),
        ],
    ),
    (
        "no display",
        True,
        False,
        [
            (0, False, SearchStep(None, False, FIRST)),
            (FIRST, False, SearchStep(None, False, 1)),
            (LATER, False, SearchStep(None, True, None)),
        ],
    ),
    (
        "no bus: nothing better than XEmbed is to be expected, but its tray may start after us",
        False,
        True,
        [(0, False, SearchStep("xembed", False, LATER)), (LATER, False, SearchStep("xembed", True, None))],
    ),
    ("neither", False, False, [(0, False, SearchStep(None, True, None))]),
]


@pytest.mark.requirement("tray-no-host")
@pytest.mark.parametrize(("bus", "display", "steps"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
def test_the_best_way_that_there_is(bus: bool, display: bool, steps: list[tuple[float, bool, SearchStep]]) -> None:
    search = HostSearch(bus, display, now=0)
    assert [search.step(watcher, now) for now, watcher, _ in steps] == [expected for _, _, expected in steps]


@pytest.mark.requirement("tray-no-host")
def test_a_panel_that_was_there_has_time_to_start_again_whoever_started_us() -> None:
    search = HostSearch(True, True, now=0, panel_wait_s=STARTED_WAIT_S)
    assert search.step(True, 1) == SearchStep("sni", False, None)
    assert search.step(False, 50) == SearchStep(None, False, PANEL_WAIT_S)
    assert search.step(False, 50 + STARTED_WAIT_S + DOCK_WAIT_S) == SearchStep(
        None, False, PANEL_WAIT_S - STARTED_WAIT_S - DOCK_WAIT_S
    )


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"DISPLAY": ":0"}, True),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, False),
        ({"DISPLAY": ""}, False),
        ({}, False),
    ],
)
def test_an_xembed_tray_is_looked_for_on_x_alone(environ: dict[str, str], expected: bool) -> None:
    assert may_have_xembed(environ) is expected


LOOK = """
import json, os, sys
import trayapp.tray.linux.icon
from trayapp.tray.linux.notifications import BusNotifications
known = ("mcp", "Xlib", "gi", "anyio", "yaml", "keyring", "asyncio", "PIL.Image", "trayapp.tray.linux.xembed")
pages = int(open("/proc/self/statm").read().split()[1]) if os.path.exists("/proc/self/statm") else 0
loaded = [name for name in known if name in sys.modules]
print(json.dumps([loaded, os.environ.get("PYSTRAY_BACKEND"), pages * 4 // 1024]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere pystray's own classes are used")
@pytest.mark.parametrize("choice", [None, "gtk"])
def test_the_class_comes_without_a_display_and_leaves_no_trace_in_the_environment(choice: str | None) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "PYSTRAY_BACKEND")}
    environ |= {"PYSTRAY_BACKEND": choice} if choice else {}
    out = subprocess.run([sys.executable, "-c", LOOK], env=environ, capture_output=True, check=True, timeout=30).stdout
    imported, left, megabytes = json.loads(out)
    assert (imported, left) == ([], choice)
    assert megabytes < 40, "what the whole tray may take is 45 MB"


def test_the_class_is_pystrays() -> None:
    assert issubclass(LinuxIcon, BaseIcon)
