"""MCP extensions that the gateway routes to any number of servers, and how servers announce them.

Sources:
- Tasks: SEP-2663 (Final), modelcontextprotocol/ext-tasks, specification/draft of 2026-08-21; and the tasks of MCP
  2025-11-25, basic/utilities/tasks.
- Skills: SEP-2640 (Final), modelcontextprotocol/ext-skills, specification/stable of September 2026.
- Events: SEP-3415 (Final). Its full text was not available. Its abstract and the working group's design sketch
  (modelcontextprotocol/experimental-ext-triggers-events) were; both name the same methods.
- Apps: SEP-1865, modelcontextprotocol/ext-apps, specification/2026-01-26.

Never here: routing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TASKS = "io.modelcontextprotocol/tasks"
SKILLS = "io.modelcontextprotocol/skills"
EVENTS = "io.modelcontextprotocol/events"
APPS = "io.modelcontextprotocol/ui"
RELATED_TASK = "io.modelcontextprotocol/related-task"  # MCP 2025-11-25, tasks, in `_meta`

# Task methods. A client repeats their `taskId` in the header Mcp-Name (SEP-2663, routing headers).
TASK_METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})

# Capabilities outside `extensions` that announce the same: from MCP 2025-11-25, and from the Events sketch.
_MEMBERS = {TASKS: "tasks", EVENTS: "events"}


def announces(capabilities: Mapping[str, Any] | None, extension: str) -> bool:
    """Return True if a server with these capabilities announces that extension."""
    known = capabilities or {}
    extensions = known.get("extensions")
    return (isinstance(extensions, dict) and extension in extensions) or _MEMBERS.get(extension) in known


def declares(capabilities: Mapping[str, Any], extension: str) -> bool:
    """Return True if a client with these capabilities declares that extension."""
    extensions = capabilities.get("extensions")
    return isinstance(extensions, dict) and extension in extensions
