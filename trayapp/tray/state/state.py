"""The frozen values of the tray: its state (TrayState), what it shows (TrayView), and what a click means (Action)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from trayapp.model.child import ChildState
from trayapp.model.status import Snapshot


class IconKind(StrEnum):
    """The icon's message (PRODUCT 11)."""

    STARTING = "starting"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    ATTENTION = "attention"
    DOWN = "down"
    PAUSED = "paused"


class Verb(StrEnum):
    """Everything that a click can ask for. Comments name the target; without one it is always ""."""

    RECONNECT = "reconnect"  # a server; "" = all of them
    REFRESH = "refresh"  # a server; "" = all of them
    SIGN_IN = "sign_in"  # a server
    SIGN_OUT = "sign_out"  # a server
    ENABLE = "enable"  # a server
    DISABLE = "disable"  # a server
    UNLOCK = "unlock"  # the keyring
    SHOW_LOG = "show_log"  # a server
    SHOW_CHANGES = "show_changes"  # a server whose tool definitions changed
    APPROVE = "approve"  # a server: approves the changes that were shown last
    ALLOW = "allow"  # an ask, by its id, once
    ALLOW_SESSION = "allow_session"  # an ask, by its id, until that client's session ends
    ALLOW_ALWAYS = "allow_always"  # an ask, by its id, for that definition of the tool
    DENY = "deny"  # an ask
    OPEN_ASKED = "open_asked"  # an ask: opens the page that the server asks for, then allows it
    OPEN_PANEL = "open_panel"
    OPEN_FILE = "open_file"  # a path; "" = servers.yaml
    CONNECT_CLIENT = "connect_client"  # a client's name
    DISCONNECT_CLIENT = "disconnect_client"  # a client's name
    COPY_COMMAND = "copy_command"
    SHOW_OFFER = "show_offer"
    TAKE_OVER = "take_over"  # the offer_key of the servers that were shown: takes over servers of AI tools, unchanged
    TAKE_OVER_HIDDEN = "take_over_hidden"  # the same, but moves their secrets into the keyring
    LEAVE_SERVERS = "leave_servers"
    TAKE_OUT = "take_out"  # the offer_key of the servers that were shown: multi-mcp has them, AI tools start them
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
    SHOW_STATE = "show_state"  # shows a notification with TrayView.summary; a click on the icon itself does this
    ABOUT = "about"
    QUIT = "quit"


@dataclass(frozen=True, slots=True)
class Action:
    """An action and its target."""

    verb: Verb
    target: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One menu entry. `key` identifies the meaning of the entry. It is stable, and unique within a view.

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
    """A line between entries; never first, never last, never two in a row."""


SEPARATOR = Separator()
Entry = Item | Separator


@dataclass(frozen=True, slots=True)
class TrayView:
    """Everything that the tray shows. Two states with equal views need no redraw.

    - `tooltip`: lines of at most 60 characters, 127 characters in all.
    - `summary`: a longer version, for the notification after a click on the icon.
    - `click`: the action of a click on the icon.
    - `buttons`: labels and actions of that notification. Panels without menus offer nothing else.
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

    `found`: True if it is installed here. `drift`: why its entry differs from ours (it was edited, or points at an old
    place); None if it is as we wrote it.
    """

    name: str
    title: str
    connected: bool = False
    found: bool = True
    drift: str | None = None


@dataclass(frozen=True, slots=True)
class Offered:
    """A server that an AI tool has and multi-mcp lacks. `title`: the tool's; `starts`: its command or address."""

    name: str
    title: str
    starts: str
    secrets: int = 0  # in clear text


def offer_key(offered: tuple[Offered, ...]) -> str:
    """Return a key that identifies these servers: a yes counts only for the servers that were shown."""
    return hashlib.sha256(repr(offered).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TrayState:
    """Everything that the tray knows.

    - `snapshot`: the gateway's newest. It counts only in the states running and attached.
    - `error`: why the gateway is not up, in one line.
    - `hangs`: True if its process exists and does not answer.
    - `autostart`: None if start at login is not possible here.
    - `clients`: None until the first look.
    - `approvals`: servers whose changed tool definitions wait for the user.
    - `offered`: servers that can be taken over, on a first start.
    - `offer_told`: True if an earlier tray already reported such servers.
    - `doubled`: servers that connected AI tools still start themselves.
    """

    child: ChildState
    snapshot: Snapshot | None = None
    error: str | None = None
    clients: tuple[ClientState, ...] | None = ()
    autostart: bool | None = None
    approvals: tuple[str, ...] = ()
    hangs: bool = False
    offered: tuple[Offered, ...] = ()
    doubled: tuple[Offered, ...] = ()
    offer_told: bool = False
