"""The facts of a state: what runs, what is ready, what is wrong, and what needs the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trayapp.model.child import ChildState
from trayapp.model.lifecycle import State
from trayapp.model.servers import SAMPLE
from trayapp.model.status import AskStatus, KeyringState, Problem, ServerStatus, Snapshot
from trayapp.tray.state.state import Offered, TrayState

ANSWERS = frozenset({ChildState.RUNNING, ChildState.ATTACHED})


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that menu, icon, and notifications are made of.

    - `live`: the snapshot of a serving gateway; None in every other state.
    - `servers`: sorted by name, so that no server moves in an open menu: GNOME's panel draws such a move wrong. The top
      of the menu shows what is wrong.
    - `wanted`: the number of servers that are not disabled.
    - `ready`: how many of those answer a call. Connected servers do, and so do idle ones, which start on the call. A
      server that is connecting, failed, or needs a sign-in is not ready.
    - `tools`: the number of enabled tools of the wanted servers.
    - `permissions`: servers that answer, but refused a call for lack of permissions. A new sign-in would grant them.
    - `fatal`: the problems that keep a file or an entry from being used.
    - `keyring`: why sign-ins are not kept; None if they are kept, or if there is nothing to keep.
    - `keyring_error`: the title and hint of that problem.
    - `locked`: True if a server waits for the keyring.
    - `offered`: the servers that AI tools have, as long as there is no server but the sample.
    """

    live: Snapshot | None = None
    servers: tuple[ServerStatus, ...] = ()
    wanted: int = 0
    ready: int = 0
    connecting: int = 0
    tools: int = 0
    failed: tuple[ServerStatus, ...] = ()
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


def facts(state: TrayState) -> Facts:
    """Return the facts of a state. Without a serving gateway they are all empty."""
    snapshot = state.snapshot if state.child in ANSWERS and not state.hangs else None
    if snapshot is None or snapshot.gateway.state != "running":
        return Facts()
    by_name = {server.name: server for server in snapshot.servers}  # menu keys are made of names: no duplicates
    servers = tuple(sorted(by_name.values(), key=_rank))
    wanted = [server for server in servers if server.state is not State.DISABLED]
    return Facts(
        live=snapshot,
        servers=servers,
        wanted=len(wanted),
        ready=sum(server.ready for server in wanted),
        connecting=sum(server.state is State.CONNECTING for server in wanted),
        tools=sum(server.tools.enabled for server in wanted),
        failed=tuple(server for server in wanted if server.failed),
        sign_in=tuple(server for server in wanted if server.state is State.NEEDS_AUTH),
        permissions=tuple(filter(wants_permissions, wanted)),
        approvals=tuple(dict.fromkeys((*state.approvals, *(one.name for one in servers if one.approvals)))),
        problems=tuple(dict.fromkeys(snapshot.problems)),
        fatal=tuple(problem for problem in snapshot.problems if problem.fatal),
        keyring=snapshot.gateway.keyring if snapshot.gateway.keyring != "available" else None,
        keyring_error=snapshot.gateway.keyring_error or {},
        locked=any(server.state is State.KEYRING_LOCKED for server in wanted),
        asks=snapshot.asks,
        offered=state.offered if all(server.name == SAMPLE or server.project for server in servers) else (),
    )


def wants_permissions(server: ServerStatus) -> bool:
    """Return True if the server refused a call that another sign-in would allow (step-up authorization)."""
    asked = server.auth is not None and server.auth.wanted is not None
    return asked and server.state not in (State.NEEDS_AUTH, State.DISABLED)


def in_trouble(server: ServerStatus) -> bool:
    """Return True if the server cannot serve until somebody acts."""
    return server.failed or server.state in (State.NEEDS_AUTH, State.KEYRING_LOCKED)


def _rank(server: ServerStatus) -> tuple[str, str]:
    return server.name.casefold(), server.name
