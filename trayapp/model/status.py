"""The snapshot: all that tray and command line may know of a running gateway, and its JSON form (PRODUCT 12).

Never here: how the state came about, how it is shown.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from trayapp.model.lifecycle import State
from trayapp.model.reading import ShapeError, read

SNAPSHOT_VERSION = 1
# A call to a server in one of these is served: an idle one starts on the call, one that stops is started again
READY = frozenset({State.IDLE, State.CONNECTED, State.STOPPING})
GatewayState = Literal["starting", "running", "stopping"]
KeyringState = Literal["available", "locked", "missing"]  # locked, missing: sign-ins live in memory meanwhile


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file of the user's that is not as it should be. `line` is 1-based, 0 = no line."""

    file: str
    line: int
    message: str
    hint: str = ""
    column: int = 0
    server: str | None = None
    fatal: bool = True  # the file (server None) or the server's entry cannot be used


@dataclass(frozen=True, slots=True)
class ToolCounts:
    """How many tools of one server there are: known, passed to clients, gone, held back."""

    total: int = 0
    enabled: int = 0
    stale: int = 0
    withheld: int = 0


@dataclass(frozen=True, slots=True)
class SignInStatus:
    """Whether a server that wants a sign-in has one. Times are Unix seconds; nothing here is a secret."""

    signed_in: bool
    until: float | None = None  # when the access token ends; None = not said
    renews: bool = False  # by itself, without the user
    kept: bool = True  # beyond the end of the gateway
    scope: str | None = None
    wanted: str | None = None  # scopes that the server asked for besides: a new sign-in would bring them


@dataclass(frozen=True, slots=True)
class RefusedAccess:
    """What a confined server wanted and did not get. `allow`: the line for its entry that would allow it."""

    access: str  # read, write, network, sockets
    what: str  # a path, a host, or in words
    allow: str
    secret: bool = False  # then what the server says is no reason to allow it


@dataclass(frozen=True, slots=True)
class ConfinementStatus:
    """How a server that is to be confined was last started."""

    way: str  # landlock, bubblewrap, sandbox-exec; open: `confine: try` where there is no way; "" not yet
    why_open: str = ""
    refused: tuple[RefusedAccess, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server as of now. Times are seconds before the snapshot, None = never."""

    name: str
    state: State
    lifecycle: str
    transport: str
    protocol: str = ""
    tools: ToolCounts = ToolCounts()
    pid: int | None = None
    error: dict[str, str] | None = None  # {"title", "hint"}
    failed_s_ago: float | None = None
    last_used_s_ago: float | None = None
    calls: int = 0
    project: str | None = None  # the folder of the project that alone has it
    signed_in: bool | None = None  # OAuth; None = it knows no sign-in, as far as we know
    auth: SignInStatus | None = None  # None: it takes no sign-in, or nobody has looked yet
    approvals: tuple[str, ...] | None = None  # tools that wait for the user's approval; None = none
    findings: tuple[str, ...] | None = None  # codes of what was found in those tools; None = nothing
    suspicious: tuple[str, ...] | None = None  # tools that are served although they read like orders; None = none
    confinement: ConfinementStatus | None = None  # None: it is not confined
    connections: int | None = None  # processes, or sessions over HTTP, where it has more than one now
    unlisted: tuple[str, ...] | None = None  # lists (tools, prompts, ...) that it could not say, of which none is known

    @property
    def ready(self) -> bool:
        """True if a call to one of its tools is served."""
        return is_ready(self.state, self.unlisted)

    @property
    def failed(self) -> bool:
        """True if it cannot serve: it did not start, or did not list its tools."""
        return self.state is State.FAILED or (self.state in READY and self.error is not None and not self.ready)


def is_ready(state: str, unlisted: Collection[str] | None) -> bool:
    """True if a server in that state serves calls, given the lists of which nothing is known."""
    return state in READY and "tools" not in (unlisted or ())


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """One client session."""

    client: str
    transport: str
    protocol: str
    expose: str


@dataclass(frozen=True, slots=True)
class CallsToday:
    """Calls since midnight, and how many of them failed."""

    calls: int
    failed: int


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """The gateway process itself."""

    state: GatewayState
    pid: int
    version: str
    uptime_s: float
    http_url: str | None = None
    sessions: tuple[SessionStatus, ...] = ()
    keyring: KeyringState | None = None  # of the place of sign-ins and secrets; None = nothing has needed it yet
    keyring_error: dict[str, str] | None = None  # {"title", "hint"} while it is not available
    today: CallsToday | None = None  # None: no history is kept, or nobody has called yet


@dataclass(frozen=True, slots=True)
class ShownArgument:
    """One argument of a call that waits, fit for people's eyes (model/preview)."""

    name: str
    value: str
    length: int = 0  # characters of the whole value


@dataclass(frozen=True, slots=True)
class AskStatus:
    """A call or a server's question (`kind`) that waits for the user's answer. Times are Unix seconds."""

    id: str
    kind: str
    client: str
    server: str
    since: float
    until: float
    answers: tuple[str, ...]
    project: str | None = None
    tool: str = ""
    tool_class: str = ""
    basis: str = ""  # of the class: annotations (the server's own word) or name
    arguments: tuple[ShownArgument, ...] = ()
    message: str = ""  # of a question
    url: str | None = None
    form: bool = False  # a question with fields to fill in


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole state at one revision; a later revision is a larger number."""

    revision: int
    gateway: GatewayStatus
    servers: tuple[ServerStatus, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
    asks: tuple[AskStatus, ...] = ()  # what waits for the user's yes, oldest first

    def to_json(self) -> dict[str, Any]:
        """The object of `status --json`."""
        return {
            "version": SNAPSHOT_VERSION,
            "revision": self.revision,
            "gateway": {k: v for k, v in asdict(self.gateway).items() if k not in RARE_OF_GATEWAY or v is not None},
            "servers": [_server_json(server) for server in self.servers],
            "problems": [problem_json(problem) for problem in self.problems],
            **({"asks": [asdict(ask) for ask in self.asks]} if self.asks else {}),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The snapshot that `to_json` made, maybe of a newer program: keys that are not known here are dropped.

        Raises NewerSnapshotError for another version of the shape, ShapeError for what is no snapshot.
        """
        version = value.get("version") if isinstance(value, dict) else None
        if type(version) is int and version > SNAPSHOT_VERSION:
            raise NewerSnapshotError(version)
        return read(cls, value, "snapshot")


class NewerSnapshotError(ShapeError):
    """A gateway of a newer version tells its state in a shape that we cannot read."""

    code = "newer_snapshot"

    def __init__(self, version: int) -> None:
        super().__init__(
            f"The gateway is newer than this app (status version {version})",
            "Quit multi-mcp and start it again",
        )


RARE_OF_GATEWAY = frozenset({"keyring", "keyring_error", "today"})
RARE = frozenset(
    {"project", "signed_in", "auth", "approvals", "findings", "suspicious", "unlisted", "confinement", "connections"}
)


def _server_json(server: ServerStatus) -> dict[str, Any]:
    """All of it; the RARE keys only where they have a value."""
    return {key: value for key, value in asdict(server).items() if key not in RARE or value is not None}


def problem_json(problem: Problem) -> dict[str, Any]:
    """`{"file", "line", "column", "server", "message", "hint", "fatal"}`."""
    keys = ("file", "line", "column", "server", "message", "hint", "fatal")
    return {key: getattr(problem, key) for key in keys}
