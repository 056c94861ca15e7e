"""A small catalog of well-known servers for the cache of a test gateway, and calls of its tool `mcp`."""

from __future__ import annotations

from typing import Any

from tests.gateway.world import ALL, Client, House, Message, server
from trayapp.model.config import ServerConfig, Settings
from trayapp.model.offer import Item, Offer

CATALOGUE: dict[str, dict[str, str]] = {
    "github": {
        "search_repositories": "Find repositories on GitHub using a topic, a name or free words",
        "create_issue": "Open a new issue in one repository",
        "list_issues": "Show the issues of a repository, newest first",
        "create_pull_request": "Propose a branch for merging",
        "get_file_contents": "Return what a file in a repository holds",
    },
    "obsidian": {
        "global_search": "Look through every note in the vault",
        "read_note": "Return the body of one note",
        "write_note": "Store text in a note, replacing what was there",
    },
    "xcodebuild": {
        "list_sims": "Lists available iOS simulators",
        "boot_sim": "Start one simulator and wait for it",
    },
    "context7": {"resolve-library-id": "Turn a package name into a Context7 library identifier"},
}
PARAMETERS: dict[str, Any] = {
    "create_issue": {
        "type": "object",
        "properties": {
            "repo": {"type": "string", "description": "owner/name"},
            "title": {"type": "string"},
            "labels": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["repo", "title"],
    },
    "boot_sim": {
        "type": "object",
        "properties": {"simulatorId": {"type": "string"}, "server": {"type": "string"}},
        "required": ["simulatorId"],
    },
}
EMPTY = {"type": "object", "properties": {}}
ONLY_SEARCH = Settings(expose="search")


def definition(name: str, description: str) -> Item:
    """Return a tool as its server lists it."""
    return {"name": name, "description": description, "inputSchema": PARAMETERS.get(name, EMPTY)}


def offer_of(name: str, **more: Any) -> Offer:
    """Return the offer of one of the catalog's servers."""
    tools = tuple(definition(tool, text) for tool, text in CATALOGUE[name].items())
    return Offer(tools, capabilities=dict(ALL), protocol="2025-11-25", **more)


def stocked(made: House, *entries: ServerConfig, settings: Settings = ONLY_SEARCH, names: tuple[str, ...] = ()) -> None:
    """Start the gateway with cached servers of the catalog (all, or `names`) and with additional `entries`."""
    chosen = names or tuple(CATALOGUE)
    servers = {name: server(name) for name in chosen} | {entry.name: entry for entry in entries}
    for name in chosen:
        made.cache(servers[name], offer_of(name))
        made.net[name].tools = list(offer_of(name).tools)
    made.apply(*servers.values(), settings=settings)
    made.start()


async def mcp(client: Client, number: int | str = 1, **arguments: Any) -> Message:
    """Call the tool `mcp` and return its result."""
    result: Message = await client.result("tools/call", {"name": "mcp", "arguments": arguments}, number)
    return result


async def said(client: Client, **arguments: Any) -> str:
    """Call the tool `mcp` and return the text of its answer. Fails on an error."""
    result = await mcp(client, **arguments)
    assert "isError" not in result, result
    return text_of(result)


async def refused(client: Client, **arguments: Any) -> tuple[str, str]:
    """Call the tool `mcp` and return the stable code and the text of its error."""
    result = await mcp(client, **arguments)
    assert result["isError"] is True, result
    return result["_meta"]["multi-mcp/error"], text_of(result)


def text_of(result: Message) -> str:
    """Return all text of a result."""
    return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")


def names_in(text: str) -> list[str]:
    """Return the names of the tools in a search result, in order."""
    return [line.split("(")[0].split()[0] for line in text.splitlines() if line and not line.startswith(" ")]
