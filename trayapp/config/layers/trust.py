"""The project files that the user approved, by path and content. A changed file needs a new approval.

A project's file comes from a cloned repository and starts programs. Using one requires a `TrustedFile`, which only
TrustStore creates.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from trayapp.config.files import FILE_MODE, locked, read_bytes, write_atomic
from trayapp.config.layers.project import ProjectFile
from trayapp.model.errors import Problem, StorageError

log = logging.getLogger(__name__)

TRUST_NAME = "trusted.json"  # beside servers.yaml
VERSION = 1
STORE_LARGEST = 10_000_000  # bytes; an entry has about 150
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class TrustedFile(NamedTuple):
    """A project's file whose exact content was approved. Created only by TrustStore.check."""

    file: ProjectFile


class TrustStore:
    """The file at `path`: {"version": 1, "trusted": {path of a project's file: digest of its content}}.

    `"commands"` holds the approved commands for secrets (`${cmd:...}`), verbatim.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._told = ""

    def check(self, file: ProjectFile) -> TrustedFile | None:
        """Return proof that the file may be used, or None if its content was not approved. Blocks."""
        try:
            known = self._read()
        except StorageError as error:
            if str(error) != self._told:  # called often
                self._told = str(error)
                log.warning("No project is trusted: %s", error)
            return None
        return TrustedFile(file) if known.get(str(file.path)) == file.digest else None

    def approve(self, file: ProjectFile) -> bool:
        """Trust this content of this file. Return True if that is new. Blocks. Raises StorageError."""
        return self._change(str(file.path), file.digest)

    def revoke(self, path: Path) -> bool:
        """Stop trusting that file. Return True if it was trusted with some content. Blocks. Raises StorageError."""
        return self._change(str(path), None)

    def paths(self) -> list[Path]:
        """Return the files with trusted content. Blocks. Raises StorageError."""
        return [Path(path) for path in self._read()]

    def is_approved(self, command: str) -> bool:
        """Return True if the user approved exactly this command. Blocks."""
        try:
            return command in self._commands(self._content())
        except StorageError as error:
            log.warning("No command is approved: %s", error)
            return False

    def approve_commands(self, commands: Iterable[str]) -> None:
        """Approve exactly these commands. Blocks. Raises StorageError."""
        with locked(self.path):
            content = self._content()
            self._write(content | {"commands": list(dict.fromkeys((*self._commands(content), *commands)))})

    def _change(self, path: str, digest: str | None) -> bool:
        with locked(self.path):
            content = self._content()
            known = self._trusted(content)
            if known.get(path) == digest:
                return False
            changed = {key: value for key, value in known.items() if key != path} | ({path: digest} if digest else {})
            self._write(content | {"trusted": changed})
            return True

    def _write(self, content: dict[str, Any]) -> None:
        text = json.dumps({"version": VERSION, "trusted": {}} | content, indent=2, ensure_ascii=False)
        write_atomic(self.path, text.encode("utf-8", "surrogatepass") + b"\n")

    def _read(self) -> dict[str, str]:
        return self._trusted(self._content())

    @staticmethod
    def _trusted(content: dict[str, Any]) -> dict[str, str]:
        trusted = content.get("trusted")
        entries = trusted.items() if isinstance(trusted, dict) else ()
        return {path: digest for path, digest in entries if isinstance(digest, str)}

    @staticmethod
    def _commands(content: dict[str, Any]) -> list[str]:
        commands = content.get("commands")
        return [command for command in commands if isinstance(command, str)] if isinstance(commands, list) else []

    def _content(self) -> dict[str, Any]:
        """Return the stored content, or {} if we did not write the file. Raises StorageError."""
        self._check_owner()
        data = read_bytes(self.path, STORE_LARGEST)
        try:
            content: Any = json.loads((data or b"{}").decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) and content.get("version") == VERSION else {}

    def _check_owner(self) -> None:
        """Raise StorageError for a file that other users may write: they could add any project."""
        if os.name == "nt":
            return
        try:
            facts = self.path.stat()
        except OSError:
            return  # missing, or the read reports the reason
        if facts.st_uid != os.geteuid() or facts.st_mode & WRITABLE_BY_OTHERS:
            hint = f"Remove it and trust your projects again; or check it, then: chmod {FILE_MODE:o} {self.path}"
            raise StorageError(f"{self.path} was writable by other users", hint)


def untrusted_problem(file: ProjectFile) -> Problem:
    """Return a problem that says that a project's file is ignored, and how to change that."""
    folder = str(file.folder)
    quoted = f'"{folder}"' if any(letter.isspace() for letter in folder) else folder
    return Problem(
        str(file.path),
        0,
        "The project's servers are ignored: this content of the file, or of the programs that it runs, is not approved",
        f"Review it, then: multi-mcp trust {quoted}",
        fatal=False,
    )
