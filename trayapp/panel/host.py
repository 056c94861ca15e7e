"""The interface between the panel and the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from trayapp.config.paths import Paths
from trayapp.panel.access import PanelAccess

Listen = Callable[[Callable[[], None]], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class PanelHost:
    """The gateway as the panel sees it.

    - `ask`: run a control request. Raises MultiMcpError, RpcError.
    - `changes`, `calls`, `logs`: call a listener after each state change, after calls were recorded, or after servers
      wrote to their logs. Each returns a function that removes the listener.
    - `seen`: return how many state changes there were, and how often calls were recorded and logs were written.
    - `per_minute`: return the number of calls in each of the last minutes.
    - `watched`: while its context lasts, count one person who can answer questions.
    - `profiles`: return the names of the profiles in servers.yaml.
    """

    ask: Callable[[str, dict[str, Any]], Awaitable[Any]]
    changes: Listen
    calls: Listen
    logs: Listen
    seen: Callable[[], tuple[int, int, int]]
    per_minute: Callable[[int], Awaitable[list[int]]]
    watched: Callable[[], AbstractContextManager[None]]
    profiles: Callable[[], list[str]]
    access: PanelAccess
    paths: Paths
    environ: Mapping[str, str]
