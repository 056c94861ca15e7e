"""The entries of the menu (PRODUCT 11), in their order. A pure function of the state.

Never here: pystray, icon and tooltip (view), the wording (texts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from itertools import accumulate, pairwise
from typing import TypeVar

from trayapp.model.child import ChildState
from trayapp.model.lifecycle import State
from trayapp.model.status import AskStatus, KeyringState, Problem, ServerStatus
from trayapp.tray.state import texts
from trayapp.tray.state.facts import Facts, in_trouble, wants_permissions
from trayapp.tray.state.state import SEPARATOR, Action, ClientState, Entry, Item, Offered, TrayState, Verb, offer_key

T = TypeVar("T")

WANTS_SHOWN = 3  # of one sort at the top of the menu; the others lie behind one entry
SERVERS_SHOWN = 25  # in one menu: about what a small screen holds
GROUP_SIZE = 20

PAUSABLE = frozenset(ChildState) - {ChildState.PAUSED, ChildState.STOPPING}
RESTARTABLE = frozenset({ChildState.RUNNING, ChildState.ATTACHED})


def menu(state: TrayState, known: Facts, header: str) -> tuple[Entry, ...]:
    """Return the whole menu."""
    up = known.live is not None
    return (
        Item("header", header, Action(Verb.SHOW_STATE)),
        *_connected(state, known),
        *_wants(state, known),
        SEPARATOR,
        Item("panel", texts.OPEN_PANEL, Action(Verb.OPEN_PANEL), enabled=up),
        Item("servers", texts.SERVERS, children=_servers(known.servers)),
        Item("reconnect", texts.RECONNECT_ALL, Action(Verb.RECONNECT), enabled=up and known.wanted > 0),
        Item("refresh", texts.REFRESH, Action(Verb.REFRESH), enabled=up and known.wanted > 0),
        Item("clients", texts.AI_TOOLS, children=_clients(state)),
        Item("open", texts.OPEN_FILE, Action(Verb.OPEN_FILE)),
        SEPARATOR,
        _pause(state.child),
        _restart(state.child),
        Item("help", texts.HELP, children=HELP),
        _autostart(state.autostart),
        SEPARATOR,
        Item("about", texts.ABOUT, Action(Verb.ABOUT)),
        Item("quit", _quit_text(state, known), Action(Verb.QUIT)),
    )


HELP: tuple[Entry, ...] = (
    Item("logs", texts.GATEWAY_LOG, Action(Verb.SHOW_LOGS)),
    Item("log-folder", texts.LOG_FOLDER, Action(Verb.LOG_FOLDER)),
    Item("check", texts.CHECK, Action(Verb.CHECK)),
    Item("diagnostics", texts.DIAGNOSTICS, Action(Verb.COPY_DIAGNOSTICS)),
)


def client_titles(state: TrayState, known: Facts, transport: str = "") -> list[str]:
    """Return the AI tool of each session as people know it; `transport`: only of those that came by that one."""
    titles = {client.name: client.title for client in state.clients or ()}
    sessions = known.live.gateway.sessions if known.live else ()
    return [titles.get(one.client, one.client) for one in sessions if transport in ("", one.transport)]


def keyed(name: str) -> str:
    """A name as one part of a key: `a/log` must not be the log of `a`."""
    return name.replace("%", "%25").replace("/", "%2F")


def identity(problem: Problem) -> str:
    """Tells one problem from every other."""
    return repr(astuple(problem))


def _connected(state: TrayState, known: Facts) -> tuple[Item, ...]:
    titles = client_titles(state, known)
    return (Item("connected", texts.clients_line(titles), enabled=False),) if titles else ()


# -- what wants the user ---------------------------------------------------------------------------------------------


def _wants(state: TrayState, known: Facts) -> list[Entry]:
    wants: list[Entry] = []
    if state.child is ChildState.CRASH_LOOP:
        wants.append(Item("retry", texts.RETRY, Action(Verb.RETRY)))
    if known.live is None:
        return wants
    wants += _first_few("ask", known.asks, _ask, texts.MORE_ASKS, "ask")
    if known.keyring is not None:
        wants.append(_keyring(known.keyring, known.keyring_error))
    wants += _first_few("sign-in", known.sign_in, _sign_in_want, texts.MORE_SIGN_INS)
    wants += _first_few("grant", known.permissions, _grant_want, texts.MORE_GRANTS)
    codes = {server.name: server.findings or () for server in known.servers}
    alarming_first = sorted(known.approvals, key=lambda name: not codes.get(name))
    approvals = [(name, codes.get(name, ())) for name in alarming_first]
    wants += _first_few("approve", approvals, _approval, texts.MORE_APPROVALS)
    wants += _first_few("failed", known.failed, _failure, texts.MORE_FAILURES)
    wants += _first_few("problem", known.problems, _problem, texts.MORE_PROBLEMS, "problem")
    if known.offered:
        wants.append(Item("offer", texts.offer(known.offered), children=_offer(known.offered)))
    return wants


def _ask(ask: AskStatus) -> Item:
    """What would be called, with its arguments; below them the answers."""
    key = f"want/ask/{ask.id}"
    rows = tuple(Item(f"{key}/{at}", row, enabled=False) for at, row in enumerate(texts.ask_menu(ask)))
    answers = tuple(Item(f"{key}/{action.verb}", label, action) for label, action in ask_answers(ask))
    return Item(key, texts.ask_entry(ask), children=(*rows, SEPARATOR, *answers))


def ask_answers(ask: AskStatus) -> tuple[tuple[str, Action], ...]:
    """Return the answers that one click can give, with their labels. A form is filled in by panel or command line."""
    deny = (texts.DENY if ask.kind == "call" else texts.DECLINE, Action(Verb.DENY, ask.id))
    if ask.kind != "call":
        if ask.url:
            return (texts.OPEN_PAGE, Action(Verb.OPEN_ASKED, ask.id)), deny
        accept = (texts.ANSWER, Action(Verb.ALLOW, ask.id))
        return (texts.FILL_IN, Action(Verb.OPEN_PANEL)) if ask.form else accept, deny
    wide = {"session": (texts.ALLOW_SESSION, Verb.ALLOW_SESSION), "always": (texts.ALLOW_ALWAYS, Verb.ALLOW_ALWAYS)}
    wider = [(label, Action(verb, ask.id)) for answer, (label, verb) in wide.items() if answer in ask.answers]
    return (texts.ALLOW_ONCE, Action(Verb.ALLOW, ask.id)), *wider, deny


def _keyring(state: KeyringState, error: Mapping[str, str]) -> Item:
    """Its dialog is one click away; else what to do stands below."""
    if texts.is_unlockable(state, error):
        return Item("keyring/unlock", texts.UNLOCK_KEYRING, Action(Verb.UNLOCK))
    lines = [line for part in ("title", "hint") for line in texts.wrapped(error.get(part, ""))]
    rows = tuple(Item(f"keyring/{at}", line, enabled=False) for at, line in enumerate(lines))
    below: tuple[Entry, ...] = (SEPARATOR, Item("keyring/open", texts.OPEN_FILE, Action(Verb.OPEN_FILE)))
    return Item("keyring", texts.keyring(state, error), enabled=bool(rows), children=rows + below if rows else ())


def _offer(offered: tuple[Offered, ...]) -> tuple[Entry, ...]:
    """Each server with what it starts; below them the yes, which counts for just these, and the no."""
    rows = tuple(Item(f"offer/of/{at}", texts.offered(one), enabled=False) for at, one in enumerate(offered))
    key = offer_key(offered)
    if any(one.secrets for one in offered):
        yes = [
            Item("offer/yes-hidden", texts.TAKE_OVER_HIDDEN, Action(Verb.TAKE_OVER_HIDDEN, key)),
            Item("offer/yes", texts.TAKE_OVER_CLEAR, Action(Verb.TAKE_OVER, key)),
        ]
    else:
        yes = [Item("offer/yes", texts.TAKE_OVER, Action(Verb.TAKE_OVER, key))]
    return *_in_groups("offer", rows), SEPARATOR, *yes, Item("offer/no", texts.LEAVE, Action(Verb.LEAVE_SERVERS))


def _first_few(
    key: str, values: Sequence[T], entry: Callable[[T], Item], way: str, thing: str = "server"
) -> tuple[Item, ...]:
    """An entry each; those that are too many lie in a menu of their own."""
    entries = tuple(map(entry, values))
    if len(entries) <= WANTS_SHOWN + 1:
        return entries
    rest = entries[WANTS_SHOWN:]
    more = Item(f"{key}-more", texts.more(way, len(rest), thing), children=_in_groups(f"{key}-more", rest))
    return *entries[:WANTS_SHOWN], more


def _in_groups(key: str, entries: tuple[Item, ...]) -> tuple[Entry, ...]:
    """A list that stays on the screen: beyond SERVERS_SHOWN entries, menus of GROUP_SIZE each."""
    if len(entries) <= SERVERS_SHOWN:
        return entries
    firsts = list(accumulate(map(len, parts := _parts(entries)), initial=1))
    return tuple(
        Item(f"{key}/{first}", f"{first} to {first + len(part) - 1}", children=part)
        for first, part in zip(firsts, parts, strict=False)
    )


def _parts(values: Sequence[T]) -> list[tuple[T, ...]]:
    """Cut a list into parts of about the same length, at most GROUP_SIZE."""
    number = -(-len(values) // GROUP_SIZE)
    ends = [len(values) * at // number for at in range(number + 1)] if number else []
    return [tuple(values[begin:end]) for begin, end in pairwise(ends)]


def _sign_in_want(server: ServerStatus) -> Item:
    return Item(
        f"want/sign-in/{keyed(server.name)}", texts.wanted(texts.sign_in_to(server)), Action(Verb.SIGN_IN, server.name)
    )


def _grant_want(server: ServerStatus) -> Item:
    """A sign-in asks for what was wanted besides what was granted."""
    return Item(
        f"want/grant/{keyed(server.name)}", texts.wanted(texts.grant_to(server)), Action(Verb.SIGN_IN, server.name)
    )


def _approval(waiting: tuple[str, Sequence[str]]) -> Item:
    """Looked at first: what is approved is what was shown."""
    server, codes = waiting
    key = f"want/approve/{keyed(server)}"
    show = Item(f"{key}/show", texts.SHOW_CHANGES, Action(Verb.SHOW_CHANGES, server))
    yes = Item(f"{key}/yes", texts.APPROVE_SHOWN, Action(Verb.APPROVE, server))
    return Item(key, texts.wanted(texts.approve(server, codes)), children=(show, yes))


def _failure(server: ServerStatus) -> Item:
    """Why, and what can be done about it: panels of low screens cannot open a third level."""
    key = f"want/failed/{keyed(server.name)}"
    entries = [
        *_why(server, key),
        Item(f"{key}/reconnect", texts.RECONNECT, Action(Verb.RECONNECT, server.name)),
        Item(f"{key}/log", texts.SHOW_LOG, Action(Verb.SHOW_LOG, server.name)),
    ]
    if server.project is None:
        entries.append(Item(f"{key}/entry", texts.OPEN_ENTRY, Action(Verb.OPEN_FILE)))
        entries.append(Item(f"{key}/off", texts.SWITCH_OFF, Action(Verb.DISABLE, server.name)))
    return Item(key, texts.failed_entry(server), children=tuple(entries))


def _problem(problem: Problem) -> Item:
    """A click opens the file; one that has more to say than fits says it below."""
    key, text = f"want/problem/{keyed(identity(problem))}", texts.problem_entry(problem)
    click = Action(Verb.OPEN_FILE, problem.file)
    lines = texts.problem_lines(problem)
    if not lines:
        return Item(key, text, click)
    rows = tuple(Item(f"{key}/{at}", line, enabled=False) for at, line in enumerate(lines))
    return Item(key, text, children=(*rows, SEPARATOR, Item(f"{key}/open", texts.open_file(problem), click)))


# -- servers ---------------------------------------------------------------------------------------------------------


def _servers(servers: tuple[ServerStatus, ...]) -> tuple[Entry, ...]:
    """By name; a long list has those in trouble first, and goes on in groups.

    Never empty: some panels build submenus only once.
    """
    if not servers:
        return (Item("servers/none", texts.NO_SERVERS, enabled=False),)
    if len(servers) <= SERVERS_SHOWN:
        return tuple(map(_server, servers))
    first = [server for server in servers if in_trouble(server)][:SERVERS_SHOWN]
    rest = [server for server in servers if server not in first]
    groups = _parts(rest)
    line: tuple[Entry, ...] = (SEPARATOR,) if first and groups else ()
    return (*map(_server, first), *line, *(_group(number, group) for number, group in enumerate(groups)))


def _group(number: int, servers: tuple[ServerStatus, ...]) -> Item:
    text = texts.group(servers[0], servers[-1], len(servers))
    return Item(f"servers-group/{number}", text, children=tuple(map(_server, servers)))


def _server(server: ServerStatus) -> Item:
    """One server with its own menu."""
    key = f"servers/{keyed(server.name)}"
    enabled = server.state is not State.DISABLED
    entries: list[Entry] = [*_why(server, key)]
    sign_in, sign_out = _sign_in(server, key), _sign_out(server, key)
    entries += [
        *sign_in,
        Item(f"{key}/reconnect", texts.RECONNECT, Action(Verb.RECONNECT, server.name), enabled=enabled),
        Item(f"{key}/refresh", texts.REFRESH, Action(Verb.REFRESH, server.name), enabled=enabled),
        *sign_out,
        *_suspicious(server, key),
        _enabled(server, key),
        Item(f"{key}/log", texts.SHOW_LOG, Action(Verb.SHOW_LOG, server.name)),
    ]
    return Item(key, texts.server_line(server), children=tuple(entries))


def _suspicious(server: ServerStatus, key: str) -> tuple[Item, ...]:
    """Tools that are served although they read like orders: told here, never by a notification."""
    if not server.suspicious:
        return ()
    show = Item(f"{key}/look", texts.suspicious(len(server.suspicious)), Action(Verb.SHOW_CHANGES, server.name))
    return show, Item(f"{key}/look-yes", texts.APPROVE_SHOWN, Action(Verb.APPROVE, server.name))


def _why(server: ServerStatus, key: str) -> list[Entry]:
    """What is to be known of it: its error, what to do, whose it is."""
    error = server.error if in_trouble(server) and server.error else {}
    lines = [*texts.wrapped(error.get("title", "")), *texts.wrapped(texts.without_commands(error.get("hint", "")))]
    lines += [texts.only_in(server.project)] if server.project else []
    headings = [Item(f"{key}/why/{at}", line, enabled=False) for at, line in enumerate(lines)]
    return [*headings, SEPARATOR] if headings else []


def _sign_in(server: ServerStatus, key: str) -> tuple[Item, ...]:
    """Only where there is something to sign in to, or to be allowed besides."""
    if server.state is State.NEEDS_AUTH or server.signed_in is False:
        return (Item(f"{key}/sign-in", texts.SIGN_IN, Action(Verb.SIGN_IN, server.name)),)
    if wants_permissions(server):
        return (Item(f"{key}/grant", texts.GRANT, Action(Verb.SIGN_IN, server.name)),)
    return ()


def _sign_out(server: ServerStatus, key: str) -> tuple[Item, ...]:
    if server.state is State.NEEDS_AUTH or not server.signed_in:
        return ()
    return (Item(f"{key}/sign-out", texts.SIGN_OUT, Action(Verb.SIGN_OUT, server.name)),)


def _enabled(server: ServerStatus, key: str) -> Item:
    """The switch in servers.yaml; what a project alone has is switched in the project's file."""
    on = server.state is not State.DISABLED
    verb = Verb.DISABLE if on else Verb.ENABLE
    return Item(f"{key}/enabled", texts.ENABLED, Action(verb, server.name), on, enabled=server.project is None)


# -- clients and the app itself --------------------------------------------------------------------------------------


def _clients(state: TrayState) -> tuple[Entry, ...]:
    """Those that are installed or connected, by title."""
    clients = state.clients
    unique = {client.name: client for client in clients or () if client.found or client.connected}
    shown = sorted(unique.values(), key=lambda client: (client.title.casefold(), client.name))
    none = texts.LOOKING_FOR_CLIENTS if clients is None else texts.NO_CLIENTS
    entries = tuple(map(_client, shown)) or (Item("clients/none", none, enabled=False),)
    return (*entries, SEPARATOR, *_doubled(state.doubled), COPY)


COPY = Item("clients/copy", texts.COPY_COMMAND, Action(Verb.COPY_COMMAND))


def _doubled(servers: tuple[Offered, ...]) -> tuple[Item, ...]:
    """What AI tools still start themselves, each by name; the yes counts for just these."""
    if not servers:
        return ()
    rows = tuple(Item(f"doubled/of/{at}", texts.doubled(one), enabled=False) for at, one in enumerate(servers))
    yes = Item("doubled/yes", texts.TAKE_OUT, Action(Verb.TAKE_OUT, offer_key(servers)))
    return (Item("doubled", texts.removal(len(servers)), children=(*_in_groups("doubled", rows), SEPARATOR, yes)),)


def _client(client: ClientState) -> Item:
    drift = client.drift if client.connected else None
    renew = not client.connected or drift is not None
    verb = Verb.CONNECT_CLIENT if renew else Verb.DISCONNECT_CLIENT
    text = texts.client(client.title or client.name, drift)
    return Item(f"clients/of/{keyed(client.name)}", text, Action(verb, client.name), client.connected)


def _pause(child: ChildState) -> Item:
    if child is ChildState.PAUSED:
        return Item("resume", texts.RESUME, Action(Verb.RESUME))
    return Item("pause", texts.PAUSE, Action(Verb.PAUSE), enabled=child in PAUSABLE)


def _restart(child: ChildState) -> Item:
    text = texts.RESTART_FOREIGN if child is ChildState.ATTACHED else texts.RESTART
    return Item("restart", text, Action(Verb.RESTART), enabled=child in RESTARTABLE)


def _autostart(on: bool | None) -> Item:
    if on is None:
        return Item("autostart", texts.AUTOSTART_IMPOSSIBLE, enabled=False)
    return Item("autostart", texts.AUTOSTART, Action(Verb.AUTOSTART_OFF if on else Verb.AUTOSTART_ON), on)


def _quit_text(state: TrayState, known: Facts) -> str:
    """Says who starts the gateway again: an AI tool whose shim goes on does, with its next call."""
    if state.child is ChildState.ATTACHED:
        return texts.QUIT_ATTACHED
    return texts.quit_text(client_titles(state, known, "stdio"))
