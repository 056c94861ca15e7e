"""Run tasks behind exception boundaries: a failure is logged, and ends neither the gateway nor another task."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
import anyio.abc

log = logging.getLogger(__name__)

AGAIN_AFTER_S = 1.0  # a task that always fails immediately must not keep a core busy


class Spawn(Protocol):
    """A function that starts `work(*args)` as a task, which ends by itself. The task's failure is logged."""

    def __call__(self, work: Callable[..., Awaitable[Any]], *args: Any) -> None: ...


class FencedTasks:
    """The task group that servers use: `tasks`, with an exception boundary around each task."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks

    def start_soon(self, work: Callable[..., Awaitable[Any]], *args: Any, name: object = None) -> None:
        """Start a task as an anyio task group does, with an exception boundary around it."""
        self._tasks.start_soon(fenced, work, *args, name=name or _name(work))


async def fenced(work: Callable[..., Awaitable[Any]], *args: Any) -> None:
    """Run `work`, a task that ends by itself. Exception boundary: unexpected errors are logged."""
    try:
        await work(*args)
    except Exception:
        log.exception("Unexpected error in %s", _name(work))


async def kept_up(work: Callable[[], Awaitable[None]], sleep: Callable[[float], Awaitable[None]]) -> None:
    """Run `work` until it returns. Exception boundary: if it fails, it is started again after AGAIN_AFTER_S."""
    while True:
        try:
            return await work()
        except Exception:
            log.exception("Unexpected error in %s. Starting it again", _name(work))
        await sleep(AGAIN_AFTER_S)


def _name(work: Callable[..., Any]) -> str:
    return getattr(work, "__qualname__", repr(work))
