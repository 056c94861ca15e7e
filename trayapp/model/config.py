"""servers.yaml as frozen values: its settings, its servers' entries, and the plan from one configuration to another.

Values are as written, with the defaults of servers.yaml. A `${NAME}` is never replaced here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from trayapp.model.errors import Problem

Expose = Literal["auto", "tools", "search"]
PrefixMode = Literal["server", "short", "none", "mcp"]

EXPOSE_MODES: tuple[Expose, ...] = ("auto", "tools", "search")
PREFIX_MODES: tuple[PrefixMode, ...] = ("server", "short", "none", "mcp")
AskMode = Literal["auto", "off", "destructive", "writes", "all"]


class HttpSettings(NamedTuple):
    """Settings for HTTP clients. The gateway listens on 127.0.0.1, on this port or the next free one."""

    enabled: bool = True
    port: int = 7461
    token: bool = True  # True: clients must send the token; False is only for clients that cannot send one


class Profile(NamedTuple):
    """A named view of the catalog. None: the profile does not change the value."""

    servers: tuple[str, ...] | None = None
    expose: Expose | None = None
    include_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()


class HistorySettings(NamedTuple):
    """Settings of the call history: whether calls are stored, how much of each, and for how long."""

    enabled: bool = True
    arguments: bool = True  # also keep the first 2 KB of arguments and result, redacted
    keep: float = 30.0  # days
    size: int = 50_000_000  # bytes of the history file


TRY = "try"  # `confine: try`: where a server cannot be confined, it starts unconfined, with a warning


class Confine(NamedTuple):
    """A `confine` value other than false: the access of a confined server beyond the common baseline."""

    read: tuple[str, ...] = ()  # paths, as written
    write: tuple[str, ...] = ()  # implies read
    network: bool | tuple[str, ...] = True  # a tuple: only these names (also `*.name`) and addresses, through our proxy
    sockets: bool = False  # Unix sockets of its own, which browsers need
    required: bool = True  # False: `confine: try`

    def value(self) -> object:
        """Return the limits as plain Python values, in the shortest form that the reader of servers.yaml accepts."""
        if not self.required:
            return TRY
        said: dict[str, object] = {key: list(getattr(self, key)) for key in ("read", "write") if getattr(self, key)}
        if self.network is not True:
            said["network"] = self.network if isinstance(self.network, bool) else list(self.network)
        if self.sockets:
            said["sockets"] = True
        return said or True


Confining = Confine | Literal[False] | None  # None: not set


def confine_of(own: Confining, setting: Confining) -> Confine | None:
    """Return a stdio server's confinement, or None if unconfined. The entry's `own` value overrides the setting."""
    return (setting if own is None else own) or None


@dataclass(frozen=True, slots=True)
class Settings:
    """All of `settings`, a field for each key. Times use the unit of the file, given in each field's comment."""

    expose: Expose = "auto"
    defer_above: int = 15  # tools
    tool_prefix: PrefixMode = "server"
    idle_timeout: float = 10.0  # minutes; 0 = never
    health_interval: float = 30.0  # seconds
    failure_backoff: float = 60.0  # seconds
    connect_timeout: float = 30.0  # seconds
    request_timeout: float = 0.0  # seconds; 0 = as long as the client waits
    linger: float = 10.0  # minutes
    result_limit: int = 51_200  # bytes; 0 = no limit; only for calls through the `mcp` tool
    http: HttpSettings = field(default_factory=HttpSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    imports: tuple[str, ...] = ()
    profiles: dict[str, Profile] = field(default_factory=dict)
    synonyms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    token_store: Literal["keyring", "file"] = "keyring"
    client_metadata_url: str | None = None  # address of a client ID metadata document, if any
    approve_changes: Literal["ask", "notify", "off"] = "ask"
    write_tools: Literal["all", "switched"] = "all"  # which tools are written to servers.yaml
    suspicious: Literal["note", "hold", "off"] = "note"  # for new tools that read like instructions or hide text
    ask: AskMode = "auto"  # which calls need the user's permission
    ask_timeout: float = 120.0  # seconds; then the call is refused
    update_check: bool = False
    registry: str = "https://registry.modelcontextprotocol.io"  # used only by `find`, and by `add` of a registry name
    min_age: float = 3.0  # days; younger releases are not offered
    confine: Confining = None  # for stdio servers that do not set it themselves


Lifecycle = Literal["lazy", "eager", "keep-alive", "lazy-keep-alive"]
Scope = Literal["shared", "session"]
Auth = Literal["oauth", "bearer", "none"]

LIFECYCLES: tuple[Lifecycle, ...] = ("lazy", "eager", "keep-alive", "lazy-keep-alive")
SAMPLE = "sample"  # the server in a new servers.yaml
STARTS_AT_ONCE: frozenset[Lifecycle] = frozenset({"eager", "keep-alive"})


@dataclass(frozen=True, slots=True)
class ToolSwitch:
    """One entry of a server's `tools`: how the user or a refresh configured a tool."""

    enabled: bool = True
    stale: bool = False
    ask: AskMode | None = None  # None: the server's setting applies


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server, a field for each key. Either `command` or `url` is set. Strings still contain their `${NAME}`."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    inherit_env: bool = True
    confine: Confining = None  # None: `settings.confine` applies
    url: str | None = None
    type: Literal["http", "sse"] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    auth: Auth | None = None
    bearer_token_env: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scopes: tuple[str, ...] = ()
    account: str = ""  # selects one of several sign-ins at one address; "" = the only one
    callback_port: int = 0  # port of the redirect URI; 0 = a random one for each sign-in
    lock: bool = True  # start the exact package that servers.lock names
    disabled: bool = False
    lifecycle: Lifecycle = "lazy"
    idle_timeout: float | None = None  # minutes; None = the setting (lazy) or never (eager)
    scope: Scope = "shared"
    connect_timeout: float | None = None  # seconds
    request_timeout: float | None = None  # seconds
    title: str | None = None
    tools: dict[str, ToolSwitch] | None = None  # None: there is no `tools` key, so it disables no tool
    include_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    direct_tools: bool | tuple[str, ...] = False
    expose_resources: bool = True
    new_tools: Literal["enabled", "disabled"] = "enabled"
    ask: AskMode | None = None  # None: `settings.ask` applies
    line: int = 0  # line of the entry in its file, 1-based; 0 = unknown

    @property
    def transport(self) -> Literal["stdio", "http", "sse"]:
        """Return the configured transport. A `url` without `type` counts as http, and may be reached over SSE."""
        if self.command is not None:
            return "stdio"
        return self.type or "http"


def auth_of(server: ServerConfig) -> Auth:
    """Return a server's `auth`. If unset: bearer if there is a token or an Authorization header, otherwise oauth."""
    if server.auth is not None:
        return server.auth
    named = server.bearer_token_env is not None or any(name.lower() == "authorization" for name in server.headers)
    return "bearer" if named else "oauth"


CHECKSUM_BYTES = 3  # 1 in 16 million changes goes unnoticed; 24 bits are too few to recover a strong secret
LAUNCH_FIELDS = ("command", "args", "env", "cwd", "inherit_env", "url", "type", "headers", "auth", "bearer_token_env")


def launch_settings(server: ServerConfig) -> tuple[object, ...]:
    """Return all settings whose change requires a new process or connection, except `confine`."""
    extra = (server.client_id, server.client_secret, server.scopes, server.account, server.scope)
    return tuple(getattr(server, name) for name in LAUNCH_FIELDS) + extra


def launch_hash(server: ServerConfig) -> str:
    """Return a text that identifies LAUNCH_FIELDS and the account, as written.

    A cached catalog is valid while this text stays the same. Variables count by name (`${TOKEN}`), so the catalog stays
    valid if a secret is rotated. A literal value may be a secret, so each value adds only CHECKSUM_BYTES of a digest.
    """
    said = "".join(f"{name[0]}{_checksum(getattr(server, name))}" for name in LAUNCH_FIELDS)
    return f"{said}@{_checksum(server.account)}" if server.account else said


def _checksum(value: object) -> str:
    if isinstance(value, dict):
        value = sorted(value.items())
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=CHECKSUM_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class Imported:
    """A read-only layer below servers.yaml: one client's servers by name, converted to our keys."""

    client: str
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # name -> the file that defines the entry
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()  # errors in the client's files


@dataclass(frozen=True, slots=True)
class Config:
    """One whole configuration, as parsed."""

    settings: Settings = Settings()
    servers: dict[str, ServerConfig] = field(default_factory=dict)  # in the file's order
    problems: tuple[Problem, ...] = ()
    text: str = field(default="", repr=False, compare=False)  # as written, to be merged below a project's file
    imported: tuple[Imported, ...] = field(default=(), repr=False, compare=False)  # the layers below, in their order
    foreign: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)  # server of a layer -> its file


class Plan(NamedTuple):
    """Names of the servers that a change affects, by its effect on them. A name is in at most one field."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    relaunched: tuple[str, ...] = ()  # launch settings or confinement differ: the old process ends
    adjusted: tuple[str, ...] = ()  # only other settings differ: the process and its calls continue
    settings_changed: bool = False


def plan(old: Config, new: Config) -> Plan:
    """Return the plan to change from `old` to `new`. Line numbers and problems do not count as changes."""
    both = [name for name in new.servers if name in old.servers]
    relaunched = [n for n in both if _launched(old, n) != _launched(new, n)]
    adjusted = [
        n for n in both if n not in relaunched and replace(old.servers[n], line=0) != replace(new.servers[n], line=0)
    ]
    return Plan(
        added=tuple(n for n in new.servers if n not in old.servers),
        removed=tuple(n for n in old.servers if n not in new.servers),
        relaunched=tuple(relaunched),
        adjusted=tuple(adjusted),
        settings_changed=old.settings != new.settings,
    )


def _launched(config: Config, name: str) -> tuple[object, ...]:
    server = config.servers[name]
    confine = confine_of(server.confine, config.settings.confine) if server.transport == "stdio" else None
    return (*launch_settings(server), confine)
