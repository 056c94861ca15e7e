"""Patterns compiled, and modules loaded, when they are first used: a client may wait for the start of what has them.

A large pattern takes a millisecond or more, and tens of KiB. Never here: the patterns, the names of modules.
"""

from __future__ import annotations

import re
from functools import cached_property
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # as in typing, which the shim's ledger would pay for
if TYPE_CHECKING:
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
