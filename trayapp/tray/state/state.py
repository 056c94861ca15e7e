"""What the tray knows (TrayState), what it shows (View), and what a click means (Action): frozen values.

Never here: pystray, I/O, clocks; how a state is shown (view), said (texts) or drawn (icons).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from trayapp.model.child import ChildState
from trayapp.model.status import Snapshot


class IconKind(StrEnum):
    """What the icon says (PRODUCT 11)."""

    STARTING = "starting"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    ATTENTION = "attention"
    DOWN = "down"
    PAUSED = "paused"


class Verb(StrEnum):
    """Everything that a click may ask for. What its target is stands behind it; no target: "" always."""

    RECONNECT = "reconnect"  # a server; "" = all of them
    REFRESH = "refresh"  # a server; "" = all of them
    SIGN_IN = "sign_in"  # a server
    SIGN_OUT = "sign_out"  # a server
    ENABLE = "enable"  # a server
    DISABLE = "disable"  # a server
    UNLOCK = "unlock"  # the keyring
    SHOW_LOG = "show_log"  # a server
    SHOW_CHANGES = "show_changes"  # a server whose tool definitions changed
    APPROVE = "approve"  # the same: what was shown last
    ALLOW = "allow"  # an ask, by its id, once
    ALLOW_SESSION = "allow_session"  # the same, until that client's session ends
    ALLOW_ALWAYS = "allow_always"  # the same, for that definition of the tool
    DENY = "deny"  # an ask
    OPEN_ASKED = "open_asked"  # an ask: the page that a server wants opened; then it is allowed
    OPEN_PANEL = "open_panel"
    OPEN_FILE = "open_file"  # a path; "" = servers.yaml
    CONNECT_CLIENT = "connect_client"  # a client's name
    DISCONNECT_CLIENT = "disconnect_client"  # a client's name
    COPY_COMMAND = "copy_command"
    SHOW_OFFER = "show_offer"
    TAKE_OVER = "take_over"  # what offer_key says was seen: servers of AI tools, as they are
    TAKE_OVER_HIDDEN = "take_over_hidden"  # the same, their secrets into the keyring
    LEAVE_SERVERS = "leave_servers"
    TAKE_OUT = "take_out"  # what offer_key says was seen: servers that AI tools start themselves, though they are here
    SHOW_LOGS = "show_logs"
    LOG_FOLDER = "log_folder"
    CHECK = "check"  # everything, as `multi-mcp doctor` does
    COPY_DIAGNOSTICS = "copy_diagnostics"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"
    RETRY = "retry"  # out of a crash loop
    AUTOSTART_ON = "autostart_on"
    AUTOSTART_OFF = "autostart_off"
    SHOW_STATE = "show_state"  # a notification with View.summary: what a click on the icon itself does
    ABOUT = "about"
    QUIT = "quit"


@dataclass(frozen=True, slots=True)
class Action:
    """What is to be done, and to what."""

    verb: Verb
    target: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One menu entry. `key` stays the same as long as the entry means the same, and no other entry of a view has it.

    `checked`: None = no check mark. `action`: None = a heading, or the way to `children`.
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
    """All that is shown. Two states whose views are equal need no redraw.

    `tooltip`: lines of at most 60 characters, 127 in all. `summary`: the same at more length, for the notification that
    a click on the icon brings: `click` is that action. `buttons`: label and what it does, on that notification: panels
    without menus have nothing else.
    """

    icon: IconKind
    tooltip: str
    menu: tuple[Entry, ...]
    summary: str
    buttons: tuple[tuple[str, Action], ...] = ()
    click: Action = Action(Verb.SHOW_STATE)


@dataclass(frozen=True, slots=True)
class ClientState:
    """An AI tool that can be pointed at the shim. `name` is that of `multi-mcp connect NAME`, `title` for people.

    `found`: it is installed here. `drift`: why its entry is not quite ours any more (it was edited, or points at an
    old place); None = it is as we wrote it.
    """

    name: str
    title: str
    connected: bool = False
    found: bool = True
    drift: str | None = None


@dataclass(frozen=True, slots=True)
class Offered:
    """A server that an AI tool has and multi-mcp has not. `title`: the tool's; `starts`: its command or address."""

    name: str
    title: str
    starts: str
    secrets: int = 0  # in clear text


def offer_key(offered: tuple[Offered, ...]) -> str:
    """Tells these servers from any others: a yes counts for what was seen."""
    return hashlib.sha256(repr(offered).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TrayState:
    """All that the tray knows.

    `snapshot`: the gateway's newest; it counts in the states running and attached only. `error`: why the gateway is
    not up, one line. `hangs`: its process is there and does not answer. `autostart`: None = not possible here.
    `clients`: None = not looked for yet.
    `approvals`: servers whose changed tool definitions wait for the user. `offered`: servers to be taken over, on a
    first start; `offer_told`: of which an earlier tray told already. `doubled`: servers that connected AI tools still
    start themselves.
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
