"""A client and a server of one kind each, for the benchmarks of behavior: what they say to each other."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import anyio

from tests.benchmarks.backends import Backend, Kind
from tests.benchmarks.doors import Door, Place, client_at
from tests.e2e.cell import Cell, capabilities
from tests.e2e.client import RpcFailure

LOOK_S = 0.01
SAID = 90  # characters of somebody's words in a row
RUN = uuid.uuid4().hex[:6]
NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class SupervisorView:
    """All was well; in one sentence, and how long what counts took."""

    words: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds on a quiet machine, past which a row is red."""

    hung: float = 1.0  # the others' tools beside a server that hangs (issue J)
    death: float = 1.0  # one error after a server's death (PRODUCT 5)
    row: float = 8.0  # past this nothing comes
    left: float = 15.0  # PRODUCT 5 gives what is left 10 s; a client over HTTP might come again for a few seconds


class NotOfferedError(Exception):
    """The way has no such thing."""


class Pair(Cell):
    """A client of one kind and a server of one kind, at one place."""

    def __init__(self, client: Any, kind: Kind, backend: Backend, place: Place, door: Door, limits: Limits) -> None:
        super().__init__(client, kind.version, backend.name, backend.notes)
        self.backend, self.place, self.door, self.limits = backend, place, door, limits
        self._names: dict[str, str] = {}

    @property
    def newer_server(self) -> bool:
        return self.backend.kind.modern

    async def shake_hands(self) -> None:
        """Perform the era's handshake, and list the server's tools. Raises NotOfferedError."""
        if not self.modern:
            await self.client.initialize(self.revision, **capabilities(self.revision))
        else:
            try:
                await self.request("server/discover")
            except RpcFailure as error:
                raise NotOfferedError(f"no {self.revision}: {error.error.get('message')}"[:SAID]) from None
        await self.listed()

    async def listed(self) -> set[str]:
        """Return the names in the list, once the server's are among them."""
        while True:
            names = {tool["name"] for tool in (await self.request("tools/list"))["tools"]}
            known = self.place.exposed(self.backend, "echo")
            found = {name for name in names if name == known or (known is None and name.endswith("echo"))}
            if found:
                self._names["echo"] = found.pop()
                return names
            await anyio.sleep(LOOK_S)

    def exposed(self, tool: str) -> str:
        return self._names["echo"].removesuffix("echo") + tool

    def look_at(self, came: dict[str, Any], asked: dict[str, Any]) -> None:
        """Check only that it arrives; test_matrix checks that it is whole."""

    def begin(self, tool: str, **arguments: Any) -> Any:
        """Begin a call. Return a future of its whole answer."""
        return self.client.ask("tools/call", self.params(self.calling(tool, arguments)))

    async def noticed(self, what: str, value: Any) -> None:
        """Wait until the server noticed that."""
        while value not in self.backend.noticed(what):  # noqa: ASYNC110 (it is another process)
            await anyio.sleep(LOOK_S)


def key() -> str:
    """Return one that no other call has."""
    return f"k{RUN}-{next(NUMBERS)}"


@asynccontextmanager
async def pair_at(place: Place, kind: Kind, backend: Backend, limits: Limits) -> AsyncIterator[Pair]:
    """Yield a client that has listed the server's tools. Raises NotOfferedError."""
    door = place.door(kind, backend)
    if door is None:
        raise NotOfferedError(f"no {kind} for a server on {backend.kind}")
    async with client_at(door) as client:
        pair = Pair(client, kind, backend, place, door, limits)
        await pair.shake_hands()
        yield pair
