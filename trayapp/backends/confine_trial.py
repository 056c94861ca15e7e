"""Trial runs of a confined server, to find out what it needs. `multi-mcp confine` shows and proposes the result.

A trial uses a connection of its own and never writes the server's entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trayapp.backends.confinements import Confinements
from trayapp.backends.context import BackendContext
from trayapp.backends.trial import run_once
from trayapp.model.errors import MultiMcpError
from trayapp.model.servers import ServerConfig
from trayapp.model.settings import Confine
from trayapp.model.status import ConfinementStatus

MOST_ROUNDS = 8  # each round allows what the previous round was last refused


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
        trial, wanted = await _run(server, context, confine)
        if trial.error is None or wanted == confine:
            break
        confine = wanted
    return replace(trial, line=written(trial.confine))


async def _run(server: ServerConfig, context: BackendContext, confine: Confine) -> tuple[ConfineTrial, Confine]:
    kept = Confinements(trial=True)
    tools: tuple[str, ...] | None = None
    failure: MultiMcpError | None = None
    try:
        own = replace(context, confinements=kept)
        offer = await run_once(replace(server, confine=confine), own)
        tools = tuple(str(item.get("name")) for item in offer.tools)
    except MultiMcpError as error:
        failure = error
    record = kept.get(server.name)
    assert record is not None
    read, changed = record.traced()
    status = record.status()
    return ConfineTrial(confine, "", status, tools, failure, tuple(read), tuple(changed)), record.remedy()
