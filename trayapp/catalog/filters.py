"""Tool filters of a server's entry in servers.yaml: patterns first, then the switches of `tools`.

Never here: exposure (which of these tools a session lists), names of other servers, files.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import lru_cache

from trayapp.catalog.names import call_spelling, spelled
from trayapp.model.offer import Item
from trayapp.model.servers import ServerConfig
from trayapp.model.settings import PREFIX_MODES


def why_hidden(server: ServerConfig, tool: str, siblings: Container[str] = ()) -> str | None:
    """Return why clients do not get `tool`, in a few words for people; None if they do. `siblings`: see `passes`.

    Without a `tools` key all tools pass. With one, a tool that it does not name passes unless `new_tools` is disabled.
    """
    if not passes(server.name, tool, server.include_tools, server.exclude_tools, siblings):
        return "not in include_tools, or in exclude_tools"
    if server.tools is None:
        return None
    switch = server.tools.get(tool)
    if switch is None:
        return "new, and new_tools is disabled" if server.new_tools == "disabled" else None
    if switch.stale:
        return "gone from the server"
    return None if switch.enabled else "switched off"


def passes(
    server: str, tool: str, include: Iterable[str], exclude: Iterable[str], siblings: Container[str] = ()
) -> bool:
    """Return True if the patterns let `tool` through: it is in `include` (if not empty) and not in `exclude`.

    A pattern equal to the original name of another tool of the server, one of `siblings`, matches that tool alone.
    """
    include, exclude = tuple(include), tuple(exclude)
    if not include and not exclude:
        return True
    if siblings:
        include_any = bool(include)
        include, exclude = (
            tuple(pattern for pattern in patterns if pattern == tool or pattern not in siblings)
            for patterns in (include, exclude)
        )
        if include_any and not include:
            return False
    names = _names(server, tool)
    return (not include or _any_matches(include, names)) and not _any_matches(exclude, names)


def _name(item: Item) -> str:
    name = item.get("name")
    return name if isinstance(name, str) else ""


def _names(server: str, tool: str) -> set[str]:
    """Return the names that a pattern may match: the server's own name for the tool and each exposed spelling."""
    names = {spelled(server, tool, mode) for mode in PREFIX_MODES} | {tool, call_spelling(server, tool)}
    return {_fold(name) for name in names}


def _any_matches(patterns: tuple[str, ...], names: set[str]) -> bool:
    if not patterns:
        return False
    matcher = _matcher(patterns)
    return any(matcher.fullmatch(name) for name in names)


@lru_cache(maxsize=1024)
def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_expression(_fold(pattern))})" for pattern in patterns), re.DOTALL)


def _expression(glob: str) -> str:
    """Return a regular expression for a glob: `*` is any text, `?` any one character, the rest literal; case-sensitive.

    Each `*` but the last takes the first match and never backtracks (an atomic group). That finds every match there is,
    in bounded time for any pattern.
    """
    parts = ["".join("." if c == "?" else re.escape(c) for c in part) for part in re.split(r"\*+", glob)]
    if len(parts) == 1:
        return parts[0]
    middle = "".join(f"(?>.*?{part})" for part in parts[1:-1])
    return f"{parts[0]}{middle}.*{parts[-1]}"


def _fold(name: str) -> str:
    return name.replace("-", "_")
