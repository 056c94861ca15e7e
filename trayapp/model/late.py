"""Patterns compiled when they are first used: a client may wait for the start of what has them.

A large pattern takes a millisecond or more, and tens of KiB. Never here: the patterns.
"""

from __future__ import annotations

import re
from functools import cached_property

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
