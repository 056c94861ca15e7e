"""A client to be killed: `python -m tests.benchmarks.doomed DOOR TOOL KEY [TOOL KEY ...]` starts calls and waits."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from tests.benchmarks.doors import Door, client_at
from tests.e2e.cell import Cell, capabilities


async def begin(door: Door, calls: Sequence[tuple[str, str]]) -> None:
    """Start the calls and hold them until the process is killed."""
    async with client_at(door) as client:
        cell = Cell(client, door.kind.version, "", Path())
        if not cell.modern:
            await client.initialize(cell.revision, **capabilities(cell.revision))
        for tool, key in calls:
            client.ask("tools/call", cell.params({"name": tool, "arguments": {"key": key}}))
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(begin, Door.of_json(sys.argv[1]), list(zip(sys.argv[2::2], sys.argv[3::2], strict=True)))
