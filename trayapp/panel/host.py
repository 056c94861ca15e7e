"""What the panel needs of the gateway. Never here: the gateway."""

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
    """The gateway, as its pages see it.

    `ask`: carries out a control request; raises MultiMcpError, RpcError. `changes`, `calls`: call a listener after the
    state changed or calls were written; they return a function that ends it. `per_minute`: calls of each last minute.
    `watched`: counts a person who can be asked, while its context lasts. `profiles`: names of servers.yaml's.
    """

    ask: Callable[[str, dict[str, Any]], Awaitable[Any]]
    changes: Listen
    calls: Listen
    per_minute: Callable[[int], Awaitable[list[int]]]
    watched: Callable[[], AbstractContextManager[None]]
    profiles: Callable[[], list[str]]
    access: PanelAccess
    paths: Paths
    environ: Mapping[str, str]
