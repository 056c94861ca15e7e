"""Collect the garbage of a start once clients have their first answers."""

from __future__ import annotations

import gc

import anyio

SETTLED_S = 3.0  # after the first list: clients that start together have their lists by then, too


async def collect_garbage() -> None:
    """Collect garbage from now on: cli/become put it off.

    Objects of the start stay. A first run leaves some MiB of garbage among them.
    """
    gc.enable()
    await anyio.sleep(SETTLED_S)
    gc.collect()
    gc.freeze()
