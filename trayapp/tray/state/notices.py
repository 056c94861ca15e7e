"""The notifications that a state calls for: simultaneous causes of one kind share a notification.

Pure: each call returns the memory that the next call needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from trayapp.model.child import ChildState
from trayapp.model.errors import Problem
from trayapp.model.lifecycle import State
from trayapp.model.status import AskStatus, ServerStatus
from trayapp.tray.state import texts
from trayapp.tray.state.tray_state import (
    APPROVALS_PAGE,
    Action,
    Assessment,
    TrayState,
    Verb,
    assess,
    offer_key,
)
from trayapp.tray.state.view import ask_answers, identity


class NoticeKind(StrEnum):
    """The kinds of notification, most important first.

    A kind is also the key of its notification, so a new one replaces the previous one. FAILED and TOOLS, which report
    events, have keys with the servers' names: the previous notification may still be unread.
    """

    CRASH_LOOP = "crash-loop"
    CRASHED = "crashed"
    HANGS = "hangs"
    FILE = "file"
    SIGN_IN = "sign-in"
    PERMISSIONS = "permissions"
    APPROVAL = "approval"
    COMMAND = "command"
    FAILED = "failed"
    TOOLS = "tools"
    KEYRING = "keyring"
    OFFER = "offer"


# Seconds that a cause must last before it is reported: long enough to group simultaneous causes in one notification.
DELAYS_S: dict[NoticeKind, float] = {
    NoticeKind.CRASH_LOOP: 0.0,
    NoticeKind.CRASHED: 0.0,  # reported once the gateway runs again; otherwise CRASH_LOOP reports it
    NoticeKind.HANGS: 2.0,  # a machine that has just woken up, or is swapping
    NoticeKind.FILE: 0.5,  # some editors write in two steps
    NoticeKind.SIGN_IN: 1.0,
    NoticeKind.PERMISSIONS: 1.0,
    NoticeKind.APPROVAL: 1.0,
    NoticeKind.COMMAND: 1.0,
    NoticeKind.FAILED: 4.0,  # a server that recovers in this time (after a wake or a restart) is not worth a report
    NoticeKind.TOOLS: 2.0,  # groups the changes that a refresh of all servers finds
    NoticeKind.KEYRING: 1.0,  # a dialog to unlock it may be open
    NoticeKind.OFFER: 1.0,
}
EARLY_S = 0.01  # a timer may fire slightly early, and sums are rounded
CALM_S = 60.0  # a crash this soon after another counts as the same one; the crash loop has its own notification
# An outage ends once the server is up or no longer wanted. Idle does not end it: a reconnect passes through idle.
OUTAGE_OVER = frozenset({State.CONNECTED, State.STOPPING, State.DISABLED})

ASKS_SHOWN = 3  # notifications of asks at once; further asks wait in the menu until one of these is answered

Cause = tuple[NoticeKind, str]  # the second part: a server, a problem, or ""


@dataclass(frozen=True, slots=True)
class Notice:
    """One notification.

    - `key`: the notification replaces the one with the same key on the screen.
    - `actions`: labels and actions. A click on the notification itself carries out the first action.
    - `urgent`: the notification stays until the user dismisses it.
    """

    key: str
    title: str
    text: str
    actions: tuple[tuple[str, Action], ...] = ()
    urgent: bool = False
    click: bool = True  # False: only the buttons react, not a click on the notification itself


@dataclass(frozen=True, slots=True)
class NoticeMemory:
    """The memory between two calls of `due_notices`. The first call gets `NoticeMemory()`.

    - `told`: causes that were reported and still hold.
    - `waiting`: cause not yet reported -> the time since which it holds.
    - `tools`: server -> its numbers of all and of stale tools, as last reported.
    - `child`: the process state at the last call.
    - `crashed_at`: the time of the last crash.
    - `is_down`: True from a crash until the gateway runs again (only then is the crash reported) or is no longer
      wanted. Crashes in a row count as one.
    """

    told: frozenset[Cause] = frozenset()
    waiting: Mapping[Cause, float] = field(default_factory=lambda: MappingProxyType({}))
    tools: Mapping[str, tuple[int, int]] = field(default_factory=lambda: MappingProxyType({}))
    child: ChildState | None = None
    crashed_at: float | None = None
    is_down: bool = False
    asks: frozenset[str] = frozenset()  # reported asks that are still open


@dataclass(frozen=True, slots=True)
class DueNotices:
    """The result of `due_notices`: what to show now, and what to pass to the next call (`told`).

    `again_s`: the seconds until the next call is due; None: at the next change of the state. `over`: keys of
    notifications to withdraw because they ask for something no longer needed.
    """

    notices: tuple[Notice, ...]
    told: NoticeMemory
    again_s: float | None
    over: tuple[str, ...] = ()


def due_notices(state: TrayState, told: NoticeMemory, now: float) -> DueNotices:
    """Return the notifications that `state` calls for and that were not yet reported (`told`).

    `now`: seconds of any steady clock. Call this for every change of the state, and again after `again_s`.
    """
    known = assess(state)
    held = _held(state, known, told)
    fresh = {cause: told.waiting.get(cause, now) for cause in held if cause not in told.told}
    due = {cause[0] for cause, since in fresh.items() if now - since >= DELAYS_S[cause[0]] - EARLY_S}
    tellable = {cause for cause in fresh if cause[0] in due}
    mended = known.live is not None and not known.fatal and any(kind is NoticeKind.FILE for kind, _ in told.told)
    # A notification that asks for something lists all its causes: it replaces one that may still be on the screen.
    asked = {cause for cause in held & told.told if cause[0] in ASKING}
    notices = [NOTICES[kind](known, _names(kind, tellable | asked), told) for kind in NoticeKind if kind in due]
    waiting = {cause: since for cause, since in fresh.items() if cause not in tellable}
    room = ASKS_SHOWN - len(told.asks & {ask.id for ask in known.asks})
    asks = [ask for ask in known.asks if ask.id not in told.asks][: max(0, room)]  # the oldest first
    crashes = state.child is ChildState.RESTARTING and told.child is not ChildState.RESTARTING
    calm = told.crashed_at is None or now - told.crashed_at >= CALM_S
    ended = known.live is not None or state.child in (ChildState.CRASH_LOOP, ChildState.PAUSED, ChildState.STOPPING)
    after = NoticeMemory(
        told=_still(told.told, state, known) | tellable - {c for c in tellable if c[0] in PASSING},
        waiting=waiting,
        tools=_counts(known, told, {name for kind, name in waiting if kind is NoticeKind.TOOLS}),
        child=state.child,
        crashed_at=now if crashes else told.crashed_at,
        is_down=(crashes and calm) or (told.is_down and not ended),
        asks=frozenset(ask.id for ask in known.asks if ask.id in told.asks or ask in asks),
    )
    over = tuple(kind for kind in ASKING if _names(kind, told.told) and not _names(kind, after.told))
    answered = tuple(_ask_key(ask_id) for ask_id in sorted(told.asks - after.asks))
    shown = (*([MENDED] if mended else []), *map(_ask, asks), *notices)
    again_s = min((since + DELAYS_S[cause[0]] - now for cause, since in waiting.items()), default=None)
    return DueNotices(shown, after, again_s, (*over, *answered))


# These ask the user for something. They are withdrawn once the user has acted elsewhere: some desktops keep them.
ASKING = (
    NoticeKind.CRASH_LOOP,
    NoticeKind.HANGS,
    NoticeKind.SIGN_IN,
    NoticeKind.PERMISSIONS,
    NoticeKind.APPROVAL,
    NoticeKind.COMMAND,
    NoticeKind.KEYRING,
)
PASSING = frozenset({NoticeKind.CRASHED, NoticeKind.TOOLS})  # events are over once they are reported


def _problem_key(problem: Problem) -> str:
    """Return a key for a problem. The key of an entry's problem stays the same when the entry moves in its file."""
    return identity(problem if problem.server is None else replace(problem, line=0, column=0))


def _names(kind: NoticeKind, causes: Iterable[Cause]) -> set[str]:
    return {name for of, name in causes if of is kind}


# -- causes ----------------------------------------------------------------------------------------------------------


def _held(state: TrayState, known: Assessment, told: NoticeMemory) -> set[Cause]:
    """Return the causes that hold now."""
    causes: set[Cause] = {(NoticeKind.FAILED, server.name) for server in known.failed}
    causes |= {(NoticeKind.SIGN_IN, server.name) for server in known.sign_in}
    causes |= {(NoticeKind.PERMISSIONS, server.name) for server in known.permissions}
    causes |= {(NoticeKind.APPROVAL, name) for name in known.approvals}
    causes |= {(NoticeKind.COMMAND, server.name) for server in known.commands}
    causes |= {(NoticeKind.FILE, _problem_key(problem)) for problem in known.fatal}
    causes |= {(NoticeKind.TOOLS, server.name) for server in known.servers if any(_tool_change(server, told))}
    causes |= {(NoticeKind.CRASH_LOOP, "")} if state.child is ChildState.CRASH_LOOP else set()
    causes |= {(NoticeKind.KEYRING, "")} if known.keyring is not None else set()
    causes |= {(NoticeKind.OFFER, "")} if known.offered and not state.offer_told else set()
    causes |= {(NoticeKind.HANGS, "")} if state.hangs else set()
    return causes | ({(NoticeKind.CRASHED, "")} if told.is_down and known.live is not None else set())


def _still(told: frozenset[Cause], state: TrayState, known: Assessment) -> frozenset[Cause]:
    """Return the reported causes that still hold. Without a gateway, servers' causes stay: their state is unknown."""
    states = {server.name: server.state for server in known.servers}
    problems = set(map(_problem_key, known.fatal))
    asking = {server.name for server in known.permissions}
    failed = {server.name for server in known.failed}
    live = known.live is not None
    over: dict[NoticeKind, Callable[[str], bool]] = {
        NoticeKind.CRASH_LOOP: lambda _: state.child is not ChildState.CRASH_LOOP,
        NoticeKind.HANGS: lambda _: not state.hangs,
        NoticeKind.FILE: lambda problem: live and problem not in problems,
        NoticeKind.SIGN_IN: lambda name: live and states.get(name, State.DISABLED) in OUTAGE_OVER,
        NoticeKind.FAILED: lambda name: live and states.get(name, State.DISABLED) in OUTAGE_OVER,
        NoticeKind.PERMISSIONS: lambda name: live and name not in asking,
        NoticeKind.APPROVAL: lambda name: live and name not in known.approvals,
        NoticeKind.COMMAND: lambda name: live and (name in failed or states.get(name, State.DISABLED) in OUTAGE_OVER),
        NoticeKind.KEYRING: lambda _: live and known.keyring is None,
        NoticeKind.OFFER: lambda _: False,  # reported only once
    }
    return frozenset((kind, name) for kind, name in told if not over[kind](name))


def _tool_change(server: ServerStatus, told: NoticeMemory) -> tuple[int, int]:
    """Return how many tools came (or came back), and how many went, since the last report.

    (0, 0) if nothing was reported before, or if the server has no tools.
    """
    before = told.tools.get(server.name)
    if before is None or not server.tools.total:
        return 0, 0
    new, stale = server.tools.total - before[0], server.tools.stale - before[1]
    return max(0, new) + max(0, -stale if new >= 0 else 0), max(0, stale)


def _counts(known: Assessment, told: NoticeMemory, waiting: set[str]) -> Mapping[str, tuple[int, int]]:
    """Return the counts for the next comparison. A change that is not reported yet keeps its old counts."""
    if known.live is None:
        return told.tools
    now = {server.name: (server.tools.total, server.tools.stale) for server in known.servers if server.tools.total}
    names = {server.name for server in known.servers}
    old = {name: counts for name, counts in told.tools.items() if name in names}
    return old | {name: counts for name, counts in now.items() if name not in waiting}


# -- asks ------------------------------------------------------------------------------------------------------------


def _ask_key(ask_id: str) -> str:
    return f"ask/{ask_id}"


def _ask(ask: AskStatus) -> Notice:
    """Return the notification of one ask, with its answers. A click outside the buttons must not allow anything."""
    title = texts.within([texts.ask_title(ask)], texts.TITLE)
    lines = "\n".join(texts.ask_text(ask))
    return Notice(_ask_key(ask.id), title, lines, ask_answers(ask), urgent=True, click=False)


# -- notifications ---------------------------------------------------------------------------------------------------


def _event_key(kind: NoticeKind, names: set[str]) -> str:
    return f"{kind}/{','.join(sorted(names))}"


def _notice(key: str, title: str, lines: Iterable[str], *actions: tuple[str, Action]) -> Notice:
    """Return a notice whose lines are not wrapped: the program that shows it wraps them to its own width."""
    text = texts.within([line for line in lines if line], texts.BODY)
    return Notice(key, texts.within([texts.fit(title)], texts.TITLE), text, actions)


def _failed(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    servers = [server for server in known.failed if server.name in names]
    key = _event_key(NoticeKind.FAILED, names)
    if len(servers) > 1:
        lines = texts.bounded(list(map(texts.failed_why, servers))).split("\n")
        return _notice(key, texts.servers_failed(len(servers)), lines, (texts.RECONNECT_ALL, RECONNECT_ALL))
    name, error = servers[0].name, servers[0].error or {}
    lines = [texts.reason_alone(servers[0]), texts.plain(error.get("hint", ""))]
    return _notice(
        key,
        texts.failed([texts.server_name(servers[0])]),
        lines,
        (texts.SHOW_LOG, Action(Verb.SHOW_LOG, name)),
        (texts.RECONNECT, Action(Verb.RECONNECT, name)),
    )


def _sign_in(kind: NoticeKind, wanting: Sequence[ServerStatus], names: set[str]) -> Notice:
    """Return a notice with one button per server, as many as there is room for. A single button names no server."""
    servers = [server for server in wanting if server.name in names]
    shown, alone = [texts.server_name(server) for server in servers], len(servers) == 1
    if kind is NoticeKind.SIGN_IN:
        title, label = texts.sign_in_wanted(shown), texts.SIGN_IN_NOW
        text = texts.SIGN_IN_TEXT if alone else texts.SIGN_IN_TEXT_MANY
    else:
        title, label = texts.permissions_wanted(shown), texts.GRANT_NOW
        text = texts.GRANT_TEXT if alone else texts.GRANT_TEXT_MANY
    buttons = [
        (label if alone else texts.sign_in_to(server), Action(Verb.SIGN_IN, server.name))
        for server in servers[: texts.BUTTONS]
    ]
    return _notice(kind, title, [text], *buttons)


def _approval(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    servers = [name for name in known.approvals if name in names]
    several = len(servers) > 1
    actions = [
        (texts.name(name) if several else texts.SHOW_CHANGES, Action(Verb.SHOW_CHANGES, name))
        for name in servers[: texts.BUTTONS]
    ]
    alarming = {server.name: server.findings for server in known.servers if server.findings and server.name in names}
    if not alarming:
        return _notice(NoticeKind.APPROVAL, texts.approval_wanted(servers), [texts.APPROVE_TEXT], *actions)
    codes = [code for found in alarming.values() for code in found]
    return _notice(NoticeKind.APPROVAL, texts.alarmed(list(alarming), codes), [texts.ALARM_TEXT], *actions)


def _command(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    servers = [texts.server_name(server) for server in known.commands if server.name in names]
    text = texts.COMMAND_TEXT if len(servers) == 1 else texts.COMMAND_TEXT_MANY
    review = (texts.REVIEW, Action(Verb.OPEN_PANEL, APPROVALS_PAGE))
    return _notice(NoticeKind.COMMAND, texts.commands_wanted(servers), [text], review)


def _file(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    """Return a notice about all files and entries that cannot be used now: it replaces the previous notice.

    If a whole file cannot be read, problems of entries are left out: they concern its last valid version.
    """
    whole = next((problem for problem in known.fatal if problem.server is None), None)
    first = whole or known.fatal[0]
    others = [problem for problem in known.fatal if problem is not first and (whole is None or problem.server is None)]
    lines = texts.bounded([texts.problem_line(problem) for problem in (first, *others)]).split("\n")
    if not others:
        lines = [texts.plain(texts.problem_words(first)), texts.plain(first.hint)]
    after = texts.FILE_BROKEN_TEXT if whole else texts.ENTRY_BROKEN_TEXT
    return _notice(
        NoticeKind.FILE,
        texts.file_broken(first),
        [*lines, after],
        (texts.open_file(first), Action(Verb.OPEN_FILE, first.file)),
    )


def _tools(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    servers = [server for server in known.servers if server.name in names]
    title, text = texts.tools_changed([(texts.server_name(s), *_tool_change(s, told)) for s in servers])
    return _notice(_event_key(NoticeKind.TOOLS, names), title, text.split("\n"))


def _keyring(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    if texts.is_unlockable(known.keyring, known.keyring_error):
        unlock = (texts.UNLOCK_NOW, Action(Verb.UNLOCK))
        return _notice(NoticeKind.KEYRING, texts.KEYRING_LOCKED, [texts.UNLOCK_TEXT], unlock)
    error = known.keyring_error
    why = [texts.sentences(error["title"], error["hint"])] if error else [texts.INSTALL_KEYRING]
    return _notice(NoticeKind.KEYRING, texts.NOT_KEPT, [*why, texts.NOT_KEPT_TEXT])


def _offer(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    """Return an offer whose first button only shows the servers: a click on the notification is not a yes."""
    key, secrets = offer_key(known.offered), any(server.secrets for server in known.offered)
    return _notice(
        NoticeKind.OFFER,
        texts.offer_title(known.offered),
        [*texts.bounded(list(map(texts.offered, known.offered)), 2).split("\n"), texts.OFFER_TEXT],
        (texts.SHOW_OFFER, Action(Verb.SHOW_OFFER)),
        (texts.TAKE_OVER, Action(Verb.TAKE_OVER_HIDDEN if secrets else Verb.TAKE_OVER, key)),
        (texts.LEAVE, Action(Verb.LEAVE_SERVERS)),
    )


RECONNECT_ALL = Action(Verb.RECONNECT)
LOGS = (texts.SHOW_LOGS, Action(Verb.SHOW_LOGS))
MENDED = _notice(NoticeKind.FILE, texts.FILE_MENDED, [texts.FILE_MENDED_TEXT])
CRASHED = _notice(NoticeKind.CRASHED, texts.CRASHED, [texts.CRASHED_TEXT], LOGS)
CRASH_LOOP = replace(  # urgent: the user may be away
    _notice(
        NoticeKind.CRASH_LOOP, texts.CRASH_LOOP, [texts.CRASH_LOOP_TEXT], (texts.RETRY_NOW, Action(Verb.RETRY)), LOGS
    ),
    urgent=True,
)
HANGS = _notice(NoticeKind.HANGS, texts.HANGS, [texts.HANGS_TEXT], LOGS, (texts.RESTART, Action(Verb.RESTART)))
NOTICES: dict[NoticeKind, Callable[[Assessment, set[str], NoticeMemory], Notice]] = {
    NoticeKind.CRASH_LOOP: lambda *_: CRASH_LOOP,
    NoticeKind.CRASHED: lambda *_: CRASHED,
    NoticeKind.HANGS: lambda *_: HANGS,
    NoticeKind.FILE: _file,
    NoticeKind.SIGN_IN: lambda known, names, _: _sign_in(NoticeKind.SIGN_IN, known.sign_in, names),
    NoticeKind.PERMISSIONS: lambda known, names, _: _sign_in(NoticeKind.PERMISSIONS, known.permissions, names),
    NoticeKind.APPROVAL: _approval,
    NoticeKind.COMMAND: _command,
    NoticeKind.FAILED: _failed,
    NoticeKind.TOOLS: _tools,
    NoticeKind.KEYRING: _keyring,
    NoticeKind.OFFER: _offer,
}
