"""Read servers from configuration snippets: JSON of any client, with or without outer braces, TOML or YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from trayapp.clients import jsonc, toml_file, yaml_file
from trayapp.clients.conversion import NO_SERVER, TRANSPORTS, convert, inputs_of, is_variable_name, with_own_browser
from trayapp.clients.table import BY_NAME
from trayapp.clients.variables import Context, asked_inputs
from trayapp.config.problems import UnparsableError
from trayapp.config.programs import program_of
from trayapp.config.read.command import is_relative, relative_paths
from trayapp.config.yaml.splices import EditRefusedError
from trayapp.sources.folders import own_folder
from trayapp.sources.loose_json import ELLIPSIS, RUN_WORDS, read_loosely
from trayapp.sources.placeholders import OPTIONAL, REQUIRED
from trayapp.sources.programs import REACHING, RUNNERS, SHELLS, container_options, name_for, words_of
from trayapp.sources.source import (
    PAIRS,
    START_FIRST,
    Source,
    TemplateError,
    UnclearSourceError,
    Variable,
    objects_in,
    refuse_large,
    start_of,
    wanted,
    with_passed,
    with_words_apart,
    without_env,
    without_keys,
)
from trayapp.sources.start_commands import refuse_developers_script, refuse_http, refuse_verb, with_input

_WINDOWS_OWN = frozenset((
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMFILES", "PROGRAMDATA", "APPDATA",
    "LOCALAPPDATA", "USERPROFILE", "HOMEDRIVE", "HOMEPATH",
))  # fmt: skip
# A placeholder that contains spaces, in a command line: `--region [your region]`.
_SPACED = re.compile(r"(?<=\s)(\[[^\[\]\"']*\s[^\[\]\"']*\]|<[^<>\"']*\s[^<>\"']*>)(?=\s|$)")
_OPERATOR = re.compile(r"(?:^|\s)(&&?|\|\|?|;|>>?|<)(?:\s|$)")  # operators of a shell
_TOML_PLACE = re.compile(r"(?m)^([ \t]*\[[\w.-]+\.)(<[\w .-]+>)((?:\.[\w-]+)*\])")  # `[mcp_servers.<name>]`
_YAML_PACKAGE = re.compile(r"(?m)([\[,:-][ \t]+)(@[\w./@~^-]+)(?=[ \t]*(?:[,\]]|$))")  # YAML requires quotes around @
_LISTED_WORDS = re.compile(r'\[?\s*"[^"\n]*"(?:\s*,\s*"[^"\n]*")+\s*,?\s*\]?')  # `"npx", "-y", "pkg"`
_DRIVE = re.compile(r'"[A-Za-z]:\\(?!\\)[^"\n]*"')  # a Windows path whose backslashes were not doubled
# `$NAME`: authors write this for a value that a client or a shell fills in. `$HOME/x` is read as `~/x`.
_SHELL_VARIABLE = re.compile(r"(?<![^\s=/:@,?&])\$(?!HOME[/\\])([A-Z][A-Z0-9_]*)(?![\w$({])")
# A reference whose value is known only once the extension is unpacked.
_OF_EXTENSION = re.compile(r"\$\{(?:__dirname|user_config\.)")
_ENV_ADDRESS = re.compile(r"\$\{env://(?=\w+(?::-[^{}]*)?\})")  # `${env://NAME:-default}` of MCPHost
_PERCENT = re.compile(r"(?<![^=,;])%(?!CD%)([A-Za-z_]\w*)%(?=[/\\])")
_COMMENT_LINE = re.compile(r"\s*(?://|#|/?\*)(.*)")
_COMMENT_BEHIND = re.compile(r"""(?:(?<=[\s,"'])//|(?<=\s)#)[^"']*$""")
_KEY = re.compile(r"""[\s{,-]{0,80}+["']?([\w.-]{1,80}+)["']?\s{0,80}[:=]""")
_TOKEN_ENV = re.compile("(?:bearer)?token(?:env|envvar|fromenv)")
_SCHEME = re.compile(r"(?i)\A(bearer|basic|token) *\Z")
LONGEST_COMMENT = 200  # characters at the end of a line that may hold a comment after a value


def read_document(
    text: str, kind: str, home: Path, *, windows: bool, inputs: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Source]:
    """Return the servers of a snippet. Raises UnclearSourceError.

    `kind`: the form of the snippet, as shown to the user. `inputs`: VS Code's input definitions outside the snippet.
    """
    document = _with_servers_of_tools(_parsed(text))
    _refuse_manifest(document)
    if not (found := list(_servers_in(document))):
        raise _no_server(document)
    refuse_large(sum(len(json.dumps(raw, default=str)) for _, raw, _ in found))
    inner = document.get("mcp")
    inputs = inputs or inputs_of(document) or inputs_of(inner if isinstance(inner, Mapping) else {})
    optional, required = _keys_called(OPTIONAL, text), _keys_called(REQUIRED, text)
    optional |= {name for _, raw, _ in found for name in _passed_on(raw)}
    # The `settings` of a Gemini CLI extension (gemini-extension.json): variable -> description
    named = ((one.get("envVar"), one.get("description")) for one in objects_in(document, "settings"))
    settings = {name: str(description or "") for name, description in named if isinstance(name, str)}
    optional |= {name for name, described in settings.items() if OPTIONAL.search(described)}
    by_name: dict[str, Source] = {}  # a server may be listed again for another client
    for name, raw, client in found:
        if settings and "command" in raw:
            raw = {**raw, "env": {**dict.fromkeys(settings, ""), **(raw.get("env") or {})}}
        one = _source(name, raw, client, kind, inputs, home, windows)
        called = [want for want in one.wants if want.keys[0] in PAIRS and want.keys[-1] in optional | required]
        wants = (replace(it, required=it.keys[-1] not in optional) if it in called else it for it in one.wants)
        one = replace(one, wants=tuple(wants))
        first = by_name.setdefault(one.name, one)
        if start_of(first.entry) != start_of(one.entry):
            raise UnclearSourceError(f"This defines {one.name} twice, in different ways", "Paste only one of them")
        if len(one.wants) > len(first.wants):
            by_name[one.name] = one
    return list(by_name.values())


def _no_server(document: Mapping[str, Any]) -> UnclearSourceError:
    held: Mapping[str, Any] = next((document[key] for key in _HOLDERS if isinstance(document.get(key), Mapping)), {})
    for name, raw in held.items():
        if isinstance(raw, Mapping) and _kind_of(raw, _KINDS) in ("ws", "wss", "websocket"):
            return _uses_socket(str(name))
    if isinstance(whole := document.get("name"), str) and {"version", "$schema"} & document.keys():
        title = f"{whole} offers no server: its description has no mcpServers, packages or remotes"
        return UnclearSourceError(title, "See its own page")
    empty = next((f"{name} has neither a command nor a url" for name, raw in held.items() if not _is_server(raw)), "")
    hint = "Paste the whole snippet, with its command or url"
    return UnclearSourceError(empty or "This text defines no server", hint)


def _uses_socket(name: str) -> UnclearSourceError:
    title = f"{name} uses WebSocket, which is not an MCP transport"
    return UnclearSourceError(title, "Look for its http or https address, or for a command that starts it")


def _refuse_manifest(document: Mapping[str, Any]) -> None:
    if {"openapi", "swagger", "asyncapi"} & document.keys():
        raise UnclearSourceError("This describes an API, not an MCP server", "Paste the snippet of a client")
    if "manifest_version" in document or "dxt_version" in document:
        title = "This is the manifest of an extension (.mcpb), without its files"
        raise UnclearSourceError(title, "Add the .mcpb file itself")
    server = document.get("server", document)
    starts = server.get("mcp_config") if isinstance(server, Mapping) else None
    if _OF_EXTENSION.search(json.dumps(starts, default=str)) or document.keys() == {"user_config"}:
        title = "This is part of the manifest of an extension (.mcpb), without its files"
        raise UnclearSourceError(title, "Add the .mcpb file itself, or paste the snippet of a client")


def _passed_on(raw: Mapping[str, Any]) -> list[str]:
    """Return the names in Codex's `env_vars`: variables that it passes from its own environment to a server."""
    listed = raw.get("env_vars")
    named = [one.get("name") if isinstance(one, Mapping) else one for one in listed] if isinstance(listed, list) else []
    return [name for name in named if isinstance(name, str) and name]


def _keys_called(what: re.Pattern[str], text: str) -> set[str]:
    """Return the keys of a snippet to which a comment that matches `what` applies (OPTIONAL or REQUIRED).

    A comment after a value applies to that key. A comment on its own line applies to the keys below it, up to a blank
    line, a bracket or another comment.
    """
    found: set[str] = set()
    covers = in_comment = False
    for line in text.splitlines():
        if comment := _COMMENT_LINE.match(line):
            covers = (covers and in_comment) or what.search(comment[1]) is not None
            in_comment = True
            continue
        in_comment = False
        key = _KEY.match(line)
        covers = covers and key is not None
        behind = _COMMENT_BEHIND.search(line[-LONGEST_COMMENT:])
        if key and (covers or (behind and what.search(behind[0]))):
            found.add(key[1])
        covers = covers and (not line.rstrip().endswith(("{", "[", ":")) or (key is not None and key[1] in PAIRS))
    return found


def _source(
    name: str, raw: Mapping[str, Any], client: str, kind: str, inputs: Mapping[str, Any], home: Path, windows: bool
) -> Source:
    raw, called = _with_credential_sent(_with_inputs_closed(_flat_entry(raw), inputs)), name or "The server"
    if isinstance(sent := raw.get("headers"), Mapping):  # for example `Bearer ` without a token
        schemes = {key: _SCHEME.sub(r"\1 <token>", one) for key, one in sent.items() if isinstance(one, str)}
        raw = {**raw, "headers": {**sent, **schemes}}
    if passed := [one for one in _passed_on(raw) if is_variable_name(one)]:
        raw = {**raw, "env": {**dict.fromkeys(passed, ""), **(raw.get("env") or {})}}
    auth = raw.get("auth")
    token = [auth[key] for key in auth if _TOKEN_ENV.fullmatch(_spelled(key))] if isinstance(auth, Mapping) else []
    if token:  # the name of the variable that holds the token
        raw = {**without_keys(raw, "auth"), "bearer_token_env": token[0]}
    if isinstance(line := raw.get("command"), str):
        is_mark = re.fullmatch(r"\s*<[^<>]+>\S*\s*", line) is not None  # `<path of the program>/program`
        raw = {**raw, "command": [line] if is_mark else _SPACED.sub(r'"\1"', line)}
        if operator := None if is_mark else _OPERATOR.search(line):
            title = f"{called}: its command needs a shell (it has {operator[1]})"
            raise UnclearSourceError(title, "Paste one plain command")
    if isinstance(args := raw.get("args"), list):
        if any(isinstance(one, Mapping | list) for one in args):
            raise UnclearSourceError(f"{called}: its arguments are not plain text", "Paste one plain command")
        if any(one in RUN_WORDS and next_one == ELLIPSIS for one, next_one in pairwise(args)):
            title = f"{called}: its arguments are incomplete: they contain {ELLIPSIS}"
            raise UnclearSourceError(title, "Paste them in full")
    context = Context(BY_NAME[client], home, None, inputs, windows, asks_folder=True)
    try:
        made = convert(raw, context)
    except ValueError as error:
        raise UnclearSourceError(f"{called}: {error}", "Correct it, then add it again") from None
    if made is None:
        title = f"{called} is built into the program that this snippet is for"
        raise UnclearSourceError(title, "Leave it out: only that program can run it")
    entry, unused = made
    entry = with_words_apart(without_env(entry if windows else without_cmd(entry)))
    entry, note = with_input(entry)
    entry = with_passed(entry)
    for place in PAIRS:
        if not isinstance(entry.get(place, {}), Mapping):
            raise UnclearSourceError(f"{called}: {place} is not a mapping", "Correct it, then add it again")
        if place in entry:
            own = {key: value for key, value in entry[place].items() if not _NO_KEY.fullmatch(str(key))}
            entry = without_keys(entry, place) | ({place: own} if own else {})
    entry = _with_shell_variables(entry, windows)
    left_out = tuple(key for key in unused if key != "inputs")  # inputs are read from the whole document
    left_out += ("env_vars",) if len(passed) < len(_passed_on(raw)) else ()
    if "command" in entry and "port" in left_out:
        raise UnclearSourceError(f"{called} listens on a port, so it is not a stdio server", START_FIRST)
    if (program := program_of(str(entry.get("command") or ""))) in ("curl", "wget"):
        raise UnclearSourceError(f"{program} fetches something; it is not a server")
    if "command" in entry:
        words = words_of(entry)
        refuse_verb(words)
        refuse_developers_script(words)
        refuse_http(words, entry.get("env") or {})
    if re.match("wss?://", str(entry.get("url"))):
        raise _uses_socket(called)
    if client == "cursor" or not name:  # seconds in some clients, milliseconds in others
        left_out += tuple(key for key in ("request_timeout", "connect_timeout") if key in entry)
        entry = without_keys(entry, "request_timeout", "connect_timeout")
    wants = wanted(entry, asked_inputs(json.dumps(raw, default=str, ensure_ascii=False), context))
    if "scope" not in raw and not _depends_on_session(entry, wants):
        entry = {key: value for key, value in entry.items() if key != "scope"}
    return Source(name or name_for(entry), entry, kind + note, wants, left_out)


# LiteLLM's ways to send a credential: `auth_type` -> the header and its value.
_CREDENTIALS = {"bearer_token": ("Authorization", "Bearer {}"), "authorization": ("Authorization", "{}"),
                "api_key": ("x-api-key", "{}")}  # fmt: skip


def _with_credential_sent(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an entry with LiteLLM's `auth_type`, `auth_value` and `static_headers` as headers."""
    if not isinstance(raw.get("url"), str):
        return raw
    credential = _CREDENTIALS.get(str(raw.get("auth_type"))) if isinstance(raw.get("auth_value"), str) else None
    static = raw["static_headers"] if isinstance(raw.get("static_headers"), Mapping) else {}
    if credential is None and not static:
        return raw
    sent = {credential[0]: credential[1].format(raw["auth_value"])} if credential else {}
    raw = without_keys(raw, "static_headers", *(("auth_type", "auth_value") if credential else ()))
    return raw | {"headers": {**(raw.get("headers") or {}), **static, **sent}}


def _with_inputs_closed(raw: Any, inputs: Mapping[str, Any]) -> Any:
    """Return a raw entry with its incomplete references to inputs completed: `${input:ID}` for `${input:ID`."""
    if isinstance(raw, str):
        found = _INPUT_OPEN.search(raw)
        if found is None or not (found[0].startswith("${") or found[1] in inputs):
            return raw
        return f"{raw[: found.start()]}${{input:{found[1]}}}"
    if isinstance(raw, Mapping):
        return {key: _with_inputs_closed(value, inputs) for key, value in raw.items()}
    return [_with_inputs_closed(value, inputs) for value in raw] if isinstance(raw, list) else raw


_INPUT_OPEN = re.compile(r"(?:\$\{|\$|\{)input:\s*([\w.-]+)[\"')\]}]*$")


def _with_shell_variables(entry: dict[str, Any], windows: bool) -> dict[str, Any]:
    """Return an entry with `${NAME}` in place of `$NAME`, `${env://NAME}` (MCPHost) and, on Windows, `%NAME%` in paths.

    An argument with spaces stays unchanged. So do all arguments of a shell, or of a command on another machine.
    """

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        value = _ENV_ADDRESS.sub("${", _PERCENT.sub(r"${\1}", value) if windows else value)
        return _SHELL_VARIABLE.sub(r"${\1}", value)

    changed = dict(entry)
    for place in entry.keys() & PAIRS:
        changed[place] = {key: read(value) for key, value in entry[place].items()}
    if "args" in entry and program_of(str(entry.get("command") or "")) not in SHELLS | REACHING:
        changed["args"] = [word if " " in str(word) else read(word) for word in entry["args"]]
    return changed | {key: read(entry[key]) for key in ("command", "url", "cwd") if key in entry}


def _depends_on_session(entry: Mapping[str, Any], wants: Sequence[Variable]) -> bool:
    """Return True if each session needs its own process of a server.

    This is so if the server drives a browser or the entry has a relative path. The path does not count if the command
    names the folder or the user is asked for the path.
    """
    if "command" not in entry or program_of(str(entry["command"])) in REACHING:
        return False
    named, _ = own_folder(dict(entry))
    asked = {one.keys for one in wants}
    args = [str(word) for at, word in enumerate(entry.get("args") or []) if ("args", at) not in asked]
    if named is not None and (not is_relative(named) or named not in args):
        args = []
    if (options := container_options(words_of(entry))) is not None:
        args = options[2:]  # all other paths are inside the container
    command = "" if ("command",) in asked else str(entry["command"])
    folder = "/" if ("cwd",) in asked else str(entry.get("cwd") or "/")
    relative = relative_paths(command, args) or is_relative(folder)
    return bool(relative) or "scope" in with_own_browser(without_keys(entry, "scope"))


def without_cmd(entry: dict[str, Any]) -> dict[str, Any]:
    """Remove `cmd /c` and Windows' own variables from an entry. Raises UnclearSourceError for more than one program."""
    env = entry.get("env") or {}
    kept = {name: value for name, value in env.items() if name.upper() not in _WINDOWS_OWN}
    if len(kept) < len(env):
        entry = without_keys(entry, "env") | ({"env": kept} if kept else {})
    args = entry.get("args") or []
    args = str(args[0]).split() if len(args) == 1 else args
    if program_of(str(entry.get("command", ""))) == "cmd" and len(args) > 1 and str(args[0]).lower() == "/c":
        words = str(args[1]).split() if len(args) == 2 else args[1:]
        if operator := _OPERATOR.search(" ".join(map(str, words))):
            title = f"The server's command needs a shell (it contains {operator[1]})"
            raise UnclearSourceError(title, "Paste one plain command")
        return entry | {"command": words[0], "args": list(words[1:])} if words else entry
    return entry


def _parsed(text: str) -> dict[str, Any]:
    text = _TOML_PLACE.sub(r'\1"\2"\3', text.strip().removesuffix(";"))
    if text.startswith("- "):
        text = f"mcpServers:\n{text}"
    if text[:1] in "{\"'[\u201c" and not re.match(r"\[{1,2}[\w.\"'<> -]+\]{1,2}\s*(?:\n|$)", text):
        return _json(text)
    if re.search(r"(?m)^\s*\[", text):
        refuse_large(len(text))
        try:
            return toml_file.read(text, "the text")
        except (UnparsableError, EditRefusedError) as error:
            raise UnclearSourceError(f"This is not TOML: {error.title}", "Paste the whole snippet") from None
    form = yaml_file.LISTED if re.search(r"(?m)^\s*-\s", text) else yaml_file.MAPPED
    try:
        with suppress(UnparsableError, EditRefusedError):
            return form.read(text, "the text")
        return form.read(_YAML_PACKAGE.sub(r'\1"\2"', text), "the text")
    except (UnparsableError, EditRefusedError) as error:
        with suppress(ValueError):
            return read_loosely(text if "{" in text else "")
        raise UnclearSourceError(f"This cannot be read: {error.title}", "Paste the whole snippet") from None


def _json(text: str) -> dict[str, Any]:
    """Parse an object in JSON or loose JSON, even without its braces. Raises UnclearSourceError.

    A list of words is read as a command, a list of objects as servers.
    """
    if _LISTED_WORDS.fullmatch(text):
        text = f'{{"command": [{text.strip("[], ")}]}}'
    if re.match(r"\[\s*\{", text):
        text = f'{{"mcpServers": {text}}}'
    why = ""
    if text.startswith("{") and not _DRIVE.search(text):
        try:
            return jsonc.read(text, "the text")
        except UnparsableError as error:
            why = error.title
    refuse_large(len(text))  # a text that needs repair is not a client's file, so the limit of snippets applies
    try:
        return read_loosely(text)
    except ValueError as error:
        hint = "Paste the whole snippet, with all of its braces"
        raise UnclearSourceError(f"This is not JSON: {why or error}", hint) from None


def _with_servers_of_tools(document: dict[str, Any]) -> dict[str, Any]:
    """Return the MCP servers in the `tools` of a request to a model's API, or any other document unchanged."""
    tools = document.get("tools")
    named = [
        {"name": one.get("server_label"), "url": one["server_url"]}
        | without_keys(one, "type", "server_label", "server_url")
        for one in (tools if isinstance(tools, list) else [document])
        if isinstance(one, Mapping) and isinstance(one.get("server_url"), str)
    ]
    return {"mcpServers": named} if named else document


# --- finding the servers

# Keys that hold servers by name, and the client whose format applies there.
_HOLDERS = {
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
# A key that stands for omitted keys, or holds a comment, because JSON has no comments.
_NO_KEY = re.compile(r"\.{3}|\u2026|(?://|#|[_$]+(?:comment|note)).*|comment", re.IGNORECASE)
_DEEPEST = 6  # maximum number of levels above the servers, not counting lists: {"mcp": {"servers": {...}}} has two
_NESTED = re.compile(
    r"(?i)config(?:uration)?|remote|local|connection|param(?:eter)?s|stdio|s?http|sse|streamable[-_]?http|deployment"
    r"|server|launch|run|spec|process|execution"
)
_OF_KIND = re.compile(r"(?i)config|stdio|s?http|sse|streamable[-_]?http")
_KINDS = ("type", "transport", "transportType", "transport_type")
_ADDRESS = re.compile("(?:mcp|server|https?|sse|base|remote|streamablehttp|endpoint|api)?(?:ur[li]|endpoint|address)")
_HOLDS = re.compile(r"(?i).*[-_]?servers|mcp")
_OF_TRANSPORT = re.compile("(sse|s?http|stdio)_servers")


def _servers_in(document: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield each server: its name or "", its raw entry, and the name of the client whose entry format it uses."""
    if _is_flat_server(document):
        yield str(document.get("name") or ""), document, "vscode"
        return
    meta, spec = document.get("metadata"), document.get("spec")
    if "mcp" in str(document.get("kind")).lower() and isinstance(meta, Mapping) and _is_server(spec):  # Kubernetes
        yield str(meta.get("name") or ""), spec, "vscode"
        return
    if isinstance(document.get("name"), str) and _is_server(document.get("config")):
        yield document["name"], document["config"], "vscode"
        return
    holders = list(_held(document, _DEEPEST))
    for key, servers in holders:
        client = _HOLDERS.get(key, "cursor")
        if key == "mcp":  # the key of OpenCode and Kilo Code, of Crush, or of another client
            types = {str(raw.get("type")) for raw in servers.values()}
            listed = any(isinstance(raw.get("command"), list) for raw in servers.values())
            is_opencode = listed or types & {"local", "remote"}
            client = "opencode" if is_opencode else "crush" if types & {"stdio", "http", "sse"} else "cursor"
        yield from ((str(name), raw, client) for name, raw in servers.items())
    if not holders and document and all(_is_server(raw) for raw in document.values()):
        yield from ((str(name), raw, "cursor") for name, raw in document.items())


def _held(
    document: Mapping[str, Any], levels: int, *, certain: bool = False
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the key and value of each holder of servers, searching up to this many levels.

    In each mapping, the keys of known clients come first. A key with servers hides keys that only look like holders.
    `certain`: the document is below a key with `mcp` in its name, so anything in the form of an entry is an entry.
    """
    held: set[str] = set()
    for key in (*_HOLDERS, *(key for key in document if _OTHER_HOLDER.fullmatch(str(key)))):
        beside = held and not (_OF_TRANSPORT.fullmatch(str(key)) and any(map(_OF_TRANSPORT.fullmatch, held)))
        if key in held or (beside and key not in _HOLDERS):
            continue
        inside = document.get(key)
        if isinstance(inside, list):
            inside = _by_name(_by_transport(inside, str(key)))
        if isinstance(inside, Mapping):
            inside = {name: raw for name, raw in inside.items() if not _is_left_out(str(name), raw)}
            if certain or "mcp" in str(key).lower():
                for name in inside:
                    if not _HOLDS.fullmatch(str(name)) and name not in _HOLDERS:
                        inside[name] = _flat_entry(inside[name], certain=True)
            if inside and all(map(_is_server, inside.values())):
                held.add(key)
                yield key, inside
    for key, value in document.items():
        if levels and key not in held and not _LANGUAGE_SERVERS.fullmatch(str(key)):
            for inside in value if isinstance(value, list) else [value]:
                if isinstance(inside, Mapping) and not _is_server(inside):
                    yield from _held(inside, levels - 1, certain=certain or "mcp" in str(key).lower())


def _is_left_out(name: str, raw: Any) -> bool:
    """Return True for a server that is defined elsewhere: `{}`, `{"...": "as above"}`, `{"enabled": false}`."""
    if not isinstance(raw, Mapping):
        return raw is None or (isinstance(raw, str) and _NO_KEY.fullmatch(name) is not None)
    is_elided = all(one in ("enabled", "disabled") or _NO_KEY.fullmatch(str(one)) for one in raw)
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
    """Return name -> entry for listed servers, or None if a name repeats or an item is neither named nor a server."""
    items = [one for one in listed if not isinstance(one, str)]  # a text names a server that is defined elsewhere
    named: dict[str, Any] = {}
    for one in items:
        inside = one if isinstance(one, Mapping) else {}
        # `{NAME: {...}}`
        if len(inside) == 1 and not _is_server(inside) and all(map(_is_server, inside.values())):
            named |= {str(name): raw for name, raw in inside.items()}
        else:
            name = str(inside.get("name") or inside.get("id") or "")
            if not name and not _is_flat_server(_flat_entry(inside)):
                return None
            named[name] = one
    return named if len(named) == len(items) else None


def _is_server(raw: Any) -> bool:
    """Return True if a value has the form of a server's entry: it contains a command or an address."""
    if not isinstance(raw, Mapping):
        return False
    entry = _flat_entry(raw)
    if isinstance(entry.get("baseUrl"), str) and str(entry.get("type")).lower() in TRANSPORTS:
        return True
    return any(isinstance(entry.get(key), str | list | Mapping) for key in _LAUNCH)


def _is_flat_server(document: Mapping[str, Any]) -> bool:
    """Return True if the document itself is an entry. Other data with a `command` lacks an entry's other keys."""
    keys = {str(key) for key in document}
    hook = document.get("type") == "command"  # an action that a client runs on an event
    evidence, flat = keys & _ENTRY_ONLY, _flat_entry(document)
    kinds = {str(flat.get(key)).lower() for key in ("type", "transport") if key in flat}
    if evidence <= {"type", "transport"} and not kinds & {*TRANSPORTS, "stdio", "local", "remote", "url", "mcp"}:
        evidence = set()  # `"type": "webhook"`
    return _is_server(document) and not hook and bool(evidence or keys <= _LAUNCH | _BESIDE)


def _flat_entry(raw: Any, *, certain: bool = False) -> Any:
    """Return an entry with the keys of its inner objects moved to the top level.

    These are `transport: {type, url}`, `options: {cwd, env}` and, if the entry has a name, `stdio: {command, args}`. If
    the entry has no command or URL otherwise, its only key with an address becomes `url`. `certain`: `raw` is an entry,
    even without a name or a transport. Raises TemplateError for several transports of which none is selected.
    """
    if not isinstance(raw, Mapping):
        return raw
    raw = {key: value for key, value in raw.items() if value is not None or key not in _LAUNCH}
    kind = _kind_of(raw, _KINDS)
    is_known = certain or isinstance(raw.get("name"), str) or kind in {*TRANSPORTS, "stdio"}
    holding = _NESTED if certain else _OF_KIND
    nested = [key for key, value in raw.items() if holding.fullmatch(str(key)) and _launches(value)]
    if is_known and nested and not _launches(raw):
        own = [key for key in nested if _spelled(key) == _spelled(kind)] or nested
        if len(own) > 1:
            called, shown = raw.get("name") or "This", ", ".join(map(str, own))
            title = f"{called} is a template: it shows several transports ({shown})"
            raise TemplateError(title, "Paste it with only one of them")
        raw = without_keys(raw, *nested) | without_keys(raw[own[0]], *({"name"} & raw.keys()))
        if not (kind := _kind_of(raw, _KINDS)):
            named = str(own[0]).lower()
            kind = named if named in {*TRANSPORTS, "stdio"} else _kind_of(raw, ("mode", "protocol"))
            if kind in {*TRANSPORTS, "stdio"}:
                raw = without_keys(raw, "mode", "protocol") | {"type": kind}
    inner = {key: raw[key] for key in ("transport", "options") if isinstance(raw.get(key), Mapping)}
    if not set(inner.get("options", ())) <= {"cwd", "env"}:
        del inner["options"]
    flat = without_keys(raw, *inner)
    for deeper in inner.values():
        flat |= deeper
    if (certain or kind in TRANSPORTS - {"http"}) and not _launches(flat):
        urls = [key for key, value in flat.items() if _ADDRESS.fullmatch(_spelled(key)) and _is_http(value)]
        if len(urls) == 1:
            flat = {"url" if key == urls[0] else key: value for key, value in flat.items()}
    return flat


def _launches(raw: Any) -> bool:
    return isinstance(raw, Mapping) and any(raw.get(key) for key in _LAUNCH)


def _is_http(value: Any) -> bool:
    return isinstance(value, str) and re.match("https?://", value) is not None


def _kind_of(raw: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the first text among the values of these keys of an entry, in lower case, or "" if there is none."""
    return next((one.lower() for key in keys if isinstance(one := raw.get(key), str)), "")


def _spelled(key: Any) -> str:
    """Return a key in lower case, without `-` and `_`."""
    return re.sub("[-_]", "", str(key).lower())


def is_tool_argument(document: Mapping[str, Any]) -> bool:
    """Return True for `{"command": "ls -l"}`: a bare command that does not look like a server's.

    A path in any of the words counts as a sign of a server if the document has separate `args`.
    """
    command, args = document.get("command", document.get("cmd")), document.get("args")
    words = command if isinstance(command, list) else str(command or "").split()
    keys = {str(key) for key in document} - {"args"}
    if command is None or "name" in document or keys & _ENTRY_ONLY or not (args or keys <= _LAUNCH | _BESIDE):
        return False
    apart = isinstance(args, list) and re.search(r"[/\\]|\.\w+'", str([*words, *args])) is not None
    runs = any(program_of(str(word)) in RUNNERS for word in words[:1])
    return not (runs or apart) and re.search("(?i)mcp|serve|stdio", str([words, args])) is None
