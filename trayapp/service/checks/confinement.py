"""The check of confinement: whether this system can confine servers, and by which mechanism."""

from __future__ import annotations

from trayapp.model.confine import confine_of
from trayapp.service.checks.finding import CheckContext, CheckResult
from trayapp.service.checks.servers import read_config

CODE = "confine.available"


def available(world: CheckContext) -> list[CheckResult]:
    """Report how servers are confined here. A missing mechanism is a problem if an enabled server asks for it."""
    from trayapp.confinement.ways import NoWayError, choose  # makes system calls, which only Linux has

    config = read_config(world)
    servers = config.servers.values() if config else ()
    stdio = [server for server in servers if server.command is not None and not server.disabled]
    setting = config.settings.confine if config else None
    wanted = [(one.name, confine) for one in stdio if (confine := confine_of(one.confine, setting)) is not None]
    found = []
    for name, confine in wanted:
        try:
            choose(confine.network, confine.sockets)
        except NoWayError as error:
            state = "cannot be confined and does not start" if confine.required else "runs unconfined"
            found.append(CheckResult(CODE, "problem", f"{name} {state}: {error.reason}", error.hint))
    if found:
        return found
    try:
        return [CheckResult(CODE, "ok", f"Servers can be confined here, by {choose(True, False)}")]
    except NoWayError as error:
        return [CheckResult(CODE, "note", f"Servers cannot be confined here: {error.reason}", error.hint)]
