"""The catalog of one configuration: its known tools, prompts and resources, exposed names, and why some are hidden.

It is computed once from a configuration and the offers, and then only read. Sessions share it through their views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

from trayapp.catalog.filters import switch_of
from trayapp.catalog.lookup import HiddenReason, switched_off
from trayapp.catalog.names import NONE_GIVEN, Exposed, Key, SeenNames, expose_names
from trayapp.catalog.resources import ResourceMap, ResourceTools, expose_prompts, resource_tools
from trayapp.gateway.exposure.served_tools import ServedOffer, ServedTool
from trayapp.model.config import Config, PrefixMode, ServerConfig
from trayapp.model.errors import LEAVE_IT, Problem
from trayapp.model.offer import ITEM_KEYS, Item

if TYPE_CHECKING:
    from trayapp.model.status import ToolCounts

ONE_TOOL = "mcp"  # the name of the one tool: reserved in every mode, so that a change of `expose` renames no tool

# Hints for a model about a hidden tool. They never say how to unhide it, nor what was found in it.
SERVER_OFF = f"The user disabled its server. {LEAVE_IT}"
LEFT_OUT = "The user excluded it in servers.yaml. If it is needed, tell them, but do not change that yourself"
WAITS = "Ask the user to review it"  # the error itself names the reason
UNTAKEABLE = "It is withheld: no client could use its input schema. Tell the user"


@lru_cache(maxsize=1)  # a switch or a new description makes a new catalog, but its names stay the same
def _names_of(
    keys: tuple[Key, ...], mode: PrefixMode, given: SeenNames, held: frozenset[Key], servers: tuple[str, ...]
) -> Exposed:
    return expose_names(keys, mode, frozenset({ONE_TOOL}), given, held, servers)


def digests_of(skill: Item) -> dict[str, str | None]:
    """Return URI -> published digest, or None without one, for each file of a skill, including SKILL.md."""
    files = skill.get("resources")
    found = {str(skill.get("uri")): None}
    return found | {
        uri: digest if isinstance(digest := one.get("digest"), str) else None
        for one in (files if isinstance(files, list) else ())
        if isinstance(one, dict) and isinstance(uri := one.get("uri"), str)
    }


class Catalog:
    """The catalog of one configuration and one state of the offers. `given`: returns the names that clients have seen.

    The class is broad because each question about a catalog is a property of its own, computed once.
    """

    def __init__(
        self,
        config: Config,
        served: Mapping[str, ServedOffer],
        given: Callable[[PrefixMode], SeenNames] = lambda mode: NONE_GIVEN,
    ) -> None:
        self.config = config
        self._given = given
        self.offers = {name: served[name] for name in config.servers if name in served}
        self.enabled = {name: offer for name, offer in self.offers.items() if not config.servers[name].disabled}

    # -- tools ---------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> Exposed:
        """Return the exposed names of all known tools, enabled or not: switching one tool must not rename others."""
        mode = self.config.settings.tool_prefix
        return _names_of(tuple(self.tools), mode, self._given(mode), self.held, tuple(self.config.servers))

    @cached_property
    def held(self) -> frozenset[Key]:
        """Return the tools that are held back, whether or not an approval would release them."""
        return frozenset(key for key, tool in self.tools.items() if tool.held_back is not None)

    @cached_property
    def tools(self) -> dict[Key, ServedTool]:
        """Return every known tool by (server, name)."""
        return {(server, name): tool for server, offer in self.offers.items() for name, tool in offer.tools.items()}

    @cached_property
    def hidden(self) -> dict[Key, HiddenReason]:
        """Return the tools that no client sees, each with the reason given to callers."""
        return {key: why for key, tool in self.tools.items() if (why := self.why_not(key, tool)) is not None}

    def why_not(self, key: Key, tool: ServedTool) -> HiddenReason | None:
        """Return why no client sees a tool, or None if clients may see it."""
        server = key[0]
        if self.config.servers[server].disabled:
            return HiddenReason(f"{server} is disabled; enable it with: multi-mcp enable {server}", SERVER_OFF)
        if (switch := self.switch(key)) == "excluded":
            left_out = f"include_tools or exclude_tools of {server} exclude it"
            return HiddenReason(f"{left_out}; multi-mcp enable does not change that", LEFT_OUT)
        if switch == "off":
            return switched_off(*key)
        if tool.withheld is None:
            return None
        model = UNTAKEABLE if tool.held_back is None else WAITS
        return HiddenReason(f"It is withheld: {tool.withheld}", model)

    def waits(self, key: Key) -> bool:
        """Return True if a tool is enabled and only lacks the user's approval."""
        return self._is_on(key) and self.offers[key[0]].waits(key[1])

    def switched_on(self, server: str, names: Iterable[str]) -> tuple[str, ...]:
        """Return `names` without the tools that the user disabled or excluded.

        `names`: tools, prompts, ... of the server. Return () if the server is disabled or its offer is unknown.
        """
        if server not in self.enabled:
            return ()
        return tuple(name for name in names if (server, name) not in self.tools or self._is_on((server, name)))

    def switch(self, key: Key) -> Literal["on", "off", "excluded"]:
        """Return the setting of a tool in servers.yaml, even if its server is disabled or its definition withheld."""
        return switch_of(self.config.servers[key[0]], key[1], self.offers[key[0]].tools)

    def _is_on(self, key: Key) -> bool:
        return key[0] in self.enabled and self.switch(key) == "on"

    @cached_property
    def waiting(self) -> tuple[Key, ...]:
        """Return the tools that wait for the user's approval and are not disabled."""
        return tuple(key for key, why in self.hidden.items() if why.model == WAITS)

    @cached_property
    def switched_off(self) -> tuple[Key, ...]:
        """Return the tools of enabled servers that the user disabled or excluded."""
        others = (WAITS, UNTAKEABLE, SERVER_OFF)
        return tuple(key for key, why in self.hidden.items() if why.model not in others)

    @cached_property
    def older_tools(self) -> dict[Key, ServedTool]:
        """Return the older era's form of each tool whose definition differs for clients of that era."""
        older = {server: offer.older for server, offer in self.offers.items() if offer.older is not None}
        each = {(server, name): tool for server, offer in older.items() for name, tool in offer.tools.items()}
        return {key: tool for key, tool in each.items() if key in self.tools}

    def older_items(self, kind: str) -> dict[Key, Item]:
        """Return the older era's form of those items of a list that differ in that era. `kind`: any list but tools."""
        found = {name: offer.older.listed(kind) for name, offer in self.offers.items() if offer.older is not None}
        return {(server, str(item.get(ITEM_KEYS[kind]))): item for server, items in found.items() for item in items}

    @cached_property
    def counts(self) -> dict[str, ToolCounts]:
        """Return server -> the counts of its tools."""
        from trayapp.model.status import ToolCounts  # loaded with the first snapshot

        known = Counter(server for server, _ in self.tools)
        hidden = Counter(server for server, _ in self.hidden)
        withheld = Counter(server for (server, _), why in self.hidden.items() if why.model in (WAITS, UNTAKEABLE))
        gone = {name: len(self.gone_of(entry)) for name, entry in self.config.servers.items()}
        return {
            name: ToolCounts(known[name] + gone[name], known[name] - hidden[name], gone[name], withheld[name])
            for name in self.config.servers
        }

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Return a non-fatal problem for each tool that clients see under another name because of a clash."""
        told = [
            (one.server, f"{one.server}/{one.tool} is listed as {one.exposed}: {one.reason}")
            for one in self.names.clashes
        ]
        return tuple(Problem("", 0, message, server=server, fatal=False) for server, message in told)

    @cached_property
    def gone(self) -> list[Key]:
        """Return the tools that are marked stale in servers.yaml and no longer offered by their servers."""
        return [(name, tool) for name, entry in self.config.servers.items() for tool in self.gone_of(entry)]

    def gone_of(self, server: ServerConfig) -> list[str]:
        """Return a server's tools that are marked stale in servers.yaml and no longer offered by the server."""
        switches = (server.tools or {}).items()
        return [tool for tool, switch in switches if switch.stale and (server.name, tool) not in self.tools]

    # -- prompts, resources and templates of enabled servers -----------------------------------------------------

    @cached_property
    def prompt_names(self) -> Exposed:
        return expose_prompts(self.prompts, self.config.settings.tool_prefix)

    @cached_property
    def uris(self) -> ResourceMap:
        """Return the map between original and exposed URIs of all resources, templates and skills' files."""
        return ResourceMap((*self.resources, *self.skill_files), self.templates, self.skill_files)

    @cached_property
    def skills(self) -> dict[Key, Item]:
        """Return the skills by (server, URI of their SKILL.md)."""
        return self._by_key("skills")

    @cached_property
    def events(self) -> dict[Key, Item]:
        return self._by_key("events")

    @cached_property
    def skill_files(self) -> dict[Key, str | None]:
        """Return (server, URI) -> digest, as `digests_of` does, for the files of all skills, held back or not."""
        skills = ((server, skill) for server, prepared in self.enabled.items() for skill in prepared.offer.skills)
        return {(server, uri): digest for server, skill in skills for uri, digest in digests_of(skill).items()}

    @cached_property
    def served_skill_files(self) -> frozenset[Key]:
        """Return the (server, URI) of each file of the skills that are not held back."""
        return frozenset((server, uri) for (server, _), skill in self.skills.items() for uri in digests_of(skill))

    @cached_property
    def event_names(self) -> ResourceMap:
        """Return the exposed names of all event types. A type keeps its own name, unless two servers use the same."""
        return ResourceMap(self.events)

    @cached_property
    def read_tools(self) -> ResourceTools:
        """Return the names under which resources of servers with `expose_resources` are called as tools."""
        chosen = (key for key in self.readable if self.config.servers[key[0]].expose_resources)
        named = ((key[0], str(self.readable[key].get("name") or ""), key[1]) for key in chosen)
        taken = self.names.by_name.keys() | {ONE_TOOL}
        return resource_tools(named, self.config.settings.tool_prefix, taken)

    @cached_property
    def by_template(self) -> dict[str, Key]:
        """Return the (server, original template) of each listed URI template, by its exposed form."""
        return {self.uris.exposed_template(*key): key for key in self.templates}

    @cached_property
    def prompts(self) -> dict[Key, Item]:
        return self._by_key("prompts")

    @cached_property
    def resources(self) -> dict[Key, Item]:
        """Return the resources by (server, URI), without the files of held-back skills."""
        found = self._by_key("resources")
        held = self.skill_files.keys() - self.served_skill_files
        return {key: item for key, item in found.items() if key not in held} if held else found

    @cached_property
    def readable(self) -> dict[Key, Item]:
        """Return, by (server, URI), all that a tool call can read: the resources, and each skill's SKILL.md."""
        found = dict(self.resources)
        for key, skill in self.skills.items():  # for clients that do not support skills
            said = skill.get("frontmatter")
            about = said if isinstance(said, dict) else {}
            description = f"Skill. Read it before you do what it describes: {about.get('description') or ''}"
            found[key] = {"uri": skill["uri"], "name": str(about.get("name") or ""), "description": description}
        return found

    @cached_property
    def templates(self) -> dict[Key, Item]:
        return self._by_key("templates")

    def _by_key(self, kind: str) -> dict[Key, Item]:
        found: dict[Key, Item] = {}
        for server, prepared in self.enabled.items():
            for item in prepared.listed(kind):
                if isinstance(name := item.get(ITEM_KEYS[kind]), str):
                    found.setdefault((server, name), item)
        return found
