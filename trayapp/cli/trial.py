"""A server that was just added, tried: how many tools it has, or why it has none.

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
from trayapp.wire.control import LIST, REFRESH


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it. `tools`: None where it did not work; `why`: why not, `hint`: what to do."""

    tools: int | None
    why: str = ""
    hint: str = ""

    def line(self, name: str) -> str:
        """Return it in words."""
        if self.tools is not None:
            return one_line(f"{name}: {count(self.tools, 'tool')}")
        return one_line(f"{name} does not work yet: {self.why}{f'. {self.hint}' if self.hint else ''}")


def try_server(name: str, project: Path | None, *, quiet: bool) -> Trial | None:
    """Have the gateway ask a server for its tools; one of a project as that project's sessions see it.

    Return None without a gateway.
    """
    notes: list[str] = []
    try:
        with waiting(f"Trying {name}", quiet=quiet):
            if project is None:
                outcome: dict[str, Any] = ask(REFRESH, {"server": name}, DISCOVERY_TIMEOUT_S)["servers"][name]
                if outcome["error"] is not None:
                    return Trial(None, outcome["error"]["title"], outcome["error"].get("hint", ""))
            rows = ask(LIST, {"server": name} | of_project(project), DISCOVERY_TIMEOUT_S, notes.append)
    except NoGatewayError:
        return None
    except MultiMcpError as error:
        return Trial(None, error.title, error.hint)
    return Trial(None, "; ".join(notes)) if notes and not rows else Trial(len(rows))
