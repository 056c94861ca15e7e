"""Define what the one tool uses in all sessions: result files, and background connections to servers that are likely to
be called. The tool itself is loaded on its first use: no first list needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from trayapp.backends.connection import Connection
from trayapp.gateway.mcp_tool.result_files import ResultFiles
from trayapp.gateway.services import Services
from trayapp.model.errors import ServerError
from trayapp.model.lifecycle import State

if TYPE_CHECKING:
    from trayapp.gateway.mcp_tool.results import CutResults


log = logging.getLogger(__name__)

AT_ONCE = 4  # a search must not start all servers; the others start with their first call


class WarmUp:
    """Background connections to idle servers whose tools a model has just read about: a call is likely.

    A server that nobody calls is closed like any idle one.
    """

    def __init__(self, spawn: Callable[[Callable[[Connection], Awaitable[None]], Connection], object]) -> None:
        self._spawn = spawn
        self._under_way: set[Connection] = set()

    def warm(self, connection: Connection) -> None:
        """Connect an idle server soon, unless AT_ONCE are being connected. Leave a failed one to its next call."""
        if connection.state is State.IDLE and connection not in self._under_way and len(self._under_way) < AT_ONCE:
            self._under_way.add(connection)
            self._spawn(self._connect, connection)

    async def _connect(self, connection: Connection) -> None:
        try:
            await connection.ensure()
        except ServerError as error:
            log.info("Cannot connect in the background: %s", error)
        finally:
            self._under_way.discard(connection)


@dataclass(frozen=True)
class ToolDependencies:
    """Dependencies of the one tool. `is_own`: returns True for the key of a further connection (ConnectionKeys)."""

    services: Services
    is_own: Callable[[str], bool]
    result_files: ResultFiles
    warm_up: WarmUp

    @cached_property
    def cut_results(self) -> CutResults:
        """Return the store of cut results that all sessions of a single request share."""
        from trayapp.gateway.mcp_tool.results import CutResults

        return CutResults(self.result_files)
