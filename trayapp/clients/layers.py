"""`settings.imports`: the servers of other clients as read-only layers below servers.yaml, for the gateway to follow.

Never here: how layers are laid over each other (config/laid), folders' own files (they need trust).
"""

from __future__ import annotations

from collections.abc import Sequence

from trayapp.clients.places import Machine
from trayapp.clients.servers import read_servers
from trayapp.clients.table import ALIASES, BY_NAME
from trayapp.config.files import signature
from trayapp.config.problems import nearest
from trayapp.model.plan import Imported
from trayapp.model.status import Problem


class ClientLayers:
    """Reads the layers; remembers which files they came from, so that a look costs a stat for each."""

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()

    def read(self, names: Sequence[str], file: str) -> tuple[Imported, ...]:
        """The layers, in that order. A name that is no client's is a problem of `file`. Blocks; never raises."""
        return tuple(self._layer(name, file) for name in dict.fromkeys(names))

    def signature(self, names: Sequence[str]) -> object:
        """Changes with every save of one of the files. Blocks: some stats."""
        clients = [BY_NAME[known] for name in names if (known := ALIASES.get(name, name)) in BY_NAME]
        templates = [template for client in clients for template in client.templates(self._machine.platform)]
        return tuple(signature(self._machine.path(template)) for template in templates if self._machine.has(template))

    def _layer(self, name: str, file: str) -> Imported:
        client = BY_NAME.get(ALIASES.get(name, name))
        if client is None:
            near = nearest(name, BY_NAME)
            hint = f"Did you mean {near}?" if near else f"Clients: {', '.join(BY_NAME)}"
            return Imported(
                name, problems=(Problem(file, 0, f"imports: no client is named {name}", hint, fatal=False),)
            )
        reading = read_servers(client, self._machine)
        return Imported(
            client.name,
            {found.name: found.entry for found in reading.servers},
            {found.name: str(found.file) for found in reading.servers},
            {found.name: found.line for found in reading.servers},
            reading.problems,
        )
