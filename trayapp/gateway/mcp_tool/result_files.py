"""Long results whole, each in a file for its user alone: a client that reads files need not ask for page after page.

Never here: what is long, which result a file belongs to (paging).
"""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from pathlib import Path

from trayapp.config.files import new_file

log = logging.getLogger(__name__)

FOLDER = "results"  # in the cache folder


class ResultFiles:
    """Files in one folder, which nobody else writes into. They last as long as this gateway, at most."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = f"{secrets.token_hex(4)}-"  # how our files' names begin

    def write(self, text: str) -> Path | None:
        """A new file with `text`, mode 0600; None when it cannot be written, which the log says. Blocks, for less time
        than reading the answer has taken."""
        path: Path | None = None
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / f"{self._own}{secrets.token_hex(4)}.txt"
            with new_file(path) as file:
                file.write(text.encode("utf-8", "surrogatepass"))
        except OSError as error:
            log.warning("No copy of a long result: %s", error)
            self.remove(path)
            return None
        return path

    def remove(self, path: Path | None) -> None:
        """One that is not wanted any more."""
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def clear(self, *, own: bool) -> None:
        """Remove all of our own, or what earlier gateways left. Blocks."""
        with suppress(OSError):
            for path in list(self._folder.iterdir()):
                if path.name.startswith(self._own) is own:
                    self.remove(path)
