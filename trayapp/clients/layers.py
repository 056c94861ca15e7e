"""`settings.imports`: the servers of other clients as read-only layers below servers.yaml, which the gateway follows.

config/layers/servers merges the layers. Project files are not among them: they need trust.
"""

from __future__ import annotations

from collections.abc import Sequence

from trayapp.clients.places import Machine
from trayapp.clients.servers import FoundServer, read_servers, watched_files
from trayapp.clients.table import ALIASES, BY_NAME
from trayapp.config.files import signature
from trayapp.config.problems import nearest
from trayapp.model.plan import Imported
from trayapp.model.status import Problem


class ClientLayers:
    """Reads the layers of clients, and a signature of their files, which costs one stat for each file."""

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()

    def read(self, names: Sequence[str], file: str) -> tuple[Imported, ...]:
        """Return the layers, in that order. An unknown client name is a problem of `file`. Blocks; never raises."""
        return tuple(self._layer(name, file) for name in dict.fromkeys(names))

    def signature(self, names: Sequence[str]) -> object:
        """Return a value that changes with every save of one of the files. Blocks: some stats."""
        clients = [BY_NAME[known] for name in names if (known := ALIASES.get(name, name)) in BY_NAME]
        return tuple(signature(path) for client in clients for path in watched_files(client, self._machine))

    def _layer(self, name: str, file: str) -> Imported:
        client = BY_NAME.get(ALIASES.get(name, name))
        if client is None:
            near = nearest(name, BY_NAME)
            hint = f"Did you mean {near}?" if near else f"Clients: {', '.join(BY_NAME)}"
            return Imported(
                name, problems=(Problem(file, 0, f"imports: no client is named {name}", hint, fatal=False),)
            )
        reading = read_servers(client, self._machine)
        servers: dict[str, FoundServer] = {}
        for found in reading.servers:
            servers.setdefault(found.name, found)  # in several files: the first counts
        return Imported(
            client.name,
            {name: found.entry for name, found in servers.items()},
            {name: str(found.file) for name, found in servers.items()},
            {name: found.line for name, found in servers.items()},
            reading.problems,
        )
