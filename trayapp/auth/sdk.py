"""The parts of the SDK that are needed, loaded when a server or a sign-in first needs one of them.

Never here: what is used of it.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock  # threading's own, without what else it loads
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

# Of these packages single modules are needed, but each loads all of its own and the other side's. Loaded whole, the
# SDK takes 0.25 s and 22 MiB more, and the first lists of servers on HTTP come 1.2 s after a start instead of 0.9 s.
NARROW = ("mcp", "mcp.client", "mcp.server", "mcp.server.lowlevel", "mcp.shared")

_LOADING = allocate_lock()


def load_sdk(load: Callable[[], T], narrow: Sequence[str] = NARROW) -> T:
    """Return what `load` imports, without the own code of the packages in `narrow`. Blocks: call it in a thread.

    Those packages import each other: two threads that enter them from different ends at once would get one of them
    half done. Here the second thread waits for the first.
    """
    with _LOADING:
        for package in narrow:
            _postpone(package)
        try:
            return load()
        except ImportError:  # an SDK that is built otherwise than ours
            for package in narrow:
                _complete(sys.modules.get(package))
            return load()


class _PostponedPackage(ModuleType):
    """A package whose own code has not run: it runs when something is wanted that is no loaded module of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        _complete(self)
        return getattr(self, name)


def _complete(module: ModuleType | None) -> None:
    """Run a postponed package's own code; where that fails, it is postponed again."""
    if isinstance(module, _PostponedPackage):
        module.__class__ = ModuleType  # type: ignore[assignment]  # mypy takes it for one of its own
        try:
            module.__spec__.loader.exec_module(module)  # type: ignore[union-attr]  # which _postpone has set
        except BaseException:
            module.__class__ = _PostponedPackage
            raise


def _postpone(name: str) -> None:
    """Load modules of that package without the package's own code, unless that has already run."""
    if name in sys.modules or (spec := find_spec(name)) is None:
        return
    sys.modules[name] = module = _PostponedPackage(name)
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__path__, module.__package__ = spec.submodule_search_locations or [], name
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
