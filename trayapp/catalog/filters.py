"""Tool filters of an entry in servers.yaml: patterns first, then the switches of `tools`, which a refresh updates."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple

from trayapp.catalog.names import call_spelling, fold, spelled
from trayapp.model.config import PREFIX_MODES, ServerConfig, ToolSwitch


def switch_of(server: ServerConfig, tool: str, siblings: Container[str] = ()) -> Literal["on", "off", "excluded"]:
    """Return the setting of a tool: on, off, or excluded by a pattern. `siblings` are the server's tools.

    Without a `tools` key all tools are on. With one, a tool missing from it is on unless `new_tools` is disabled.
    A stale tool that the server lists again has the state that the user gave it.
    """
    if not passes(server.name, tool, server.include_tools, server.exclude_tools, siblings):
        return "excluded"
    if server.tools is None:
        return "on"
    switch = server.tools.get(tool)
    return "on" if (server.new_tools == "enabled" if switch is None else switch.enabled) else "off"


def passes(
    server: str, tool: str, include: Iterable[str], exclude: Iterable[str], siblings: Container[str] = ()
) -> bool:
    """Return True if the patterns include `tool`: it matches `include` (if not empty) but not `exclude`.

    A pattern equal to the original name of another tool in `siblings` matches only that tool.
    """
    include, exclude = tuple(include), tuple(exclude)
    if not include and not exclude:
        return True
    included, excluded = (
        tuple(pattern for pattern in patterns if pattern == tool or pattern not in siblings)
        for patterns in (include, exclude)
    )
    # The tool's original name, and each spelling under which it may be exposed
    spellings = {spelled(server, tool, mode) for mode in PREFIX_MODES} | {tool, call_spelling(server, tool)}
    names = {fold(name) for name in spellings}
    return (not include or _any_matches(included, names)) and not _any_matches(excluded, names)


class ToolsChange(NamedTuple):
    """The original names of tools that a refresh found to be new (`added`), missing (`gone`) or back (`back`)."""

    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()


def merge_tools(
    switches: Mapping[str, ToolSwitch] | None, found: Iterable[str], new_enabled: bool = True
) -> dict[str, ToolSwitch]:
    """Return the switches after `found` was listed: known tools in their order, then new ones as listed.

    A tool that is gone stays forever, marked stale, with the user's switch. `new_enabled` is the state of new tools.
    The first discovery (`switches` is None) enables all tools.
    """
    listed = dict.fromkeys(found)
    merged = {name: replace(switch, stale=name not in listed) for name, switch in (switches or {}).items()}
    fresh = ToolSwitch(enabled=new_enabled or switches is None)
    return merged | {name: fresh for name in listed if name not in merged}


def differing(switches: Mapping[str, ToolSwitch], server: ServerConfig) -> dict[str, ToolSwitch]:
    """Return the switches that `write_tools: switched` writes: those in the file, and those not at the default."""
    listed, by_default = server.tools or {}, server.new_tools == "enabled"
    return {name: switch for name, switch in switches.items() if name in listed or switch.enabled != by_default}


def tools_change(switches: Mapping[str, ToolSwitch] | None, found: Iterable[str]) -> ToolsChange:
    """Return the changes that `merge_tools` with the same arguments makes, for the log and for people."""
    listed = dict.fromkeys(found)
    known = switches or {}
    return ToolsChange(
        added=tuple(name for name in listed if name not in known),
        gone=tuple(name for name, switch in known.items() if name not in listed and not switch.stale),
        back=tuple(name for name, switch in known.items() if name in listed and switch.stale),
    )


def _any_matches(patterns: tuple[str, ...], names: set[str]) -> bool:
    return bool(patterns) and any(map(_matcher(patterns).fullmatch, names))


@lru_cache(maxsize=1024)
def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_expression(fold(pattern))})" for pattern in patterns), re.DOTALL)


def _expression(glob: str) -> str:
    """Return a case-sensitive regular expression for a glob: `*` is any text, `?` one character, the rest literal.

    Each `*` but the last takes the first match and never backtracks (an atomic group). This bounds the time.
    """
    parts = ["".join("." if c == "?" else re.escape(c) for c in part) for part in re.split(r"\*+", glob)]
    if len(parts) == 1:
        return parts[0]
    middle = "".join(f"(?>.*?{part})" for part in parts[1:-1])
    return f"{parts[0]}{middle}.*{parts[-1]}"
