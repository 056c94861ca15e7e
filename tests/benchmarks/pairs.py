"""Pairs of a client and a server for the behavior benchmarks, and the messages between them."""

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
SAID = 90  # most characters of a quoted message in a row
RUN = uuid.uuid4().hex[:6]
NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Success:
    """A successful outcome: a short description and, if measured, the duration."""

    words: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The time limits of rows in seconds, for a quiet machine. A row that exceeds one is red."""

    hung: float = 1.0  # until the other servers' tools are listed beside a server that hangs
    death: float = 1.0  # from a server's death to the error
    row: float = 8.0  # the duration of a whole row
    left: float = 15.0  # until leftovers end: 10 s, and a few more in which an HTTP client might return


class NotOfferedError(Exception):
    """A behavior or combination of kinds that the way does not offer."""


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
        """Perform the handshake of the client's revision, and list the server's tools. Raises NotOfferedError."""
        if not self.modern:
            await self.client.initialize(self.revision, **capabilities(self.revision))
        else:
            try:
                await self.request("server/discover")
            except RpcFailure as error:
                raise NotOfferedError(f"no {self.revision}: {error.error.get('message')}"[:SAID]) from None
        await self.listed()

    async def listed(self) -> set[str]:
        """Wait until the server's tools are listed, and return all listed names."""
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
        """Do nothing: only the arrival is checked here, and test_matrix checks the contents."""

    def begin(self, tool: str, **arguments: Any) -> Any:
        """Begin a call. Return a future of its whole answer."""
        return self.client.ask("tools/call", self.params(self.calling(tool, arguments)))

    async def noticed(self, what: str, value: Any) -> None:
        """Wait until the server has noted `value` under `what`."""
        while value not in self.backend.noticed(what):  # noqa: ASYNC110 (the server is another process)
            await anyio.sleep(LOOK_S)


def key() -> str:
    """Return a key that no other call uses."""
    return f"k{RUN}-{next(NUMBERS)}"


@asynccontextmanager
async def pair_at(place: Place, kind: Kind, backend: Backend, limits: Limits) -> AsyncIterator[Pair]:
    """Yield a pair whose client has listed the server's tools. Raises NotOfferedError."""
    door = place.door(kind, backend)
    if door is None:
        raise NotOfferedError(f"no {kind} for a server on {backend.kind}")
    async with client_at(door) as client:
        pair = Pair(client, kind, backend, place, door, limits)
        await pair.shake_hands()
        yield pair
