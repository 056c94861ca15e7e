"""A home with a large catalog: servers.yaml as a first run leaves it, and the cache of every server.

The contents are the same in every run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trayapp.catalog import approval_store
from trayapp.catalog.approval_store import Pin, definition_hash, pinned
from trayapp.catalog.cache import CacheEntry, save
from trayapp.config.paths import find_paths
from trayapp.config.read.parse import parse
from trayapp.model.config import launch_hash
from trayapp.model.offer import Item, Offer

SERVERS = 70
TOOLS = 527
PROTOCOL = "2025-06-18"
VERBS = ("search", "get", "list", "create", "update", "delete", "export", "archive")
THINGS = (
    "issue", "document", "calendar_event", "repository", "customer", "invoice", "message", "branch", "dashboard",
    "deployment", "contact",
)  # fmt: skip
STATES = ["open", "closed", "archived", "draft", "all"]


def shares(tools: int = TOOLS, servers: int = SERVERS) -> list[int]:
    """Return the number of tools of each server, `tools` in total. A few have many tools, and each has at least one."""
    weights = [1 / (place + 4) for place in range(servers)]
    counts = [1 + int((tools - servers) * weight / sum(weights)) for weight in weights]
    counts[0] += tools - sum(counts)
    return counts


def tool(server: str, number: int) -> dict[str, Any]:
    """Return a tool definition of a realistic size, about 1 KB."""
    verb, thing = VERBS[number % len(VERBS)], THINGS[number % len(THINGS)]
    words = thing.replace("_", " ")
    return {
        "name": f"{verb}_{thing}_{number}",
        "title": f"{verb.title()} {words}",
        "description": f"{verb.title()} one or more {words}s of the {server} workspace. Takes filters, an order and a "
        f"cursor; answers with the matching {words}s and the next cursor, or with what was wrong with the request.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": f"Words to look for in each {words}'s title and text"},
                "workspace": {"type": "string", "description": f"Which {server} workspace, by its id or short name"},
                "state": {"type": "string", "enum": STATES, "default": "open"},
                "labels": {"type": "array", "items": {"type": "string"}, "description": "All of which it must carry"},
                "range": {"$ref": "#/$defs/range"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
            },
            "required": ["query", "workspace"],
            "$defs": {
                "range": {"type": "object", "properties": {"from": {"type": "string"}, "to": {"type": "string"}}}
            },
        },
        "annotations": {"readOnlyHint": number % len(VERBS) < 3, "destructiveHint": verb == "delete"},
    }


def offers() -> Iterator[tuple[str, Offer]]:
    """Yield every server's name and offer."""
    for place, count in enumerate(shares()):
        name = f"service-{place:02d}"
        yield name, offer(name, [tool(name, number) for number in range(count)])


def servers_yaml(offered: dict[str, Offer]) -> str:
    """Return a servers.yaml with a switch for each tool, as the first discovery writes it."""
    lines = ["settings: {expose: tools}", "servers:"]
    for name, offer in offered.items():
        lines += [f"  {name}:", f"    command: [program-that-is-never-started, --name, {name}]", "    tools:"]
        lines += [f"      {item['name']}: {{enabled: true}}" for item in offer.tools]
    return "\n".join(lines) + "\n"


def write_catalog(home: Path) -> None:
    """Fill a home with the large catalog."""
    offered = dict(offers())
    write_home(home, servers_yaml(offered), offered)


def write_home(home: Path, text: str, offered: Mapping[str, Offer]) -> None:
    """Write servers.yaml, the cache and the approvals, as a first run with these offers would."""
    paths = find_paths({"MULTI_MCP_HOME": str(home)})
    paths.config_file.write_text(text, encoding="utf-8")
    for name, server in parse(text, str(paths.config_file)).servers.items():
        save(paths.cache_dir, CacheEntry(name, launch_hash(server), time.time(), offered[name]))
        approved = {str(tool["name"]): Pin(definition_hash(tool), pinned(tool)) for tool in offered[name].tools}
        approval_store.save(paths.config_file.parent / approval_store.FOLDER_NAME, name, approved)


def offer(name: str, tools: Sequence[Item]) -> Offer:
    """Return the offer of a server with these tools."""
    return Offer(tools=tuple(tools), capabilities={"tools": {}}, server_info={"name": name}, protocol=PROTOCOL)
