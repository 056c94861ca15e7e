"""The results of list requests, as JSON: computed once from what a session sees; and the index of all tools.

Never here: what a session sees (exposure), sending.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from trayapp.catalog.entries import served_entry, served_resource
from trayapp.catalog.names import Key
from trayapp.gateway.exposure.exposure import INDEX, INDEX_URI, Exposure, first_line
from trayapp.gateway.exposure.mcp_definition import DEFINITION_JSON
from trayapp.model.offer import Item
from trayapp.model.text import count
from trayapp.wire.jsonio import dumps
from trayapp.wire.salvage import well_formed


class ListResults:
    """The lists of one exposure."""

    def __init__(self, seen: Exposure) -> None:
        self.seen = seen

    @cached_property
    def tools_result(self) -> bytes:
        """JSON of the result of tools/list."""
        return self.one_tool_result if self.seen.mode == "search" else self.all_tools_result

    @property
    def all_tools_result(self) -> bytes:
        """The same with every tool, whatever the mode."""
        by_key = self.seen.catalog.names.by_key
        return joined([tool.listed(by_key[key]) for key, tool in self.seen.tools.items()])

    @property
    def one_tool_result(self) -> bytes:
        """The same with the one tool and those that are always listed. No call changes it: what clients list comes
        first in what model providers cache."""
        keys = self.seen.direct_keys
        tools = ((key, tool) for key, tool in self.seen.tools.items() if key in keys) if keys else ()
        return joined([DEFINITION_JSON, *(tool.listed(self.seen.name_of(key)) for key, tool in tools)])

    @cached_property
    def prompts_result(self) -> bytes:
        """JSON of the result of prompts/list."""
        known = self.seen.catalog
        names = known.prompt_names.by_key
        return dumps(
            {
                "prompts": [
                    {**served_entry(item), "name": names[key]} for key, item in self._items(self.seen.catalog.prompts)
                ]
            }
        )

    @cached_property
    def resources_result(self) -> bytes:
        """JSON of the result of resources/list."""
        uris = self.seen.catalog.uris
        items = [
            {**served_resource(item), "uri": well_formed(uris.exposed(*key))}
            for key, item in self._items(self.seen.catalog.resources)
        ]
        return dumps({"resources": [*items, INDEX]})

    @cached_property
    def templates_result(self) -> bytes:
        """JSON of the result of resources/templates/list."""
        uris = self.seen.catalog.uris
        items = [
            {**served_resource(item), "uriTemplate": well_formed(uris.exposed_template(*key))}
            for key, item in self._items(self.seen.catalog.templates)
        ]
        return dumps({"resourceTemplates": items})

    def _items(self, items: dict[Key, Item]) -> Iterator[tuple[Key, Item]]:
        return ((key, item) for key, item in items.items() if self.seen.choice.has(key[0]))


def joined(tools: list[bytes]) -> bytes:
    """The result of tools/list from the JSON of each tool."""
    return b'{"tools":[%b]}' % b",".join(tools)


# -- the index of all tools, a resource of our own -------------------------------------------------------------------


def index_result(seen: Exposure) -> dict[str, Any]:
    """The result of reading it."""
    return {"contents": [{"uri": INDEX_URI, "mimeType": INDEX["mimeType"], "text": index_text(seen)}]}


def index_text(seen: Exposure) -> str:
    """All tools that a session may call, a heading a server."""
    enabled = [name for name, entry in seen.servers.items() if not entry.disabled]
    head = f"# {count(len(seen.tools), 'tool')} of {count(len(enabled), 'server')}"
    return "\n".join([head, *(_section(seen, name) for name in enabled)]) + "\n"


def _section(seen: Exposure, server: str) -> str:
    title = seen.servers[server].title
    rows = [_row(seen, key, item) for key, item in seen.entries[server].items()]
    return "\n".join([f"\n## {server}{f' ({title})' if title else ''}\n", *(rows or ["No tools are known"])])


def _row(seen: Exposure, key: Key, item: Item) -> str:
    line = first_line(item.get("description"))
    return f"- `{seen.name_of(key)}`: {line}" if line else f"- `{seen.name_of(key)}`"
