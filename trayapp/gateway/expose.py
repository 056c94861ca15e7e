"""What clients see: computed once from a configuration and the offers, then only read.

Never here: connections, sessions, files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from trayapp.catalog.filters import why_hidden
from trayapp.catalog.lookup import Lookup, switched_off
from trayapp.catalog.names import Exposed, Key, expose_names
from trayapp.catalog.resources import ResourceMap, expose_prompts
from trayapp.catalog.schema import served_tool
from trayapp.model.offer import Item, Offer
from trayapp.model.plan import Config
from trayapp.model.servers import ServerConfig
from trayapp.model.status import Problem, ToolCounts
from trayapp.wire.jsonio import dumps

INSTRUCTIONS_EACH = 2_000  # characters of one server; a model reads them in every session
INSTRUCTIONS_ALL = 12_000


class Exposure:
    """The catalog under its exposed names, for one configuration and one state of the offers."""

    def __init__(self, config: Config, offer_of: Callable[[str], Offer | None]) -> None:
        self.config = config
        self._offers = {name: offer for name in config.servers if (offer := offer_of(name)) is not None}

    # -- tools ---------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> Exposed:
        """Names of all known tools, switched on or not: a switch renames no other tool."""
        return expose_names(self._tools, self.config.settings.tool_prefix)

    @cached_property
    def lookup(self) -> Lookup:
        """Finds the tool that a call means among those that may be called."""
        hidden = {key: self._why_not_callable(key) for key, why in self._hidden.items() if why}
        return Lookup(self.names, hidden)

    def find(self, asked: str, server: str | None = None) -> Key:
        """The (server, original name) of a tool. Raises ToolNotFoundError, AmbiguousToolError."""
        return self.lookup.find(asked, server)

    @cached_property
    def tools_result(self) -> bytes:
        """JSON of the result of tools/list."""
        return dumps({"tools": [served_tool(item, self.names.by_key[key]) for key, item in self._visible()]})

    def tool_rows(self, server: str | None = None) -> list[dict[str, Any]]:
        """The rows of `list --json`: every known tool, gone ones included."""
        rows = [self._row(key, item) for key, item in self._tools.items() if server in (None, key[0])]
        rows += [self._gone_row(s.name, tool) for s in self._servers(server) for tool in self._gone(s)]
        return rows

    def counts(self, server: str) -> ToolCounts:
        """How many tools a server has, by what becomes of them."""
        return self._counts.get(server, ToolCounts())

    @cached_property
    def _counts(self) -> dict[str, ToolCounts]:
        known = Counter(server for server, _ in self._tools)
        open_ = Counter(server for (server, _), why in self._hidden.items() if why is None)
        gone = {name: len(self._gone(entry)) for name, entry in self.config.servers.items()}
        return {name: ToolCounts(known[name] + gone[name], open_[name], gone[name]) for name in self.config.servers}

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Clashes of names, as problems of the servers concerned; not fatal."""
        return tuple(
            Problem(
                "",
                0,
                f"{clash.server}/{clash.tool} is listed as {clash.exposed}: {clash.reason}",
                server=clash.server,
                fatal=False,
            )
            for clash in self.names.clashes
        )

    @cached_property
    def _tools(self) -> dict[Key, Item]:
        """Every known tool by (server, name); of a name listed twice the first counts."""
        tools: dict[Key, Item] = {}
        for server, item in self._each("tools"):
            if isinstance(name := item.get("name"), str):
                tools.setdefault((server, name), item)
        return tools

    @cached_property
    def _hidden(self) -> dict[Key, str | None]:
        """Why a tool is kept from clients; None for those that are not."""
        servers = self.config.servers
        return {key: self._why_hidden(servers[key[0]], key[1]) for key in self._tools}

    @staticmethod
    def _why_hidden(server: ServerConfig, tool: str) -> str | None:
        return "its server is disabled" if server.disabled else why_hidden(server, tool)

    def _why_not_callable(self, key: Key) -> str:
        server, tool = key
        if self.config.servers[server].disabled:
            return f"{server} is disabled; enable it with: multi-mcp enable {server}"
        return switched_off(server, tool)

    def _visible(self) -> Iterator[tuple[Key, Item]]:
        return ((key, item) for key, item in self._tools.items() if self._hidden[key] is None)

    def _row(self, key: Key, item: Item) -> dict[str, Any]:
        server, tool = key
        description = item.get("description")
        return {
            "server": server,
            "name": tool,
            "exposed_name": self.names.by_key[key],
            "enabled": self._hidden[key] is None,
            "stale": False,
            "withheld": None,
            "description": description if isinstance(description, str) else "",
        }

    def _gone_row(self, server: str, tool: str) -> dict[str, Any]:
        switch = (self.config.servers[server].tools or {})[tool]
        row = {"server": server, "name": tool, "exposed_name": None, "enabled": switch.enabled, "stale": True}
        return {**row, "withheld": None, "description": ""}

    def _gone(self, server: ServerConfig) -> list[str]:
        """Tools that servers.yaml marks stale and that the server indeed does not offer."""
        switches = (server.tools or {}).items()
        return [tool for tool, switch in switches if switch.stale and (server.name, tool) not in self._tools]

    # -- prompts, resources, templates ---------------------------------------------------------------------------

    @cached_property
    def prompts(self) -> Exposed:
        """Names of all prompts."""
        return expose_prompts(self._prompts, self.config.settings.tool_prefix)

    @cached_property
    def prompts_result(self) -> bytes:
        """JSON of the result of prompts/list."""
        items = [{**item, "name": self.prompts.by_key[key]} for key, item in self._prompts.items()]
        return dumps({"prompts": items})

    @cached_property
    def resources(self) -> ResourceMap:
        """URIs of all resources and templates."""
        return ResourceMap(self._resources, self._templates)

    @cached_property
    def resources_result(self) -> bytes:
        """JSON of the result of resources/list."""
        items = [{**item, "uri": self.resources.exposed(*key)} for key, item in self._resources.items()]
        return dumps({"resources": items})

    @cached_property
    def templates_result(self) -> bytes:
        """JSON of the result of resources/templates/list."""
        items = [
            {**item, "uriTemplate": self.resources.exposed_template(*key)} for key, item in self._templates.items()
        ]
        return dumps({"resourceTemplates": items})

    @cached_property
    def resource_servers(self) -> list[str]:
        """Enabled servers that announced resources, listed or not."""
        able = [name for name, offer in self._offers.items() if "resources" in (offer.capabilities or {})]
        return [name for name in able if not self.config.servers[name].disabled]

    def find_template(self, exposed: str) -> Key | None:
        """The (server, original) of a listed URI template."""
        return self._by_template.get(exposed)

    @cached_property
    def _by_template(self) -> dict[str, Key]:
        return {self.resources.exposed_template(*key): key for key in self._templates}

    @cached_property
    def instructions(self) -> str | None:
        """What the servers tell a model about themselves, each under its name, shortened; None when none does."""
        parts = []
        for name, offer in self._offers.items():
            text = (offer.instructions or "").strip()
            if text and not self.config.servers[name].disabled:
                parts.append(f"# {name}\n{text[:INSTRUCTIONS_EACH]}")
        return "\n\n".join(parts)[:INSTRUCTIONS_ALL] or None

    @cached_property
    def _prompts(self) -> dict[Key, Item]:
        return self._by_text("prompts", "name")

    @cached_property
    def _resources(self) -> dict[Key, Item]:
        return self._by_text("resources", "uri")

    @cached_property
    def _templates(self) -> dict[Key, Item]:
        return self._by_text("templates", "uriTemplate")

    def _by_text(self, kind: str, member: str) -> dict[Key, Item]:
        found: dict[Key, Item] = {}
        for server, item in self._each(kind):
            text = item.get(member)
            if isinstance(text, str) and not self.config.servers[server].disabled:
                found.setdefault((server, text), item)
        return found

    def _each(self, kind: str) -> Iterator[tuple[str, Item]]:
        for server, offer in self._offers.items():
            for item in getattr(offer, kind):
                yield server, item

    def _servers(self, server: str | None) -> list[ServerConfig]:
        return [entry for name, entry in self.config.servers.items() if server in (None, name)]
