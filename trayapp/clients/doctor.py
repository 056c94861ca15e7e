"""The doctor check of clients: each installed client, and whether its multi-mcp entry is correct.

It is not in service/checks because those checks must not import clients.
"""

from __future__ import annotations

from trayapp.clients.connect import ClientStatus, found_clients
from trayapp.clients.context import RECORD_NAME, ClientsContext
from trayapp.clients.places import Machine
from trayapp.service.checks.finding import Check, CheckContext, CheckResult

CODE = "clients.connected"


def connected(surroundings: CheckContext) -> list[CheckResult]:
    """Return a finding for each client, and one note if none is connected."""
    machine = Machine(environ=surroundings.environ, platform=surroundings.platform)
    world = ClientsContext(machine, surroundings.paths.config_file.with_name(RECORD_NAME))
    states = found_clients(world)
    told = [finding for state in states if (finding := _finding(state)) is not None]
    if any(state.state in ("connected", "drifted") for state in states):
        return told
    names = ", ".join(state.title for state in states)
    what = f"None of these is connected: {names}" if names else "No known AI tool was found"
    return [*told, CheckResult(CODE, "note", what, "Connect all of them: multi-mcp connect --all" if names else "")]


def _finding(state: ClientStatus) -> CheckResult | None:
    if state.state == "connected" and state.reason:
        return CheckResult(CODE, "note", f"{state.title}: {state.reason} ({state.file})", "Enable it there")
    if state.state == "connected":
        return CheckResult(CODE, "ok", f"{state.title}: {state.file}")
    if state.state == "drifted":
        what = f"{state.title}: {state.reason} ({state.file})"
        return CheckResult(CODE, "problem", what, f"Fix it with: multi-mcp connect {state.name}")
    if state.state == "unreadable":
        what = f"{state.title}: cannot read {state.file}: {state.reason}"
        return CheckResult(CODE, "note", what, "Correct the file. Until then it is left alone")
    return None


CLIENT_CHECKS = (Check(CODE, connected),)
