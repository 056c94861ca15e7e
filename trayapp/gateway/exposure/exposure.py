"""Compute the part of the catalog that one kind of session sees. It is computed once, and then only read.

A session's options, from the shim or the query of its URL, narrow that part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any, Literal, NamedTuple

from trayapp.catalog.filters import passes
from trayapp.catalog.lookup import HiddenReason, Lookup, server_of
from trayapp.catalog.names import Key, expose_names, server_prefix
from trayapp.catalog.resources import SCHEME, has_ui
from trayapp.catalog.suggest import nearest
from trayapp.gateway.exposure.catalog import WAITS, Catalog
from trayapp.gateway.exposure.served_tools import ServedTool
from trayapp.model.config import EXPOSE_MODES, Config, Expose, Profile
from trayapp.model.errors import AmbiguousToolError, MultiMcpError, ServerDisabledError, ToolNotFoundError
from trayapp.model.offer import Item

INSTRUCTIONS_EACH = 2_000  # characters of one server's instructions; a model reads them in every session
INDEX_URI = f"{SCHEME}index"
INDEX: Item = {
    "uri": INDEX_URI,
    "name": "index",
    "title": "All tools",
    "description": "What the tools of all servers do, in Markdown",
    "mimeType": "text/markdown",
}
_OUTSIDE = "This session was started without it"  # its --servers or --profile excludes the server
OUTSIDE = HiddenReason(_OUTSIDE, _OUTSIDE)
_UNSEEN = "Its server does not list it for a client of this kind"
UNSEEN = HiddenReason(_UNSEEN, _UNSEEN)
_WITHHELD = HiddenReason("It is withheld", WAITS)
Unseen = frozenset[tuple[str, str, str]]  # list, server and name of each item that a kind of client does not get


# -- the options of a session ----------------------------------------------------------------------------------------

OPTIONS = ("expose", "servers", "profile")
HELLO_MEMBERS = frozenset({"cwd", "pid", "token", "kind"})


class SessionOptions(NamedTuple):
    """A session's options; None for those not given. `wrong`: what is wrong with them in one line, "" if nothing is."""

    expose: Expose | None = None
    servers: tuple[str, ...] | None = None
    profile: str | None = None
    wrong: str = ""


class Choice(NamedTuple):
    """The choice of what a session sees of the catalog, and in which mode."""

    expose: Expose = "auto"
    defer_above: int = 15  # the number of tools above which `auto` means search mode
    servers: frozenset[str] | None = None  # None for all servers
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    wrong: str = ""  # why the options cannot be applied; if set, the session sees nothing, not everything
    unknown: tuple[str, ...] = ()  # named servers that are not configured; the session sees the others

    def has(self, server: str) -> bool:
        return not self.wrong and (self.servers is None or server in self.servers)


class UnknownOptionsError(MultiMcpError):
    """Raised when a session's options name something that does not exist. Such a session sees nothing."""

    code = "unknown_options"

    def __init__(self, wrong: str) -> None:
        super().__init__(wrong, "Change the options of multi-mcp stdio, or servers.yaml")


def session_options(given: Mapping[str, Any]) -> SessionOptions:
    """Read `expose`, `servers` (A,B) and `profile` of a hello, or of a URL's query.

    An empty filter (from an unset variable, say) or a misspelled one is an error: it must not show more than intended.
    """
    # Each option is "" if its value is not text, and None if it was not given.
    expose, servers, profile = (
        None if (value := given.get(name)) is None else value.strip() if isinstance(value, str) else ""
        for name in OPTIONS
    )
    named = tuple(name for part in (servers or "").split(",") if (name := part.strip()))
    mode = next((mode for mode in EXPOSE_MODES if mode == expose), None)
    wrong = ""
    for name in given:
        if name not in OPTIONS and name not in HELLO_MEMBERS and (near := nearest(name, OPTIONS)):
            wrong = f"{name} is not an option; did you mean {near[0]}?"[:200]
            break
    if expose and mode is None:
        wrong = f"expose must be one of {', '.join(EXPOSE_MODES)}, not {expose}"[:200]
    elif servers is not None and not named:
        wrong = "servers is empty, so nothing is shown; name servers as A,B, or leave it out for all"
    elif profile == "":
        wrong = "profile is empty, so nothing is shown; name a profile, or leave it out for everything"
    return SessionOptions(mode, named or None, profile or None, wrong)


def choose(options: SessionOptions, config: Config) -> Choice:
    """Return what a session with these options sees of a configuration.

    A session's own `expose` wins over its profile's. If both name servers, the session sees those that both name.
    """
    settings = config.settings
    profile = settings.profiles.get(options.profile) if options.profile is not None else Profile()
    if profile is None or options.wrong:
        known = list(settings.profiles)
        hint = f"the profiles are: {', '.join(known)}" if known else "there are no profiles"
        if near := nearest(str(options.profile), known):
            hint = f"did you mean {near[0]}?"
        wrong = options.wrong or f"No profile is named {options.profile}; {hint}"[:500]
        return Choice(options.expose or settings.expose, settings.defer_above, wrong=wrong)
    asked = [frozenset(names) for names in (options.servers, profile.servers) if names is not None]
    named = dict.fromkeys((*(options.servers or ()), *(profile.servers or ())))
    return Choice(
        options.expose or profile.expose or settings.expose,
        settings.defer_above,
        frozenset.intersection(*asked) if asked else None,
        profile.include_tools,
        profile.exclude_tools,
        unknown=tuple(name for name in named if name not in config.servers),
    )


# -- what the session sees -------------------------------------------------------------------------------------------


class Exposure:
    """A part of a catalog. Names and URIs are the catalog's: a session's filter renames nothing.

    `unseen`: the items that its kind of client does not get. The class is broad because each question about a session's
    part is a property of its own, computed once.
    """

    def __init__(
        self, catalog: Catalog, choice: Choice | None = None, unseen: Unseen = frozenset(), *, older: bool = False
    ) -> None:
        self.catalog = catalog
        self.choice = choice or Choice()
        self.unseen = unseen
        self.older = older  # True if it is for clients of the older era
        self.servers = {name: entry for name, entry in catalog.config.servers.items() if self.choice.has(name)}
        self.enabled = {name: offer for name, offer in catalog.enabled.items() if name in self.servers}

    # -- tools ---------------------------------------------------------------------------------------------------

    @cached_property
    def tools(self) -> dict[Key, ServedTool]:
        """Return the tools that may be seen and called."""
        forms = self._forms
        return {key: forms.get(key, tool) for key, tool in self.catalog.tools.items() if key not in self.hidden}

    @property
    def _forms(self) -> dict[Key, ServedTool]:
        return self.catalog.older_tools if self.older else {}

    @cached_property
    def hidden(self) -> dict[Key, HiddenReason]:
        """Return the known tools that may not be seen or called, each with the reason."""
        hidden = self.catalog.hidden
        if not self.is_whole:
            hidden = hidden | {key: OUTSIDE for key in self.catalog.tools if not self._passes(*key)}
        withheld = {key: _WITHHELD for key, tool in self._forms.items() if tool.withheld is not None}
        unseen = {key: UNSEEN for key in self.catalog.tools if ("tools", *key) in self.unseen} if self.unseen else {}
        return {**unseen, **withheld, **hidden} if unseen or withheld else hidden

    def _passes(self, server: str, tool: str) -> bool:
        return self.choice.has(server) and passes(
            server, tool, self.choice.include, self.choice.exclude, self.catalog.offers[server].tools
        )

    def is_off(self, server: str, tool: str) -> bool:
        """Return True if the user disabled a tool, or a filter leaves it out."""
        return server in self.catalog.offers and (
            (server, tool) in self.catalog.switched_off or not self._passes(server, tool)
        )

    @cached_property
    def lookup(self) -> Lookup:
        """Return the lookup of callable tools by the names that clients use."""
        waits = self.catalog.waits
        return Lookup(self.catalog.names, self.hidden, lambda key: self._passes(*key) and waits(key), self.servers)

    @cached_property
    def waiting(self) -> tuple[Key, ...]:
        """Return the tools of enabled servers that wait for the user's approval."""
        return tuple(key for key in self.catalog.waiting if self._passes(*key))

    @cached_property
    def switched_off(self) -> tuple[Key, ...]:
        """Return the tools of enabled servers that the user disabled or excluded."""
        return tuple(key for key in self.catalog.switched_off if self._passes(*key))

    @cached_property
    def kept_back(self) -> dict[str, tuple[int, int]]:
        """Return how many tools of each enabled server are disabled, and how many wait for approval."""
        off, waiting = (Counter(server for server, _ in keys) for keys in (self.switched_off, self.waiting))
        return {server: (off[server], waiting[server]) for server in {**off, **waiting}}

    def find(self, asked: str, server: str | None = None) -> Key:
        """Return the (server, original name) of a tool. Raises ToolNotFoundError, AmbiguousToolError."""
        try:
            return self.lookup.find(asked, server)
        except ToolNotFoundError as error:
            gone: Key | None = None  # a tool in servers.yaml that its server no longer lists
            with suppress(ToolNotFoundError, AmbiguousToolError):
                gone = self._gone_lookup.find(asked, server)
            if gone is not None:
                error.title = "{} no longer has {}".format(*gone)
            elif off := self._disabled_server(asked, server):
                switched_off = ServerDisabledError(off)
                error.title = f"{error.title}: {switched_off.title}"
                error.hint, error.model_hint = switched_off.hint, switched_off.model_hint
            raise

    def _disabled_server(self, asked: str, server: str | None) -> str | None:
        """Return the disabled server whose tools are unknown and to which a name may belong, or None."""
        off = [name for name, entry in self.servers.items() if entry.disabled and name not in self.catalog.offers]
        if server is not None:
            return server if server in off else None
        return next(iter(server_of(asked, off, self.catalog.config.settings.tool_prefix)), None)

    @cached_property
    def _gone_lookup(self) -> Lookup:
        gone = [key for key in self.catalog.gone if self.choice.has(key[0])]
        return Lookup(expose_names(gone, self.catalog.config.settings.tool_prefix), servers=self.servers)

    @cached_property
    def entries(self) -> dict[str, dict[Key, Item]]:
        """Return server -> key -> definition of everything callable: tools, then resources as tools."""
        found: dict[str, dict[Key, Item]] = {name: {} for name in self.servers}
        for key, item in {**{key: tool.item for key, tool in self.tools.items()}, **self.reads}.items():
            found[key[0]][key] = item
        return found

    @property
    def is_whole(self) -> bool:
        """Return True if no option limits which part of the catalog the session sees."""
        choice = self.choice
        return not choice.wrong and choice.servers is None and not choice.include and not choice.exclude

    @cached_property
    def callable_keys(self) -> frozenset[Key]:
        return frozenset((*self.tools, *self.reads))

    def name_of(self, key: Key) -> str:
        """Return the name under which clients see a tool or a resource as a tool, or the URI of a skill's file."""
        known = self.catalog.names.by_key.get(key) or self.catalog.read_tools.exposed.by_key.get(key)
        return known or self.catalog.uris.exposed(*key)  # the key is that of a skill's file

    @cached_property
    def mode(self) -> Literal["tools", "search"]:
        """Return "tools" if the session lists every tool, "search" if it lists the one tool that finds them."""
        if self.choice.expose != "auto":
            return self.choice.expose
        shown = (  # selects as `tools` does, but stops after the first few of a large catalog
            key
            for key, tool in self.catalog.tools.items()
            if ("tools", *key) not in self.unseen
            and self.catalog.why_not(key, tool) is None
            and (self.is_whole or self._passes(*key))
        )
        return "search" if next(islice(shown, self.choice.defer_above, None), None) else "tools"

    @cached_property
    def direct_keys(self) -> frozenset[Key]:
        """Return the tools that `direct_tools` of their servers name, which are listed in every mode."""
        direct = {name: entry.direct_tools for name, entry in self.servers.items() if entry.direct_tools}
        return frozenset(
            (server, name)
            for server, name in (self.tools if direct else ())
            if (names := direct.get(server)) is True or (names and passes(server, name, names, ()))
        )

    @cached_property
    def app_keys(self) -> frozenset[Key]:
        """Return the tools with a user interface, which are listed in every mode for clients that show Apps."""
        return frozenset(key for key, tool in self.tools.items() if "_meta" in tool.item and has_ui(tool.item))

    @cached_property
    def has_other_outputs(self) -> bool:
        """Return True if the listed output schemas differ between clients of 2026-07-28 and older ones."""
        return any(tool.returns_others for tool in self.tools.values())

    def lists(self, key: Key) -> bool:
        """Return True if the session's tools/list contains that tool, even for a client that shows no Apps."""
        return key in (self.tools if self.mode == "tools" else self.direct_keys)

    # -- resources as tools --------------------------------------------------------------------------------------

    @cached_property
    def reads(self) -> dict[Key, Item]:
        """Return the resources that can be called as tools: (server, URI) -> definition of the tool."""
        names, all_ = self.catalog.read_tools.exposed.by_key, self.catalog.readable
        return {key: read_tool(all_[key], key[1], name) for key, name in names.items() if self.choice.has(key[0])}

    def find_read(self, asked: str, server: str | None = None) -> Key | None:
        """Return the (server, URI) of a resource by its name as a tool, or of a skill's file by its URI.

        Return None if nothing matches, or if files of several servers match. Real tools are not searched.
        """
        if "://" in asked:  # a skill's file: models make its URI from a relative path in the skill
            files = self.catalog.served_skill_files
            keys = [key for key in files if self.choice.has(key[0]) and server in (None, key[0])]
            exact = [key for key in keys if self.catalog.uris.exposed(*key) == asked]
            found = exact or [key for key in keys if key[1] == asked]
            return found[0] if len(found) == 1 else None
        names = [asked, folded := asked.replace("-", "_")]
        if server is not None:
            prefix = server_prefix(server, self.catalog.config.settings.tool_prefix)
            names += [f"{prefix}_{folded}"]
        key = next((key for name in names if (key := self.catalog.read_tools.find(name)) is not None), None)
        return key if key is not None and self.choice.has(key[0]) and server in (None, key[0]) else None

    def find_callable(self, asked: str, server: str | None = None) -> Key:
        """Return the key of a tool, or of a resource as a tool. Raises ToolNotFoundError, AmbiguousToolError."""
        try:
            return self.find(asked, server)
        except ToolNotFoundError as error:
            if (key := self.find_read(asked, server)) is not None:
                return key
            if error.hint != ToolNotFoundError(asked, error.suggestions).hint or not self.reads:
                raise  # the tool exists but is hidden, or there are no resources to suggest
            names = [self.name_of(key) for key in self.callable_keys if server in (None, key[0])]
            raise ToolNotFoundError(asked, nearest(asked, names)) from None

    # -- prompts, resources, templates ---------------------------------------------------------------------------

    def find_prompt(self, asked: str) -> Key | None:
        """Return the (server, original name) of a listed prompt, in any unambiguous spelling, or None if not found."""
        try:
            return self._prompt_lookup.find(asked)
        except (ToolNotFoundError, AmbiguousToolError):
            return None

    def no_prompt(self, asked: str) -> str:
        """Return the error message for a prompt that `find_prompt` did not find, with similar names."""
        near = ""
        try:
            self._prompt_lookup.find(asked)
        except AmbiguousToolError as error:
            return f"{asked} means more than one prompt: {', '.join(error.candidates)}"
        except ToolNotFoundError as error:
            near = f". Did you mean {', '.join(error.suggestions)}?" if error.suggestions else ""
        return f"No prompt is named {asked}{near}"

    @cached_property
    def _prompt_lookup(self) -> Lookup:
        names = self.catalog.prompt_names
        hidden = {key: OUTSIDE for key in names.by_key if not self.choice.has(key[0])}
        return Lookup(names, hidden, servers=self.servers)

    def find_template(self, exposed: str) -> Key | None:
        """Return the (server, original template) of a listed URI template, or None if it is not listed."""
        key = self.catalog.by_template.get(exposed)
        return key if key is not None and self.choice.has(key[0]) else None

    # -- capabilities and instructions ---------------------------------------------------------------------------

    @cached_property
    def capabilities(self) -> dict[str, Item]:
        """Return each enabled server's capabilities in the era of these sessions, by server name."""
        found: dict[str, Item] = {}
        for name, prepared in self.enabled.items():
            older = prepared.offer.older_capabilities if self.older else None
            found[name] = (prepared.offer.capabilities or {}) if older is None else older
        return found

    def instructions_of(self, server: str) -> str:
        """Return a server's own instructions, cut at INSTRUCTIONS_EACH, or "" if the server is disabled or unknown."""
        if (prepared := self.enabled.get(server)) is None:
            return ""
        if self.older and prepared.older is not None and prepared.offer.older_instructions is not None:
            prepared = prepared.older
        return prepared.instructions[:INSTRUCTIONS_EACH]


def read_tool(resource: Item, uri: str, name: str) -> Item:
    """Return the definition of a tool that reads a resource. The tool has no parameters."""
    said = resource.get("description")
    return {
        "name": name,
        **({"title": resource["title"]} if isinstance(resource.get("title"), str) else {}),
        "description": said if isinstance(said, str) and said else f"Read resource: {uri}",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    }


LINE_LONGEST = 160  # characters of a description in a list: enough to tell tools apart


def first_line(text: object) -> str:
    """Return the first nonblank line of a description, shortened to LINE_LONGEST."""
    lines = text.splitlines() if isinstance(text, str) else []
    return shortened(next((line.strip() for line in lines if line.strip()), ""), LINE_LONGEST)


def first_paragraph(text: object, longest: int) -> str:
    """Return the first paragraph of a description as one line, shortened to `longest` characters."""
    paragraphs = (part.split() for part in re.split(r"\n\s*\n", text)) if isinstance(text, str) else ()
    return shortened(" ".join(next((words for words in paragraphs if words), ())), longest)


def shortened(text: str, longest: int) -> str:
    """Return `text` in at most `longest` characters, with `...` in place of its end if it is longer."""
    return text if len(text) <= longest else text[: longest - 3].rstrip() + "..."
