"""The `settings` of servers.yaml as one frozen value, with the defaults of PRODUCT 4.

`Confine` is the value of `confine`, in the settings and in a server's entry (PRODUCT 18).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Expose = Literal["auto", "tools", "search"]
PrefixMode = Literal["server", "short", "none", "mcp"]

EXPOSE_MODES: tuple[Expose, ...] = ("auto", "tools", "search")
PREFIX_MODES: tuple[PrefixMode, ...] = ("server", "short", "none", "mcp")
AskMode = Literal["auto", "off", "destructive", "writes", "all"]


class HttpSettings(NamedTuple):
    """The address for HTTP clients: 127.0.0.1 and this port, or the next free one."""

    enabled: bool = True
    port: int = 7461
    token: bool = True  # True: clients must send the token; False is only for clients that cannot


class Profile(NamedTuple):
    """A named view of the catalog. None means "as without the profile"."""

    servers: tuple[str, ...] | None = None
    expose: Expose | None = None
    include_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()


class HistorySettings(NamedTuple):
    """Whether and how much call history is stored."""

    enabled: bool = True
    arguments: bool = True  # also keep the first 2 KB of arguments and result, redacted
    keep: float = 30.0  # days
    size: int = 50_000_000  # bytes of the history file


TRY = "try"  # `confine: try`: where a server cannot be confined, it starts unconfined, with a warning


class Confine(NamedTuple):
    """A `confine` value other than false: the access of a confined server beyond the common baseline.

    Paths are as written. A host is a name, `*.name` or an address.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()  # implies read
    network: bool | tuple[str, ...] = True  # a list: only those hosts, over HTTP(S) through our proxy
    sockets: bool = False  # Unix sockets of its own, which browsers need
    required: bool = True  # False: `try`

    def value(self) -> object:
        """Return it as plain values, in the shortest form that the reader of servers.yaml accepts."""
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
    """Return how to confine a stdio server, or None for not at all. The entry's own value overrides the setting."""
    said = setting if own is None else own
    return said or None


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
    result_limit: int = 51_200  # bytes; 0 = off; calls through the `mcp` tool only
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
    registry: str = "https://registry.modelcontextprotocol.io"  # contacted only by `find`, and `add` of a registry name
    min_age: float = 3.0  # days; younger releases are not offered
    confine: Confining = None  # for stdio servers that do not set it themselves
