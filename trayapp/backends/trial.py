"""A single start of a server, beside the connection that clients use: to read what it offers, or what it needs.

A trial never writes the server's entry. `multi-mcp confine` shows what a confined server needs and proposes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from trayapp.backends.confinements import Confinements
from trayapp.backends.connect import connect
from trayapp.backends.context import BackendContext
from trayapp.backends.listing import fetch_offer
from trayapp.model.errors import MultiMcpError
from trayapp.model.offer import Offer
from trayapp.model.servers import ServerConfig
from trayapp.model.settings import Confine
from trayapp.model.status import ConfinementStatus
from trayapp.wire.messages import METHOD_NOT_FOUND, Call, Params, RpcError

MOST_ROUNDS = 8  # each round allows what the previous round was last refused


class _TrialInbound:
    """An Inbound that ignores notifications and refuses requests."""

    async def on_request(self, method: str, params: Params, about: Call | None = None) -> dict[str, Any]:
        raise RpcError(METHOD_NOT_FOUND, "No user is there to answer")

    def on_notification(self, method: str, params: Params, about: Call | None = None) -> None:
        """Ignore the notification."""

    def input_schema(self, tool: str) -> Any:
        """Return None: a trial calls no tools."""


async def run_once(server: ServerConfig, context: BackendContext) -> Offer:
    """Start a server, return what it offers, and end it. Raises MultiMcpError."""
    async with connect(server.name, server, context, _TrialInbound()) as live:
        return await fetch_offer(live.channel, live.peer, {}, _ignore)


async def _ignore(offer: Offer) -> None:
    """Ignore partial lists."""


@dataclass(frozen=True, slots=True)
class ConfineTrial:
    """The result of a trial. `tools` is None if the server does not work confined; `error` then says why.

    `confine` is the setting of the last run. `read` lists the folders it read from, `written` the files it wrote.
    With bubblewrap both are empty.
    """

    confine: Confine
    line: str
    status: ConfinementStatus
    tools: tuple[str, ...] | None
    error: MultiMcpError | None
    read: tuple[str, ...]
    written: tuple[str, ...]


async def try_confined(server: ServerConfig, context: BackendContext, confine: Confine) -> ConfineTrial:
    """Run a server confined. While refusals make it fail, run it again with more access, but never with secrets."""
    from trayapp.confinement.record import written

    for _ in range(MOST_ROUNDS):
        trial, wanted = await _run_confined(server, context, confine)
        if trial.error is None or wanted == confine:
            break
        confine = wanted
    return replace(trial, line=written(trial.confine))


async def _run_confined(
    server: ServerConfig, context: BackendContext, confine: Confine
) -> tuple[ConfineTrial, Confine]:
    confinements = Confinements(trial=True)
    tools: tuple[str, ...] | None = None
    failure: MultiMcpError | None = None
    try:
        offer = await run_once(replace(server, confine=confine), replace(context, confinements=confinements))
        tools = tuple(str(item.get("name")) for item in offer.tools)
    except MultiMcpError as error:
        failure = error
    record = confinements.get(server.name)
    assert record is not None
    read, changed = record.traced()
    status = record.status()
    return ConfineTrial(confine, "", status, tools, failure, tuple(read), tuple(changed)), record.remedy()
