"""Patterns that are compiled when something is first looked for with them.

A large one takes a millisecond or more and tens of KiB: whoever starts and looks for nothing need not have it.
Never here: the patterns.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, AnyStr, Generic, cast


class _Late(Generic[AnyStr]):
    """A pattern that is not compiled yet. Each method is looked up once; from then on it is the compiled one's own."""

    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._source: tuple[AnyStr, int] = (pattern, flags)

    @cached_property
    def _compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(*self._source)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, done when it is needed: for what costs more than half a millisecond."""
    return cast("re.Pattern[AnyStr]", _Late(pattern, flags))
