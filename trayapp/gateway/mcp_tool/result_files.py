"""Keep long results in files that only this user can read, for clients that read a file instead of pages."""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from pathlib import Path

from trayapp.config.files import make_folder, new_file

log = logging.getLogger(__name__)

FOLDER = "results"  # in the cache folder


class ResultFiles:
    """Files in a folder that only gateways write to. Those of this gateway last at most as long as the gateway."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = f"{secrets.token_hex(4)}-"  # prefix of this gateway's files

    def write(self, text: str) -> Path | None:
        """Write `text` to a new file, mode 0600, and return its path. If that fails, log why and return None.

        Blocks for less time than reading the answer took.
        """
        path: Path | None = None
        try:
            make_folder(self._folder)
            path = self._folder / f"{self._own}{secrets.token_hex(4)}.txt"
            with new_file(path) as file:
                file.write(text.encode("utf-8", "surrogatepass"))
        except OSError as error:
            log.warning("Cannot write a long result to a file: %s", error)
            self.remove(path)
            return None
        return path

    def remove(self, path: Path | None) -> None:
        """Remove a file, if there is one."""
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def clear(self, *, own: bool) -> None:
        """Remove this gateway's files if `own`, otherwise all others, which earlier gateways left. Blocks."""
        with suppress(OSError):
            for path in list(self._folder.iterdir()):
                if path.name.startswith(self._own) is own:
                    self.remove(path)
