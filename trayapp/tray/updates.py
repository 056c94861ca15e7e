"""The notification of a new version: checked shortly after startup and then daily, shown once per version.

The verb `multi-mcp update-check` decides whether to ask the network (off by default).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from trayapp.config.files import make_folder
from trayapp.model.errors import MultiMcpError
from trayapp.tray.state import texts
from trayapp.tray.state.notices import Notice

log = logging.getLogger(__name__)

KEY = "update"
FIRST_S = 60.0  # wait until a login no longer keeps the machine busy
EVERY_S = 24 * 3600.0


class Updates:
    """Reports new versions. `look`: asks the verb `update-check`. `told`: a file with the last reported version."""

    def __init__(self, look: Callable[[], Any], show: Callable[[Notice], object], told: Path) -> None:
        self._look, self._show, self._told = look, show, told

    def start(self) -> None:
        """Start checking, on a daemon thread."""
        threading.Thread(target=self._run, name="updates", daemon=True).start()

    def _run(self) -> None:
        never, wait_s = threading.Event(), FIRST_S
        while not never.wait(wait_s):
            self.look_once()
            wait_s = EVERY_S

    def look_once(self) -> None:
        """Check now, and report a version that was not reported before."""
        try:
            newer = (self._look() or {}).get("newer")
        except MultiMcpError as error:
            log.info("%s", error)
            return
        last = ""
        with suppress(OSError, UnicodeDecodeError):
            last = self._told.read_text(encoding="utf-8")
        if newer and newer["version"] != last:
            self._show(notice(newer["version"], newer["url"]))
            with suppress(OSError):
                make_folder(self._told.parent)
                self._told.write_text(newer["version"], encoding="utf-8")


def notice(version: str, url: str) -> Notice:
    """Return the notice of a new version."""
    title = texts.fit(f"multi-mcp {texts.name(version)} is available")
    lines = [texts.plain(url) if url else "Get it where you got this version"]
    return Notice(KEY, texts.within([title], texts.TITLE), texts.within(lines, texts.BODY))
