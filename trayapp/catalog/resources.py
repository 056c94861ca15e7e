"""Exposed names and URIs of resources, templates and prompts, and their rewriting in a server's messages.

Functions that rewrite an object return the same object if nothing changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote, unquote

from trayapp.catalog.names import Exposed, Key, Wish, call_spelling, expose, server_prefix
from trayapp.model.config import PrefixMode
from trayapp.model.errors import MultiMcpError

SCHEME = "multi-mcp://"  # prefix of our own resources, and of resources whose URI several servers have

_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_NOT_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"\{[^{}]*\}")

URI_LONGEST = 8192  # characters; longer URIs match no template
PARTS_MOST = 64  # literals and expressions of a template; a template with more matches no URI

# Operator of an expression -> how its expansion begins, and which characters the expansion cannot contain (RFC 6570,
# 3.2).
_OPERATORS = {
    "": ("", "/?#"),
    "+": ("", ""),
    "#": ("#", ""),
    ".": (".", "/?#"),
    "/": ("/", "?#"),
    ";": (";", "/?#"),
    "?": ("?", "#"),
    "&": ("&", "#"),
}
_EXPRESSION = re.compile(r"\{([+#./;?&]?)[^{}]*\}")

Part = tuple[str, str | None]  # (literal, None), or (beginning of an expansion, characters that it cannot contain)


class AmbiguousResourceError(MultiMcpError):
    """Raised when more than one server has the resource."""

    code = "ambiguous_resource"

    def __init__(self, uri: str, candidates: list[str]) -> None:
        super().__init__(f"{uri} is a resource of more than one server", f"Specify one of: {', '.join(candidates)}")


def resource_base(name: str) -> str:
    """Return a resource's name as part of a tool's name, in lower-case ASCII letters, digits and `_`.

    Each run of other characters becomes `_`, or is dropped at the ends. `resource_` is put before a leading digit. A
    name without letters and digits becomes `resource`.
    """
    base = _NOT_WORD.sub("_", name).strip("_").lower()
    return f"resource_{base}".rstrip("_") if not base or base[0].isdigit() else base


@dataclass(frozen=True, slots=True)
class ResourceTools:
    """Resources as callable `SERVER_read_BASE` entries, with (server, URI) as keys.

    `aliases` maps `SERVER_get_BASE` to a key.
    """

    exposed: Exposed
    aliases: Mapping[str, Key] = field(default_factory=dict)

    def find(self, asked: str) -> Key | None:
        """Return the (server, URI) that a call to `asked` reads, or None. The caller must look for real tools first."""
        return self.exposed.by_name.get(asked) or self.aliases.get(asked)


def resource_tools(
    resources: Iterable[tuple[str, str, str]], mode: PrefixMode, tools: Set[str] = frozenset()
) -> ResourceTools:
    """Return the names of resources given as (server, name, URI). `tools`: exposed names of real tools, never reused.

    A resource without a name uses its URI. If several resources would share a name, it goes to the resource whose
    own name needs no replacements, if there is exactly one. The others get a hash of server and URI as a suffix.
    """
    wishes: dict[Key, Wish] = {}
    gets: dict[str, list[Key]] = {}
    for server, name, uri in resources:
        base = resource_base(name or uri)
        wishes[server, uri] = (_joined(server, f"read_{base}", mode), base == name)
        gets.setdefault(_joined(server, f"get_{base}", mode), []).append((server, uri))
    exposed = expose(wishes, mode, tools)
    owned = tools | exposed.by_name.keys()
    aliases = {alias: keys[0] for alias, keys in gets.items() if len(set(keys)) == 1 and alias not in owned}
    return ResourceTools(exposed, aliases)


def safe_prompt(name: str) -> str:
    """Return a prompt's name in safe characters, with `_` for each run of other characters.

    It has no `_` or `-` at its ends, except a `_` before a digit. An empty name becomes `prompt`.
    """
    safe = _NOT_NAME.sub("_", name).strip("_-") or "prompt"
    return f"_{safe}" if safe[0].isdigit() else safe


def expose_prompts(prompts: Iterable[Key], mode: PrefixMode) -> Exposed:
    """Return the exposed name of each (server, prompt), built like a tool's.

    In mode none it is `mcp__SERVER__PROMPT`, since the prompts of all servers become commands of one client.
    """
    wishes: dict[Key, Wish] = {}
    for server, name in prompts:
        safe = safe_prompt(name)
        wish = call_spelling(server, safe) if mode == "none" else _joined(server, safe, mode)
        wishes[server, name] = (wish, safe == name)
    return expose(wishes, mode)


def _joined(server: str, name: str, mode: PrefixMode) -> str:
    prefix = server_prefix(server, mode)
    return f"{prefix}_{name}" if prefix else name


class ResourceMap:
    """The URIs and URI templates of all servers: from original to exposed and back. Keys are (server, original)."""

    def __init__(self, resources: Iterable[Key], templates: Iterable[Key] = (), skills: Iterable[Key] = ()) -> None:
        self._skills: dict[str, set[str]] = {}  # scheme and authority -> servers; URIs below one authority form a tree
        for server, uri in skills:
            self._skills.setdefault(_authority(uri), set()).add(server)
        self._resources = {
            (server, uri): prefixed(server, uri) if exposed == uri and self._is_shared(server, uri) else exposed
            for (server, uri), exposed in _exposed_uris(resources).items()
        }
        self._templates = _exposed_uris(templates)
        self._servers = {server for server, _ in (*self._resources, *self._templates)}.union(*self._skills.values())

    def _is_shared(self, server: str, uri: str) -> bool:
        """Return True if the URI's authority belongs to skills of this server and of another.

        Files of one skill refer to each other by relative URIs (SEP-2640), so all or none of them get the prefix.
        """
        owners = self._skills.get(_authority(uri), ())
        return server in owners and len(owners) > 1

    @cached_property
    def renamed(self) -> frozenset[str]:
        """Return the servers with a resource that clients know by a URI other than the original."""
        exposed = (*self._resources.items(), *self._templates.items())
        shared = {server for owners in self._skills.values() if len(owners) > 1 for server in owners}
        return frozenset(shared.union(key[0] for key, uri in exposed if uri != key[1]))

    def exposed(self, server: str, uri: str) -> str:
        """Return the exposed URI of `uri` on `server`, whether it is listed or made from a template."""
        if (known := self._resources.get((server, uri))) is not None:
            return known
        return uri if self._plain_owners(uri) == [(server, uri)] else prefixed(server, uri)

    def exposed_link(self, server: str, uri: str) -> str:
        """Return a URI in a result of `server` for clients, with a prefix if it could mean another resource."""
        if (known := self._resources.get((server, uri))) is not None:
            return known
        owners = self._plain_owners(uri)
        shared = self._is_shared(server, uri) or (bool(owners) and owners != [(server, uri)])
        return prefixed(server, uri) if shared or uri.startswith(SCHEME) else uri

    def exposed_template(self, server: str, template: str) -> str:
        """Return the URI template under which clients know the listed `template` of `server`."""
        return self._templates[server, template]

    def find(self, uri: str, seen: Callable[[str], bool] = lambda server: True) -> Key | None:
        """Return the (server, original URI) of a client's URI, or None if no server is known to have it.

        Only servers for which `seen` is True count. Raises AmbiguousResourceError if several of them have it.
        """
        key = split_prefixed(uri)
        owners = self._plain_owners(uri) if key is None or key[0] not in self._servers else [key]
        owners = [key for key in owners if seen(key[0])]
        if len(owners) > 1:
            raise AmbiguousResourceError(uri, sorted(prefixed(*key) for key in owners))
        return owners[0] if owners else None

    def _plain_owners(self, uri: str) -> list[Key]:
        if uri.startswith(SCHEME):
            return []  # reserved for our own resources
        servers = self._by_uri.get(uri)
        if servers is None:
            fitting = match_template(uri, self._by_template)
            owners = {server for template in fitting for server in self._by_template[template]}
            servers = sorted(owners or self._skills.get(_authority(uri), set()))
        return [(server, uri) for server in servers]

    @cached_property
    def _by_uri(self) -> dict[str, list[str]]:
        return _servers_by(self._resources)

    @cached_property
    def _by_template(self) -> dict[str, list[str]]:
        return _servers_by(self._templates)


def _servers_by(keys: Iterable[Key]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for server, uri in keys:
        found.setdefault(uri, []).append(server)
    return found


def _exposed_uris(keys: Iterable[Key]) -> dict[Key, str]:
    """Return the exposed URI of each key: unchanged, unless another server has the same URI or it begins with SCHEME.

    In both cases, all such URIs get a prefix. The original stays readable after the prefix, so that a template's
    variables can still be filled in.
    """
    forms = {key: _VARIABLE.sub("{}", key[1]) for key in keys}  # the names of a template's variables do not count
    owners = _servers_by({(server, form) for (server, _), form in forms.items()})
    return {
        (server, uri): prefixed(server, uri) if uri.startswith(SCHEME) or len(owners[form]) > 1 else uri
        for (server, uri), form in forms.items()
    }


def _authority(uri: str) -> str:
    scheme, mark, rest = uri.partition("://")
    return f"{scheme}{mark}{rest.partition('/')[0]}"


def prefixed(server: str, own: str) -> str:
    """Return a server's address or handle with a prefix that names the server."""
    return f"{SCHEME}{quote(server, safe='', errors='surrogatepass')}/{own}"


def split_prefixed(text: str) -> tuple[str, str] | None:
    """Return the unquoted server name and its own address or handle, or None if `prefixed` did not make the text."""
    name, slash, own = text.removeprefix(SCHEME).partition("/")
    return (unquote(name, errors="surrogatepass"), own) if text.startswith(SCHEME) and slash and own else None


def match_template(uri: str, templates: Iterable[str]) -> list[str]:
    """Return the matching templates with the most literal characters. A URI that is too long matches none."""
    if len(uri) > URI_LONGEST:
        return []
    fitting = {
        template: sum(len(text) for text, excluded in _parts(template) if excluded is None)
        for template in templates
        if _fits(uri, template)
    }
    most = max(fitting.values(), default=0)
    return [template for template, literals in fitting.items() if literals == most]


def _fits(uri: str, template: str) -> bool:
    parts = _parts(template)
    if len(parts) > PARTS_MOST:
        return False
    ends = {0}
    for text, excluded in parts:
        if excluded is None:
            ends = {end + len(text) for end in ends if uri.startswith(text, end)}
        else:
            ends = _after_expansion(uri, ends, text, excluded)
        if not ends:
            return False
    return len(uri) in ends


@lru_cache(maxsize=4096)
def _parts(template: str) -> tuple[Part, ...]:
    """Return a template's parts: literal text, and expansions with the characters that their values cannot contain."""
    parts, end = list[Part](), 0
    for found in _EXPRESSION.finditer(template):
        if found.start() > end:
            parts.append((template[end : found.start()], None))
        parts.append(_OPERATORS[found[1]])
        end = found.end()
    if end < len(template):
        parts.append((template[end:], None))
    return tuple(parts)


def _after_expansion(uri: str, starts: set[int], begins: str, excluded: str) -> set[int]:
    """Return the positions where an expansion that starts at one of `starts` may end.

    These are the start itself (for an undefined variable), and all positions up to an excluded character. Every
    position is visited once, so that no template can make this slow.
    """
    ends = set(starts)
    reached = -1
    for start in sorted(starts):
        first = start + len(begins)
        if first > reached and uri.startswith(begins, start):
            reached = next((i for i in range(first, len(uri)) if uri[i] in excluded), len(uri))
            ends.update(range(first, reached + 1))
    return ends


ToExposed = Callable[[str], str]  # a server's own address or handle -> the one that its clients know

# Where a tool, a result or a resource names its user interface in `_meta` (SEP-1865 and its predecessors).
UI_KEYS = ("ui/resourceUri", "openai/outputTemplate")
UI, UI_MEMBER = "ui", "resourceUri"


def linked_definition(item: dict[str, Any], exposed: ToExposed) -> dict[str, Any]:
    """Return a tool, or another object with `_meta`, with the address of its user interface rewritten."""
    meta = item.get("_meta")
    if not isinstance(meta, dict):
        return item
    changed: dict[str, Any] = {key: exposed(meta[key]) for key in UI_KEYS if isinstance(meta.get(key), str)}
    ui = meta.get(UI)
    if isinstance(ui, dict) and isinstance(ui.get(UI_MEMBER), str):
        changed[UI] = {**ui, UI_MEMBER: exposed(ui[UI_MEMBER])}
    changed = {key: value for key, value in changed.items() if value != meta[key]}
    return {**item, "_meta": {**meta, **changed}} if changed else item


def has_ui(item: dict[str, Any]) -> bool:
    """Return True if a tool has its own user interface (MCP Apps)."""
    meta = item.get("_meta")
    if not isinstance(meta, dict):
        return False
    ui = meta.get(UI)
    return (isinstance(ui, dict) and isinstance(ui.get(UI_MEMBER), str)) or isinstance(meta.get(UI_KEYS[0]), str)


_Linked = Callable[[dict[str, Any], ToExposed], dict[str, Any]]


def linked_result(result: dict[str, Any], exposed: ToExposed) -> dict[str, Any]:
    """Return the result of a tool, prompt, resource or skill with its addresses rewritten."""
    return linked_definition(_with_linked(result, exposed, _OF_RESULT), exposed)


def linked_skill(skill: dict[str, Any], exposed: ToExposed) -> dict[str, Any]:
    """Return a skill's entry with its addresses rewritten."""
    return _with_linked(_linked_entry(skill, exposed), exposed, {"resources": _linked_entry})


def _linked_entry(entry: dict[str, Any], exposed: ToExposed) -> dict[str, Any]:
    uri = entry.get("uri")
    known = exposed(uri) if isinstance(uri, str) else uri
    return linked_definition(entry if known == uri else {**entry, "uri": known}, exposed)


def _linked_part(part: dict[str, Any], exposed: ToExposed) -> dict[str, Any]:
    if part.get("type") == "resource_link":
        return _linked_entry(part, exposed)
    return _with_linked(part, exposed, {"resource": _linked_entry})


_OF_RESULT: dict[str, _Linked] = {
    "content": _linked_part,
    "messages": lambda message, exposed: _with_linked(message, exposed, {"content": _linked_part}),
    "contents": _linked_entry,
    "resources": _linked_entry,
    "skill": linked_skill,
}


def _with_linked(whole: dict[str, Any], exposed: ToExposed, members: Mapping[str, _Linked]) -> dict[str, Any]:
    """Return `whole` with each of `members` rewritten by its function. A member may be an object or a list."""
    found = {key: _linked_member(whole[key], exposed, linked) for key, linked in members.items() if key in whole}
    changed = {key: value for key, value in found.items() if value is not whole[key]}
    return {**whole, **changed} if changed else whole


def _linked_member(value: Any, exposed: ToExposed, linked: _Linked) -> Any:
    if isinstance(value, dict):
        return linked(value, exposed)
    if not isinstance(value, list):
        return value
    found = [linked(one, exposed) if isinstance(one, dict) else one for one in value]
    return value if all(new is old for new, old in zip(found, value, strict=True)) else found
