"""The servers.yaml file: its initial text, and functions that read and edit it without losing anyone's changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from trayapp.config.files import QUIET_S, Signature, locked, read_bytes, signature, wait_until_quiet, write_atomic
from trayapp.config.read.text import MAX_BYTES, decode
from trayapp.model.config import Config, ToolSwitch
from trayapp.model.errors import FileChangedError, MultiMcpError, StorageError

EDIT_S = 20.0  # limit for an edit, including waits for other programs; the tray waits 30 s for a whole command
AWAY_LOOKS = 5  # number of checks, QUIET_S apart, for a file that an editor may have moved away


class ConfigStore:
    """The configuration file at `path`. `first_text` returns the text for a missing file (see `sample_text`)."""

    def __init__(self, path: Path, first_text: Callable[[], str] = str) -> None:
        self.path = path
        self._first_text = first_text

    def read(self) -> str | None:
        """Return the text with its byte order mark, or None if the file is missing.

        Raises StorageError or UnparsableError.
        """
        data = read_bytes(self.path, MAX_BYTES)
        return None if data is None else decode(data, self.path.name)

    def start(self) -> str:
        """Return the text that the next edit starts from: the file's text or, if missing, the first text.

        Raises as `read` does.
        """
        seen = self.read()
        return self._first_text() if seen is None else seen

    def signature(self) -> Signature | None:
        """Return a value that changes with every save, or None if there is no file. Costs one stat."""
        return signature(self.path)

    def create(self) -> bool:
        """Write the first text if there is no file. Return True if it was written. Raises as `read` and `write` do."""
        if self.read() is not None:
            return False
        with locked(self.path):
            return self.read() is None and self.write(self._first_text(), None)

    def write(self, text: str, seen: str | None) -> bool:
        """Replace the file with `text`, atomically, if `read` still returns `seen`. Return True if bytes changed.

        Raises FileChangedError, StorageError or UnparsableError. In that case, nothing is written or left behind.
        """
        if text == seen:
            return False

        def still_as_seen() -> None:
            if self.read() != seen:
                raise FileChangedError(f"{self.path} was changed in the meantime", "Try again")

        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:
            raise StorageError(f"Cannot write to {self.path}: invalid Unicode", "Remove lone surrogates") from None
        write_atomic(self.path, data, still_as_seen)
        return True

    def edit(self, change: Callable[[str], str], within_s: float = EDIT_S) -> bool:
        """Read, change and write the file. Return True if bytes changed.

        If another program saves the file in the meantime, start over. `change` may therefore be called several times,
        even after an error. If the file is missing, start from the first text. Concurrent edits wait for each other.
        No attempt begins after `within_s` seconds. Raises as `change`, `read`, `write` and `locked` do.
        """
        end = time.monotonic() + within_s
        with locked(self.path, within_s):
            while True:
                seen = self._settled(end)
                try:
                    return self.write(change(self._first_text() if seen is None else seen), seen)
                except FileChangedError:
                    if time.monotonic() > end:
                        why = f"Cannot change {self.path}: another program kept saving it for"
                        hint = "Close that program or wait until it is done, then try again"
                        raise FileChangedError(f"{why} {within_s:.0f} s", hint) from None
                except MultiMcpError:
                    if time.monotonic() > end or self._settled(end) == seen:
                        raise

    def _settled(self, end: float) -> str | None:
        """Wait until no program is saving the file, at most until about `end`, and return its text.

        Some editors first move the file away, so a missing file is checked again if its folder has just changed.
        """
        seen = self._quiet(end)
        for _ in range(AWAY_LOOKS):
            if seen is not None or time.monotonic() > end or not self._folder_changed():
                break
            time.sleep(QUIET_S)
            seen = self._quiet(end)
        return seen

    def _quiet(self, end: float) -> str | None:
        """Wait until no program is writing the file, and return its text. Text read during a write is discarded."""
        while True:
            quiet = wait_until_quiet(self.path)
            try:
                seen = self.read()
                if self.signature() == quiet or time.monotonic() > end:
                    return seen
            except MultiMcpError:
                if self.signature() == quiet or time.monotonic() > end:
                    raise

    def _folder_changed(self) -> bool:
        """Return True if an entry of the file's folder was added or removed a moment ago."""
        try:
            return abs(time.time() - self.path.parent.stat().st_mtime) < QUIET_S * AWAY_LOOKS
        except OSError:
            return False

    def merge_tools(self, found: Mapping[str, Mapping[str, ToolSwitch]]) -> dict[str, str]:
        """Write the tools that a refresh found (edits.merge_tools). Return server -> why its tools were not written."""
        from trayapp.config import edits  # imported at the first edit, here and below: start-up does not need it

        refused: dict[str, str] = {}

        def change(text: str) -> str:
            nonlocal refused
            text, refused = edits.merge_tools(text, found)
            return text

        self.edit(change)
        return refused

    def add_server(self, name: str, entry: Mapping[str, Any]) -> bool:
        """Add a server (edits.add_server). Return True if bytes changed."""
        from trayapp.config import edits

        return self.edit(lambda text: edits.add_server(text, name, entry))

    def remove_server(self, name: str) -> bool:
        """Remove a server (edits.remove_server). Return True if bytes changed."""
        from trayapp.config import edits

        return self.edit(lambda text: edits.remove_server(text, name))


_SAMPLE = """\
# multi-mcp: all your MCP servers behind one endpoint.
# Save this file and the change is live within a second; nothing needs a restart.
# Programs that edit it (multi-mcp enable, refresh, ...) keep your comments and your order.

settings:                       # all optional; these are the defaults
  expose: auto                  # auto | tools | search: list every tool, or one tool that finds the others
  idle_timeout: 10              # minutes until an unused server is stopped; 0 = never
  # tool_prefix: server         # server | short | none | mcp: how tools are named

servers:
  # A small server that comes with multi-mcp. Use it to test your setup. To remove it, run:
  # multi-mcp remove sample
  sample:
    command: multi-mcp sample-server

  # A server that is a program. It starts when one of its tools is called and stops when idle.
  # files:
  #   command: npx -y @modelcontextprotocol/server-filesystem ~/Documents
  #   env: {LOG_LEVEL: info, API_KEY: "${MY_API_KEY}"}    # ${NAME} comes from the environment,
  #   lifecycle: lazy           # lazy | eager | keep-alive              ${keyring:NAME} from the keyring

  # A server on the web. If it requires a sign-in, the tray icon shows that.
  # docs:
  #   url: https://mcp.example.com/mcp
  #   headers: {X-Team: "${TEAM:-none}"}

  # Tools are added to this file when they are first seen. If you disable a tool, no client sees it:
  # github:
  #   command: [npx, -y, "@modelcontextprotocol/server-github"]
  #   disabled: false           # true disables the whole server
  #   tools:
  #     search_repositories: {enabled: true}
  #     delete_repository: {enabled: false}
"""


def sample_text() -> str:
    """Return the initial text of servers.yaml. It contains no paths, which could differ in the next installation."""
    return _SAMPLE


def with_sample(config: Config, command: Sequence[str]) -> Config:
    """Return the configuration with `command` in place of the command of multi-mcp's sample server."""
    program, *args = command
    changed = {
        name: replace(server, command=program, args=tuple(args))
        for name, server in config.servers.items()
        if server.args == ("sample-server",) and PurePath(server.command or "").stem in ("multi-mcp", "multi-mcp-shim")
    }
    return replace(config, servers={**config.servers, **changed}) if changed else config
