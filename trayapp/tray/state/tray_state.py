"""The frozen values of the tray: its state (TrayState), what it shows (TrayView), and what a click means (Action).

`assess` derives from a state what runs, what is ready, what is wrong, and what needs the user.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trayapp.model.child import ChildState
from trayapp.model.config import SAMPLE
from trayapp.model.errors import Problem
from trayapp.model.lifecycle import State
from trayapp.model.status import AskStatus, KeyringState, ServerStatus, Snapshot


class IconKind(StrEnum):
    """The states that the icon shows."""

    STARTING = "starting"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    ATTENTION = "attention"
    DOWN = "down"
    PAUSED = "paused"


class Verb(StrEnum):
    """The operations that a click can start. A comment names a verb's target, or explains a verb without one."""

    RECONNECT = "reconnect"  # a server; "" = all of them
    REFRESH = "refresh"  # a server; "" = all of them
    SIGN_IN = "sign_in"  # a server
    SIGN_OUT = "sign_out"  # a server
    ENABLE = "enable"  # a server
    DISABLE = "disable"  # a server
    UNLOCK = "unlock"  # the keyring
    SHOW_LOG = "show_log"  # a server
    SHOW_CHANGES = "show_changes"  # a server with changed or suspicious tool definitions
    APPROVE = "approve"  # a server: approves the changes that were shown last
    ALLOW = "allow"  # an ask, by its id, once
    ALLOW_SESSION = "allow_session"  # an ask, by its id, until that client's session ends
    ALLOW_ALWAYS = "allow_always"  # an ask, by its id, for that definition of the tool from now on
    DENY = "deny"  # an ask, by its id
    OPEN_ASKED = "open_asked"  # an ask, by its id: opens the page that the server asks for, then allows it
    OPEN_PANEL = "open_panel"  # a page of the panel; "" = the first one
    OPEN_FILE = "open_file"  # a path; "" = servers.yaml
    CONNECT_CLIENT = "connect_client"  # a client's name
    DISCONNECT_CLIENT = "disconnect_client"  # a client's name
    COPY_COMMAND = "copy_command"
    SHOW_OFFER = "show_offer"
    TAKE_OVER = "take_over"  # the offer_key of the shown servers of AI tools: imports them, with secrets in clear text
    TAKE_OVER_HIDDEN = "take_over_hidden"  # as for TAKE_OVER, but the secrets go into the keyring
    LEAVE_SERVERS = "leave_servers"
    TAKE_OUT = "take_out"  # the offer_key of the shown servers: removes them from the AI tools' files
    SHOW_LOGS = "show_logs"
    LOG_FOLDER = "log_folder"
    CHECK = "check"  # everything that `multi-mcp doctor` checks
    COPY_DIAGNOSTICS = "copy_diagnostics"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"
    RETRY = "retry"  # after a crash loop
    AUTOSTART_ON = "autostart_on"
    AUTOSTART_OFF = "autostart_off"
    SHOW_STATE = "show_state"  # shows a notification with TrayView.summary
    ABOUT = "about"
    QUIT = "quit"


APPROVALS_PAGE = "approvals"  # a page of the panel, as the target of OPEN_PANEL


@dataclass(frozen=True, slots=True)
class Action:
    """An action of the tray: an operation (`verb`) and its object (`target`)."""

    verb: Verb
    target: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A menu entry. `key` identifies its meaning: it is stable, and unique within a view.

    `checked`: None = no check mark. `action`: None = a heading, or a submenu with `children`.
    """

    key: str
    text: str
    action: Action | None = None
    checked: bool | None = None
    enabled: bool = True
    children: tuple[Item | Separator, ...] = ()


@dataclass(frozen=True, slots=True)
class Separator:
    """A line between entries. It is never first or last, and never follows another one."""


SEPARATOR = Separator()
Entry = Item | Separator


@dataclass(frozen=True, slots=True)
class TrayView:
    """Everything that the tray shows. Two states with equal views need no redraw.

    - `tooltip`: lines of at most 60 characters, 127 characters in all.
    - `summary`: longer than the tooltip, for a notification.
    - `click`: the action of a click on the icon. Where the icon has no menu, a click shows the summary.
    - `buttons`: labels and actions of the notification with the summary, in place of a menu where the icon has none.
    """

    icon: IconKind
    tooltip: str
    menu: tuple[Entry, ...]
    summary: str
    buttons: tuple[tuple[str, Action], ...] = ()
    click: Action = Action(Verb.SHOW_STATE)


@dataclass(frozen=True, slots=True)
class ClientState:
    """An AI tool that can be connected to the shim. `name`: as in `multi-mcp connect NAME`; `title`: for people.

    `found`: True if it is installed here. `drift`: why its entry differs from the one that we wrote (it was edited or
    has an old path), or None if it does not differ.
    """

    name: str
    title: str
    connected: bool = False
    found: bool = True
    drift: str | None = None


@dataclass(frozen=True, slots=True)
class Offered:
    """A server in an AI tool's file. `title`: the title of the tool; `starts`: the server's command or address."""

    name: str
    title: str
    starts: str
    secrets: int = 0  # number of its secrets in clear text


def offer_key(offered: tuple[Offered, ...]) -> str:
    """Return a hash of these servers. The user's consent covers only servers with this hash."""
    return hashlib.sha256(repr(offered).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TrayState:
    """The state from which the tray's view and notifications are made.

    - `snapshot`: the gateway's newest snapshot, valid only while `child` is running or attached.
    - `error`: why the gateway is not running, in one line.
    - `hangs`: True if the gateway's process exists but does not answer.
    - `autostart`: None if start at login is not possible here.
    - `clients`: the AI tools; None before the first search.
    - `offered`: servers of AI tools that can be imported; empty unless this is a first start.
    - `offer_told`: True if an earlier tray already reported servers to import.
    - `doubled`: servers that connected AI tools still start themselves.
    """

    child: ChildState
    snapshot: Snapshot | None = None
    error: str | None = None
    clients: tuple[ClientState, ...] | None = ()
    autostart: bool | None = None
    hangs: bool = False
    offered: tuple[Offered, ...] = ()
    doubled: tuple[Offered, ...] = ()
    offer_told: bool = False


ANSWERS = frozenset({ChildState.RUNNING, ChildState.ATTACHED})


@dataclass(frozen=True, slots=True)
class Assessment:
    """The facts behind menu, icon, and notifications. It is broad because each fact is computed once, for all of them.

    - `live`: the snapshot of a serving gateway; None in every other state.
    - `servers`: sorted by name, so that none moves in an open menu: GNOME's panel would draw this badly.
    - `wanted`: the servers that are not disabled.
    - `failed`: the wanted servers that cannot serve, except those in `commands`.
    - `commands`: servers that wait for the user's approval of a command that prints a secret.
    - `permissions`: servers that answer, but refused a call for lack of permissions. A new sign-in would grant them.
    - `fatal`: the problems that keep a file or an entry from being used.
    - `keyring`: why sign-ins are not kept, or None if they are kept or there are none.
    - `keyring_error`: the title and hint of the keyring's problem.
    - `locked`: True if a server waits for the keyring.
    - `offered`: servers of AI tools; empty once multi-mcp has a server besides the sample and those of projects.
    """

    live: Snapshot | None = None
    servers: tuple[ServerStatus, ...] = ()
    wanted: tuple[ServerStatus, ...] = ()
    failed: tuple[ServerStatus, ...] = ()
    commands: tuple[ServerStatus, ...] = ()
    sign_in: tuple[ServerStatus, ...] = ()
    permissions: tuple[ServerStatus, ...] = ()
    approvals: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    fatal: tuple[Problem, ...] = ()
    keyring: KeyringState | None = None
    keyring_error: Mapping[str, str] = field(default_factory=dict)
    locked: bool = False
    offered: tuple[Offered, ...] = ()
    asks: tuple[AskStatus, ...] = ()  # calls and questions that wait for the user's answer, oldest first


def assess(state: TrayState) -> Assessment:
    """Return the assessment of a state. Without a serving gateway, it is empty."""
    snapshot = state.snapshot if state.child in ANSWERS and not state.hangs else None
    if snapshot is None or snapshot.gateway.state != "running":
        return Assessment()
    by_name = {server.name: server for server in snapshot.servers}  # menu keys contain names, so names must be unique
    servers = tuple(sorted(by_name.values(), key=lambda server: (server.name.casefold(), server.name)))
    wanted = tuple(server for server in servers if server.state is not State.DISABLED)
    return Assessment(
        live=snapshot,
        servers=servers,
        wanted=wanted,
        failed=tuple(server for server in wanted if server.failed and not server.needs_approval),
        commands=tuple(server for server in wanted if server.needs_approval),
        sign_in=tuple(server for server in wanted if server.state is State.NEEDS_AUTH),
        permissions=tuple(filter(wants_permissions, wanted)),
        approvals=tuple(server.name for server in servers if server.approvals),
        problems=tuple(dict.fromkeys(snapshot.problems)),
        fatal=tuple(problem for problem in snapshot.problems if problem.fatal),
        keyring=snapshot.gateway.keyring if snapshot.gateway.keyring != "available" else None,
        keyring_error=snapshot.gateway.keyring_error or {},
        locked=any(server.state is State.KEYRING_LOCKED for server in wanted),
        asks=snapshot.asks,
        offered=state.offered if all(server.name == SAMPLE or server.project for server in servers) else (),
    )


def wants_permissions(server: ServerStatus) -> bool:
    """True if the server refused a call that another sign-in would allow (step-up authorization)."""
    asked = server.auth is not None and server.auth.wanted is not None
    return asked and server.state not in (State.NEEDS_AUTH, State.DISABLED)


def in_trouble(server: ServerStatus) -> bool:
    """True if the server failed, needs a sign-in, or waits for the keyring."""
    return server.failed or server.state in (State.NEEDS_AUTH, State.KEYRING_LOCKED)
