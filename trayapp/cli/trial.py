"""The trial of a server that was just added: how many tools it has, or why it has none.

Never here: starting it (the gateway does).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trayapp.cli.options import DISCOVERY_TIMEOUT_S, ask, of_project
from trayapp.cli.output import waiting
from trayapp.cli.text import count, one_line
from trayapp.model.errors import MultiMcpError, NoGatewayError
from trayapp.wire.control import APPROVALS, LIST, REFRESH


@dataclass(frozen=True, slots=True)
class Trial:
    """Outcome of a trial.

    `tools`: their number, None if the server did not work. `why`: why not. `hint`: what to do. `found`: how many tools
    need a look.
    """

    tools: int | None
    why: str = ""
    hint: str = ""
    found: int = 0

    def line(self, name: str) -> str:
        """Return the outcome in one line."""
        if self.tools is not None:
            look = f"; {self.found} to look at: multi-mcp approve {name}" if self.found else ""
            return one_line(f"{name}: {count(self.tools, 'tool')}{look}")
        return one_line(f"{name} does not work yet: {self.why}{f'. {self.hint}' if self.hint else ''}")


def try_server(name: str, project: Path | None, *, quiet: bool) -> Trial | None:
    """Have the gateway ask a server for its tools. Return None without a gateway.

    `project`: the folder of the server's project, whose sessions' view is used; None for the user's own server.
    """
    notes: list[str] = []
    found = 0
    try:
        with waiting(f"Trying {name}", quiet=quiet):
            if project is None:
                outcome: dict[str, Any] = ask(REFRESH, {"server": name}, DISCOVERY_TIMEOUT_S)["servers"][name]
                if outcome["error"] is not None:
                    return Trial(None, outcome["error"]["title"], outcome["error"].get("hint", ""))
                found = len(ask(APPROVALS, {"server": name, "tool": None})["rows"])
            rows = ask(LIST, {"server": name} | of_project(project), DISCOVERY_TIMEOUT_S, notes.append)
    except NoGatewayError:
        return None
    except MultiMcpError as error:
        return Trial(None, error.title, error.hint)
    return Trial(None, "; ".join(notes)) if notes and not rows else Trial(len(rows), found=found)
