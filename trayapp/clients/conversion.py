"""Convert one server's entry from a client's keys to the keys of servers.yaml.

Keys without an equivalent are left out and reported, never guessed. Variable references are converted to our syntax;
the environment is not read. A client's own sandbox becomes our `confine`. VS Code enables its sandbox with
`sandboxEnabled: true`. The rules are in `sandbox`, in the server or at the top level of the file:
`{filesystem: {allowWrite, denyRead, denyWrite}, network: {allowedDomains, deniedDomains}}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from trayapp.clients.entry import flat
from trayapp.clients.family import lookup
from trayapp.clients.variables import Context, with_our_variables, workspace_places
from trayapp.config.programs import is_browser
from trayapp.config.read.command import is_relative, path_exists, relative_paths, split_command
from trayapp.config.read.entry import read_one
from trayapp.config.read.fields import SERVER_KEYS, TOOL_KEYS, TOOL_NOTES, snake, spelled
from trayapp.model.config import TRY

ENABLED, SANDBOX = "sandboxEnabled", "sandbox"
_ALWAYS = "*.npmjs.org"  # VS Code allows this domain to every sandboxed server
_ASKED = ("${workspaceFolder}", "${workspaceRoot}")
# The name of a variable, but not an author's placeholder: `<your token>`, `YOUR_TOKEN`.
_VARIABLE_NAME = re.compile(r"(?!(?:\w+_)?YOUR_)[A-Za-z_]\w*", re.ASCII)
Entry = dict[str, Any]
_COMMANDS = ("command", "cmd")
_URLS = ("url", "serverUrl", "httpUrl", "uri", "baseUrl")
_ENVS = ("env", "environment", "envs")
_HEADERS = ("headers", "http_headers", "httpHeaders")
_TYPES = {"http": "http", "streamable-http": "http", "streamable_http": "http", "streamablehttp": "http", "sse": "sse"}
TRANSPORTS = frozenset(_TYPES)  # clients' names for the transports of a server at a URL
_REMOTE = frozenset((*_TYPES, "remote"))
_LOCAL = frozenset(("stdio", "local"))
NO_SERVER = ("builtin", "platform", "frontend", "inline_python")  # extensions that are built into Goose
# keys that are not reported as left out: they are read elsewhere, or matter only to the client
_QUIET = frozenset((
    "name", "description", "source", "gallery", "version", "bundled", "env_vars", "display_name", "icon",
))  # fmt: skip
_OWN_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
# Permissions to call tools without asking. They are not imported: a model may have written the client's file.
PERMISSIONS = frozenset(("alwaysAllow", "always_allow", "autoApprove", "trust", "default_tools_approval_mode"))
_NOTHING: tuple[Any, ...] = (None, "", [], {})  # a key with such a value counts as missing
_SANDBOX = re.compile("sandbox|confine", re.IGNORECASE)
KEPT = "x-"  # prefix of keys that servers.yaml accepts and ignores
_ENDLESS = 10.0**15  # a timeout this long, in any unit, counts as none, such as 1e999: int() fails for it
# Our key -> clients' names, in snake case, in the entry's OAuth mapping. Beside it, they begin with `oauth_`.
_OAUTH = {
    "client_id": ("client_id",), "client_secret": ("client_secret",), "scopes": ("scopes", "scope"),
    "callback_port": ("callback_port", "redirect_port"),
}  # fmt: skip
_BESIDE_OAUTH = "oauth_"
_INCLUDE = ("includeTools", "enabled_tools", "enabledTools", "allowedTools", "available_tools")
_EXCLUDE = ("excludeTools", "disabled_tools", "disabledTools")


def convert(raw: Any, context: Context) -> tuple[Entry, tuple[str, ...]] | None:
    """Return a server in our keys, and the keys left out; None if the entry is not a standalone MCP server.

    Keys of a sandbox stay in the entry as `x-KEY`, beside the `confine` derived from them. Raises ValueError with the
    reason if the entry cannot be converted.
    """
    if not isinstance(raw, Mapping):
        raise ValueError("it is not a mapping")
    if raw.get("type") in NO_SERVER:
        return None
    raw = _of_its_type({str(key): value for key, value in flat(raw).items()})  # a YAML key may be a number
    try:
        json.dumps(raw, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:  # JSON allows `"\ud800"`, which can be neither written nor sent
        raise ValueError("it contains a lone surrogate") from None
    reader = _EntryReader(raw, context)
    entry = reader.read()
    if "command" not in entry and "url" not in entry:
        if raw and set(raw) <= {"settings", "enabled", "source", "remote"}:
            return None  # a Zed extension that starts its server itself
        raise ValueError("it has neither command nor url")
    texts = json.dumps(entry, ensure_ascii=False, default=str)
    places = workspace_places(texts) if context.folder is None else []
    if place := next((place for place in places if not (context.asks_folder and place in _ASKED)), ""):
        raise ValueError(f"{place} has no meaning outside a workspace; write the folder itself")
    return _in_its_folder(context, entry), tuple(sorted(reader.left | reader.unknown))


def with_own_browser(entry: Entry) -> Entry:
    """Return the entry, with `scope: session` if its server drives a browser and the entry has no scope."""
    args = entry.get("args") or []
    command = entry.get("command")
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    if "scope" in entry or not is_browser(word for word in words if isinstance(word, str)):
        return entry
    return {**entry, "scope": "session"}


def _in_its_folder(context: Context, entry: Entry) -> Entry:
    """Return a user's entry with the `scope` or `cwd` that gives its relative paths the same meaning as in the client.

    Most clients start servers in the session's working folder, as `scope: session` does. A user's server that drives a
    browser gets that scope, too (with_own_browser).
    """
    command, args, cwd = entry.get("command"), entry.get("args") or [], entry.get("cwd")
    if context.folder is not None or not isinstance(command, str):
        return entry
    entry = with_own_browser(entry)
    texts = [arg for arg in args if isinstance(arg, str)]
    relative = is_relative(cwd) if isinstance(cwd, str) else relative_paths(command, texts)
    if not relative or "scope" in entry:
        return entry
    if context.client.runs_in == "session":
        return {**entry, "scope": "session"}
    return {**entry, "cwd": str(PurePosixPath("~", cwd or ""))}


def _of_its_type(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entry without the keys that its type does not use, if it has a command, a URL and a type."""
    kind = str(raw.get("type") or raw.get("transport")).lower()
    other = (*_COMMANDS, "args", *_ENVS, "cwd") if kind in _REMOTE else (*_URLS, *_HEADERS) if kind in _LOCAL else ()
    both = any(raw.get(key) for key in _COMMANDS) and any(raw.get(key) for key in _URLS)
    return {key: value for key, value in raw.items() if key not in other} if both else raw


class _EntryReader:
    def __init__(self, raw: Mapping[str, Any], context: Context) -> None:
        self._raw = raw
        self._context = context
        self.left = {str(key) for key, value in raw.items() if value not in _NOTHING} - _QUIET
        self.unknown: set[str] = set()  # references and variables that cannot be converted

    def read(self) -> Entry:
        entry: Entry = {}
        self._launch(entry)
        self._address(entry)
        self._switches(entry)
        self._times(entry)
        for key in sorted(self.left):
            if self._raw[key] is not None and (known := spelled(key, SERVER_KEYS)) is not None:
                entry.setdefault(key if known.unit else known.name, self._raw[key])
                self.left.discard(key)
            elif _SANDBOX.search(key) and self._raw[key] is not None:
                entry[KEPT + key] = self._raw[key]
                self.left.discard(key)
        confine = confine_from(self._raw, windows=self._context.windows)
        if confine is not None and "command" in entry:
            entry.setdefault("confine", confine)
        return entry

    def _take(self, *keys: str) -> Any:
        """Return the value of the first of these keys that is not None; mark all of them as read."""
        self.left -= set(keys)
        return next((self._raw[key] for key in keys if self._raw.get(key) is not None), None)

    def _pairs(self, *keys: str) -> dict[str, Any]:
        value = self._take(*keys) or {}
        if not isinstance(value, Mapping):
            raise ValueError(f"{keys[0]} is not a mapping")
        return dict(value)

    def _text(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text, unknown = with_our_variables(value, self._context)
        self.unknown |= set(unknown)
        return text

    def _texts(self, value: Any) -> Any:
        if isinstance(value, Mapping):  # null means that the variable is not set
            return {str(key): self._text(item) for key, item in value.items() if item is not None}
        return [self._text(item) for item in value] if isinstance(value, list) else self._text(value)

    def _launch(self, entry: Entry) -> None:
        command: Any = self._take(*_COMMANDS)
        args = self._take("args")
        if isinstance(command, Mapping):  # an older form in Zed
            entry |= {"env": self._texts(command["env"])} if command.get("env") else {}
            command, args = command.get("path"), command.get("args")
        if args is not None and not isinstance(args, list):
            raise ValueError("args is not a list")
        words = command if isinstance(command, list) else _words_of_line(command, self._context.windows)
        if words:
            command, args = words[0], [*words[1:], *(args or [])]
        if command:
            entry["command"] = self._text(command)
        if args is not None and command:
            entry["args"] = self._texts(args)
        keys = self._take("env_keys") or []
        env = {**self._pairs(*_ENVS), **{key: f"${{{key}}}" for key in filter(is_variable_name, keys)}}
        self.unknown |= {"env_keys"} if not all(map(is_variable_name, keys)) else set()
        if env:
            entry["env"] = self._texts(env)
        if cwd := self._take("cwd", "workingDirectory", "working_directory"):
            entry["cwd"] = self._text(cwd)

    def _address(self, entry: Entry) -> None:
        kind = self._take("type", "transport", "transportType")
        has_http_url = isinstance(self._raw.get("httpUrl"), str)
        url = self._take("httpUrl") or self._take(*_URLS)
        if not url:
            return
        if not isinstance(url, str):
            raise ValueError("its address is not text")
        entry["url"] = self._text(url)
        if named := _TYPES.get(str(kind).lower(), "http" if has_http_url else ""):
            entry["type"] = named
        options = self._take("requestOptions", "requestInit")
        headers = self._pairs(*_HEADERS) or dict((options or {}).get("headers") or {})
        for name, variable in self._pairs("env_http_headers").items():
            headers[name] = f"$env:{variable}" if is_variable_name(variable) else variable
        auth = self._raw.get("auth")
        own = auth.get("token") if isinstance(auth, Mapping) and auth.get("type") == "bearer" else None
        # `authorization_token` is from Anthropic's API, `apiKey` from Continue
        if held := self._take("authorization_token", "apiKey") or own:
            headers.setdefault("Authorization", f"Bearer {held}")
        token = self._take("bearer_token_env_var", "bearerTokenEnvVar", "bearerTokenEnv", "bearer_token_env")
        if token and not is_variable_name(token):
            headers.setdefault("Authorization", f"Bearer {token}")
        elif token:
            entry |= {"auth": "bearer", "bearer_token_env": token}
        if headers:
            entry["headers"] = self._texts(headers)
        self._without_env(entry)
        self._oauth(entry)

    def _without_env(self, entry: Entry) -> None:
        """Remove `env` from a server at a URL, after filling its variables into the URL and headers, as Goose does."""
        env = entry.pop("env", {})
        used: set[str] = set()

        def own(found: re.Match[str]) -> str:
            used.add(found[1])
            return str(env[found[1]]) if found[1] in env else found[0]

        entry["url"] = _OWN_VARIABLE.sub(own, entry["url"])
        for name, value in entry.get("headers", {}).items():
            entry["headers"][name] = _OWN_VARIABLE.sub(own, value) if isinstance(value, str) else value
        self.unknown |= {"env"} if set(env) - used else set()

    def _oauth(self, entry: Entry) -> None:
        oauth = self._take("oauth")
        if isinstance(oauth, bool):
            entry["auth"] = "oauth" if oauth else "none"
        auth = self._take("auth") if isinstance(self._raw.get("auth"), Mapping) else None
        parts = [part for part in (oauth, auth, self._take("oauthClient")) if isinstance(part, Mapping)]
        settings = {snake(str(key)): value for part in parts for key, value in part.items()}
        beside = {snake(key): key for key in self.left if snake(key).startswith(_BESIDE_OAUTH)}
        for key, names in _OAUTH.items():
            for name in names:
                if (own := beside.get(_BESIDE_OAUTH + name)) is not None:
                    settings[name] = self._take(own)
            if value := next((settings[name] for name in names if settings.get(name)), None):
                entry[key] = self._texts(value)

    def _switches(self, entry: Entry) -> None:
        disabled, enabled = self._take("disabled"), self._take("enabled", "isActive")
        if disabled is True or enabled is False:
            entry["disabled"] = True
        tools, listed = self._raw.get("tools"), None
        switches: Entry = {}  # the form of Hermes: {include: [...], exclude: [...]}
        if isinstance(tools, list):
            self._take("tools")
            entry |= {"disabled": True} if not tools else {}  # in Copilot, an empty list means no tools
            listed = None if "*" in tools else tools
        elif isinstance(tools, Mapping):
            self._take("tools")
            entry |= {"tools": known} if (known := _known_switches(tools)) else {}
            switches = {key: list(map(str, names)) for key, names in tools.items() if isinstance(names, list)}
        include = self._take(*_INCLUDE) or listed or switches.get("include")
        exclude = self._take(*_EXCLUDE) or switches.get("exclude")
        entry |= {"include_tools": include} if include else {}
        entry |= {"exclude_tools": exclude} if exclude else {}

    def _times(self, entry: Entry) -> None:
        """Add the timeouts in seconds. `timeout` has the client's unit, and is left out if that is not documented."""
        client = self._context.client
        timeout: Any = self._take("timeout") if client.timeout_unit else None
        connecting = self._take("connectionTimeout", "discoveryTimeoutMs")
        key = "connect_timeout" if client.timeout_of == "start" else "request_timeout"
        if isinstance(timeout, Mapping):  # the form of OpenCode 2
            key, timeout, connecting = "request_timeout", timeout.get("request"), timeout.get("startup")
        for name, value, unit in ((key, timeout, client.timeout_unit), ("connect_timeout", connecting, "ms")):
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _ENDLESS:
                seconds = value / 1000 if unit == "ms" else value
                entry[name] = int(seconds) if seconds == int(seconds) else seconds


# The first word of a placeholder with blanks: [FULL PATH TO x]/python
_OPENED = re.compile(r"[\[<({‹«][^\])}>›»]*$")


def is_variable_name(text: Any) -> bool:
    """Return True for the name of a variable, False for anything else, such as a value or an author's placeholder."""
    return isinstance(text, str) and _VARIABLE_NAME.fullmatch(text) is not None


def _words_of_line(command: Any, windows: bool) -> list[str]:
    """Return the words of a command line; [] if it is invalid, or only a program, whose path may contain blanks."""
    if not isinstance(command, str) or len(command.split()) < 2 or path_exists(command):
        return []
    try:
        words = split_command(command, windows=windows)
    except ValueError:
        return []
    if not words or _OPENED.match(words[0]):
        return []
    return words if not re.search(r"[/\\]", words[0]) or path_exists(words[0]) else []


def _known_switches(tools: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping of tools without keys that have no equivalent, such as Codex's approvals."""
    plain = {name: switch for name, switch in tools.items() if not isinstance(switch, Mapping | list)}
    for name, switch in tools.items():
        if isinstance(switch, Mapping) and (TOOL_KEYS | TOOL_NOTES) & switch.keys():
            plain[name] = {key: value for key, value in switch.items() if key in TOOL_KEYS | TOOL_NOTES}
    return plain


def inputs_of(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return VS Code's `inputs` by id; {} if there are none."""
    listed: Any = document.get("inputs")
    items = listed if isinstance(listed, list) else []
    return {str(item["id"]): item for item in items if isinstance(item, Mapping) and "id" in item}


def confine_from(raw: Mapping[str, Any], *, windows: bool) -> object:
    """Return the value of `confine` for an entry with a sandbox; None if the sandbox is off or missing.

    The value is True if the rules cannot be converted, and TRY on Windows, where neither we nor VS Code can confine.
    """
    if not any(value for key, value in raw.items() if _SANDBOX.search(key)) or raw.get(ENABLED) is False:
        return None
    if windows:
        return TRY
    rules: Any = raw[SANDBOX] if isinstance(raw.get(SANDBOX), Mapping) else {}
    if raw.get(ENABLED) is not True or not {"filesystem", "network"}.issuperset(rules):
        return True
    write, hosts = lookup(rules, ("filesystem", "allowWrite")), lookup(rules, ("network", "allowedDomains"))
    # Left out: ".", because a server may always write to its working folder, and "~/.npm", because confined servers
    # have private package caches. In a shared cache, one server could change the code of others.
    texts = (path for path in write or () if isinstance(path, str))
    paths = [path for path in texts if path.startswith(("/", "~/")) and path != "~/.npm"]
    names = [host for host in hosts or () if isinstance(host, str)]
    confine = ({"write": paths} if paths else {}) | {"network": list(dict.fromkeys((*names, _ALWAYS)))}
    server, _ = read_one("x", {"command": "x", "confine": confine})
    return confine if server is not None else True


def with_shared_rules(entry: Any, document: Any) -> Any:
    """Return the entry with its file's shared sandbox rules, if it enables the sandbox without rules of its own."""
    shared = lookup(document, (SANDBOX,))
    if not isinstance(entry, Mapping) or entry.get(ENABLED) is not True or SANDBOX in entry or shared is None:
        return entry
    return {**entry, SANDBOX: shared}
