"""The notices after a click, which report its success, partial success, or failure. Pure functions."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trayapp.model.errors import MultiMcpError, NoGatewayError
from trayapp.model.text import clean, count
from trayapp.tray.state import texts
from trayapp.tray.state.notices import Notice, NoticeKind, notice_of
from trayapp.tray.state.tray_state import Action, Offered, Verb

NO_HOST = "no-host"  # key of the notice about a desktop that shows no icons
KEY = "click"  # key of most outcomes: a new one replaces the previous one
Outcome = Mapping[str, Any]  # the outcome of one server (wire/control)
SHOWN = 3
READ_COLUMNS = 90  # width of a text file: most editors show this many columns without horizontal scrolling

# The beginning of a failure's title. The reason follows in the text.
FAILURES: dict[Verb, str] = {
    Verb.RECONNECT: "Reconnecting failed",
    Verb.REFRESH: "Refreshing failed",
    Verb.SIGN_IN: "Sign-in failed",
    Verb.SIGN_OUT: "Sign-out failed",
    Verb.UNLOCK: "Not unlocked",
    Verb.ENABLE: "Not enabled",
    Verb.DISABLE: "Not disabled",
    Verb.SHOW_LOG: "Cannot show the log",
    Verb.SHOW_CHANGES: "Cannot show what changed",
    Verb.APPROVE: "Not approved",
    Verb.ALLOW: "Not allowed",
    Verb.ALLOW_SESSION: "Not allowed",
    Verb.ALLOW_ALWAYS: "Not allowed",
    Verb.DENY: "Not denied",
    Verb.OPEN_ASKED: "Not opened",
    Verb.OPEN_PANEL: "Cannot open the panel",
    Verb.OPEN_FILE: "Cannot open the file",
    Verb.CONNECT_CLIENT: "Not connected",
    Verb.DISCONNECT_CLIENT: "Not disconnected",
    Verb.COPY_COMMAND: "Not copied",
    Verb.SHOW_OFFER: "Cannot show the servers",
    Verb.TAKE_OVER: "Not imported",
    Verb.TAKE_OVER_HIDDEN: "Not imported",
    Verb.LEAVE_SERVERS: "Not saved",
    Verb.TAKE_OUT: "Not removed",
    Verb.SHOW_LOGS: "Cannot show the logs",
    Verb.LOG_FOLDER: "Cannot open the folder",
    Verb.CHECK: "Not checked",
    Verb.COPY_DIAGNOSTICS: "Not copied",
    Verb.PAUSE: "Not paused",
    Verb.RESUME: "Not resumed",
    Verb.RESTART: "Not restarted",
    Verb.RETRY: "Not started",
    Verb.AUTOSTART_ON: "Start at login not turned on",
    Verb.AUTOSTART_OFF: "Start at login not turned off",
    Verb.SHOW_STATE: "Cannot show the state",
    Verb.ABOUT: "Cannot show the version",
    Verb.QUIT: "Cannot quit",
}


ANSWERS = (Verb.ALLOW, Verb.ALLOW_SESSION, Verb.ALLOW_ALWAYS, Verb.DENY, Verb.OPEN_ASKED)
# Verbs whose target is not a name that a title could show
NAMELESS = (Verb.OPEN_PANEL, Verb.OPEN_FILE, Verb.TAKE_OVER, Verb.TAKE_OVER_HIDDEN, Verb.TAKE_OUT, *ANSWERS)


def outcome_notice(title: str, *lines: str) -> Notice:
    """Return a notice of an outcome, with its texts cut to fit."""
    return notice_of(KEY, title, "\n".join(lines))


def failed(action: Action, error: MultiMcpError) -> Notice:
    """Return the notice for an action that failed: the error, and what to do about it."""
    about = f": {texts.name(action.target)}" if action.target and action.verb not in NAMELESS else ""
    # The hint of a NoGatewayError is to start a gateway, but the tray does this itself.
    hint = "Try again once the gateway runs." if isinstance(error, NoGatewayError) else texts.plain(error.hint)
    return outcome_notice(f"{FAILURES[action.verb]}{about}", texts.plain(error.title), hint)


def unknown(action: Action, error: Exception) -> Notice:
    """Return the notice for an action that failed with an unexpected error."""
    return outcome_notice(FAILURES[action.verb], f"Unexpected error: {type(error).__name__}", "See tray.log")


def reconnected(servers: Mapping[str, Outcome]) -> Notice:
    """Return the notice after Reconnect or Reconnect all."""
    if not servers:
        return outcome_notice("Nothing to reconnect", "No server is in use. Each one starts with its next call.")

    def state(outcome: Outcome) -> str:
        word = str(outcome.get("state", ""))
        return texts.STATES.get(word, word)

    return _summed(servers, "reconnected", state)


def refreshed(servers: Mapping[str, Outcome]) -> Notice:
    """Return the notice after Refresh tools."""

    def change(outcome: Outcome) -> str:
        added, gone, back = (len(outcome.get(key) or ()) for key in ("added", "gone", "back"))
        return texts.tool_change(added + back, gone) or "no change"

    return _summed(servers, "refreshed", change)


def _summed(servers: Mapping[str, Outcome], done: str, words: Callable[[Outcome], str]) -> Notice:
    """Return a notice with one server's outcome or, for several, how many succeeded, why others failed, and changes.

    `done`: the participle in the title. `words`: describes the outcome of a server.
    """
    if not servers:
        return outcome_notice("No enabled servers to refresh", "Add one in servers.yaml")
    bad = {name: outcome["error"] for name, outcome in servers.items() if outcome.get("error")}
    if len(servers) == 1:
        name, outcome = next(iter(servers.items()))
        if not bad:
            return outcome_notice(f"{done.capitalize()}: {texts.name(name)}", words(outcome).capitalize())
        why = [texts.reason(bad[name]), texts.plain(bad[name].get("hint") or "")]
        return outcome_notice(f"Not {done}: {texts.name(name)}", *why)
    good = len(servers) - len(bad)
    reasons = {name: texts.reason(error) for name, error in bad.items()}
    whys = [texts.fit(why if name in why else f"{texts.name(name)}: {why}") for name, why in reasons.items()]
    moved = {name: one for name, one in servers.items() if any(one.get(key) for key in ("added", "gone", "back"))}
    changed = [texts.fit(f"{texts.name(name)}: {words(one)}") for name, one in moved.items() if name not in bad]
    title = f"{good} of {count(len(servers), 'server')} {done}" if bad else f"{count(good, 'server')} {done}"
    return outcome_notice(title, texts.bounded([*whys, *changed], SHOWN) or texts.ALL_WELL)


def client(title: str, on: bool, done: Outcome) -> Notice:
    """Return the notice after an AI tool was connected (`on`) or disconnected.

    `done`: its row of `multi-mcp connect NAME --json`, or of `disconnect`.
    """
    if not done["changed"]:
        return outcome_notice(f"{title} is {'already' if on else 'not'} connected", "Nothing had to change.")
    if on:
        return outcome_notice(f"{title} is connected", str(done["needs"]) or "It reads the new entry automatically.")
    after = "Its configuration is as it was before." if done["restores"] else "Other changes in its file are kept."
    return outcome_notice(f"{title} is disconnected", after)


def taken_over(servers: int, secrets: int) -> Notice:
    """Return the notice after an import of this many servers, with this many secrets left in clear text."""
    clear = f"{count(secrets, 'secret')} in clear text: see multi-mcp secret --help\n" if secrets else ""
    next_steps = "Next, connect your AI tools in the AI tools menu.\n"
    next_steps += "They still start their own copies of these servers: remove those there too."
    return notice_of(NoticeKind.OFFER, f"{count(servers, 'server')} imported", clear + next_steps)


def taken_out(servers: Sequence[Offered]) -> Notice:
    """Return the notice after these servers were removed from the AI tools' files."""
    title = texts.listed(texts.tools_of(servers), " now uses only multi-mcp", " now use only multi-mcp")
    return outcome_notice(title, "Restart running AI tools. To undo: multi-mcp import --undo")


def offer_text(servers: Sequence[Offered]) -> str:
    """Return a text that lists the offered servers and what each one starts."""
    rows = [f"{texts.plain(one.title)}: {texts.plain(one.name)}\n    {texts.plain(one.starts)}" for one in servers]
    after = "multi-mcp starts none of these servers before you import them, in the menu or with: multi-mcp import"
    return "\n".join(["Servers that your AI tools have and multi-mcp does not:", "", *rows, "", after, ""])


def changes_text(server: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a text about a server's changed and suspicious tools. Tools with findings come first."""
    lines = [
        f"Tools of {texts.plain(server)} that changed or look suspicious.",
        "Lines with - were approved, lines with + are new.",
        "To approve them, use the menu of multi-mcp, or run in a terminal: multi-mcp approve",
        "",
    ]
    for row in sorted(rows, key=lambda row: not row["findings"]):
        findings = row["findings"]
        title = texts.alarm([str(found["code"]) for found in findings]) or texts.plain(str(row["reason"]))
        lines.append(f"{texts.plain(str(row['tool']))}: {title}")
        for found in dict.fromkeys(f"{clean(str(each['where']))}: {clean(str(each['evidence']))}" for each in findings):
            lines += _folded(f"  ! In its {found}", "    ")
        for line in row["difference"]:
            lines += _folded(f"    {clean(str(line))}", "      ")
        lines.append("")
    return "\n".join(lines)


def _folded(line: str, indent: str) -> list[str]:
    return textwrap.wrap(line, READ_COLUMNS, subsequent_indent=indent, drop_whitespace=False) or [line]


def approved(server: str, done: Mapping[str, Any]) -> Notice:
    """Return the notice after Approve. `done`: the result of the request (wire/control)."""
    good, missed = len(done["approved"]), len(done["missed"])
    if missed:
        again = f"{count(missed, 'tool')} changed in the meantime. Review the changes again."
        return outcome_notice(f"Not all approved: {texts.name(server)}", again)
    unsaved = [texts.plain(str(problem)) for problem in done.get("problems", ())]
    after = f"{unsaved[0]}. They stay approved until the gateway stops." if unsaved else "Clients see them from now on."
    return outcome_notice(f"{count(good, 'tool')} approved: {texts.name(server)}", after)


def signed_in(server: str, outcome: Outcome) -> Notice:
    """Return the notice after Sign in. `outcome`: the result of the request (wire/control)."""
    error, auth = outcome.get("error"), outcome.get("auth") or {}
    lines = [texts.reason(error) if error else "Its tools can be called now."]
    if auth.get("kept") is False:
        lines.append("No keyring stores the sign-in: sign in again after a restart.")
    return outcome_notice(f"Signed in to {texts.name(server)}", *lines)


def diagnostics(version: str, findings: Sequence[Mapping[str, Any]]) -> str:
    """Return the versions of multi-mcp and the system, and the findings of doctor, as plain text."""
    lines = [f"multi-mcp {version}, {platform.platform()}", ""]
    for one in findings:
        lines.append(f"{one['state']:8} {one['code']}: {one['message']}")
        if one["remedy"] and one["state"] != "ok":
            lines.append(f"         {one['remedy']}")
    return "\n".join([*lines, ""])


def no_host() -> Notice:
    """Return the notice for a desktop that shows no tray icons. The tray continues without one."""
    return Notice(
        NO_HOST,
        "multi-mcp runs without an icon",
        "Nothing here shows tray icons. The icon appears as soon as something does: on GNOME, install the extension "
        "AppIndicator. Meanwhile, run multi-mcp panel, or multi-mcp quit to end it.",
        (
            (texts.OPEN_PANEL, Action(Verb.OPEN_PANEL)),
            (texts.OPEN_FILE, Action(Verb.OPEN_FILE)),
            (texts.QUIT, Action(Verb.QUIT)),
        ),
    )


def new_version(version: str, url: str) -> Notice:
    """Return the notice of a new version of multi-mcp."""
    text = texts.plain(url) if url else "Get it where you got this version"
    return notice_of("update", f"multi-mcp {texts.name(version)} is available", text)
