"""Patterns compiled, and modules loaded, when they are first used: a client may wait for the start of what has them.

A large pattern takes a millisecond or more, and tens of KiB. Never here: the patterns, the names of modules.
"""

from __future__ import annotations

import re
import sys
from _thread import allocate_lock  # threading's own, without what else it loads
from functools import cached_property
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # as in typing, which the shim's ledger would pay for
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, AnyStr


class _Late:
    """A pattern that is not compiled yet. Each method is looked up once; from then on it is the compiled one's own."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._source = (pattern, flags)

    @cached_property
    def _compiled(self) -> re.Pattern[Any]:
        return re.compile(*self._source)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, done when it is needed: for what costs more than half a millisecond."""
    return _Late(pattern, flags)  # type: ignore[return-value]  # it has a pattern's methods, by name


class _LateModule(ModuleType):
    """A module that is not loaded yet. Each name is looked up once."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self.__name__), name)
        setattr(self, name, found)
        return found


def late_module(name: str) -> Any:
    """The module of that name, loaded when something of it is first used.

    For what the gateway needs after its first list alone. Beside it stands the import that checkers see, and packagers:
    `if TYPE_CHECKING: from a import b`.
    """
    return _LateModule(name)


_LOADING = allocate_lock()
# Of these packages of the SDK's we need single modules, but each loads all of its own and the other side's too: half of
# the time until a server on HTTP is reached, and 22 MiB.
NARROW = ("mcp", "mcp.client", "mcp.server", "mcp.server.lowlevel", "mcp.shared")


def load_in_turn(name: str, narrow: Sequence[str] = NARROW) -> Any:
    """The module of that name, for threads, without the own code of packages in `narrow`. Blocks while another thread
    is here.

    Two threads that load packages which import each other, from different ends, get one of them half done: Python
    breaks the deadlock of its import locks that way. mcp is such a package.
    """
    with _LOADING:
        for package in narrow:
            late_package(package)
        try:
            return import_module(name)
        except ImportError:  # an SDK that is built otherwise than ours
            for package in narrow:
                _complete(sys.modules.get(package))
            return import_module(name)


class _LatePackage(ModuleType):
    """A package whose own code has not run: it runs when something is wanted that is no loaded module of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        _complete(self)
        return getattr(self, name)


def _complete(module: ModuleType | None) -> None:
    """Run a late package's own code; it is one like any other from then on, or late again where that fails."""
    if isinstance(module, _LatePackage):
        module.__class__ = ModuleType  # type: ignore[assignment]  # mypy takes it for one of its own
        try:
            module.__spec__.loader.exec_module(module)  # type: ignore[union-attr]  # which late_package has set
        except BaseException:
            module.__class__ = _LatePackage
            raise


def late_package(name: str) -> None:
    """From now on modules of that package are loaded without the package's own code, unless that has run already."""
    from importlib.util import find_spec  # which loads threading

    if name in sys.modules or (spec := find_spec(name)) is None:
        return
    sys.modules[name] = module = _LatePackage(name)
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__path__, module.__package__ = spec.submodule_search_locations or [], name
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
