"""Everything that is shown for a state: icon, tooltip, summary, menu. A pure function of TrayState.

It shows no times, such as how long something has been running: a view changes only when its content does.
"""

from __future__ import annotations

from trayapp.model.child import ChildState
from trayapp.tray.state import texts
from trayapp.tray.state.menu import client_titles, menu
from trayapp.tray.state.tray_state import ANSWERS, Action, Assessment, IconKind, TrayState, TrayView, Verb, assess

SUMMARY_LINES = 5
WHY_LINES = 2  # troubles in the summary; the tooltip has room for one

# Without a serving gateway, the state of its process decides: icon, headline, and what to do about it.
WITHOUT_GATEWAY: dict[ChildState, tuple[IconKind, str, str]] = {
    ChildState.STARTING: (IconKind.STARTING, texts.STARTING, ""),
    ChildState.STOPPING: (IconKind.STARTING, texts.STOPPING, ""),  # a transition, too
    ChildState.RESTARTING: (IconKind.DOWN, texts.RESTARTING, ""),
    ChildState.CRASH_LOOP: (IconKind.DOWN, texts.CRASH_LOOP, texts.CRASH_LOOP_HINT),
    ChildState.PAUSED: (IconKind.PAUSED, texts.PAUSED, texts.PAUSED_HINT),
}
FIRST_BUTTONS = {
    ChildState.PAUSED: (texts.RESUME, Action(Verb.RESUME)),
    ChildState.CRASH_LOOP: (texts.RETRY_NOW, Action(Verb.RETRY)),
}


def view(state: TrayState) -> TrayView:
    """Return what to show for `state`. Never raises, whatever names and texts the state holds."""
    known = assess(state)
    headline = _headline(state, known)
    troubles = _troubles(state, known)
    under_way = [texts.connecting(known.connecting)] if known.connecting else []
    today = known.live.gateway.today if known.live else None  # also None if no history is kept
    calls = [texts.today(today.calls, today.failed)] if today is not None else []
    # The most useful button comes first. A click on the notification triggers it, so it is never Quit.
    first = FIRST_BUTTONS.get(state.child, (texts.SHOW_LOGS, Action(Verb.SHOW_LOGS)))
    has_panel = known.live is not None and bool(known.live.gateway.http_url)  # the panel is a page of its HTTP port
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
        tooltip=texts.within([texts.header(headline), *(troubles or under_way), *calls], texts.TOOLTIP),
        menu=menu(state, known, texts.header(headline)),
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

    A server that is connecting, and problems that are not fatal, change nothing.
    """
    if state.child not in ANSWERS:
        return WITHOUT_GATEWAY[state.child][0]
    if state.hangs:
        return IconKind.DOWN
    if known.live is None:
        return IconKind.DEGRADED if state.error else IconKind.STARTING
    if known.asks or known.sign_in or known.locked or known.permissions or known.approvals:
        return IconKind.ATTENTION
    return IconKind.DEGRADED if known.failed or known.fatal else IconKind.HEALTHY


def _headline(state: TrayState, known: Assessment) -> str:
    """Return one line: what is running, or why nothing is."""
    if state.child not in ANSWERS:
        return WITHOUT_GATEWAY[state.child][1]
    if state.hangs:
        return texts.HANGS
    if known.live is not None:
        if known.wanted:
            return texts.ready(known.ready, known.wanted, known.tools)
        return texts.ALL_DISABLED if known.servers else texts.NO_SERVERS
    if state.error:
        return texts.UNREADABLE
    return texts.STOPPING if state.snapshot and state.snapshot.gateway.state == "stopping" else texts.STARTING


def _troubles(state: TrayState, known: Assessment) -> list[str]:
    """Return what is wrong or needed, one line each. What needs the user comes first."""
    if known.live is None:
        return _why_down(state)
    lines = [texts.asks(known.asks)] if known.asks else []
    lines += [texts.KEYRING_LOCKED] if known.locked else []
    lines += [texts.sign_in_wanted(list(map(texts.server_name, known.sign_in)))] if known.sign_in else []
    names = list(map(texts.server_name, known.permissions))
    lines += [texts.permissions_wanted(names)] if names else []
    alarming = [server for server in known.servers if server.findings and server.name in known.approvals]
    codes = [code for server in alarming for code in server.findings or ()]
    lines += [texts.alarmed([server.name for server in alarming], codes)] if alarming else []
    lines += [texts.approval_wanted(known.approvals)] if known.approvals and not alarming else []
    lines += [texts.failed_why(known.failed[0])] if len(known.failed) == 1 else []
    lines += [texts.failed(list(map(texts.server_name, known.failed)))] if len(known.failed) > 1 else []
    lines += [texts.problem_line(problem) for problem in known.fatal]
    return lines if known.servers or lines else [texts.NO_SERVERS_HINT]


def _why_down(state: TrayState, lines: int = 1) -> list[str]:
    """Return why no gateway serves, on at most `lines` lines, and what to do."""
    hint = (
        texts.HANGS_HINT if state.hangs else ""
    )  # only our own gateway restarts automatically; for any other, the error says how to end it
    hint = WITHOUT_GATEWAY[state.child][2] if state.child in WITHOUT_GATEWAY else hint
    return [*texts.wrapped(state.error or "", lines), *([hint] if hint else [])]
