"""The checks after every server fault, in one place, so that each test describes only its fault.

The client's session survives, and each call in flight has one outcome. The server is back within RECOVERY_S of the end
of the fault. Calls to another server succeed throughout, and no file is damaged. The `gateway` fixture checks that no
process is left.
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

BACKOFF_S = 0.5  # shorter than RECOVERY_S, so that a failed server is retried in time
LIMIT_S = 1.0  # timeout of the victim's handshake and calls, where nothing else would end them
ERROR, ANSWER = "error", "answer"
EITHER = (ERROR, ANSWER)


@dataclass
class Trial:
    """A victim named `bad` whose tools are known, another server, and a client that uses both."""

    gateway: Gateway
    client: RawClient
    others: list[float]  # seconds that each call to the other server took
    open: list[asyncio.Future[Message]] = field(default_factory=list)

    def begin_call(self, tool: str, **arguments: Any) -> None:
        """Start a call that is in flight when the fault begins."""
        self.open.append(self.client.ask("tools/call", calls(tool, **arguments)))

    async def ended(self) -> list[str]:
        """Wait for the calls in flight to end. Return `error` or `answer` for each."""
        answers = [await outcome(answer) for answer in self.open]
        return [kind_of(answer) for answer in answers]

    async def tries(self, tool: str, **arguments: Any) -> str:
        """Make a call and return `error` or `answer`."""
        return kind_of(await outcome(self.client.ask("tools/call", calls(tool, **arguments))))

    async def recovers(self, tool: str, **arguments: Any) -> float:
        """Make calls until one succeeds, within RECOVERY_S after the fault. Return how many seconds that took."""
        began = time.monotonic()
        await recovers(self.client, tool, **arguments)
        return time.monotonic() - began


def kind_of(answer: Message) -> str:
    """Return `error` or `answer`. Fails if an error is too long, has a traceback or does not name the server."""
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
    """Yield a trial whose victim has that entry in servers.yaml. At the end, check what must hold after any fault."""
    good = Counting(folder, "good")
    gateway.write({"bad": entry, "good": good.entry()}, failure_backoff=BACKOFF_S, **settings)
    gateway.start()
    await gateway.known()
    servers = names_of(gateway)
    async with gateway.client() as client, undisturbed(gateway, "good_count", slowest_s) as others:
        made = Trial(gateway, client, others)
        yield made
        await until(lambda: cached(gateway) == servers)  # all servers have recovered and their lists are cached
        assert await client.request("ping") == {}
        assert client.stray == []  # no request was answered twice
        assert all(answer.done() for answer in made.open)
        await until(lambda: len(others) > 2)  # some faults last only milliseconds
    assert gateway.process is not None
    assert gateway.process.poll() is None
    assert set(good.executed().values()) == {1}
    assert names_of(gateway) == servers
    assert cached(gateway) == servers


def names_of(gateway: Gateway) -> list[str]:
    """Return the names of the servers in servers.yaml. Fails if the file is damaged."""
    return sorted(yaml.safe_load(gateway.file.read_text(encoding="utf-8"))["servers"])


def cached(gateway: Gateway) -> list[str]:
    """Return the names of the servers whose lists are cached. Fails if a cache file is damaged."""
    return sorted(json.loads(path.read_text())["server"] for path in (gateway.home / "cache").glob("*.json"))
