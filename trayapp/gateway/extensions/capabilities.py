"""Choose which capabilities of servers to announce to clients: those that can be routed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from trayapp.gateway.exposure.exposure import Exposure
from trayapp.wire.capabilities import APPS, EVENTS, SKILLS, TASKS, announces, unite_members

ROUTED = frozenset({TASKS, SKILLS, EVENTS, APPS})  # extensions that any number of servers can have
OURS = frozenset({"tools", "prompts", "resources", "completions", "logging"})  # capabilities of the gateway itself
OLDER_TASKS = "tasks"  # the capability of MCP 2025-11-25; later revisions have the extension
ROUTED_MEMBERS = frozenset({OLDER_TASKS, "events"})
NONE: frozenset[str] = frozenset()
OF_OURS = frozenset({"listChanged", "subscribe"})  # members of OURS that only the gateway sets

Capabilities = Mapping[str, Any]


def announced_capabilities(seen: Exposure, *, modern: bool) -> dict[str, Any]:
    """Return the servers' capabilities beyond the gateway's own.

    An extension that the gateway does not know is announced if one server has it: its methods are that server's. With
    several servers their owner would be ambiguous. `modern`: for a client of 2026-07-28.
    """
    every = seen.capabilities.values()
    found: dict[str, Any] = {}
    for member, routed in (("extensions", ROUTED), ("experimental", NONE)):
        if union := _routable([known[member] for known in every if _has(known, member)], routed):
            found[member] = union
    apart = {*OURS, "extensions", "experimental", *((OLDER_TASKS,) if modern else ())}
    others = [{key: value for key, value in known.items() if key not in apart} for known in every]
    found |= _routable(others, ROUTED_MEMBERS)
    for member in sorted(OURS):
        parts = [known[member] for known in every if _has(known, member)]
        if union := _routable([{k: v for k, v in part.items() if k not in OF_OURS} for part in parts], NONE):
            found[member] = union
    return found


def servers_with(seen: Exposure, extension: str) -> list[str]:
    """Return the enabled servers that announce an extension."""
    return [name for name, known in seen.capabilities.items() if announces(known, extension)]


def _routable(every: Sequence[Capabilities], routed: frozenset[str]) -> dict[str, Any]:
    """Return the union of the `routed` members and of those that only one server has."""
    count = Counter(key for known in every for key in known)
    return unite_members({key: known[key] for key in known if key in routed or count[key] == 1} for known in every)


def _has(known: Capabilities, member: str) -> bool:
    return isinstance(known.get(member), dict)
