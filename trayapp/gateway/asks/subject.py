"""Decide by tool class and settings whether the user is asked before a call. Pure: no clock, no session."""

from __future__ import annotations

from typing import NamedTuple

from trayapp.catalog.tool_class import STRICTNESS, Basis, ToolClass, ToolClassification, classify
from trayapp.model.config import AskMode, ServerConfig, Settings
from trayapp.model.offer import Item

READS = ToolClassification("read", "name")  # the class of reading a resource


class Subject(NamedTuple):
    """The tool or resource of a call that needs the user's consent.

    `key`: the key of the shared server. `hash`: the hash of the definition that the answer is for. `mode`: the setting
    that requires the ask. `callable`: False if the session may no longer call the tool.
    """

    key: str
    server: str
    tool: str
    tool_class: ToolClass
    basis: Basis
    hash: str
    mode: AskMode
    callable: bool


def ask_mode(settings: Settings, server: ServerConfig | None, tool: str) -> AskMode:
    """Return the setting that applies to a tool: its own, its server's, or the general one."""
    if server is None:
        return settings.ask
    switch = (server.tools or {}).get(tool)
    if switch is not None and switch.ask is not None:
        return switch.ask
    return settings.ask if server.ask is None else server.ask


def asks_first(mode: AskMode, tool_class: ToolClass, *, listed: bool) -> bool:
    """Return True if the user is asked before a call. `listed`: the client called the tool by its own name, so the
    client itself can ask the user; `auto` then leaves the asking to the client.
    """
    match mode:
        case "off":
            return False
        case "all":
            return True
        case "writes":
            return tool_class != "read"
        case "destructive":
            return tool_class == "destructive"
        case _:
            return tool_class == "destructive" and not listed


def strictest(items: list[Item]) -> ToolClassification:
    """Return the strictest class among a tool's definitions: those served to each era and the one now listed.
    Without definitions, the class is `write`.
    """
    return max(
        map(classify, items), key=lambda one: STRICTNESS[one.tool_class], default=ToolClassification("write", "name")
    )
