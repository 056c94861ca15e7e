"""Exposed names of tools, in a file that outlives the cache. The first tool that gets a name keeps it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from trayapp.catalog.cache import read_file, write_own
from trayapp.catalog.names import NONE_GIVEN, Exposed, Key, SeenNames
from trayapp.model.config import PrefixMode
from trayapp.model.errors import StorageError
from trayapp.wire.jsonio import loads

log = logging.getLogger(__name__)

FILE_NAME = "names.json"  # never a server's file name, since those end in a hash
VERSION = 1
NAMES_MOST = 20_000  # names per prefix mode; beyond that, only the names of the last noted view are kept

Names = dict[str, list[Key]]  # name -> the (server key, tool) pairs that have it, each in a different view


class GivenNames:
    """The names that one gateway gave to tools. A view of the catalog gets only the names of its own servers."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._by_mode: defaultdict[str, Names] = defaultdict(dict)
        self._views: dict[tuple[str, frozenset[tuple[str, str]]], SeenNames] = {}
        self._dirty = False

    def load(self) -> None:
        """Read the stored names. Call it once, before any other method. An unusable file is ignored. Blocks."""
        try:
            raw: Any = loads(read_file(self._path))
            if raw["version"] != VERSION:
                raise ValueError(f"version {raw['version']}")
            for mode, names in raw["names"].items():
                self._by_mode[str(mode)] = {
                    str(name): [(str(one), str(tool)) for one, tool in keys] for name, keys in names.items()
                }
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("Cannot read the names of tools: %s. They are assigned again", error)

    def of(self, mode: PrefixMode, plain: Mapping[str, str]) -> SeenNames:
        """Return the names given in a prefix mode. `plain` maps the server keys of a view to names."""
        view = mode, frozenset(plain.items())
        if view not in self._views:
            found = {
                name: key
                for name, keys in self._by_mode[mode].items()
                if (key := next(((plain[server], tool) for server, tool in keys if server in plain), None)) is not None
            }
            self._views[view] = SeenNames(found) if found else NONE_GIVEN
        return self._views[view]

    def note(self, exposed: Exposed, held: Set[Key], plain: Mapping[str, str]) -> bool:
        """Record the names that clients see now, except those of `held` tools. Return True if any is new."""
        names, given = self._by_mode[exposed.mode], self.of(exposed.mode, plain).names
        keys = {name: key for key, name in plain.items()}
        new = {name: key for name, key in exposed.by_name.items() if key not in held and given.get(name) != key}
        for name, (server, tool) in new.items():
            key = keys[server], tool
            names[name] = [key, *(one for one in names.get(name, ()) if one != key)]
        if len(names) > NAMES_MOST:
            for name in names.keys() - exposed.by_name.keys():
                del names[name]
        if new:
            self._views.clear()
            self._dirty = True
        return bool(new)

    def save(self) -> None:
        """Write the names if there are new ones. Blocks. Raises StorageError."""
        if not self._dirty:
            return
        self._dirty = False
        names = {mode: dict(names) for mode, names in dict(self._by_mode).items()}
        try:
            write_own(self._path, {"version": VERSION, "names": names}, "the names of tools")
        except StorageError:
            self._dirty = True
            raise
