"""Compute the results of list requests as JSON, once per exposure. Also define the one tool, and write the index.

The definition of the one tool does not depend on the servers. A test limits it to 300 tokens (o200k encoding).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

from trayapp.catalog.names import Key
from trayapp.catalog.resources import linked_definition, linked_skill
from trayapp.catalog.schema.tool import served_entry, served_resource
from trayapp.gateway.exposure.catalog import ONE_TOOL
from trayapp.gateway.exposure.exposure import INDEX, INDEX_URI, Exposure, first_line
from trayapp.gateway.exposure.served_tools import ServedTool
from trayapp.model.offer import LISTS, Item
from trayapp.model.text import count
from trayapp.wire.capabilities import unite_members
from trayapp.wire.jsonio import dumps, well_formed
from trayapp.wire.revisions import LIST_TTL_MS

DESCRIPTION = """\
Every MCP server on this computer behind one tool. Search, then call:
{"search":"what it should do"} finds tools, with their parameters; server, regex and limit narrow it
{"tool":"NAME","args":{...}} calls one; a server's resources are tools, too
{"describe":"NAME"} explains one in full
{"server":"NAME"} lists a server's tools, in pages by offset and limit
{"connect":"NAME"} connects or reconnects a server
{"result":"ID","offset":N} continues a long result
{} says which servers there are, and why one is missing"""

DEFINITION: Item = {
    "name": ONE_TOOL,
    "description": DESCRIPTION,
    "inputSchema": {
        "type": "object",
        "properties": {
            "search": {"type": "string"},
            "regex": {"type": "boolean"},
            "includeSchemas": {"type": "boolean"},
            "describe": {"type": "string"},
            "tool": {"type": "string"},
            "args": {"type": "object", "description": "The tool's own arguments, all of them"},
            "server": {"type": "string"},
            "connect": {"type": "string"},
            "result": {"type": "string"},
            "offset": {"type": "integer"},
            "limit": {"type": "integer"},
        },
        "additionalProperties": False,
    },
    # Otherwise Claude Code would defer the tool, and a search for what the servers' tools do would not find it.
    "_meta": {"anthropic/alwaysLoad": True},
}
DEFINITION_JSON = dumps(DEFINITION)


def is_one_tool(params: Any) -> bool:
    """Return True if the params of a tools/call name the one tool, whether or not the session lists it."""
    return isinstance(params, dict) and params.get("name") == ONE_TOOL


def looks_for_tools(params: dict[str, Any]) -> bool:
    """Return True if a call of the one tool only asks about servers and tools.

    It then has none of the fields `tool`, `connect` and `result`.
    """
    arguments = params.get("arguments")
    return not isinstance(arguments, dict) or arguments.keys().isdisjoint({"tool", "connect", "result"})


class ListHints(NamedTuple):
    """Parts of a list's result that depend on the client's revision. `ttl_ms`: the smallest `ttlMs` of the servers."""

    ttl_ms: int = LIST_TTL_MS
    meta: dict[str, Any] | None = None


class ListResults:
    """List results of one exposure. `any_output`: output schemas may describe any value, as in 2026-07-28."""

    def __init__(self, seen: Exposure, *, any_output: bool = False) -> None:
        self.seen = seen
        self._any_output = any_output
        self._results: dict[tuple[str, bool], bytes] = {}

    def result(self, kind: str, *, apps: bool = False) -> bytes:
        """Return the result of a list request as JSON.

        `kind`: one of LISTS. `apps`: the client shows Apps, so tools with a user interface are listed in any mode.
        """
        found = self._results.get((kind, apps))
        if found is None:
            if kind != "tools":
                found = self._others(kind)
            elif self.seen.mode == "tools":
                found = self.all_tools_result
            else:
                found = self._beside_one_tool(self.seen.app_keys) if apps else self.one_tool_result
            self._results[kind, apps] = found
        return found

    @property
    def all_tools_result(self) -> bytes:
        """Return the result of tools/list with every tool, in any mode."""
        by_key = self.seen.catalog.names.by_key
        tools = [self._listed(key, tool, by_key[key]) for key, tool in self.seen.tools.items()]
        return joined(tools, self._more("tools", "tools"))

    def _listed(self, key: Key, tool: ServedTool, exposed: str) -> bytes:
        """Return a tool's JSON, with the address of its user interface in a form that clients can request."""
        uris = self.seen.catalog.uris
        any_output = self._any_output and tool.returns_others
        if "_meta" in tool.item and key[0] in uris.renamed:
            served = tool.served_with_output(exposed) if any_output else tool.served(exposed)
            return dumps(linked_definition(served, partial(uris.exposed_link, key[0])))
        return dumps(tool.served_with_output(exposed)) if any_output else tool.listed(exposed)

    @property
    def one_tool_result(self) -> bytes:
        """Return the result of tools/list with the one tool and the direct tools.

        Calls never change it: tool lists come first in prompts, and any change would make cached prompts useless.
        """
        return self._beside_one_tool(frozenset())

    def _beside_one_tool(self, more: frozenset[Key]) -> bytes:
        keys = self.seen.direct_keys | more
        tools = ((key, tool) for key, tool in self.seen.tools.items() if key in keys) if keys else ()
        return joined([DEFINITION_JSON, *(self._listed(key, tool, self.seen.name_of(key)) for key, tool in tools)])

    # -- what a result holds besides its list ------------------------------------------------------------------------

    @cached_property
    def hints(self) -> dict[str, ListHints]:
        """Return list -> the freshness and the `_meta` of its result. Those of the one tool's list are fixed."""
        ttls = [prepared.offer.ttl_ms for prepared in self.seen.enabled.values()]
        least = min((LIST_TTL_MS if ttl is None else ttl for ttl in ttls), default=LIST_TTL_MS)
        metas = {kind: self._besides(kind).get("_meta") for kind in LISTS}
        found = {kind: ListHints(least, meta if isinstance(meta, dict) else None) for kind, meta in metas.items()}
        return found if self.seen.mode == "tools" else {**found, "tools": ListHints()}

    def _besides(self, kind: str) -> dict[str, Any]:
        """Return the members of the servers' results except the list. Members of the same name are merged."""
        return unite_members(prepared.offer.results.get(kind, {}) for prepared in self.seen.enabled.values())

    def _more(self, kind: str, taken: str) -> dict[str, Any]:
        return {key: value for key, value in self._besides(kind).items() if key not in (taken, "_meta")}

    def _others(self, kind: str) -> bytes:
        """Return the result of a list request for anything but tools."""
        seen, catalog, uris = self.seen, self.seen.catalog, self.seen.catalog.uris
        shown: dict[str, Callable[[Key, Item], Item]] = {
            "prompts": lambda key, item: {**served_entry(item), "name": catalog.prompt_names.by_key[key]},
            "resources": lambda key, item: {**served_resource(item), "uri": well_formed(uris.exposed(*key))},
            "templates": lambda key, item: {
                **served_resource(item),
                "uriTemplate": well_formed(uris.exposed_template(*key)),
            },
            "skills": lambda key, item: linked_skill(item, partial(uris.exposed_link, key[0])),
            "events": lambda key, item: {**item, "name": catalog.event_names.exposed(*key)},
        }
        known: dict[Key, Item] = getattr(catalog, kind)
        forms = catalog.older_items(kind) if seen.older else {}
        items = [
            shown[kind](key, forms.get(key, item))
            for key, item in known.items()
            if seen.choice.has(key[0]) and (kind, *key) not in seen.unseen
        ]
        items += [INDEX] if kind == "resources" else []
        taken = "resourceTemplates" if kind == "templates" else kind
        return dumps({taken: items, **self._more(kind, taken)})


def joined(tools: list[bytes], more: dict[str, Any] | None = None) -> bytes:
    """Return the result of tools/list as JSON, from the JSON of each tool. `more`: its other members."""
    listing = b'{"tools":[%b]}' % b",".join(tools)
    return b"%b,%b" % (listing[:-1], dumps(more)[1:]) if more else listing


# -- the index of all tools, a resource of the gateway ---------------------------------------------------------------


def index_result(seen: Exposure) -> dict[str, Any]:
    """Return the result of reading the index resource."""
    return {"contents": [{"uri": INDEX_URI, "mimeType": INDEX["mimeType"], "text": index_text(seen)}]}


def index_text(seen: Exposure) -> str:
    """Return all callable tools as Markdown, with a heading for each server."""
    enabled = [name for name, entry in seen.servers.items() if not entry.disabled]
    lines = [f"# {count(len(seen.tools), 'tool')} of {count(len(enabled), 'server')}"]
    for server in enabled:
        title = seen.servers[server].title
        lines.append(f"\n## {server}{f' ({title})' if title else ''}\n")
        for key, item in seen.entries[server].items():
            line = first_line(item.get("description"))
            lines.append(f"- `{seen.name_of(key)}`: {line}" if line else f"- `{seen.name_of(key)}`")
        if not seen.entries[server]:
            lines.append("No tools are known")
    return "\n".join(lines) + "\n"
