"""servers.yaml followed while the gateway runs: made on the first start, read after every save, tools noted in it.

Never here: what the text means (config), what a change does (core).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread

from trayapp.backends.clock import beat_after, next_beat
from trayapp.config.files import is_open_for_writing
from trayapp.config.parse import parse
from trayapp.config.problems import Unparsable
from trayapp.config.sample import sample_text, with_sample
from trayapp.config.store import Store
from trayapp.config.watch import FolderWatch, watch_folders_of
from trayapp.model.errors import MultiMcpError
from trayapp.model.plan import Config, Imported
from trayapp.model.servers import ToolSwitch
from trayapp.model.status import Problem

log = logging.getLogger(__name__)

WATCH_S = 0.5  # how often servers.yaml is looked at where the system tells nothing: a save is applied within 1 s
LOOK_ANYWAY_S = 5.0
SAVE_SETTLES_S = 0.05  # editors save in several steps
SETTLE_LOOKS = 10  # 0.5 s in all: half a file may be sound and lack servers that run

Outcome = Config | Problem


class Layers(Protocol):
    """What reads the layers that `settings.imports` names (clients/layers)."""

    def read(self, names: Sequence[str], file: str) -> tuple[Imported, ...]:
        """The layers; what is wrong with the names is a problem of `file`. Blocks; never raises."""
        ...

    def signature(self, names: Sequence[str]) -> object:
        """Changes with every save of one of their files. Blocks: some stats."""
        ...


class NoLayers:
    """Other programs' files are none of a gateway's business that was not given a way to read them."""

    def read(self, names: Sequence[str], file: str) -> tuple[Imported, ...]:
        """None."""
        return ()

    def signature(self, names: Sequence[str]) -> object:
        """Never changes."""
        return None


class ServersFile:
    """The one file at `path`. `take` gets what is read; `running` tells what was taken last.

    `sample`: the command of the bundled sample server. `layers`: makes what reads the imports, when there are any:
    their code takes 30 ms to load, and most files have none.
    """

    def __init__(
        self,
        path: Path,
        sample: list[str],
        running: Callable[[], Config],
        take: Callable[[Outcome], None],
        layers: Callable[[], Layers] = NoLayers,
        look_anyway_s: float = LOOK_ANYWAY_S,
    ) -> None:
        self._path = path
        self._store = Store(path, first_text=sample_text)
        self._sample = sample
        self._running = running
        self._take = take
        self._layers = cache(layers)
        self._look_anyway_s = look_anyway_s
        self._imports: tuple[str, ...] = ()  # of the settings that were read last
        self._seen: object = None  # the signature of what was read last
        self._look_again = False  # soon, whatever the signature
        self._emptied = False
        self._shown: Problem | None = None
        self._reading = anyio.Lock()

    def create(self) -> None:
        """Write the first one if there is none; where that cannot be, the log says why. Blocks."""
        try:
            self._store.create()
        except MultiMcpError as error:
            log.warning("%s", error)

    async def reload(self) -> None:
        """Read the file and hand it on, unless it was emptied this very moment."""
        async with self._reading:
            self._seen = self._signature()
            outcome, self._look_again = await anyio.to_thread.run_sync(self._read)
            if isinstance(outcome, Problem):
                self._emptied = False
                if outcome != self._shown:
                    self._take(outcome)
                self._shown = outcome
            elif self._just_emptied(outcome):
                self._look_again = True
            else:
                self._shown = None
                self._take(outcome)

    async def follow(self) -> None:
        """Read the file after each save, for as long as the gateway runs."""
        watch = await anyio.to_thread.run_sync(watch_folders_of, self._path)
        try:
            while True:  # look first: the file may have been saved before there was a watch
                if self._look_again or self._signature() != self._seen:
                    await self._settle()
                    await self.reload()
                await self._may_have_changed(watch)
        finally:
            if watch is not None:
                watch.close()

    def add_server(self, name: str, entry: dict[str, Any]) -> None:
        """Write a new server. Blocks. Raises MultiMcpError."""
        self._store.add_server(name, entry)

    def remove_server(self, name: str) -> None:
        """Take a server out. Blocks. Raises MultiMcpError."""
        self._store.remove_server(name)

    def note_tools(self, found: dict[str, dict[str, ToolSwitch]]) -> None:
        """Write what servers were found to offer; not of those that other programs' files alone have, whose tools are
        noted once the user switches one of them. Blocks. Raises MultiMcpError."""
        foreign = self._running().foreign
        own = {name: tools for name, tools in found.items() if name not in foreign}
        for server, why in self._store.merge_tools(own).items() if own else ():
            log.warning("Could not note the tools of %s in servers.yaml: %s", server, why)

    def _just_emptied(self, config: Config) -> bool:
        """Editors truncate before they write: an emptied file is believed when it is still so at the next look."""
        emptied = not config.servers and not config.problems and bool(self._running().servers)
        self._emptied, before = emptied, self._emptied
        return emptied and not before

    def _signature(self) -> object:
        """Of the file and of all that the layers below it are read from."""
        return self._store.signature(), self._layers().signature(self._imports) if self._imports else None

    def _read(self) -> tuple[Outcome, bool]:
        """The file's content, or why it cannot be used; and whether it may become usable without being saved."""
        file = str(self._path)
        try:
            loaded = self._store.read()
            if not loaded.exists:
                return Problem(file, 0, "servers.yaml is missing", "Write one with: multi-mcp edit"), False
            return with_sample(self._laid(parse(loaded.text, file), file), self._sample), False
        except Unparsable as error:
            return error.problem, False
        except MultiMcpError as error:
            return Problem(file, 0, error.title, error.hint), True  # rights change without a save

    def _laid(self, config: Config, file: str) -> Config:
        if config.settings.imports != self._imports:
            self._imports = config.settings.imports
            self._seen = self._signature()
        if not self._imports:
            return config
        from trayapp.config.laid import lay_over  # most files import nothing

        return lay_over(config, self._layers().read(self._imports, file), file)

    async def _settle(self) -> None:
        """Wait, for a moment at most, until the save that was noticed is done."""
        seen = self._signature()
        for _ in range(SETTLE_LOOKS):
            await anyio.sleep(SAVE_SETTLES_S)
            before, seen = seen, self._signature()
            if seen == before and not is_open_for_writing(self._path):
                return

    async def _may_have_changed(self, watch: FolderWatch | None) -> None:
        """Wait for news of the folder; look anyway from time to time, since network folders bring no news."""
        if watch is None or self._look_again:
            await next_beat(WATCH_S)
            return
        with anyio.CancelScope(deadline=beat_after(anyio.current_time(), self._look_anyway_s)) as quiet:
            await anyio.wait_readable(watch.descriptor)
        if not quiet.cancelled_caught:
            watch.drain()
