"""The notifications that a state requires. Simultaneous causes of one kind share a notification.

The functions are pure: each call returns the memory for the next one.
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
from trayapp.model.text import count
from trayapp.tray.state import texts
from trayapp.tray.state.tray_state import APPROVALS_PAGE, Action, Assessment, TrayState, Verb, assess, offer_key
from trayapp.tray.state.view import ask_answers, identity


class NoticeKind(StrEnum):
    """The kinds of notification, most important first.

    A kind is also the key of its notification, so a new notification replaces the previous one. The keys for FAILED and
    TOOLS also contain the servers' names: these report events, and the previous notification may still be unread.
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
    NoticeKind.HANGS: 2.0,  # a machine that just woke up or is swapping is slow to answer
    NoticeKind.FILE: 0.5,  # some editors write in two steps
    NoticeKind.SIGN_IN: 1.0,
    NoticeKind.PERMISSIONS: 1.0,
    NoticeKind.APPROVAL: 1.0,
    NoticeKind.COMMAND: 1.0,
    NoticeKind.FAILED: 4.0,  # a server often recovers within this time, for example after a restart
    NoticeKind.TOOLS: 2.0,  # enough to group the changes from a refresh of all servers
    NoticeKind.KEYRING: 1.0,  # the desktop's unlock dialog may be open
    NoticeKind.OFFER: 1.0,
}
EARLY_S = 0.01  # a timer may fire slightly early, and sums are rounded
CALM_S = 60.0  # a crash this soon after another is not reported; a crash loop has its own notification
# An outage ends once the server is connected or no longer wanted. A reconnect passes through idle, so idle does not
# end the outage.
OUTAGE_OVER = frozenset({State.CONNECTED, State.STOPPING, State.DISABLED})

ASKS_SHOWN = 3  # limit on asks with a notification on the screen; others appear only in the menu until one is answered

Cause = tuple[NoticeKind, str]  # kind, and the name of a server, the key of a problem, or ""


@dataclass(frozen=True, slots=True)
class Notice:
    """One notification.

    - `key`: a notification replaces the one on the screen with the same key.
    - `actions`: labels and actions. If `click` is True, a click on the notification carries out the first.
    - `urgent`: the notification stays until the user dismisses it.
    """

    key: str
    title: str
    text: str
    actions: tuple[tuple[str, Action], ...] = ()
    urgent: bool = False
    click: bool = True  # False: a click outside the buttons has no effect


@dataclass(frozen=True, slots=True)
class NoticeMemory:
    """The memory between two calls of `due_notices`. The first call gets `NoticeMemory()`.

    - `told`: causes that were reported and still hold.
    - `waiting`: unreported cause -> the time when it began.
    - `tools`: server -> its last reported numbers of all tools and of stale tools.
    - `child`: the process state at the last call.
    - `crashed_at`: the time of the last crash.
    - `is_down`: True from a crash until the gateway runs again or is no longer wanted. A crash is reported only when
      the gateway runs again. Crashes in a row count as one.
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
    """The result of `due_notices`.

    - `notices`: the notifications to show now
    - `told`: the memory for the next call
    - `again_s`: the seconds until the next call, or None if it can wait for the next change of the state
    - `over`: keys of notifications to withdraw because they request something that is no longer needed
    """

    notices: tuple[Notice, ...]
    told: NoticeMemory
    again_s: float | None
    over: tuple[str, ...] = ()


def due_notices(state: TrayState, told: NoticeMemory, now: float) -> DueNotices:
    """Return the notifications that `state` requires, without those already reported (`told`).

    `now`: the seconds of a monotonic clock. Call this after every change of the state, and after `again_s`.
    """
    known = assess(state)
    held = _held(state, known, told)
    fresh = {cause: told.waiting.get(cause, now) for cause in held if cause not in told.told}
    due = {cause[0] for cause, since in fresh.items() if now - since >= DELAYS_S[cause[0]] - EARLY_S}
    tellable = {cause for cause in fresh if cause[0] in due}
    mended = known.live is not None and not known.fatal and any(kind is NoticeKind.FILE for kind, _ in told.told)
    # A notification that requests something lists all its causes, because it replaces the previous one.
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


# Kinds that need the user. They are withdrawn once the user has acted elsewhere: some desktops would keep them.
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


def _held(state: TrayState, known: Assessment, told: NoticeMemory) -> set[Cause]:
    """Return the current causes of notifications, reported or not."""
    held: dict[NoticeKind, Iterable[str]] = {
        NoticeKind.FAILED: (server.name for server in known.failed),
        NoticeKind.SIGN_IN: (server.name for server in known.sign_in),
        NoticeKind.PERMISSIONS: (server.name for server in known.permissions),
        NoticeKind.APPROVAL: known.approvals,
        NoticeKind.COMMAND: (server.name for server in known.commands),
        NoticeKind.FILE: map(_problem_key, known.fatal),
        NoticeKind.TOOLS: (server.name for server in known.servers if any(_tool_change(server, told))),
        NoticeKind.CRASH_LOOP: [""] if state.child is ChildState.CRASH_LOOP else (),
        NoticeKind.KEYRING: [""] if known.keyring is not None else (),
        NoticeKind.OFFER: [""] if known.offered and not state.offer_told else (),
        NoticeKind.HANGS: [""] if state.hangs else (),
        NoticeKind.CRASHED: [""] if told.is_down and known.live is not None else (),
    }
    return {(kind, name) for kind, names in held.items() for name in names}


def _still(told: frozenset[Cause], state: TrayState, known: Assessment) -> frozenset[Cause]:
    """Return the reported causes that still hold. Without a gateway, keep those of servers: their state is unknown."""
    states = {server.name: server.state for server in known.servers}
    problems = set(map(_problem_key, known.fatal))
    asking = {server.name for server in known.permissions}
    failed = {server.name for server in known.failed}
    live = known.live is not None

    def is_outage_over(name: str) -> bool:
        return states.get(name, State.DISABLED) in OUTAGE_OVER

    over: dict[NoticeKind, Callable[[str], bool]] = {
        NoticeKind.CRASH_LOOP: lambda _: state.child is not ChildState.CRASH_LOOP,
        NoticeKind.HANGS: lambda _: not state.hangs,
        NoticeKind.FILE: lambda problem: live and problem not in problems,
        NoticeKind.SIGN_IN: lambda name: live and is_outage_over(name),
        NoticeKind.FAILED: lambda name: live and is_outage_over(name),
        NoticeKind.PERMISSIONS: lambda name: live and name not in asking,
        NoticeKind.APPROVAL: lambda name: live and name not in known.approvals,
        NoticeKind.COMMAND: lambda name: live and (name in failed or is_outage_over(name)),
        NoticeKind.KEYRING: lambda _: live and known.keyring is None,
        NoticeKind.OFFER: lambda _: False,  # reported only once
    }
    return frozenset((kind, name) for kind, name in told if not over[kind](name))


def _tool_change(server: ServerStatus, told: NoticeMemory) -> tuple[int, int]:
    """Return how many tools were added (or returned) and how many disappeared since the last report.

    Return (0, 0) if nothing was reported before or if the server has no tools.
    """
    before = told.tools.get(server.name)
    if before is None or not server.tools.total:
        return 0, 0
    new, stale = server.tools.total - before[0], server.tools.stale - before[1]
    return max(0, new) + max(0, -stale if new >= 0 else 0), max(0, stale)


def _counts(known: Assessment, told: NoticeMemory, waiting: set[str]) -> Mapping[str, tuple[int, int]]:
    """Return the tool counts for the next comparison. A server with an unreported change keeps its old counts."""
    if known.live is None:
        return told.tools
    now = {server.name: (server.tools.total, server.tools.stale) for server in known.servers if server.tools.total}
    names = {server.name for server in known.servers}
    old = {name: counts for name, counts in told.tools.items() if name in names}
    return old | {name: counts for name, counts in now.items() if name not in waiting}


def notice_of(key: str, title: str, text: str, *actions: tuple[str, Action]) -> Notice:
    """Return a notice with its texts cut to fit. Its lines are not wrapped, because the desktop wraps them."""
    lines = [line for line in text.split("\n") if line] or [""]
    return Notice(key, texts.within([texts.fit(title)], texts.TITLE), texts.within(lines, texts.BODY), actions)


def _ask_key(ask_id: str) -> str:
    return f"ask/{ask_id}"


def _ask(ask: AskStatus) -> Notice:
    """Return the notification of an ask, with a button for each answer. A click outside the buttons allows nothing."""
    title = texts.within([texts.ask_title(ask)], texts.TITLE)
    lines = "\n".join(texts.ask_text(ask))
    return Notice(_ask_key(ask.id), title, lines, ask_answers(ask), urgent=True, click=False)


def _event_key(kind: NoticeKind, names: set[str]) -> str:
    return f"{kind}/{','.join(sorted(names))}"


def _failed(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    servers = [server for server in known.failed if server.name in names]
    key = _event_key(NoticeKind.FAILED, names)
    if len(servers) > 1:
        reasons = texts.bounded(list(map(texts.failed_why, servers)))
        reconnect = (texts.RECONNECT_ALL, Action(Verb.RECONNECT))
        return notice_of(key, f"{count(len(servers), 'server')} failed", reasons, reconnect)
    server = servers[0]
    hint = texts.plain((server.error or {}).get("hint", ""))
    return notice_of(
        key,
        f"{texts.server_name(server)} failed",
        f"{texts.reason_alone(server)}\n{hint}",
        (texts.SHOW_LOG, Action(Verb.SHOW_LOG, server.name)),
        (texts.RECONNECT, Action(Verb.RECONNECT, server.name)),
    )


def _sign_in(kind: NoticeKind, wanting: Sequence[ServerStatus], names: set[str]) -> Notice:
    """Return a notice with one button per server, as many as fit. A single button does not name its server."""
    servers = [server for server in wanting if server.name in names]
    alone = len(servers) == 1
    if kind is NoticeKind.SIGN_IN:
        needs, label = texts.NEEDS_SIGN_IN, "Sign in"
        text = f"{'Its' if alone else 'Their'} tools can be called once you have signed in."
    else:
        needs, label = texts.NEEDS_PERMISSIONS, "Sign in again"
        refused, them = ("A call was", "it") if alone else ("Calls were", "them")
        text = f"{refused} refused. Sign in again to allow {them}."
    buttons = [
        (label if alone else texts.sign_in_to(server), Action(Verb.SIGN_IN, server.name))
        for server in servers[: texts.BUTTONS]
    ]
    return notice_of(kind, texts.listed(texts.server_names(servers), *needs), text, *buttons)


def _approval(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    servers = [name for name in known.approvals if name in names]
    several = len(servers) > 1
    actions = [
        (texts.name(name) if several else texts.SHOW_CHANGES, Action(Verb.SHOW_CHANGES, name))
        for name in servers[: texts.BUTTONS]
    ]
    alarming = {server.name: server.findings for server in known.servers if server.findings and server.name in names}
    if alarming:
        title = texts.alarmed(list(alarming), [code for found in alarming.values() for code in found])
        text = "Its new text is held back. Read it before you approve."
    else:
        title = texts.listed(servers, texts.NEEDS_APPROVAL)
        text = "The changes are held back until you approve them."
    return notice_of(NoticeKind.APPROVAL, title, text, *actions)


def _command(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    servers = texts.server_names([server for server in known.commands if server.name in names])
    text = "The server starts once you approve it." if len(servers) == 1 else "The servers start once you approve them."
    review = ("Review", Action(Verb.OPEN_PANEL, APPROVALS_PAGE))
    return notice_of(NoticeKind.COMMAND, texts.listed(servers, texts.NEEDS_REVIEW), text, review)


def _file(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    """Return a notice about all files and entries that cannot be used now. It replaces the previous notice.

    If a whole file cannot be read, omit problems of entries, which concern its last valid version.
    """
    whole = next((problem for problem in known.fatal if problem.server is None), None)
    first = whole or known.fatal[0]
    others = [problem for problem in known.fatal if problem is not first and (whole is None or problem.server is None)]
    text = texts.bounded([texts.problem_line(problem) for problem in (first, *others)])
    if not others:
        text = f"{texts.plain(texts.problem_words(first))}\n{texts.plain(first.hint)}"
    after = "Until it is fixed, the servers run as before." if whole else "All other servers run."
    opens = (f"Open {texts.file_name(first)}", Action(Verb.OPEN_FILE, first.file))
    where = f"{texts.name(first.server, 18)} in " if first.server else ""
    title = f"{where}{texts.file_name(first)} cannot be used"
    return notice_of(NoticeKind.FILE, title, f"{text}\n{after}", opens)


def _tools(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    servers = [server for server in known.servers if server.name in names]
    lines = [texts.fit(f"{texts.server_name(s)}: {texts.tool_change(*_tool_change(s, told))}") for s in servers]
    title = f"The tools of {count(len(servers), 'server')} changed" if len(servers) > 1 else "Tools changed"
    return notice_of(_event_key(NoticeKind.TOOLS, names), title, texts.bounded(lines))


def _keyring(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    if texts.is_unlockable(known.keyring, known.keyring_error):
        text = "It holds sign-ins and secrets. Servers that need them wait until you unlock it."
        return notice_of(NoticeKind.KEYRING, texts.KEYRING_LOCKED, text, ("Unlock", Action(Verb.UNLOCK)))
    error = known.keyring_error
    why = (
        texts.sentences(error["title"], error["hint"])
        if error
        else "There is no keyring. Install one to keep sign-ins."
    )
    text = f"{why}\nUntil then, they are lost when the gateway ends."
    return notice_of(NoticeKind.KEYRING, "Sign-ins are not kept", text)


def _offer(known: Assessment, names: set[str], told: NoticeMemory) -> Notice:
    """Return the notice of offered servers. The first action only shows them: a click on the notice carries it out."""
    key, secrets = offer_key(known.offered), any(server.secrets for server in known.offered)
    number = count(len(known.offered), "server")
    return notice_of(
        NoticeKind.OFFER,
        texts.listed(texts.tools_of(known.offered), f" has {number}", f" have {number}"),
        f"{texts.bounded(list(map(texts.offered, known.offered)), 2)}\nNothing starts until you choose.",
        ("Show them", Action(Verb.SHOW_OFFER)),
        (texts.TAKE_OVER, Action(Verb.TAKE_OVER_HIDDEN if secrets else Verb.TAKE_OVER, key)),
        (texts.LEAVE, Action(Verb.LEAVE_SERVERS)),
    )


LOGS = (texts.SHOW_LOGS, Action(Verb.SHOW_LOGS))
MENDED = notice_of(NoticeKind.FILE, "servers.yaml is fine again", "Its changes are applied.")
CRASHED = notice_of(
    NoticeKind.CRASHED,
    "The gateway stopped unexpectedly and runs again",
    "Calls in progress got an error. The gateway's log may say why.",
    LOGS,
)
CRASH_LOOP = notice_of(
    NoticeKind.CRASH_LOOP,
    texts.CRASH_LOOP,
    "It stays stopped until you choose Retry. See its log for the reason.",
    (texts.RETRY, Action(Verb.RETRY)),
    LOGS,
)
HANGS = notice_of(
    NoticeKind.HANGS,
    texts.HANGS,
    "AI tools wait for it. Restart it, or wait: a gateway that this app started restarts automatically.",
    LOGS,
    (texts.RESTART, Action(Verb.RESTART)),
)
NOTICES: dict[NoticeKind, Callable[[Assessment, set[str], NoticeMemory], Notice]] = {
    NoticeKind.CRASH_LOOP: lambda *_: replace(CRASH_LOOP, urgent=True),  # the user may be away
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
