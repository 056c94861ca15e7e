"""What must hold around every fault of a server, checked in one place; a table's row says only what the fault does.

The client's session survives, each call under way has one outcome, the server is back RECOVERY_S after the fault's end,
another server's calls succeed throughout, files are whole; the `gateway` fixture sees that no process is left.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.client import RawClient
from tests.e2e.gateway import Gateway
from tests.faults.world import Counting, Message, calls, outcome, recovers, undisturbed
from tests.fixtures.odd import until

BACKOFF_S = 0.5  # within RECOVERY_S: a failed server has to be let in again by then
LIMIT_S = 1.0  # of a victim's handshake and calls, where nothing else would end them
ERROR, ANSWER = "error", "answer"
EITHER = (ERROR, ANSWER)


@dataclass
class Trial:
    """A victim named `bad` that is known, another server, and one client of both."""

    gateway: Gateway
    client: RawClient
    others: list[float]  # seconds that each call of the other server took
    open: list[asyncio.Future[Message]] = field(default_factory=list)

    def begin_call(self, tool: str, **arguments: Any) -> None:
        """Begin a call that is in flight when the fault begins."""
        self.open.append(self.client.ask("tools/call", calls(tool, **arguments)))

    async def ended(self) -> list[str]:
        """Return how each call in flight ended. An error names the server."""
        answers = [await outcome(answer) for answer in self.open]
        return [kind_of(answer) for answer in answers]

    async def tries(self, tool: str, **arguments: Any) -> str:
        """Make a call now and return how it ends."""
        return kind_of(await outcome(self.client.ask("tools/call", calls(tool, **arguments))))

    async def recovers(self, tool: str, **arguments: Any) -> float:
        """Make calls until one succeeds, within RECOVERY_S after the fault. Return the seconds until then."""
        began = time.monotonic()
        await recovers(self.client, tool, **arguments)
        return time.monotonic() - began


def kind_of(answer: Message) -> str:
    """Return `error` or `answer`. An error names the server and has a text."""
    if "result" in answer:
        return ANSWER
    words = answer["error"]["message"]
    assert "bad" in words or words.startswith("The server sent an error that is not an object"), words
    assert len(words) < 500, words
    assert "Traceback" not in words
    return ERROR


@asynccontextmanager
async def trial(
    gateway: Gateway, folder: Path, entry: dict[str, Any], slowest_s: float = 2.0, **settings: Any
) -> AsyncIterator[Trial]:
    """Yield one victim with that entry in servers.yaml; at the end all that must hold is looked at."""
    good = Counting(folder, "good")
    gateway.write({"bad": entry, "good": good.entry()}, failure_backoff=BACKOFF_S, **settings)
    gateway.start()
    await gateway.known()
    servers = names_of(gateway)
    async with gateway.client() as client, undisturbed(gateway, "good_count", slowest_s) as others:
        made = Trial(gateway, client, others)
        yield made
        await until(lambda: cached(gateway) == servers)  # all are well now, their lists are read and written
        assert await client.request("ping") == {}
        assert client.stray == []  # no second answer to anything
        assert all(answer.done() for answer in made.open)
        await until(lambda: len(others) > 2)  # some faults last but milliseconds
    assert gateway.process is not None
    assert gateway.process.poll() is None
    assert set(good.executed().values()) == {1}
    assert names_of(gateway) == servers
    assert cached(gateway) == servers


def names_of(gateway: Gateway) -> list[str]:
    """Return the names of the servers in servers.yaml, which is whole."""
    return sorted(yaml.safe_load(gateway.file.read_text(encoding="utf-8"))["servers"])


def cached(gateway: Gateway) -> list[str]:
    """Whose lists lie in the cache; every file of it is whole."""
    return sorted(json.loads(path.read_text())["server"] for path in (gateway.home / "cache").glob("*.json"))
