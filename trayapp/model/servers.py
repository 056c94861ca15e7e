"""One server's entry in servers.yaml as a frozen value, and the parts of it that identify what it launches.

Entries hold `${NAME}` as written, never the variables' values.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from trayapp.model.settings import AskMode, Confining

Lifecycle = Literal["lazy", "eager", "keep-alive", "lazy-keep-alive"]
Scope = Literal["shared", "session"]
HttpType = Literal["http", "sse"]
Auth = Literal["oauth", "bearer", "none"]
TransportKind = Literal["stdio", "http", "sse"]

LIFECYCLES: tuple[Lifecycle, ...] = ("lazy", "eager", "keep-alive", "lazy-keep-alive")
SAMPLE = "sample"  # the server in a new servers.yaml
STARTS_AT_ONCE: frozenset[Lifecycle] = frozenset({"eager", "keep-alive"})


@dataclass(frozen=True, slots=True)
class ToolSwitch:
    """One entry of a server's `tools`: how the user or a refresh configured a tool."""

    enabled: bool = True
    stale: bool = False
    ask: AskMode | None = None  # None: as the server's setting


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server, a field for each key. Either `command` or `url` is set. Strings still contain their `${NAME}`."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    inherit_env: bool = True
    confine: Confining = None  # None: the setting applies
    url: str | None = None
    type: HttpType | None = None
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
    tools: dict[str, ToolSwitch] | None = None  # None: no `tools` key, all tools pass
    include_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    direct_tools: bool | tuple[str, ...] = False
    expose_resources: bool = True
    new_tools: Literal["enabled", "disabled"] = "enabled"
    ask: AskMode | None = None  # None: as `settings.ask`
    line: int = 0  # line of the entry in its file, 1-based; 0 = unknown

    @property
    def transport(self) -> TransportKind:
        """Return how the server is reached. A `url` without `type` counts as http until it falls back."""
        if self.command is not None:
            return "stdio"
        return self.type or "http"


def auth_of(server: ServerConfig) -> Auth:
    """Return how to authenticate to an HTTP server. `auth` in its entry wins. A token there means no sign-in."""
    if server.auth is not None:
        return server.auth
    named = server.bearer_token_env is not None or any(name.lower() == "authorization" for name in server.headers)
    return "bearer" if named else "oauth"


CHECKSUM_BYTES = 3  # 1 in 16 million changes goes unnoticed; 24 bits reveal almost nothing about a secret
LAUNCH_FIELDS = ("command", "args", "env", "cwd", "inherit_env", "url", "type", "headers", "auth", "bearer_token_env")


def launch_settings(server: ServerConfig) -> tuple[object, ...]:
    """Return all settings whose change requires a new process or connection. Equal tuples keep it running."""
    extra = (server.client_id, server.client_secret, server.scopes, server.account, server.scope)
    return tuple(getattr(server, name) for name in LAUNCH_FIELDS) + extra


def launch_hash(server: ServerConfig) -> str:
    """Return a hex string that identifies the launch settings, as written. A cached catalog is valid only for it.

    Variables count by name (`${TOKEN}`), so a rotated secret keeps the catalog. A literal value may be a secret: each
    value adds only CHECKSUM_BYTES of a digest, too little to find or to confirm one by guessing.
    """
    said = "".join(f"{name[0]}{_checksum(getattr(server, name))}" for name in LAUNCH_FIELDS)
    return f"{said}@{_checksum(server.account)}" if server.account else said


def _checksum(value: object) -> str:
    if isinstance(value, dict):
        value = sorted(value.items())
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=CHECKSUM_BYTES).hexdigest()
