"""servers.yaml on the disk: read, and edited in a way that loses nothing that anybody wrote (STYLE 18).

Never here: what an edit does to the text (edits), what the text means.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trayapp.config.files import QUIET_S, Signature, read_bytes, signature, wait_until_quiet, write_atomic
from trayapp.config.locks import locked
from trayapp.config.read.text import MAX_BYTES, decode
from trayapp.model.errors import FileChangedError, MultiMcpError, StorageError
from trayapp.model.servers import ToolSwitch
from trayapp.model.settings import AskMode

__all__ = ["ConfigStore", "Loaded", "signature"]

EDIT_S = 20.0  # for an edit, other programs' saves and edits waited for: the tray waits 30 s for a whole verb
AWAY_LOOKS = 5  # times, a QUIET_S between them, that a file is looked for which an editor may have moved away
MISSING = ""  # the fingerprint of a file that is not there


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file's text (a byte order mark kept) and what tells it from any other; MISSING when there is no file."""

    text: str
    fingerprint: str

    @property
    def exists(self) -> bool:
        """Whether there was a file."""
        return self.fingerprint != MISSING


class ConfigStore:
    """The one file at `path`. `first_text` gives the text that a missing file starts with (see sample)."""

    def __init__(self, path: Path, first_text: Callable[[], str] = str) -> None:
        self.path = path
        self._first_text = first_text

    def read(self) -> Loaded:
        """The file as it is, an empty text when missing; raises StorageError, Unparsable (too large, not UTF-8)."""
        data = read_bytes(self.path, MAX_BYTES)
        return Loaded("", MISSING) if data is None else Loaded(decode(data, self.path.name), _fingerprint(data))

    def start(self) -> str:
        """The text that the next edit begins with: that of a missing file is its first one. Raises as `read`."""
        return self._start(self.read())

    def _start(self, seen: Loaded) -> str:
        return seen.text if seen.exists else self._first_text()

    def signature(self) -> Signature | None:
        """Changes with every save, at the price of one stat; None when there is no file."""
        return signature(self.path)

    def create(self) -> bool:
        """Write the first text if there is no file; whether it was written. Raises StorageError."""
        if self.read().exists:
            return False
        with locked(self.path):
            return not self.read().exists and self.write(self._first_text(), Loaded("", MISSING))

    def write(self, text: str, seen: Loaded) -> bool:
        """Replace the file by `text`, atomically, if it is still as `seen`; whether bytes changed.

        Raises FileChangedError (nothing written) and StorageError (nothing written, nothing left behind).
        """
        if seen.exists and text == seen.text:
            return False

        def still_as_seen() -> None:
            if self.read().fingerprint != seen.fingerprint:
                raise FileChangedError(f"{self.path} was changed in the meantime", "Try again")

        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:
            raise StorageError(f"{self.path} cannot hold this text", "It has characters that are no text") from None
        write_atomic(self.path, data, still_as_seen)
        return True

    def edit(self, change: Callable[[str], str], within_s: float = EDIT_S) -> bool:
        """Read, change and write; again from the start when somebody else saved in between. Whether bytes changed.

        A missing file is changed from the first text. Edits wait for each other, those of other processes too: however
        many there are at once, each is written. `change` may be called several times; what it raises counts if the file
        is still as it was given. No attempt begins after `within_s`. Raises what `change`, `read` and `write` raise,
        and StorageError (see locked).
        """
        end = time.monotonic() + within_s
        with locked(self.path, within_s):
            while True:
                seen = self._settled(end)
                try:
                    return self.write(change(self._start(seen)), seen)
                except FileChangedError:
                    if time.monotonic() > end:
                        why = f"{self.path} cannot be changed: another program saved it again and again for"
                        hint = "Let that program finish, or close it; then try again"
                        raise FileChangedError(f"{why} {within_s:.0f} s", hint) from None
                except MultiMcpError:
                    if time.monotonic() > end or self._settled(end).fingerprint == seen.fingerprint:
                        raise

    def _settled(self, end: float) -> Loaded:
        """Return the file once nobody saves it, soon after `end` at the latest. Some editors move it away first: then
        its folder changed just now."""
        seen = self._quiet(end)
        for _ in range(AWAY_LOOKS):
            if seen.exists or time.monotonic() > end or not self._folder_changed():
                break
            time.sleep(QUIET_S)
            seen = self._quiet(end)
        return seen

    def _quiet(self, end: float) -> Loaded:
        """Return the file as it was while nobody saved it: one that was emptied to be written is no answer."""
        while True:
            quiet = wait_until_quiet(self.path)
            try:
                seen = self.read()
            except MultiMcpError:
                if self.signature() == quiet or time.monotonic() > end:
                    raise
            else:
                if self.signature() == quiet or time.monotonic() > end:
                    return seen

    def _folder_changed(self) -> bool:
        """True if something came into the file's folder, or went, within the last moments."""
        try:
            return abs(time.time() - self.path.parent.stat().st_mtime) < QUIET_S * AWAY_LOOKS
        except OSError:
            return False

    def merge_tools(self, found: Mapping[str, Mapping[str, ToolSwitch]]) -> dict[str, str]:
        """Write the result of a refresh (see edits.merge_tools); servers that could not be written, with the reason."""
        from trayapp.config import edits  # loaded with the first edit, as below: a first list needs none

        refused: dict[str, str] = {}

        def change(text: str) -> str:
            merged = edits.merge_tools(text, found, self.path.name)
            refused.clear()
            refused.update(merged.refused)
            return merged.text

        self.edit(change)
        return refused

    def add_server(self, name: str, entry: Mapping[str, Any]) -> bool:
        """See edits.add_server; whether bytes changed, as with all that follow."""
        from trayapp.config import edits

        return self.edit(lambda text: edits.add_server(text, name, entry, self.path.name))

    def remove_server(self, name: str) -> bool:
        """See edits.remove_server."""
        from trayapp.config import edits

        return self.edit(lambda text: edits.remove_server(text, name, self.path.name))

    def set_confine(self, server: str, value: Any) -> bool:
        """See edits.set_confine."""
        from trayapp.config import edits

        return self.edit(lambda text: edits.set_confine(text, server, value, self.path.name))

    def set_ask(self, server: str, tool: str | None, ask: AskMode | None) -> bool:
        """See edits.set_ask."""
        from trayapp.config import edits

        return self.edit(lambda text: edits.set_ask(text, server, tool, ask, self.path.name))

    def set_setting(self, key: str, value: Any) -> bool:
        """See edits.set_setting."""
        from trayapp.config import edits

        return self.edit(lambda text: edits.set_setting(text, key, value, self.path.name))


def _fingerprint(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
