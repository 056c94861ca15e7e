"""The gateway's task boundaries: whatever fails in a task is logged, and ends neither the gateway nor another task.

Never here: what the tasks do.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio.abc

log = logging.getLogger(__name__)

AGAIN_AFTER_S = 1.0  # a task that fails at once, every time, must not keep a core busy


class FencedTasks:
    """What servers and sessions start tasks with: `tasks`, behind a boundary around each of them."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks

    def start_soon(self, work: Callable[..., Awaitable[Any]], *args: Any, name: object = None) -> None:
        """As anyio's."""
        self._tasks.start_soon(fenced, work, *args, name=name or _name(work))


async def fenced(work: Callable[..., Awaitable[Any]], *args: Any) -> None:
    """Run `work`: the boundary of a task that ends by itself. A failure that we do not know goes into the log."""
    try:
        await work(*args)
    except Exception:
        log.exception("%s failed in a way that we do not know", _name(work))


async def kept_up(work: Callable[[], Awaitable[None]], sleep: Callable[[float], Awaitable[None]]) -> None:
    """Run `work`: the boundary of a task for the gateway's whole life, begun anew each time that it fails."""
    while True:
        try:
            return await work()
        except Exception:
            log.exception("%s failed in a way that we do not know and begins anew", _name(work))
        await sleep(AGAIN_AFTER_S)


def _name(work: Callable[..., Any]) -> str:
    return getattr(work, "__qualname__", repr(work))
