"""Read servers from configuration snippets: JSON of any client, with or without outer braces, TOML or YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from trayapp.clients import jsonc, toml_file, yaml_file
from trayapp.clients.conversion import (
    convert,
    inputs_of,
    is_variable_name,
    with_own_browser,
)
from trayapp.clients.table import BY_NAME
from trayapp.clients.variables import Context, asked_inputs
from trayapp.config.problems import UnparsableError
from trayapp.config.programs import program_of
from trayapp.config.read.command import is_relative, relative_paths
from trayapp.config.yaml.splices import EditRefusedError
from trayapp.model.redact import redacted
from trayapp.sources.folders import own_folder
from trayapp.sources.holders import HOLDERS, KINDS, NO_KEY, flat_entry, is_server, kind_of, servers_in, spelled
from trayapp.sources.loose_json import ELLIPSIS, RUN_WORDS, read_loosely
from trayapp.sources.placeholders import OPTIONAL, REQUIRED
from trayapp.sources.programs import (
    CONTAINERS,
    PODS,
    REACHING,
    SHELLS,
    container_options,
    name_for,
    package_of,
    words_of,
)
from trayapp.sources.source import (
    START_FIRST,
    Source,
    UnclearSourceError,
    Variable,
    refuse_large,
    start_of,
    wanted,
    with_passed,
    with_words_apart,
    without_env,
)

# Scripts that build, check or publish a package: `npm run build:all`, `yarn lint`, `npm audit`.
_DEVELOPERS_SCRIPT = re.compile(
    r"(?!\S*(?:mcp|serve|start|stdio))(?:build|compile|bundle|test|lint|format|check|typecheck|coverage|clean|docs|watch"
    r"|ci|audit|ls|pack|prepare|publish|release|deploy|auth|login|setup|init|configure|migrate|seed|uninstall|remove"
    r"|update|upgrade|link|unlink|cache|view|info)(?:[:-]\S*)?"
)
VALUED_BEFORE = frozenset((  # options of package managers that take a value
    "--prefix", "-C", "--dir", "--cwd", "--filter", "-w", "--workspace", "--directory", "--project", "-f", "--file",
))  # fmt: skip
_WINDOWS_OWN = frozenset((
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMFILES", "PROGRAMDATA", "APPDATA",
    "LOCALAPPDATA", "USERPROFILE", "HOMEDRIVE", "HOMEPATH",
))  # fmt: skip
# A placeholder with blanks in a command line: `--region [your region]`.
_SPACED = re.compile(r"(?<=\s)(\[[^\[\]\"']*\s[^\[\]\"']*\]|<[^<>\"']*\s[^<>\"']*>)(?=\s|$)")
_OPERATOR = re.compile(r"(?:^|\s)(&&?|\|\|?|;|>>?|<)(?:\s|$)")  # operators of a shell
_TOML_PLACE = re.compile(r"(?m)^([ \t]*\[[\w.-]+\.)(<[\w .-]+>)((?:\.[\w-]+)*\])")  # `[mcp_servers.<name>]`
_YAML_PACKAGE = re.compile(r"(?m)([\[,:-][ \t]+)(@[\w./@~^-]+)(?=[ \t]*(?:[,\]]|$))")  # YAML requires quotes around @
_LISTED_WORDS = re.compile(r'\[?\s*"[^"\n]*"(?:\s*,\s*"[^"\n]*")+\s*,?\s*\]?')  # `"npx", "-y", "pkg"`
_DRIVE = re.compile(r'"[A-Za-z]:\\(?!\\)[^"\n]*"')  # a Windows path whose backslashes were not doubled
# `$NAME`: authors write this for a value that a client or a shell fills in. `$HOME/x` is read as `~/x`.
_SHELL_VARIABLE = re.compile(r"(?<![^\s=/:@,?&])\$(?!HOME[/\\])([A-Z][A-Z0-9_]*)(?![\w$({])")
_OF_EXTENSION = re.compile(r"\$\{(?:__dirname|user_config\.)")  # known only once the extension is unpacked
_ENV_ADDRESS = re.compile(r"\$\{env://(?=\w+(?::-[^{}]*)?\})")  # `${env://NAME:-default}` of MCPHost
_PERCENT = re.compile(r"(?<![^=,;])%(?!CD%)([A-Za-z_]\w*)%(?=[/\\])")
HTTP = frozenset(("http", "sse", "streamablehttp", "streamable-http", "streamable_http"))
_HTTP_SWITCH = re.compile(r"(?:.*_)?(?:HTTP|SSE)(?:_STREAM[A-Z]*)?_(?:SERVER|MODE|TRANSPORT)|(?:.*_)?STREAMABLE_HTTP")
_COMMENT_LINE = re.compile(r"\s*(?://|#|/?\*)(.*)")
_COMMENT_BEHIND = re.compile(r"""(?:(?<=[\s,"'])//|(?<=\s)#)[^"']*$""")
_KEY = re.compile(r"""[\s{,-]{0,80}+["']?([\w.-]{1,80}+)["']?\s{0,80}[:=]""")
_PAIRS = frozenset(("env", "headers"))
_SCHEME = re.compile(r"(?i)\A(bearer|basic|token) *\Z")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
LONGEST_COMMENT = 200  # characters at the end of a line that may hold a comment after a value


def read_document(
    text: str, kind: str, home: Path, *, windows: bool, inputs: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Source]:
    """Return the servers of a snippet. Raises UnclearSourceError.

    `kind`: the form of the snippet, as shown to the user. `inputs`: VS Code's inputs from outside the snippet.
    """
    document = _with_servers_of_tools(_parsed(text))
    refuse_manifest(document)
    if not (found := list(servers_in(document))):
        raise _no_server(document)
    refuse_large(sum(len(json.dumps(raw, default=str)) for _, raw, _ in found))
    inner = document.get("mcp")
    inputs = inputs or inputs_of(document) or inputs_of(inner if isinstance(inner, Mapping) else {})
    optional, required = _keys_called(OPTIONAL, text), _keys_called(REQUIRED, text)
    optional |= {name for _, raw, _ in found for name in _passed_on(raw)}
    settings = _settings_of(document)
    optional |= {name for name, described in settings.items() if OPTIONAL.search(described)}
    by_name: dict[str, Source] = {}  # a server may be listed again for another client
    for name, raw, client in found:
        if settings and isinstance(raw, Mapping) and "command" in raw:
            raw = {**raw, "env": {**dict.fromkeys(settings, ""), **(raw.get("env") or {})}}
        one = _source(name, raw, client, kind, inputs, home, windows)
        called = [want for want in one.wants if want.keys[0] in _PAIRS and want.keys[-1] in optional | required]
        wants = (
            replace(want, required=want.keys[-1] not in optional) if want in called else want for want in one.wants
        )
        one = replace(one, wants=tuple(wants))
        first = by_name.setdefault(one.name, one)
        if start_of(first.entry) != start_of(one.entry):
            raise UnclearSourceError(f"This defines {one.name} twice, in different ways", "Paste one of them")
        if len(one.wants) > len(first.wants):
            by_name[one.name] = one
    return list(by_name.values())


def _no_server(document: Mapping[str, Any]) -> UnclearSourceError:
    held: Mapping[str, Any] = next((document[key] for key in HOLDERS if isinstance(document.get(key), Mapping)), {})
    for name, raw in held.items():
        if isinstance(raw, Mapping) and kind_of(raw, KINDS) in ("ws", "wss", "websocket"):
            return _uses_socket(str(name))
    if isinstance(whole := document.get("name"), str) and {"version", "$schema"} & document.keys():
        title = f"{whole} offers no server: its description has no mcpServers, packages or remotes"
        return UnclearSourceError(title, "See its own page")
    empty = next((f"{name} has neither a command nor a url" for name, raw in held.items() if not is_server(raw)), "")
    return UnclearSourceError(
        empty or "This text defines no server", "Paste the whole snippet, with its command or url"
    )


def _uses_socket(name: str) -> UnclearSourceError:
    title = f"{name} uses WebSocket, which is not an MCP transport"
    return UnclearSourceError(title, "Look for its http or https address, or for a command that starts it")


def refuse_manifest(document: Mapping[str, Any]) -> None:
    """Raise UnclearSourceError for an extension's manifest, a part of one, or the description of an API."""
    if {"openapi", "swagger", "asyncapi"} & document.keys():
        raise UnclearSourceError("This describes an API, not an MCP server", "Paste the snippet of a client")
    if "manifest_version" in document or "dxt_version" in document:
        title = "This is the manifest of an extension (.mcpb), whose files are not here"
        raise UnclearSourceError(title, "Add the .mcpb file itself")
    server = document.get("server", document)
    starts = server.get("mcp_config") if isinstance(server, Mapping) else None
    if _OF_EXTENSION.search(json.dumps(starts, default=str)) or document.keys() == {"user_config"}:
        title = "This is a part of an extension's manifest (.mcpb), whose files are not here"
        raise UnclearSourceError(title, "Add the .mcpb file itself, or paste the snippet of a client")


def _settings_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return variable -> description for the `settings` of a Gemini CLI extension (gemini-extension.json)."""
    listed = document.get("settings")
    each = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    return {name: str(one.get("description") or "") for one in each if isinstance(name := one.get("envVar"), str)}


def _passed_on(raw: Any) -> list[str]:
    """Return the names in Codex's `env_vars`: variables that it passes from its own environment to a server."""
    listed = raw.get("env_vars") if isinstance(raw, Mapping) else None
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
        covers = covers and (not line.rstrip().endswith(("{", "[", ":")) or (key is not None and key[1] in _PAIRS))
    return found


def _source(
    name: str, raw: Any, client: str, kind: str, inputs: Mapping[str, Any], home: Path, windows: bool
) -> Source:
    raw, called = _with_inputs_closed(flat_entry(raw), inputs), name or "The server"
    passed: list[str] = []
    if isinstance(raw, Mapping):
        raw = _with_credential_sent(raw)
        if isinstance(sent := raw.get("headers"), Mapping):  # `Bearer `, with nothing after it
            schemes = {key: _SCHEME.sub(r"\1 <token>", one) for key, one in sent.items() if isinstance(one, str)}
            raw = {**raw, "headers": {**sent, **schemes}}
        if passed := [one for one in _passed_on(raw) if is_variable_name(one)]:
            raw = {**raw, "env": {**dict.fromkeys(passed, ""), **(raw.get("env") or {})}}
        auth = raw.get("auth")
        token = [auth[key] for key in auth if _TOKEN_ENV.fullmatch(spelled(key))] if isinstance(auth, Mapping) else []
        if token:  # the name of the variable that holds the token
            raw = {**{key: value for key, value in raw.items() if key != "auth"}, "bearer_token_env": token[0]}
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
        title = f"{called} is built into the program that this was written for"
        raise UnclearSourceError(title, "Leave it out: only that program can run it")
    entry, unused = made
    entry = with_words_apart(without_env(entry if windows else without_cmd(entry)))
    entry, note = with_input(entry)
    entry = with_passed(entry)
    for place in ("env", "headers"):
        if place in entry:
            own = {key: value for key, value in entry[place].items() if not NO_KEY.fullmatch(str(key))}
            entry = {key: value for key, value in entry.items() if key != place} | ({place: own} if own else {})
    entry = _with_shell_variables(entry, windows)
    left_out = tuple(key for key in unused if key != "inputs")  # inputs are read from the whole document
    left_out += ("env_vars",) if len(passed) < len(_passed_on(raw)) else ()
    if "command" in entry and "port" in left_out:
        title = f"{called} listens on a port, so it is not a stdio server"
        raise UnclearSourceError(title, START_FIRST)
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
        unclear = [key for key in ("request_timeout", "connect_timeout") if key in entry]
        entry = {key: value for key, value in entry.items() if key not in unclear}
        left_out = (*left_out, *unclear)
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
    used = {"static_headers", *(("auth_type", "auth_value") if credential else ())}
    headers = {**(raw.get("headers") or {}), **static, **sent}
    return {key: value for key, value in raw.items() if key not in used} | {"headers": headers}


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

    An argument with blanks stays unchanged. So do all arguments of a shell, or of a command on another machine.
    """

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        value = _ENV_ADDRESS.sub("${", _PERCENT.sub(r"${\1}", value) if windows else value)
        return _SHELL_VARIABLE.sub(r"${\1}", value)

    changed = dict(entry)
    for place in _PAIRS & entry.keys():
        changed[place] = {key: read(value) for key, value in entry[place].items()}
    if "args" in entry and program_of(str(entry.get("command") or "")) not in SHELLS | REACHING:
        changed["args"] = [word if " " in str(word) else read(word) for word in entry["args"]]
    return changed | {key: read(entry[key]) for key in ("command", "url", "cwd") if key in entry}


def _depends_on_session(entry: Mapping[str, Any], wants: Sequence[Variable]) -> bool:
    """Return True if each session needs its own process of a server.

    It does if the entry has a relative path, unless the command names the folder of that path or the user is asked for
    it. It also does if the server drives a browser, which sessions cannot share.
    """
    if "command" not in entry or program_of(str(entry["command"])) in REACHING:
        return False
    named, _ = own_folder(dict(entry))
    asked = {one.keys for one in wants}
    args = [str(word) for at, word in enumerate(entry.get("args") or []) if ("args", at) not in asked]
    if named is not None and (not is_relative(named) or named not in args):
        args = []
    if (options := container_options(words_of(entry))) is not None:
        args = options[2:]  # other paths are those of the container
    command = "" if any(one.keys == ("command",) for one in wants) else str(entry["command"])
    shared = {key: value for key, value in entry.items() if key != "scope"}
    folder = "/" if ("cwd",) in asked else str(entry.get("cwd") or "/")
    relative = relative_paths(command, args) or is_relative(folder)
    return bool(relative) or "scope" in with_own_browser(shared)


_INTERACTIVE = re.compile(r"-[a-z]*i[a-z]*|--interactive(?:=true)?")


def reads_input(options: Sequence[str]) -> bool:
    """Return True if a container started with these options reads its input, as a stdio server has to."""
    return any(map(_INTERACTIVE.fullmatch, options[2:]))


def with_input(entry: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Make a client's container read stdin, without a terminal. Return its entry, and a note for the user or "".

    A client's entry with a command is a stdio server, so its container must read stdin and not run in the background.
    `kubectl exec` gets -i, too. Other entries stay unchanged.
    Raises UnclearSourceError for a container that is reached by a port instead.
    """
    words = words_of(entry)
    if program_of(words[0]) in PODS and "exec" in (own := list(takewhile("--".__ne__, words))):
        at = own.index("exec") + 1
        if reads_input(own):
            return entry, ""
        return {**entry, "args": [*words[1:at], "-i", *words[at:]]}, READS_INPUT.format("added")
    options = container_options(words)
    if options is None:
        return entry, ""
    detached = any(map(DETACHED.fullmatch, options))
    own = [word for word in without_terminal(options) if not DETACHED.fullmatch(word)]
    if reads_input(own) and not detached:
        return {**entry, "args": [*own[1:], *words[len(options) :]]}, ""
    if any(map(PUBLISHES.fullmatch, own)):
        title = "This container does not read its input and opens a port, so it is not a stdio server"
        raise UnclearSourceError(title, START_FIRST)
    own = own if reads_input(own) else [*own[:2], "-i", *own[2:]]
    change = "in place of -d" if detached else "added"
    return {**entry, "args": [*own[1:], *words[len(options) :]]}, READS_INPUT.format(change)


READS_INPUT = ", with -i {}: a stdio server reads its input"
WITHOUT_INPUT = ", with -i added: without it the container reads nothing"
MAY_SPEAK_HTTP = ", and with a port: if an HTTP server uses it, start the container and add its address instead"


def without_terminal(options: Sequence[str]) -> list[str]:
    """Return the options of a container without -t: a server has no terminal."""
    own = [re.sub(r"(?<=^-)([a-su-z]*)t([a-su-z]*)$", r"\1\2", word) for word in options if word != "--tty"]
    return [word for word in own if word != "-"]


DETACHED = re.compile("-[iqt]*d[iqt]*|--detach(?:=true)?")
PUBLISHES = re.compile(r"-p|--publish(?:=.*)?|-p\d.*")  # a port


def refuse_http(words: Sequence[str], env: Mapping[str, Any]) -> None:
    """Raise UnclearSourceError if a variable, of the server or of its container, tells the server to speak HTTP."""
    given = {name: str(value) for name, value in env.items()}
    if words and program_of(words[0]) in CONTAINERS:
        given |= {pair[1]: pair[2] for word in words if (pair := _ASSIGNED.fullmatch(word))}
    for name, value in given.items():
        named = "TRANSPORT" in name.upper() and value.lower() in HTTP
        if named or (_HTTP_SWITCH.fullmatch(name) and value.lower() in ("true", "1")):
            title = f"This server speaks HTTP, not stdio ({name}={value})"
            raise UnclearSourceError(title, START_FIRST)


def refuse_verb(words: Sequence[str]) -> None:
    """Raise UnclearSourceError for `uvx run acme`, which fetches and runs a package named `run`."""
    package = package_of(words)
    program = program_of(words[0])
    if package in ("run", "exec", "dlx", "start") and program in ("uvx", "npx", "bunx", "pnpx"):
        behind = [word for word in words[1:] if word != package]
        title = f"{program} {package} runs a package whose name is {package}, which is probably not meant"
        raise UnclearSourceError(title, f"Paste it without {package}: {redacted(' '.join([words[0], *behind]))[:200]}")


def refuse_developers_script(words: Sequence[str]) -> None:
    """Raise UnclearSourceError for a package's script that builds or checks: `npm run build`, `yarn lint`."""
    plain = (word for before, word in pairwise(words) if word[:1] != "-" and before not in VALUED_BEFORE)
    script = next((word for word in plain if word not in ("run", "run-script")), "")
    if program_of(words[0]) in ("npm", "pnpm", "yarn") and _DEVELOPERS_SCRIPT.fullmatch(script):
        raise UnclearSourceError(f"{script} is a developer's script, not a server")


def without_cmd(entry: dict[str, Any]) -> dict[str, Any]:
    """Remove `cmd /c`, and variables that Windows itself sets, from an entry that was written for Windows.

    Raises UnclearSourceError if cmd would start more than one program.
    """
    env = entry.get("env") or {}
    if own := {name for name in env if name.upper() in _WINDOWS_OWN}:
        kept = {name: value for name, value in env.items() if name not in own}
        entry = {key: value for key, value in entry.items() if key != "env"} | ({"env": kept} if kept else {})
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
    """Parse an object in JSON or loose JSON. Raises UnclearSourceError.

    The braces around a fragment (`"github": {...}`) may be missing. A list of words is read as a command, a list of
    objects as servers.
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
    """Return the MCP servers in the `tools` of a request to a model's API; any other document as it is."""
    tools = document.get("tools")
    named = [
        {"name": one.get("server_label"), "url": one["server_url"]}
        | {key: value for key, value in one.items() if key not in ("type", "server_label", "server_url")}
        for one in (tools if isinstance(tools, list) else [document])
        if isinstance(one, Mapping) and isinstance(one.get("server_url"), str)
    ]
    return {"mcpServers": named} if named else document


_TOKEN_ENV = re.compile("(?:bearer)?token(?:env|envvar|fromenv)")
