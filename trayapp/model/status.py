"""The snapshot: the state of a running gateway that the tray and the CLI see, and its JSON form."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from types import UnionType
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from trayapp.model.errors import MultiMcpError, Problem, problem_json
from trayapp.model.lifecycle import State

SNAPSHOT_VERSION = 1
# States in which calls are served: a call starts an idle server, and restarts a stopping one.
READY = frozenset({State.IDLE, State.CONNECTED, State.STOPPING})
GatewayState = Literal["starting", "running", "stopping"]
KeyringState = Literal["available", "locked", "missing"]  # while locked or missing, sign-ins are kept in memory


@dataclass(frozen=True, slots=True)
class ToolCounts:
    """Counts of one server's tools: `enabled` ones are passed to clients, `stale` ones are gone from the server."""

    total: int = 0
    enabled: int = 0
    stale: int = 0
    withheld: int = 0


@dataclass(frozen=True, slots=True)
class SignInStatus:
    """The sign-in state of a server that requires a sign-in. Contains no secrets."""

    signed_in: bool
    until: float | None = None  # Unix time at which the access token expires; None = unknown
    renews: bool = False  # True if the access token is renewed without the user
    kept: bool = True  # True if the sign-in outlasts the gateway
    scope: str | None = None
    wanted: str | None = None  # further scopes that the server requested and that a new sign-in would grant


@dataclass(frozen=True, slots=True)
class RefusedAccess:
    """An access that a confined server was denied. `allow` is the line that would allow it in the server's entry."""

    access: str  # read, write, network, sockets
    what: str  # a path, a host, or a description
    allow: str
    secret: bool = False  # a protected place; do not allow it just because a server requests it


@dataclass(frozen=True, slots=True)
class ConfinementStatus:
    """The confinement of a server's last start."""

    way: str  # landlock, bubblewrap or sandbox-exec; open = none works here (`confine: try`); "" = not started yet
    why_open: str = ""
    refused: tuple[RefusedAccess, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server at the time of the snapshot. Times are seconds before the snapshot; None = never."""

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
    # RARE: the fields below are in the JSON only if they have a value.
    project: str | None = None  # folder of the project, if only one project has it
    signed_in: bool | None = None  # OAuth; None = no sign-in known
    auth: SignInStatus | None = None  # None: no sign-in applies, or its state was not read yet
    approvals: tuple[str, ...] | None = None  # tools that await the user's approval; None = none
    findings: tuple[str, ...] | None = None  # codes of the findings in those tools; None = none
    needs_approval: bool | None = None  # True: the command of a secret awaits the user's approval; None = none does
    suspicious: tuple[str, ...] | None = None  # tools that are served although they read like instructions; None = none
    confinement: ConfinementStatus | None = None  # None: it is not confined
    connections: int | None = None  # processes or HTTP sessions, if there is more than one now
    not_locked: str | None = None  # why its package may change at any start, and what to write instead
    unlisted: tuple[str, ...] | None = None  # lists (tools, ...) that it failed to return and whose items are unknown

    @property
    def ready(self) -> bool:
        """True if a call to one of its tools is served."""
        return is_ready(self.state, self.unlisted)

    @property
    def failed(self) -> bool:
        """True if the server failed, or could not list its tools."""
        return self.state is State.FAILED or (self.state in READY and self.error is not None and not self.ready)


def is_ready(state: str, unlisted: Collection[str] | None) -> bool:
    """Return True if a server in that state serves calls, given the lists that it failed to return."""
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
    keyring: KeyringState | None = None  # state of the store for sign-ins and secrets; None = not needed yet
    keyring_error: dict[str, str] | None = None  # {"title", "hint"} while the store is not available
    today: CallsToday | None = None  # None: history is off, or there were no calls yet


@dataclass(frozen=True, slots=True)
class ShownArgument:
    """An argument of a pending call, safe to show, or a last row that counts the arguments not shown."""

    name: str
    value: str  # JSON: secrets removed, invisible characters marked, cut if long
    length: int = 0  # characters of the uncut JSON; 0 for the row that counts


@dataclass(frozen=True, slots=True)
class AskStatus:
    """A call or a server's question (`kind`) that awaits the user's answer. Times are Unix seconds."""

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
    basis: str = ""  # source of the class: annotations (the server's own claim) or name
    arguments: tuple[ShownArgument, ...] = ()
    message: str = ""  # only for a question
    url: str | None = None
    form: bool = False  # a question with fields to fill in


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole state at one revision. A later revision has a larger number."""

    revision: int
    gateway: GatewayStatus
    servers: tuple[ServerStatus, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
    asks: tuple[AskStatus, ...] = ()  # calls and questions that await the user's answer, oldest first

    def to_json(self) -> dict[str, Any]:
        """Return the object of `status --json`. A server's RARE keys appear only if they have a value."""
        servers = list[dict[str, Any]]()
        for server in self.servers:  # asdict of a whole server copies each value and takes four times as long
            tools, auth, confinement = server.tools, server.auth, server.confinement
            found: dict[str, Any] = {name: getattr(server, name) for name in _FIELDS}
            found["tools"] = {name: getattr(tools, name) for name in _COUNTS}
            found["auth"] = asdict(auth) if auth is not None else None
            found["confinement"] = asdict(confinement) if confinement is not None else None
            servers.append({name: value for name, value in found.items() if value is not None or name not in RARE})
        return {
            "version": SNAPSHOT_VERSION,
            "revision": self.revision,
            "gateway": {k: v for k, v in asdict(self.gateway).items() if k not in RARE_OF_GATEWAY or v is not None},
            "servers": servers,
            "problems": [problem_json(problem) for problem in self.problems],
            **({"asks": [asdict(ask) for ask in self.asks]} if self.asks else {}),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the snapshot from its `to_json` form. Keys added by a newer program are dropped.

        Raise NewerSnapshotError for a newer version of the format, ShapeError for anything that is not a snapshot.
        """
        version = value.get("version") if isinstance(value, dict) else None
        if type(version) is int and version > SNAPSHOT_VERSION:
            raise NewerSnapshotError(version)
        return read(cls, value, "snapshot")


class ShapeError(MultiMcpError):
    """A value has the wrong shape. The title names its path, never the value."""

    code = "shape"


class NewerSnapshotError(ShapeError):
    """A newer gateway reports its state in a format that we cannot read."""

    code = "newer_snapshot"

    def __init__(self, version: int) -> None:
        super().__init__(
            f"The gateway is newer than this app (status version {version})", "Quit multi-mcp and start it again"
        )


RARE_OF_GATEWAY = frozenset({"keyring", "keyring_error", "today"})
_COUNTS = tuple(one.name for one in dataclasses.fields(ToolCounts))
_FIELDS = tuple(one.name for one in dataclasses.fields(ServerStatus))
RARE = frozenset(_FIELDS[_FIELDS.index("project") :])


# --- from JSON, driven by the fields' types

T = TypeVar("T")
_hints = cache(get_type_hints)
_KINDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}


def read(kind: type[T], value: object, place: str) -> T:
    """Return an instance of the dataclass `kind` with the values of a JSON object.

    Missing keys get their default. Unknown keys are dropped, since a newer program may add some. Raise ShapeError,
    which names `place` and the path below it.
    """
    if not isinstance(value, Mapping):
        raise _wrong(place, "an object")
    hints, given = _hints(kind), dict[str, Any]()  # type: ignore[arg-type]  # classes are hashable
    for member in dataclasses.fields(kind):  # type: ignore[arg-type]  # a dataclass, by contract
        if member.name in value:
            given[member.name] = _read(hints[member.name], value[member.name], f"{place}.{member.name}")
        elif member.default is dataclasses.MISSING and member.default_factory is dataclasses.MISSING:
            raise ShapeError(f"{place}.{member.name} is missing")
    return kind(**given)


def _read(hint: Any, value: object, place: str) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):  # we use only `X | None`
        return None if value is None else _read(next(p for p in parts if p is not type(None)), value, place)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _wrong(place, "a list")
        return tuple(_read(parts[0], item, f"{place}[{at}]") for at, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, Mapping) or not all(type(part) is str for pair in value.items() for part in pair):
            raise _wrong(place, "an object of strings")
        return dict(value)
    if dataclasses.is_dataclass(hint):
        return read(hint, value, place)  # type: ignore[arg-type]
    if origin is Literal or hint is State:
        allowed = parts or tuple(State)
        if not isinstance(value, str) or value not in allowed:
            raise _wrong(place, f"one of {', '.join(allowed)}")
        return value if parts else State(value)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise _wrong(place, _KINDS[hint])
    return value


def _wrong(place: str, wanted: str) -> ShapeError:
    return ShapeError(f"{place} should be {wanted}")
