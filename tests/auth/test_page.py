"""The page at the end of a sign-in: its text, and its appearance in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import anyio.to_thread
import pytest
from PIL import Image

from tests.auth.issuer import Issuer, guarded
from tests.auth.world import person
from tests.tools import chromium
from trayapp.auth.callback import DETAIL_MAX, Outcome, html

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
TITLES = {
    "success": "Signed in to web",
    "denied": "Not signed in to web",
    "error": "The sign-in to web failed",
    "unknown": "This sign-in is over",
}
SCHEMES = {"light": 1, "dark": 0}  # values of Chromium's setting preferredColorScheme
SIZE = (800, 600)
BROWSER_S = 50.0


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_page_loads_nothing_and_runs_nothing(outcome: Outcome) -> None:
    text = html(outcome, "web", "why").decode()
    assert re.findall(r"(?:src|href)\s*=\s*\"([^\"]*)", text) == ["data:,"]
    assert not re.search(r"<script|@import|url\(|\son\w+=|<form|<iframe", text)
    assert TITLES[outcome] in text


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_names_and_reasons_are_escaped(outcome: Outcome) -> None:
    evil = "<script>alert('x')</script>\"&"
    text = html(outcome, evil, evil).decode()
    assert "<script" not in text
    assert "alert('x')" not in text


def test_a_long_reason_is_cut() -> None:
    text = html("error", "web", "y" * 10_000).decode()
    assert re.findall(r"y{5,}", text) == ["y" * DETAIL_MAX]


def look(address: str, scheme: str) -> Image.Image:
    """Return a screenshot of the page at the address, taken by headless Chromium."""
    browser = chromium()
    folder = Path(tempfile.mkdtemp(prefix="mm-web-"))
    quiet = ("--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")
    argv = [
        *(browser, "--headless", "--no-sandbox", "--disable-sync", "--hide-scrollbars", *quiet),
        f"--user-data-dir={folder / 'profile'}",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
        f"--window-size={SIZE[0]},{SIZE[1]}",
        f"--screenshot={folder / 'shot.png'}",
        address,
    ]
    try:
        subprocess.run(argv, capture_output=True, timeout=BROWSER_S, check=True)
        with Image.open(folder / "shot.png") as picture:
            return picture.convert("RGB")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def colors(picture: Image.Image) -> list[tuple[int, int, int]]:
    """Return all colors in the picture."""
    found = picture.getcolors(1 << 20) or []
    return [color for _, color in found if isinstance(color, tuple) and len(color) == 3]


def brightness(color: tuple[int, int, int]) -> float:
    return sum(color) / 3


def hues(picture: Image.Image) -> set[str]:
    """Return the mark colors (green, amber, red) that appear in the upper middle of the picture."""
    part = picture.crop((300, 0, 500, 330))
    found = set()
    for red, green, blue in colors(part):
        if green > red + 40 and green > blue + 40:
            found.add("green")
        elif red > blue + 60 and green > blue + 40:
            found.add("amber")
        elif red > green + 60 and red > blue + 60:
            found.add("red")
    return found


STATES: dict[Outcome, Callable[[], Issuer]] = {
    "success": Issuer,
    "denied": lambda: Issuer(denies="access_denied"),
    "error": lambda: Issuer(token_status=500),
    "unknown": Issuer,
}
MARKS: dict[Outcome, set[str]] = {"success": {"green"}, "denied": {"amber"}, "error": {"red"}, "unknown": set()}


@pytest.mark.anyio
@pytest.mark.timeout(120)
@pytest.mark.requirement("auth-page")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_a_real_browser_shows_the_outcome(outcome: Outcome, scheme: str) -> None:
    async with guarded(issuer=STATES[outcome]()) as server, person() as made:
        begun = made.start(server.url())
        address = await begun.shown()
        if outcome == "unknown":
            address = f"{begun.redirect_uri}?code=x&state=guessed"
        picture = await anyio.to_thread.run_sync(look, address, scheme)
        assert begun.done.is_set() == (outcome != "unknown")
    assert picture.size == SIZE
    assert (brightness(colors(picture.crop((0, 0, 5, 5)))[0]) < 80) == (scheme == "dark")
    assert hues(picture) == MARKS[outcome]
    written = [brightness(color) for color in colors(picture)]
    assert max(written) - min(written) > 150  # the text is readable on its background
