"""The reader of one server's entry. It turns nodes into a ServerConfig and reports invalid keys with their lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from collections.abc import Mapping as Plain
from typing import Any, get_args

from trayapp.config.problems import InvalidValueError, Report, did_you_mean, shown
from trayapp.config.read import fields
from trayapp.config.read.command import is_relative, relative_paths, split_command
from trayapp.config.read.fields import TOOL_KEYS, TOOL_NOTES, is_extension, read_confine, read_keys
from trayapp.config.urls import has_variable, url_fault
from trayapp.config.yaml.nodes import Mapping, Node, Pair, Sequence, is_null, node_of, text_node
from trayapp.model.config import LIFECYCLES, Auth, Scope, ServerConfig, ToolSwitch
from trayapp.model.errors import Problem

MAX_NAME_CHARACTERS = 128
MEANT = frozenset({"Did you mean command?", "Did you mean url?"})
STDIO_ONLY = ("args", "env", "cwd", "inherit_env", "confine", "lock")
HTTP_ONLY = ("headers", "auth", "bearer_token_env", "client_id", "client_secret", "scopes", "account", "callback_port")
OAUTH_ONLY = ("client_id", "client_secret", "scopes", "account", "callback_port")


def name_fault(name: str) -> str | None:
    """Return what is wrong with a server's name, or None if it is valid."""
    if not name.strip():
        return "A server needs a name"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"A server's name has at most {MAX_NAME_CHARACTERS} characters"
    if "/" in name or any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in name):
        return "A server's name cannot contain / or control characters"
    return None


def read_entry(pair: Pair, report: Report, *, in_project: bool = False) -> ServerConfig | None:
    """Return the server that one pair of `servers` defines. If it is unusable, report fatal problems and return None.

    With `in_project`, the servers run in the project's folder, so relative paths are not reported.
    """
    fault = name_fault(pair.name)
    if fault:
        report.add(pair.key, fault, server=shown(pair.name), fatal=True)
        return None
    return _Entry(pair, report, in_project=in_project).read()


def read_one(
    name: str, entry: Plain[str, Any], *, in_project: bool = False
) -> tuple[ServerConfig | None, tuple[Problem, ...]]:
    """Read one entry, given as plain values in the form of our files.

    Return the server, or None if it is unusable, and the problems.
    """
    report, key, server = Report(""), text_node(name), None
    try:
        server = read_entry(Pair(key, name, node_of(entry)), report, in_project=in_project)
    except RecursionError:
        report.add(key, f"{shown(name)} is nested too deeply", server=name, fatal=True)
    return server, report.sorted()


class _Entry:
    """The reader of one entry. `_values` maps each canonical key to its source pair and value."""

    def __init__(self, pair: Pair, report: Report, *, in_project: bool) -> None:
        self._pair = pair
        self._report = report
        self._in_project = in_project
        self._values: dict[str, tuple[Pair, Any]] = {}
        self._usable = True
        self._meant: tuple[Pair, str] | None = None  # a misspelled `command` or `url`, and the hint

    def read(self) -> ServerConfig | None:
        try:
            pairs = fields.mapping_pairs(self._pair.value) if not is_null(self._pair.value) else []
        except InvalidValueError as wrong:
            hint = wrong.hint if isinstance(self._pair.value, Mapping) else "Write it as {command: ...} or {url: ...}"
            self._fail(wrong.place, f"{shown(self._pair.name)}: {wrong.message}", hint)
            return None
        self._values = read_keys(
            pairs,
            READERS,
            lambda pair, wrong: self._fail(wrong.place, f"{shown(pair.name)} {wrong.message}", wrong.hint),
            self._unknown,
        )
        self._check_transport()
        for tool in unknown_tool_keys(self._values["tools"][0].value) if "tools" in self._values else ():
            self._unknown(tool, did_you_mean(tool.name.lower(), TOOL_KEYS))
        self._join("disabled", "enabled", lambda enabled: not enabled)
        # `always_on` means keep-alive if true and lazy if false. If `lifecycle` is also set, both must agree.
        self._join("lifecycle", "always_on", lambda on: "keep-alive" if on else "lazy")
        self._check_sign_in()
        server = self._build() if self._usable else None
        if server is not None and not self._in_project:
            self._check_folder(server)
        return server

    def _fail(self, place: Any, message: str, hint: str = "") -> None:
        self._usable = False
        self._report.add(place, message, hint, server=self._pair.name, fatal=True)

    def _unknown(self, pair: Pair, hint: str) -> None:
        if hint in MEANT and self._meant is None:
            self._meant = pair, hint  # reported by _check_transport, so not here
        else:
            self._note(pair.key, f"Unknown key {shown(pair.name)}", hint)

    def _note(self, place: Node, message: str, hint: str) -> None:
        self._report.add(place, message, hint, server=self._pair.name)

    def _get(self, key: str) -> Any:
        return self._values[key][1] if key in self._values else None

    def _place(self, *keys: str) -> Node:
        """Return the last key node in the file for any of `keys`, or the entry's own key node if all are missing."""
        places = [self._values[key][0].key for key in keys if key in self._values]
        return max(places, key=lambda node: node.start, default=self._pair.key)

    def _check_transport(self) -> None:
        has_command, has_url = "command" in self._values, "url" in self._values
        name = shown(self._pair.name)
        if has_command and has_url:
            self._fail(self._place("command", "url"), f"{name} has both command and url", "Keep one of them")
        if not has_command and not has_url and self._usable:
            pair, hint = self._meant or (self._pair, "Add command or url")
            self._fail(pair.key, f"{name} has neither command nor url", hint)
        elif self._meant is not None:
            pair, hint = self._meant
            self._note(pair.key, f"Unknown key {shown(pair.name)}", hint)
        wanted = self._get("type")
        if wanted and self._usable and (wanted == "stdio") != has_command:
            needs = "command" if wanted == "stdio" else "url"
            self._fail(self._place("type"), f"type is {wanted}, but there is no {needs}", "Remove type")
        if self._usable:
            self._note_useless(HTTP_ONLY if has_command else STDIO_ONLY, "url" if has_command else "command")

    def _note_useless(self, keys: tuple[str, ...], goes_with: str) -> None:
        for key in keys:
            if key in self._values:
                self._note(self._place(key), f"{key} has no effect without {goes_with}", "Remove it")

    def _join(self, key: str, other: str, translate: Callable[[Any], Any]) -> None:
        """Translate the value of `other` and move it to `key`. Report a contradiction between the two.

        If only one of the keys comes from a merge (`<<`), the other key wins, and nothing is reported.
        """
        if other not in self._values:
            return
        pair, said = self._values.pop(other)
        value = translate(said)
        beside, beside_value = self._values.get(key, (pair, value))
        if value != beside_value and pair.merged == beside.merged:
            place = max(pair.key, beside.key, key=lambda node: node.start)
            self._fail(place, f"{key} and {other} contradict each other", "Keep one of them")
        self._values[key] = (pair, value) if beside.merged else (beside, beside_value)

    def _check_sign_in(self) -> None:
        """Report `auth: bearer` without a token, OAuth keys without OAuth, and a client_secret without a client_id."""
        named = "bearer_token_env" in self._values
        headers = {header.lower() for header in self._get("headers") or {}}
        if self._get("auth") == "bearer" and not named and "authorization" not in headers:
            hint = "Set it to the name of the token's variable"
            self._fail(self._place("auth"), "auth is bearer, but bearer_token_env is missing", hint)
        if self._get("auth") in ("bearer", "none"):
            self._note_useless(OAUTH_ONLY, "auth: oauth")
        elif "client_secret" in self._values and "client_id" not in self._values:
            self._note_useless(("client_secret",), "client_id")

    def _check_folder(self, server: ServerConfig) -> None:
        """Report a relative path if it would be resolved in the home folder, which is rarely intended."""
        if server.command is None or server.scope == "session":
            return
        if server.cwd is None and (words := relative_paths(server.command, server.args)):
            message = f"{shown(words[0])} is relative, and {shown(server.name)} has no cwd: it runs in your home folder"
            hint = "Write an absolute path, or set the folder that it runs in: cwd: ~/..."
            self._note(self._place("args", "command"), message, hint)
        elif server.cwd is not None and is_relative(server.cwd):
            message = f"cwd: {shown(server.cwd)} is relative to your home folder"
            self._note(self._place("cwd"), message, "Write an absolute path, or ~/...")

    def _build(self) -> ServerConfig | None:
        values = {key: value for key, (_, value) in self._values.items()}
        command, args = values.pop("command", None), values.pop("args", None)
        if isinstance(command, str):
            try:
                command = split_command(command) if args is None else [command.strip()]
            except ValueError as error:
                self._fail(self._place("command"), f"command: {error}")
                return None
        argv: list[str] = [] if command is None else [*command, *(args or [])]
        if values.get("type") == "stdio":
            del values["type"]
        return ServerConfig(
            name=self._pair.name,
            command=argv[0] if argv else None,
            args=tuple(argv[1:]),
            line=self._pair.key.line,
            **values,
        )


def read_type(node: Node) -> str:
    """Return `stdio`, `http` (also for `streamable-http`) or `sse`. Raises InvalidValueError for another word."""
    word: str = fields.choice(("stdio", "http", "streamable-http", "sse"))(node)
    return "http" if word == "streamable-http" else word


def read_tools(node: Node) -> dict[str, ToolSwitch]:
    """Return the switches by tool name. `name: false` is short for `{enabled: false}`. Return {} for an empty node."""
    if is_null(node):
        return {}
    return {pair.name: _read_tool(pair) for pair in fields.mapping_pairs(node)}


def _read_tool(pair: Pair) -> ToolSwitch:
    if is_null(pair.value):
        return ToolSwitch()
    said: dict[str, Any] = {}
    name, key = shown(pair.name), ""
    try:
        if not isinstance(pair.value, Mapping):
            return ToolSwitch(enabled=fields.switch(pair.value))
        for inner in fields.mapping_pairs(pair.value):
            if inner.name in TOOL_KEYS and not is_null(inner.value):
                key = inner.name
                said[key] = fields.ask_mode(inner.value) if key == "ask" else fields.switch(inner.value)
    except InvalidValueError as wrong:
        if key != "ask":
            raise InvalidValueError(wrong.place, f"{name} {wrong.message}", "Write it as {enabled: true}") from None
        hint = wrong.hint or "Write it as {ask: true}"
        raise InvalidValueError(wrong.place, f"{name}: ask {wrong.message}", hint) from None
    return ToolSwitch(**said)


def unknown_tool_keys(node: Node) -> list[Pair]:
    """Return the unknown keys of the tools in a valid `tools`, for example `disabled`, which has no effect there."""
    inside = [pair.value for pair in ([] if is_null(node) else fields.mapping_pairs(node))]
    said = (inner for tool in inside if isinstance(tool, Mapping) for inner in fields.mapping_pairs(tool))
    return [inner for inner in said if inner.name not in TOOL_KEYS | TOOL_NOTES and not is_extension(inner.name)]


def read_direct_tools(node: Node) -> bool | tuple[str, ...]:
    return fields.switch(node) if fields.is_switch(node) else fields.words(node)


def read_url(node: Node) -> str:
    """Return an address. Raises InvalidValueError for a malformed one, unless it contains a variable."""
    url = fields.text(node).strip()
    fault = None if has_variable(url) else url_fault(url)
    if fault:
        raise InvalidValueError(node, fault)
    return url


def read_command(node: Node) -> str | list[str]:
    """Return the command as written: a text that is not split yet, or a list that is not empty."""
    if not isinstance(node, Sequence):
        return fields.text(node)
    words = fields.items(node)
    if not words or not words[0].strip():
        raise InvalidValueError(node, "must not be empty")
    return words


READERS: Plain[str, fields.Reader] = {
    "command": read_command,
    "args": fields.items,
    "env": fields.environment,
    "cwd": fields.text,
    "inherit_env": fields.switch,
    "confine": read_confine,
    "lock": fields.switch,
    "url": read_url,
    "type": read_type,
    "headers": fields.strings,
    "auth": fields.choice(get_args(Auth)),
    "bearer_token_env": fields.variable,
    "client_id": fields.written,
    "client_secret": fields.written,
    "scopes": fields.split_words,
    "account": fields.written,
    "callback_port": fields.port,
    "disabled": fields.switch,
    "enabled": fields.switch,
    "lifecycle": fields.choice(LIFECYCLES),
    "always_on": fields.switch,
    "idle_timeout": fields.duration("min"),
    "scope": fields.choice(get_args(Scope)),
    "connect_timeout": fields.duration("s", zero=False),
    "request_timeout": fields.duration("s"),
    "title": fields.written,
    "tools": read_tools,
    "include_tools": fields.words,
    "exclude_tools": fields.words,
    "direct_tools": read_direct_tools,
    "expose_resources": fields.switch,
    "new_tools": fields.choice(("enabled", "disabled")),
    "ask": fields.ask_mode,
}
