"""Everything that is shown for a state: icon, tooltip, summary, and the menu's entries in their order.

Pure functions of TrayState. The view contains no times, such as a server's uptime: they would change it all the
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from itertools import pairwise
from typing import TypeVar

from trayapp.model.child import ChildState
from trayapp.model.errors import Problem
from trayapp.model.lifecycle import State
from trayapp.model.status import AskStatus, KeyringState, ServerStatus
from trayapp.model.text import count
from trayapp.tray.state import texts
from trayapp.tray.state.tray_state import (
    ANSWERS,
    APPROVALS_PAGE,
    SEPARATOR,
    Action,
    Assessment,
    Entry,
    IconKind,
    Item,
    Offered,
    TrayState,
    TrayView,
    Verb,
    assess,
    in_trouble,
    offer_key,
    wants_permissions,
)

SUMMARY_LINES = 5
WHY_LINES = 2  # lines of the summary about why no gateway serves; the tooltip has room for one

# Without a serving gateway, the state of its process determines the icon, the headline, and the advice to the user.
WITHOUT_GATEWAY: dict[ChildState, tuple[IconKind, str, str]] = {
    ChildState.STARTING: (IconKind.STARTING, texts.STARTING, ""),
    ChildState.STOPPING: (IconKind.STARTING, texts.STOPPING, ""),  # a transition, like starting
    ChildState.RESTARTING: (IconKind.DOWN, "The gateway stopped and is restarting", ""),
    ChildState.CRASH_LOOP: (IconKind.DOWN, texts.CRASH_LOOP, "Choose Retry in the menu, or look at the logs"),
    ChildState.PAUSED: (IconKind.PAUSED, "Paused, no server can be reached", "Choose Resume in the menu to continue"),
}
FIRST_BUTTONS = {
    ChildState.PAUSED: (texts.RESUME, Action(Verb.RESUME)),
    ChildState.CRASH_LOOP: (texts.RETRY, Action(Verb.RETRY)),
}


def view(state: TrayState) -> TrayView:
    """Return the view of `state`. Never raises, whatever names and texts the state contains."""
    known = assess(state)
    headline = _headline(state, known)
    troubles = _troubles(state, known)
    header = texts.fit(f"{texts.APP}: {headline[:1].lower() + headline[1:]}")
    connecting = sum(server.state is State.CONNECTING for server in known.wanted)
    are = "is" if connecting == 1 else "are"
    under_way = [f"{count(connecting, 'server')} {are} connecting"] if connecting else []
    today = known.live.gateway.today if known.live else None  # also None if the history is disabled
    failed = f", {today.failed} failed" if today and today.failed else ""
    calls = [f"{count(today.calls, 'call')} today{failed}"] if today is not None else []
    # The most useful button comes first. A click on the notification triggers it, so it is never Quit.
    first = FIRST_BUTTONS.get(state.child, (texts.SHOW_LOGS, Action(Verb.SHOW_LOGS)))
    has_panel = known.live is not None and bool(known.live.gateway.http_url)  # the panel is served on its HTTP port
    if known.live is None:
        buttons, summary = [first], _why_down(state, WHY_LINES)
    else:
        buttons = [(texts.sign_in_to(server), Action(Verb.SIGN_IN, server.name)) for server in known.sign_in[:1]]
        buttons.append((texts.RECONNECT_ALL, Action(Verb.RECONNECT)) if known.wanted else first)
        buttons += [(texts.OPEN_PANEL, Action(Verb.OPEN_PANEL))] if has_panel and not known.sign_in else []
        lines = texts.bounded(troubles or under_way or [texts.ALL_WELL], SUMMARY_LINES).split("\n")
        summary = [*lines, texts.clients(client_titles(state, known)), *calls]
    return TrayView(
        icon=icon_kind(state, known),
        tooltip=texts.within([header, *(troubles or under_way), *calls], texts.TOOLTIP),
        menu=menu(state, known, header),
        buttons=(*buttons, (texts.QUIT, Action(Verb.QUIT))),
        summary="\n".join([headline, *summary]),
        click=Action(Verb.OPEN_PANEL if has_panel else Verb.SHOW_STATE),
    )


def icon_kind(state: TrayState, known: Assessment) -> IconKind:
    """Return the icon of a state. The first match in this list wins:

    - down (restarting, crash loop, hanging), paused, starting (also stopping): no gateway serves.
    - attention: an answer, a sign-in, the keyring, a permission, or an approval is needed.
    - degraded: a server failed, a file or one of its entries cannot be used, or the gateway's state cannot be read.
    - healthy: everything else.

    Servers that are connecting and problems that are not fatal do not affect the icon.
    """
    if state.child not in ANSWERS:
        return WITHOUT_GATEWAY[state.child][0]
    if state.hangs:
        return IconKind.DOWN
    if known.live is None:
        return IconKind.DEGRADED if state.error else IconKind.STARTING
    if known.asks or known.sign_in or known.locked or known.permissions or known.approvals or known.commands:
        return IconKind.ATTENTION
    return IconKind.DEGRADED if known.failed or known.fatal else IconKind.HEALTHY


def _headline(state: TrayState, known: Assessment) -> str:
    """Return one line about what is running, or why nothing is running."""
    if state.child not in ANSWERS:
        return WITHOUT_GATEWAY[state.child][1]
    if state.hangs:
        return texts.HANGS
    if known.live is not None:
        if known.wanted:
            ready = sum(server.ready for server in known.wanted)  # includes idle servers, which a call starts
            tools = sum(server.tools.enabled for server in known.wanted)
            return f"{ready} of {count(len(known.wanted), 'server')} ready, {count(tools, 'tool')}"
        return "All servers are disabled" if known.servers else texts.NO_SERVERS
    if state.error:
        return "Cannot read the gateway's state"
    return texts.STOPPING if state.snapshot and state.snapshot.gateway.state == "stopping" else texts.STARTING


def _troubles(state: TrayState, known: Assessment) -> list[str]:
    """Return one line for each problem or request. Those that need the user come first."""
    if known.live is None:
        return _why_down(state)
    alarming = [server for server in known.servers if server.findings and server.name in known.approvals]
    codes = [code for server in alarming for code in server.findings or ()]
    failed = texts.server_names(known.failed)
    lines = [
        texts.asks(known.asks) if known.asks else "",
        texts.KEYRING_LOCKED if known.locked else "",
        texts.listed(texts.server_names(known.sign_in), *texts.NEEDS_SIGN_IN),
        texts.listed(texts.server_names(known.permissions), *texts.NEEDS_PERMISSIONS),
        texts.alarmed([server.name for server in alarming], codes)
        or texts.listed(known.approvals, texts.NEEDS_APPROVAL),
        texts.listed(texts.server_names(known.commands), texts.NEEDS_REVIEW),
        texts.failed_why(known.failed[0]) if len(failed) == 1 else texts.listed(failed, " failed"),
        *map(texts.problem_line, known.fatal),
    ]
    return list(filter(None, lines)) or ([] if known.servers else ["Add one in servers.yaml"])


def _why_down(state: TrayState, lines: int = 1) -> list[str]:
    """Return the reason why no gateway serves, in at most `lines` lines, and what to do."""
    # Only our own gateway restarts automatically. For any other, the error says how to end it.
    hangs = "Choose Restart gateway in the menu, or wait" if state.hangs else ""
    hint = WITHOUT_GATEWAY[state.child][2] if state.child in WITHOUT_GATEWAY else hangs
    return [*texts.wrapped(state.error or "", lines), *([hint] if hint else [])]


T = TypeVar("T")

WANTS_SHOWN = 3  # entries of one kind at the top of the menu; a further entry is a submenu with the others
SERVERS_SHOWN = 25  # entries in one menu: about as many as fit on a small screen
GROUP_SIZE = 20


def menu(state: TrayState, known: Assessment, header: str) -> tuple[Entry, ...]:
    """Return the entries of the whole menu. `header`: the text of the first entry."""
    up, child = known.live is not None, state.child
    titles = list(dict.fromkeys(client_titles(state, known)))
    connected = f"{count(len(titles), 'AI tool')} connected: "
    if child is ChildState.PAUSED:
        pause = Item("resume", texts.RESUME, Action(Verb.RESUME))
    else:
        pause = Item("pause", "Pause", Action(Verb.PAUSE), enabled=child is not ChildState.STOPPING)
    restart = texts.RESTART
    switch = Action(Verb.AUTOSTART_OFF if state.autostart else Verb.AUTOSTART_ON)
    # Quit names the AI tools whose next call starts the gateway again: their shims keep running.
    waking = list(dict.fromkeys(client_titles(state, known, "stdio")))
    ending = texts.listed(waking, " starts the gateway again)", " start the gateway again)", before="Quit (")
    if child is ChildState.ATTACHED:
        restart, ending = "Restart gateway (started by another program)", "Quit (the gateway keeps running)"
    return (
        Item("header", header, Action(Verb.SHOW_STATE)),
        *([Item("connected", texts.listed(titles, before=connected), enabled=False)] if titles else []),
        *_wants(state, known),
        SEPARATOR,
        Item("panel", texts.OPEN_PANEL, Action(Verb.OPEN_PANEL), enabled=up),
        Item("servers", "Servers", children=_servers(known.servers)),
        Item("reconnect", texts.RECONNECT_ALL, Action(Verb.RECONNECT), enabled=bool(known.wanted)),
        Item("refresh", texts.REFRESH, Action(Verb.REFRESH), enabled=bool(known.wanted)),
        Item("clients", "AI tools", children=_clients(state)),
        Item("open", texts.OPEN_FILE, Action(Verb.OPEN_FILE)),
        SEPARATOR,
        pause,
        Item("restart", restart, Action(Verb.RESTART), enabled=child in ANSWERS),
        Item("help", "Logs and help", children=HELP),
        Item("autostart", "Start at login", switch, state.autostart)
        if state.autostart is not None
        else Item("autostart", "Start at login (not possible here)", enabled=False),
        SEPARATOR,
        Item("about", "About multi-mcp ...", Action(Verb.ABOUT)),
        Item("quit", ending or texts.QUIT, Action(Verb.QUIT)),
    )


HELP: tuple[Entry, ...] = (
    Item("logs", "Gateway log", Action(Verb.SHOW_LOGS)),
    Item("log-folder", "Log folder", Action(Verb.LOG_FOLDER)),
    Item("check", "Check everything", Action(Verb.CHECK)),
    Item("diagnostics", "Copy diagnostics", Action(Verb.COPY_DIAGNOSTICS)),
)


def client_titles(state: TrayState, known: Assessment, transport: str = "") -> list[str]:
    """Return the display name of each session's AI tool. `transport`: only sessions over it, or "" for all."""
    titles = {client.name: client.title for client in state.clients or ()}
    sessions = known.live.gateway.sessions if known.live else ()
    return [titles.get(one.client, one.client) for one in sessions if transport in ("", one.transport)]


def keyed(name: str) -> str:
    """Return a name, escaped for use as one part of a key: `a/log` must differ from the log of `a`."""
    return name.replace("%", "%25").replace("/", "%2F")


def identity(problem: Problem) -> str:
    """Return a key that is unique to this problem."""
    return repr(astuple(problem))


def _wants(state: TrayState, known: Assessment) -> list[Entry]:
    wants: list[Entry] = []
    if state.child is ChildState.CRASH_LOOP:
        wants.append(Item("retry", "! Retry: restart the gateway", Action(Verb.RETRY)))
    if known.live is None:
        return wants
    wants += _first_few("ask", map(_ask, known.asks), "Answer", "ask")
    if known.keyring is not None:
        wants.append(_keyring(known.keyring, known.keyring_error))
    sign_ins = [_want("sign-in", server, texts.sign_in_to(server)) for server in known.sign_in]
    wants += _first_few("sign-in", sign_ins, "! Sign in to {}")
    # These sign-ins ask for the wanted permissions in addition to those already granted.
    grants = [_want("grant", one, f"Grant {texts.server_name(one, 30)} more permissions") for one in known.permissions]
    wants += _first_few("grant", grants, "! Grant {} more permissions")
    codes = {server.name: server.findings or () for server in known.servers}
    approvals = []
    for name in sorted(known.approvals, key=lambda name: not codes.get(name)):  # suspicious ones first
        key = f"want/approve/{keyed(name)}"
        alarmed = texts.alarmed([texts.name(name, 14)], codes[name]) if codes.get(name) else ""
        # The entry that shows the changes comes first: an approval covers only what was shown.
        show = Item(f"{key}/show", texts.SHOW_CHANGES, Action(Verb.SHOW_CHANGES, name))
        yes = Item(f"{key}/yes", texts.APPROVE_SHOWN, Action(Verb.APPROVE, name))
        text = texts.wanted(alarmed or f"Approve changed tools of {texts.name(name)}")
        approvals.append(Item(key, text, children=(show, yes)))
    wants += _first_few("approve", approvals, "! Approve changed tools of {}")
    review = Action(Verb.OPEN_PANEL, APPROVALS_PAGE)
    commands = [
        _want("command", server, f"Review the command for a secret of {texts.server_name(server, 19)}", review)
        for server in known.commands
    ]
    wants += _first_few("command", commands, "! Review the commands for secrets of {}")
    wants += _first_few("failed", map(_failure, known.failed), "! {} failed")
    wants += _first_few("problem", map(_problem, known.problems), "! {}", "problem")
    if known.offered:
        number = "server" if len(known.offered) == 1 else f"{len(known.offered)} servers"
        label = texts.listed(texts.tools_of(known.offered), before=f"! Use the {number} of ")
        wants.append(Item("offer", texts.fit(label), children=_offer(known.offered)))
    return wants


def _ask(ask: AskStatus) -> Item:
    """Return the entry of a waiting call or question. Its submenu has the text of the ask, then the answers."""
    key = f"want/ask/{ask.id}"
    rows = tuple(Item(f"{key}/{at}", row, enabled=False) for at, row in enumerate(texts.ask_menu(ask)))
    answers = tuple(Item(f"{key}/{action.verb}", label, action) for label, action in ask_answers(ask))
    name = texts.name(ask.server)
    text = texts.fit(f"Allow {texts.plain(ask.tool)} of {name}" if ask.kind == "call" else f"Answer {name}")
    return Item(key, texts.wanted(text), children=(*rows, SEPARATOR, *answers))


def ask_answers(ask: AskStatus) -> tuple[tuple[str, Action], ...]:
    """Return the answers that one click can give, with their labels. Forms need the panel or the command line."""
    deny = ("Deny" if ask.kind == "call" else "Decline", Action(Verb.DENY, ask.id))
    if ask.kind != "call":
        if ask.url:
            return ("Open the page", Action(Verb.OPEN_ASKED, ask.id)), deny
        accept = ("Accept", Action(Verb.ALLOW, ask.id))
        return ("Answer in the panel", Action(Verb.OPEN_PANEL)) if ask.form else accept, deny
    wide = {"session": ("Allow for this session", Verb.ALLOW_SESSION), "always": ("Always", Verb.ALLOW_ALWAYS)}
    wider = [(label, Action(verb, ask.id)) for answer, (label, verb) in wide.items() if answer in ask.answers]
    return ("Allow once", Action(Verb.ALLOW, ask.id)), *wider, deny


def _keyring(state: KeyringState, error: Mapping[str, str]) -> Item:
    """Return an entry that opens the keyring's dialog or, if no dialog can help, lists what to do."""
    if texts.is_unlockable(state, error):
        return Item("keyring/unlock", "! Unlock the keyring ...", Action(Verb.UNLOCK))
    lines = [line for part in ("title", "hint") for line in texts.wrapped(error.get(part, ""))]
    rows = tuple(Item(f"keyring/{at}", line, enabled=False) for at, line in enumerate(lines))
    below: tuple[Entry, ...] = (SEPARATOR, Item("keyring/open", texts.OPEN_FILE, Action(Verb.OPEN_FILE)))
    why = texts.plain(error.get("title", "")) or (texts.KEYRING_LOCKED if state == "locked" else "There is no keyring")
    text = texts.fit(f"! Sign-ins are not kept: {why[:1].lower() + why[1:]}")
    return Item("keyring", text, enabled=bool(rows), children=rows + below if rows else ())


def _offer(offered: tuple[Offered, ...]) -> tuple[Entry, ...]:
    """Return the offered servers and what each starts, then the choices. The user's consent covers only these."""
    rows = tuple(Item(f"offer/of/{at}", texts.offered(one), enabled=False) for at, one in enumerate(offered))
    key = offer_key(offered)
    if any(one.secrets for one in offered):
        yes = [
            Item("offer/yes-hidden", "Use them, and store secrets in the keyring", Action(Verb.TAKE_OVER_HIDDEN, key)),
            Item("offer/yes", texts.TAKE_OVER_CLEAR, Action(Verb.TAKE_OVER, key)),
        ]
    else:
        yes = [Item("offer/yes", texts.TAKE_OVER, Action(Verb.TAKE_OVER, key))]
    return *_in_groups("offer", rows), SEPARATOR, *yes, Item("offer/no", texts.LEAVE, Action(Verb.LEAVE_SERVERS))


def _first_few(key: str, wants: Iterable[Item], way: str, thing: str = "server") -> tuple[Item, ...]:
    """Return the entries. If there are too many, move the rest into a submenu.

    `way`: the label of the submenu, in which `{}` is replaced, for example with `3 more servers`.
    """
    entries = tuple(wants)
    if len(entries) <= WANTS_SHOWN + 1:
        return entries
    rest = entries[WANTS_SHOWN:]
    label = way.format(count(len(rest), f"more {thing}"))
    return *entries[:WANTS_SHOWN], Item(f"{key}-more", label, children=_in_groups(f"{key}-more", rest))


def _in_groups(key: str, entries: tuple[Item, ...]) -> tuple[Entry, ...]:
    """Return the entries or, if more than SERVERS_SHOWN, submenus of up to GROUP_SIZE, to fit on the screen."""
    if len(entries) <= SERVERS_SHOWN:
        return entries
    groups, first = [], 1
    for part in _parts(entries):
        groups.append(Item(f"{key}/{first}", f"{first} to {first + len(part) - 1}", children=part))
        first += len(part)
    return tuple(groups)


def _parts(values: Sequence[T]) -> list[tuple[T, ...]]:
    """Return the values in parts of about equal length, at most GROUP_SIZE."""
    number = -(-len(values) // GROUP_SIZE)
    ends = [len(values) * at // number for at in range(number + 1)] if number else []
    return [tuple(values[begin:end]) for begin, end in pairwise(ends)]


def _want(kind: str, server: ServerStatus, words: str, click: Action | None = None) -> Item:
    """Return an entry about a server that needs the user. By default, a click signs in."""
    click = click or Action(Verb.SIGN_IN, server.name)
    return Item(f"want/{kind}/{keyed(server.name)}", texts.wanted(words), click)


def _failure(server: ServerStatus) -> Item:
    """Return an entry with reason and remedies in one submenu: panels on small screens cannot open a third level."""
    key = f"want/failed/{keyed(server.name)}"
    entries = [
        *_why(server, key),
        Item(f"{key}/reconnect", texts.RECONNECT, Action(Verb.RECONNECT, server.name)),
        Item(f"{key}/log", texts.SHOW_LOG, Action(Verb.SHOW_LOG, server.name)),
    ]
    if server.project is None:
        entries.append(Item(f"{key}/entry", "Open its entry", Action(Verb.OPEN_FILE)))
        entries.append(Item(f"{key}/off", "Disable", Action(Verb.DISABLE, server.name)))
    why = texts.reason_alone(server)
    text = why if why.startswith(server.name) else f"{texts.server_name(server)} failed: {why}"
    return Item(key, texts.fit(f"! {text}"), children=tuple(entries))


def _problem(problem: Problem) -> Item:
    """Return an entry that opens the file. If the text is too long or there is a hint, a submenu shows the rest."""
    key, text = f"want/problem/{keyed(identity(problem))}", texts.fit(f"! {texts.problem_words(problem)}")
    click = Action(Verb.OPEN_FILE, problem.file)
    lines = texts.problem_lines(problem)
    if not lines:
        return Item(key, text, click)
    rows = tuple(Item(f"{key}/{at}", line, enabled=False) for at, line in enumerate(lines))
    return Item(key, text, children=(*rows, SEPARATOR, Item(f"{key}/open", f"Open {texts.file_name(problem)}", click)))


def _servers(servers: tuple[ServerStatus, ...]) -> tuple[Entry, ...]:
    """Return the servers' entries, sorted by name. A long list begins with servers in trouble and groups the others.

    The result is never empty: some panels build submenus only once.
    """
    if not servers:
        return (Item("servers/none", texts.NO_SERVERS, enabled=False),)
    if len(servers) <= SERVERS_SHOWN:
        return tuple(map(_server, servers))
    first = [server for server in servers if in_trouble(server)][:SERVERS_SHOWN]
    rest = [server for server in servers if server not in first]
    groups = [
        Item(
            f"servers-group/{at}",
            texts.fit(f"{texts.server_name(part[0], 20)} to {texts.server_name(part[-1], 20)} ({len(part)})"),
            children=tuple(map(_server, part)),
        )
        for at, part in enumerate(_parts(rest))
    ]
    return (*map(_server, first), *([SEPARATOR] if first and groups else []), *groups)


def _server(server: ServerStatus) -> Item:
    """Return the entry of one server, with its submenu."""
    key = f"servers/{keyed(server.name)}"
    on = server.state is not State.DISABLED
    entries = _why(server, key)
    if server.state is State.NEEDS_AUTH or server.signed_in is False:
        entries.append(Item(f"{key}/sign-in", "Sign in ...", Action(Verb.SIGN_IN, server.name)))
    elif wants_permissions(server):
        entries.append(Item(f"{key}/grant", "Grant more permissions ...", Action(Verb.SIGN_IN, server.name)))
    entries += [
        Item(f"{key}/reconnect", texts.RECONNECT, Action(Verb.RECONNECT, server.name), enabled=on),
        Item(f"{key}/refresh", texts.REFRESH, Action(Verb.REFRESH, server.name), enabled=on),
    ]
    if server.signed_in and server.state is not State.NEEDS_AUTH:
        entries.append(Item(f"{key}/sign-out", "Sign out", Action(Verb.SIGN_OUT, server.name)))
    if server.suspicious:  # tools that are served although they read like instructions: no notification reports these
        reads = "reads like an instruction" if len(server.suspicious) == 1 else "read like instructions"
        look = f"Review {count(len(server.suspicious), 'tool')} that {reads} ..."
        entries.append(Item(f"{key}/look", look, Action(Verb.SHOW_CHANGES, server.name)))
        entries.append(Item(f"{key}/look-yes", texts.APPROVE_SHOWN, Action(Verb.APPROVE, server.name)))
    switch = Action(Verb.DISABLE if on else Verb.ENABLE, server.name)  # changes servers.yaml, not a project's file
    entries.append(Item(f"{key}/enabled", "Enabled", switch, on, enabled=server.project is None))
    entries.append(Item(f"{key}/log", texts.SHOW_LOG, Action(Verb.SHOW_LOG, server.name)))
    return Item(key, texts.server_line(server), children=tuple(entries))


def _why(server: ServerStatus, key: str) -> list[Entry]:
    """Return the heading of a server's submenu: its error, what to do, and its project. [] without these."""
    error = server.error if in_trouble(server) and server.error else {}
    lines = [*texts.wrapped(error.get("title", "")), *texts.wrapped(texts.without_commands(error.get("hint", "")))]
    lines += [texts.fit(f"Only in the project {texts.base_name(server.project)}")] if server.project else []
    headings = [Item(f"{key}/why/{at}", line, enabled=False) for at, line in enumerate(lines)]
    return [*headings, SEPARATOR] if headings else []


def _clients(state: TrayState) -> tuple[Entry, ...]:
    """Return entries for the installed or connected AI tools, by title, and the servers that they still start.

    The user's consent to remove these servers from the AI tools covers only those that were shown.
    """
    clients = state.clients
    unique = {client.name: client for client in clients or () if client.found or client.connected}
    shown = sorted(unique.values(), key=lambda client: (client.title.casefold(), client.name))
    none = "Looking for AI tools ..." if clients is None else "No AI tool was found on this computer"
    entries: list[Entry] = [] if shown else [Item("clients/none", none, enabled=False)]
    for client in shown:
        drift = client.drift if client.connected else None
        renew = not client.connected or drift is not None
        click = Action(Verb.CONNECT_CLIENT if renew else Verb.DISCONNECT_CLIENT, client.name)
        text = texts.name(client.title or client.name)
        text = texts.fit(f"{text}: update its entry ({texts.fit(drift)})") if drift else text
        entries.append(Item(f"clients/of/{keyed(client.name)}", text, click, client.connected))
    entries.append(SEPARATOR)
    if servers := state.doubled:
        rows = tuple(Item(f"doubled/of/{at}", texts.doubled(one), enabled=False) for at, one in enumerate(servers))
        yes = Item("doubled/yes", "Remove them, with a backup of each file", Action(Verb.TAKE_OUT, offer_key(servers)))
        below = (*_in_groups("doubled", rows), SEPARATOR, yes)
        entries.append(Item("doubled", f"Remove {count(len(servers), 'server')} from them ...", children=below))
    return *entries, Item("clients/copy", "Copy stdio command", Action(Verb.COPY_COMMAND))
