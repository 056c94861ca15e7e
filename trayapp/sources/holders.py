"""The servers in a document: below the key of any client (a holder), listed, nested, or alone.

An entry keeps its client's form; `trayapp.sources.documents` turns it into a source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trayapp.clients.conversion import NO_SERVER, TRANSPORTS
from trayapp.config.programs import program_of
from trayapp.sources.programs import RUNNERS, name_for
from trayapp.sources.source import TemplateError

# Keys that hold servers by name, and the client whose format applies there.
HOLDERS = {
    "mcpServers": "cursor", "mcp_servers": "codex", "servers": "vscode", "context_servers": "zed", "mcp": "opencode",
    "amp.mcpServers": "amp", "extensions": "goose",
}  # fmt: skip
# Keys that hold servers in the files of other clients.
_OTHER_HOLDER = re.compile(r".*mcp.*|.*servers?|targets|modelContextProtocol", re.IGNORECASE)
_LANGUAGE_SERVERS = re.compile(r"(?i)lsp|language[_-]?servers?")  # editors configure these in the same form
_LAUNCH = frozenset(("command", "cmd", "url", "serverUrl", "httpUrl", "uri"))
_ENTRY_ONLY = frozenset((
    "args", "type", "transport", "env", "envs", "environment", "headers", "http_headers", "auth", "oauth",
    "autoApprove",
))  # fmt: skip
_BESIDE = frozenset((
    "name", "id", "description", "cwd", "timeout", "disabled", "enabled", "isActive", "alwaysAllow", "icon",
))  # fmt: skip
# A key that stands for omitted keys, or for a comment, which JSON lacks.
NO_KEY = re.compile(r"\.{3}|\u2026|(?://|#|[_$]+(?:comment|note)).*|comment", re.IGNORECASE)
DEEPEST = 6  # levels above the servers: {"mcp": {"servers": {...}}} has two; lists are not counted
_NESTED = re.compile(
    r"(?i)config(?:uration)?|remote|local|connection|param(?:eter)?s|stdio|s?http|sse|streamable[-_]?http|deployment"
    r"|server|launch|run|spec|process|execution"
)
_OF_KIND = re.compile(r"(?i)config|stdio|s?http|sse|streamable[-_]?http")
KINDS = ("type", "transport", "transportType", "transport_type")
_ADDRESS = re.compile("(?:mcp|server|https?|sse|base|remote|streamablehttp|endpoint|api)?(?:ur[li]|endpoint|address)")
_HOLDS = re.compile(r"(?i).*[-_]?servers|mcp")
_OF_TRANSPORT = re.compile("(sse|s?http|stdio)_servers")


def servers_in(document: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield each server's name ("" if it has none), raw entry, and the client whose entry format it has."""
    if _is_flat_server(document):
        yield str(document.get("name") or ""), document, "vscode"
        return
    meta, spec = document.get("metadata"), document.get("spec")
    if "mcp" in str(document.get("kind")).lower() and isinstance(meta, Mapping) and is_server(spec):  # Kubernetes
        yield str(meta.get("name") or ""), spec, "vscode"
        return
    if isinstance(document.get("name"), str) and is_server(document.get("config")):
        yield document["name"], document["config"], "vscode"
        return
    holders = list(_held(document, DEEPEST))
    for key, servers in holders:
        client = HOLDERS.get(key, "cursor")
        if key == "mcp":  # the key of OpenCode and Kilo Code, of Crush, or of another client
            types = {str(raw.get("type")) for raw in servers.values()}
            listed = any(isinstance(raw.get("command"), list) for raw in servers.values())
            is_opencode = listed or types & {"local", "remote"}
            client = "opencode" if is_opencode else "crush" if types & {"stdio", "http", "sse"} else "cursor"
        yield from ((str(name), raw, client) for name, raw in servers.items())
    if not holders and document and all(is_server(raw) for raw in document.values()):
        yield from ((str(name), raw, "cursor") for name, raw in document.items())


def _held(
    document: Mapping[str, Any], levels: int, *, certain: bool = False
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the key and value of each holder of servers, searching up to this many levels.

    `certain`: the document is below a key with `mcp` in its name, so whatever looks like an entry is one. In the same
    mapping, a key that holds the servers of a known client hides keys that only look like holders.
    """
    held: set[str] = set()
    for key in (*HOLDERS, *(key for key in document if _OTHER_HOLDER.fullmatch(str(key)))):
        beside = held and not (_OF_TRANSPORT.fullmatch(str(key)) and any(map(_OF_TRANSPORT.fullmatch, held)))
        if key in held or (beside and key not in HOLDERS):
            continue
        inside = document.get(key)
        if isinstance(inside, list):
            inside = _by_name(_by_transport(inside, str(key)))
        if isinstance(inside, Mapping):
            inside = {name: raw for name, raw in inside.items() if not _is_left_out(str(name), raw)}
            if certain or "mcp" in str(key).lower():
                inside = {
                    name: raw if _HOLDS.fullmatch(str(name)) or name in HOLDERS else flat_entry(raw, certain=True)
                    for name, raw in inside.items()
                }
            if inside and all(is_server(raw) for raw in inside.values()):
                held.add(key)
                yield key, inside
    for key, value in document.items():
        if levels and key not in held and not _LANGUAGE_SERVERS.fullmatch(str(key)):
            for inside in value if isinstance(value, list) else [value]:
                if isinstance(inside, Mapping) and not is_server(inside):
                    yield from _held(inside, levels - 1, certain=certain or "mcp" in str(key).lower())


def _is_left_out(name: str, raw: Any) -> bool:
    """Return True for a server that is defined elsewhere: `{}`, `{"...": "as above"}`, `{"enabled": false}`."""
    if not isinstance(raw, Mapping):
        return raw is None or (isinstance(raw, str) and NO_KEY.fullmatch(name) is not None)
    is_elided = all(one in ("enabled", "disabled") or NO_KEY.fullmatch(str(one)) for one in raw)
    return is_elided or raw.get("command") in ("...", "\u2026") or raw.get("type") in NO_SERVER


def _by_transport(listed: list[Any], key: str) -> list[Any]:
    """Return the servers of OpenHands' `sse_servers` and `shttp_servers` as entries. Some are bare addresses."""
    if (kind := _OF_TRANSPORT.fullmatch(key)) is None or kind[1] == "stdio":
        return listed
    entries: list[Any] = []
    for one in listed:
        raw = dict(one) if isinstance(one, Mapping) else {"url": one}
        if not _is_http(raw.get("url")):
            return listed
        token = raw.pop("api_key", None)
        raw |= {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
        entries.append({"name": name_for(raw), "type": "sse" if kind[1] == "sse" else "http", **raw})
    return entries


def _by_name(listed: Sequence[Any]) -> dict[str, Any] | None:
    """Return name -> entry for servers that contain their names; None if an item is not a server or a name repeats."""
    items = [one for one in listed if not isinstance(one, str)]  # a text names a server that is defined elsewhere
    named: dict[str, Any] = {}
    for one in items:
        inside = one if isinstance(one, Mapping) else {}
        # `{NAME: {...}}`
        if len(inside) == 1 and not is_server(inside) and all(map(is_server, inside.values())):
            named |= {str(name): raw for name, raw in inside.items()}
        else:
            name = str(inside.get("name") or inside.get("id") or "")
            if not name and not _is_flat_server(flat_entry(inside)):
                return None
            named[name] = one
    return named if len(named) == len(items) else None


def is_server(raw: Any) -> bool:
    """Return True if a value has the form of a server's entry: it says what to start or which address to use."""
    if not isinstance(raw, Mapping):
        return False
    entry = flat_entry(raw)
    if isinstance(entry.get("baseUrl"), str) and str(entry.get("type")).lower() in TRANSPORTS:
        return True
    return any(isinstance(entry.get(key), str | list | Mapping) for key in _LAUNCH)


def _is_flat_server(document: Mapping[str, Any]) -> bool:
    """Return True if the document itself is an entry. Other data with a `command` lacks an entry's other keys."""
    keys = {str(key) for key in document}
    hook = document.get("type") == "command"  # an action that a client runs on an event
    evidence = keys & _ENTRY_ONLY
    flat = flat_entry(document)
    kinds = {str(flat.get(key)).lower() for key in ("type", "transport") if key in flat}
    if evidence <= {"type", "transport"} and not kinds & {*TRANSPORTS, "stdio", "local", "remote", "url", "mcp"}:
        evidence = set()  # `"type": "webhook"`
    return is_server(document) and not hook and bool(evidence or keys <= _LAUNCH | _BESIDE)


def flat_entry(raw: Any, *, certain: bool = False) -> Any:
    """Return an entry with the keys of its inner objects moved to the top level.

    Such objects are `transport: {type, url}`, `options: {cwd, env}` and, if the entry has a name, `stdio: {command,
    args}`. If nothing else says what to start, the only key with an address becomes `url`. `certain`: `raw` is an
    entry, even without a name or a transport. Raises TemplateError if the entry shows several transports and does not
    say which one it uses.
    """
    if not isinstance(raw, Mapping):
        return raw
    raw = {key: value for key, value in raw.items() if value is not None or key not in _LAUNCH}
    kind = kind_of(raw, KINDS)
    is_known = certain or isinstance(raw.get("name"), str) or kind in {*TRANSPORTS, "stdio"}
    holding = _NESTED if certain else _OF_KIND
    nested = [key for key, value in raw.items() if holding.fullmatch(str(key)) and _launches(value)]
    if is_known and nested and not _launches(raw):
        own = [key for key in nested if spelled(key) == spelled(kind)] or nested
        if len(own) > 1:
            shown = ", ".join(map(str, own))
            title = f"{raw.get('name') or 'This'} is a template: it shows several transports ({shown})"
            raise TemplateError(title, "Paste it with the one that it uses")
        named = str(own[0]).lower()
        inside = {key: value for key, value in raw[own[0]].items() if key != "name" or "name" not in raw}
        raw = {key: value for key, value in raw.items() if key not in nested} | inside
        kind = kind_of(raw, KINDS) or (named if named in {*TRANSPORTS, "stdio"} else kind_of(raw, ("mode", "protocol")))
        if not kind_of(raw, KINDS) and kind in {*TRANSPORTS, "stdio"}:
            raw = {key: value for key, value in raw.items() if key not in ("mode", "protocol")} | {"type": kind}
    inner = {key: raw[key] for key in ("transport", "options") if isinstance(raw.get(key), Mapping)}
    if not set(inner.get("options", ())) <= {"cwd", "env"}:
        del inner["options"]
    flat = {key: value for key, value in raw.items() if key not in inner}
    for deeper in inner.values():
        flat |= deeper
    if (certain or kind in TRANSPORTS - {"http"}) and not _launches(flat):
        urls = [key for key, value in flat.items() if _ADDRESS.fullmatch(spelled(key)) and _is_http(value)]
        if len(urls) == 1:
            flat = {"url" if key == urls[0] else key: value for key, value in flat.items()}
    return flat


def _launches(raw: Any) -> bool:
    return isinstance(raw, Mapping) and any(raw.get(key) for key in _LAUNCH)


def _is_http(value: Any) -> bool:
    return isinstance(value, str) and re.match("https?://", value) is not None


def kind_of(raw: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the first text among these keys of an entry, in lower case; "" without one."""
    return next((one.lower() for key in keys if isinstance(one := raw.get(key), str)), "")


def spelled(key: Any) -> str:
    """Return a key in lower case, without `-` and `_`."""
    return re.sub("[-_]", "", str(key).lower())


def is_tool_argument(document: Mapping[str, Any]) -> bool:
    """Return True for `{"command": "ls -l"}`: a bare command that does not look like a server's.

    If the arguments are separate (`{"command": "get", "args": ["--all"]}`), a path in any of the words makes it a
    server.
    """
    command, args = document.get("command", document.get("cmd")), document.get("args")
    words = command if isinstance(command, list) else str(command or "").split()
    keys = {str(key) for key in document} - {"args"}
    if command is None or "name" in document or keys & _ENTRY_ONLY or not (args or keys <= _LAUNCH | _BESIDE):
        return False
    apart = isinstance(args, list) and re.search(r"[/\\]|\.\w+'", str([*words, *args])) is not None
    runs = any(program_of(str(word)) in RUNNERS for word in words[:1])
    return not (runs or apart) and re.search("(?i)mcp|serve|stdio", str([words, args])) is None
