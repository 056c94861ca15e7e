"""Create servers.yaml, read it after every save while the gateway runs, and write servers and tools into it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread

from trayapp.backends.clock import beat_after, next_beat
from trayapp.config.files import FolderWatch, is_open_for_writing, watch_folders_of
from trayapp.config.problems import UnparsableError
from trayapp.config.read.parse import parse
from trayapp.config.store import ConfigStore, sample_text, with_sample
from trayapp.model.config import Config, Imported, ToolSwitch
from trayapp.model.errors import MultiMcpError, Problem

log = logging.getLogger(__name__)

WATCH_S = 0.5  # interval of checks if the system reports no changes: a save is applied within 1 s
LOOK_ANYWAY_S = 15.0  # interval of checks otherwise. Each check runs in a thread and wakes the gateway three times
SAVE_SETTLES_S = 0.05  # interval of checks during a save, because editors save in several steps
# Checks during a save, 0.5 s in total. A half-written file can be valid, and servers missing from it would stop.
SETTLE_LOOKS = 10

Outcome = Config | Problem


class Layers(Protocol):
    """A reader of the layers that `settings.imports` names. Implemented in clients/servers."""

    def read(self, names: Sequence[str], file: str) -> tuple[Imported, ...]:
        """Return the layers with these names. A problem with a name is reported as a problem of `file`. Blocks.

        Never raises.
        """

    def signature(self, names: Sequence[str]) -> object:
        """Return a value that changes when a file of the layers is saved. Blocks for a few stat calls."""


class ServersFile:
    """The file servers.yaml at `path`. `take` gets each new configuration, or the problem if the file cannot be used.

    `running`: returns the configuration in use. `sample`: the command of the bundled sample server. `layers`: returns
    the reader of the imports. It is called only if there are imports, because loading the reader takes 30 ms.
    """

    def __init__(
        self,
        path: Path,
        sample: list[str],
        running: Callable[[], Config],
        take: Callable[[Outcome], None],
        layers: Callable[[], Layers],
        look_anyway_s: float = LOOK_ANYWAY_S,
    ) -> None:
        self._path = path
        self.store = ConfigStore(path, first_text=sample_text)
        self._sample = sample
        self._running = running
        self._take = take
        self._layers = cache(layers)
        self._look_anyway_s = look_anyway_s
        self._imports: tuple[str, ...] = ()  # `settings.imports` as last read
        self._seen: object = None  # the signature of the last read
        self._look_again = False  # read again soon, even if the signature is the same
        self._emptied = False
        self._shown: Problem | None = None
        self._reading = anyio.Lock()

    def create(self) -> None:
        """Write the first servers.yaml if there is none. If that fails, log why. Blocks."""
        try:
            self.store.create()
        except MultiMcpError as error:
            log.warning("%s", error)

    async def reload(self) -> None:
        """Read the file. Pass its problem, if that is new, or its configuration to `take`.

        If the file was just emptied, pass nothing on, and read it again soon.
        """
        async with self._reading:
            outcome, self._look_again = await anyio.to_thread.run_sync(self._read)
            if isinstance(outcome, Problem):
                self._emptied = False
                if outcome != self._shown:
                    self._take(outcome)
                self._shown = outcome
            elif self._is_just_emptied(outcome):
                self._look_again = True
            else:
                self._shown = None
                self._take(outcome)

    async def follow(self) -> None:
        """Read the file after each save. Runs until it is cancelled."""
        watch = await anyio.to_thread.run_sync(watch_folders_of, self._path)
        try:
            while True:  # check first: the file may have been saved before the watch began
                if self._look_again or await anyio.to_thread.run_sync(self._signature) != self._seen:
                    await self._settle()
                    await self.reload()
                await self._wait_for_change(watch)
        finally:
            if watch is not None:
                watch.close()

    def note_tools(self, found: dict[str, dict[str, ToolSwitch]]) -> None:
        """Write the tools that servers offer. `found`: server -> tool -> switch. Blocks. Raises MultiMcpError.

        Servers that only other programs' files define are left out, unless the user has switched one of their tools.
        """
        foreign = self._running().foreign
        own = {name: tools for name, tools in found.items() if name not in foreign}
        for server, why in self.store.merge_tools(own).items() if own else ():
            log.warning("Cannot write the tools of %s to servers.yaml: %s", server, why)

    def _is_just_emptied(self, config: Config) -> bool:
        """Return True if the file became empty with the last read: editors truncate a file before they write it."""
        emptied = not config.servers and not config.problems and bool(self._running().servers)
        self._emptied, before = emptied, self._emptied
        return emptied and not before

    def _signature(self) -> object:
        """Return the signature of the file and of all files of its layers. Blocks for a few stat calls."""
        return self.store.signature(), self._layers().signature(self._imports) if self._imports else None

    def _read(self) -> tuple[Outcome, bool]:
        """Return the file's configuration or problem, and whether the problem can disappear without a save. Blocks."""
        self._seen = self._signature()
        file = str(self._path)
        try:
            text = self.store.read()
            if text is None:
                return Problem(file, 0, "servers.yaml is missing", "Write one with: multi-mcp edit"), False
            return with_sample(self._lay_imports(parse(text, file), file), self._sample), False
        except UnparsableError as error:
            return error.problem, False
        except MultiMcpError as error:
            return Problem(file, 0, error.title, error.hint), True  # permissions change without a save

    def _lay_imports(self, config: Config, file: str) -> Config:
        if config.settings.imports != self._imports:
            self._imports = config.settings.imports
            self._seen = self._signature()
        if not self._imports:
            return config
        from trayapp.config.layers.overlay import lay_over  # loaded only if the file imports something

        return lay_over(config, self._layers().read(self._imports, file), file)

    async def _settle(self) -> None:
        """Wait until the save is complete, for at most SETTLE_LOOKS checks."""
        seen, _ = await anyio.to_thread.run_sync(self._look)
        for _ in range(SETTLE_LOOKS):
            await anyio.sleep(SAVE_SETTLES_S)
            before, (seen, is_open) = seen, await anyio.to_thread.run_sync(self._look)
            if seen == before and not is_open:
                return

    def _look(self) -> tuple[object, bool]:
        """Return the signature, and whether a program is writing the file. Blocks: network disks may be slow."""
        return self._signature(), is_open_for_writing(self._path)

    async def _wait_for_change(self, watch: FolderWatch | None) -> None:
        """Wait for a change in the file's folder. Also return at intervals: network folders report no changes."""
        if watch is None or self._look_again:
            await next_beat(WATCH_S)
            return
        with anyio.CancelScope(deadline=beat_after(anyio.current_time(), self._look_anyway_s)) as quiet:
            await anyio.wait_readable(watch.descriptor)
        if not quiet.cancelled_caught:
            watch.drain()
