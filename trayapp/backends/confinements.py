"""The confinement of each server at its last start: what it may access, and what it was refused.

Servers are confined by the package `confinement`, which is not imported until it is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from trayapp.model.config import ServerConfig, Settings, confine_of

if TYPE_CHECKING:
    from trayapp.confinement.record import Refusal, RefusalRecord
    from trayapp.model.status import ConfinementStatus

log = logging.getLogger(__name__)


class Confinements:
    """Confinement records by server name. `changed` is called on every new refusal."""

    def __init__(self, changed: Callable[[], None] = lambda: None, *, trial: bool = False) -> None:
        self._records: dict[str, RefusalRecord] = {}
        self._changed = changed
        self._trial = trial  # if True, every file access is recorded

    def get(self, name: str) -> RefusalRecord | None:
        """Return the record of the server's last start, or None if it was not confined."""
        return self._records.get(name)

    def status(self, name: str) -> ConfinementStatus | None:
        """Return how the server was last confined and what it was refused, or None if it was not confined."""
        record = self._records.get(name)
        return record.status() if record is not None else None

    async def begin(
        self, server: ServerConfig, settings: Settings, environ: Mapping[str, str], stderr: Callable[[bytes], None]
    ) -> RefusalRecord | None:
        """Begin and return a new record for a start of the server. Return None if it runs unconfined.

        `stderr` gets a line for each refusal. Earlier refusals are kept while the server's `confine` is unchanged:
        another connection may have caused them, or a refusal may have ended the server.
        """
        confine = confine_of(server.confine, settings.confine) if server.command is not None else None
        if confine is None:
            self._records.pop(server.name, None)
            return None
        # In a thread, so that other servers' calls continue
        await anyio.to_thread.run_sync(import_module, "trayapp.confinement.start")
        from trayapp.confinement.record import RefusalRecord

        home = str(Path(environ.get("HOME") or Path.home()).resolve())
        record, last = RefusalRecord(server.name, confine, home), self._records.get(server.name)
        if last is not None and last.confine == confine:
            record.refusals = last.refusals
        self._records[server.name] = record
        if self._trial:
            from trayapp.confinement.seccomp_requests import Trace

            record.trace = Trace()

        def report(refusal: Refusal) -> None:
            line = record.line(refusal)
            log.info("%s: %s", record.server, line)
            stderr(f"[multi-mcp] {line}\n".encode())
            self._changed()

        record.heard = report
        return record
