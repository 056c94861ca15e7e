"""Regular expressions compiled on first use, since a large one takes a millisecond or more, and tens of KiB."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # as in typing, whose import would slow the shim's start
if TYPE_CHECKING:
    from typing import Any, AnyStr


class _LatePattern:
    """A pattern that is compiled on first use. Each method is looked up once and then cached on the instance."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._source = (pattern, flags)
        self._pattern: re.Pattern[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._pattern is None:
            self._pattern = re.compile(*self._source)
        found = getattr(self._pattern, name)
        setattr(self, name, found)
        return found


def late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled on first use. Use it if compiling takes over half a millisecond."""
    return _LatePattern(pattern, flags)  # type: ignore[return-value]  # it has a pattern's methods, by name
