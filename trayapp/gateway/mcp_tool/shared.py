"""Define what the one tool shares between sessions.

The tool itself is loaded when a session first uses it: no first list needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from trayapp.gateway.mcp_tool.result_files import ResultFiles
from trayapp.gateway.mcp_tool.warm_up import WarmUp
from trayapp.gateway.services import Services

if TYPE_CHECKING:
    from trayapp.gateway.mcp_tool.paging import CutResults


@dataclass(frozen=True)
class ToolParts:
    """Parts of the one tool. `is_own`: returns True for the key of a connection that runs for one session alone."""

    services: Services
    is_own: Callable[[str], bool]
    copies: ResultFiles
    warm_up: WarmUp

    @cached_property
    def cut_results(self) -> CutResults:
        """Return the cut results of sessions that last for one request."""
        from trayapp.gateway.mcp_tool.paging import CutResults

        return CutResults(self.copies)
