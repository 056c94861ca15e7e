"""The actions behind the menu's entries and the buttons of notifications, by verb."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trayapp.config.paths import Paths
from trayapp.model.errors import MultiMcpError
from trayapp.model.logs import GATEWAY_LOG, SERVER_LOGS, log_name, names_server, warns_about
from trayapp.service.autostart import Autostart
from trayapp.service.gateway_launch import last_lines
from trayapp.service.supervisor import CommandKind
from trayapp.tray.state import outcomes, texts
from trayapp.tray.state.notices import Notice, NoticeKind, notice_of
from trayapp.tray.state.outcomes import outcome_notice
from trayapp.tray.state.tray_state import Action, Offered, TrayView, Verb, offer_key
from trayapp.wire import control

log = logging.getLogger(__name__)

LOG_TAIL = 1 << 20  # bytes to read at the end of a log
WARNINGS = 20  # most gateway warnings to show above a server's own log
BY = "the tray"  # sent with each answer to an ask, and shown in the error if the ask is answered again
VERB_S = 30.0  # time limit of a verb
TAKE_OVER_S = 180.0  # time limit of an import that may store secrets: the user may have to unlock the keyring


@dataclass(frozen=True, slots=True)
class ActionServices:
    """The operations that actions use. All may block and raise MultiMcpError. Tests replace them with fakes."""

    ask: Callable[[str, dict[str, Any]], Any]  # sends a control request and returns its answer; no time limit
    run: Callable[[Sequence[str], float], Any]  # runs a CLI verb with a time limit in seconds, and returns its JSON
    command: Callable[[CommandKind], None]
    create_file: Callable[[], None]  # creates the first servers.yaml
    open_file: Callable[[Path], None]
    open_url: Callable[[str], bool]
    copy: Callable[[str], bool]
    autostart: Autostart
    paths: Paths
    shim: list[str]
    version: str
    view: Callable[[], TrayView]  # returns the current view
    changed: Callable[[], None]  # called after a change that no snapshot shows
    quit: Callable[[], None]


def offered_of(answer: Mapping[str, Any], *, known: bool = False) -> tuple[Offered, ...]:
    """Return from an `import` answer the servers that multi-mcp lacks or, if `known`, those that it already has."""
    return tuple(
        Offered(row["name"], row["title"], str(row["url"] or shlex.join(row["command"] or ())), len(row["secrets"]))
        for row in answer["servers"]
        if bool(row["known"]) is known
    )


class Actions:
    """The actions that clicks carry out, by verb. Those that return no notice show their result in another way."""

    def __init__(self, means: ActionServices) -> None:
        self._means = means
        self._shown: dict[str, list[dict[str, str]]] = {}  # server -> changes shown to the user
        self._table: dict[Verb, Callable[[str], Notice | None]] = {
            Verb.RECONNECT: lambda server: outcomes.reconnected(self._outcomes(control.RECONNECT, server)),
            Verb.REFRESH: lambda server: outcomes.refreshed(self._outcomes(control.REFRESH, server)),
            Verb.SIGN_IN: self._sign_in,
            Verb.SIGN_OUT: self._sign_out,
            Verb.UNLOCK: self._unlock,
            Verb.ENABLE: lambda server: self._switch(server, True),
            Verb.DISABLE: lambda server: self._switch(server, False),
            Verb.SHOW_LOG: self._show_log,
            Verb.SHOW_CHANGES: self._show_changes,
            Verb.APPROVE: self._approve,
            Verb.ALLOW: lambda ask: self._allow(ask, "once"),
            Verb.ALLOW_SESSION: lambda ask: self._allow(ask, "session"),
            Verb.ALLOW_ALWAYS: lambda ask: self._allow(ask, "always"),
            Verb.DENY: lambda ask: self._means.ask(control.DENY, {"id": ask, "by": BY}),
            Verb.OPEN_ASKED: self._open_asked,
            Verb.OPEN_PANEL: self._open_panel,
            Verb.OPEN_FILE: self._open_file,
            Verb.CONNECT_CLIENT: lambda client: self._client(client, True),
            Verb.DISCONNECT_CLIENT: lambda client: self._client(client, False),
            Verb.COPY_COMMAND: self._copy_command,
            Verb.SHOW_OFFER: self._show_offer,
            Verb.TAKE_OVER: lambda key: self._take_over(key, "--clear"),
            Verb.TAKE_OVER_HIDDEN: lambda key: self._take_over(key, "--keyring"),
            Verb.LEAVE_SERVERS: self._leave_servers,
            Verb.TAKE_OUT: self._take_out,
            Verb.SHOW_LOGS: self._show_logs,
            Verb.LOG_FOLDER: lambda _: means.open_file(self._logs()),
            Verb.CHECK: lambda _: means.open_file(self._written_check(self._diagnostics())),
            Verb.COPY_DIAGNOSTICS: self._copy_diagnostics,
            Verb.PAUSE: lambda _: means.command(CommandKind.PAUSE),
            Verb.RESUME: lambda _: means.command(CommandKind.START),
            Verb.RESTART: lambda _: means.command(CommandKind.RESTART),
            Verb.RETRY: lambda _: means.command(CommandKind.START),
            Verb.AUTOSTART_ON: lambda _: self._autostart(True),
            Verb.AUTOSTART_OFF: lambda _: self._autostart(False),
            Verb.SHOW_STATE: self._show_state,
            Verb.ABOUT: self._about,
            Verb.QUIT: lambda _: means.quit(),
        }

    def do(self, action: Action) -> Notice | None:
        """Carry out an action. Return a notice, or None if the tray's new state shows the result. Never raises."""
        log.info("Click: %s %s", action.verb, action.target)
        try:
            return self._table[action.verb](action.target)
        except MultiMcpError as error:
            log.info("%s failed: %s", action.verb, error)
            return outcomes.failed(action, error)
        except Exception as error:  # the boundary of a click: show every error to the user
            log.exception("Unexpected error in %s", action.verb)
            return outcomes.unknown(action, error)

    def _outcomes(self, method: str, server: str) -> Mapping[str, outcomes.Outcome]:
        """Send a request about one server, or about all if `server` is "". Return server -> outcome."""
        answer: Mapping[str, outcomes.Outcome] = self._means.ask(method, {"server": server or None})["servers"]
        return answer

    def _sign_in(self, server: str) -> Notice:
        """Sign in to a server in the browser. Return a notice once the user has signed in or the gateway gives up."""
        begun = self._means.ask(control.LOGIN, {"server": server})
        if begun["url"] is None:  # the tokens were in the keyring, which the user has just unlocked
            return outcomes.signed_in(server, begun["outcome"])
        self._open_url(begun["url"], f"Sign in from a terminal: multi-mcp auth {server}")
        return outcomes.signed_in(server, self._means.ask(control.LOGIN_WAIT, {"server": server}))

    def _sign_out(self, server: str) -> Notice:
        self._means.ask(control.LOGOUT, {"server": server})
        return outcome_notice(f"Signed out of {texts.name(server)}", "Its tokens were deleted from this computer.")

    def _unlock(self, _: str) -> Notice:
        """Unlock the keyring with the desktop's dialog. Return a notice. Raises MultiMcpError if it stays locked."""
        error = self._means.ask(control.KEYRING, {"unlock": True}).get("error")
        if error:
            closed = "Its dialog was closed. To open it again, choose Unlock in the menu."
            hint = str(error["hint"])
            raise MultiMcpError(str(error["title"]), closed if hint.endswith("multi-mcp auth") else hint)
        return outcome_notice("The keyring is unlocked", "Sign-ins are kept there.")

    def _show_changes(self, server: str) -> None:
        """Show a server's changed and suspicious tools in a text file. `_approve` then approves only these."""
        rows = self._means.ask(control.APPROVALS, {"server": server})["rows"]
        name = Path("changes", log_name(server)).with_suffix(".txt")
        file = self._written(name, outcomes.changes_text(server, rows), f"multi-mcp approve {server}")
        self._shown[server] = [{name: row[name] for name in ("server", "tool", "hash")} for row in rows]
        self._means.open_file(file)

    def _approve(self, server: str) -> Notice:
        """Approve only the changes that were shown to the user. Return a notice. Raises MultiMcpError if none were."""
        if not self._shown.get(server):
            raise MultiMcpError("The change has not been shown yet", f"Choose {texts.SHOW_CHANGES} first")
        return outcomes.approved(server, self._means.ask(control.APPROVE, {"tools": self._shown.pop(server)}))

    def _allow(self, ask: str, answer: str) -> None:
        """Allow an ask (`answer`: once, session or always). Raises MultiMcpError if it was already answered."""
        self._means.ask(control.ALLOW, {"id": ask, "answer": answer, "by": BY})

    def _open_asked(self, ask: str) -> None:
        """Open the page that a server's ask refers to, and allow the ask. Raises MultiMcpError if no browser opens."""
        url = next((row["url"] for row in self._means.ask(control.ASKS, {})["asks"] if row["id"] == ask), None)
        if url is not None:
            self._open_url(url, "Show the address with: multi-mcp asks")
        self._allow(ask, "once")

    def _switch(self, server: str, on: bool) -> Notice:
        self._means.run(["enable" if on else "disable", server], VERB_S)
        after = "Clients see its tools again." if on else "Clients no longer see its tools."
        return outcome_notice(f"{texts.name(server)} is {'enabled' if on else 'disabled'}", after)

    def _open_panel(self, page: str) -> None:
        """Open a page of the panel in the user's browser, with a link that works only once."""
        link = self._means.ask(control.PANEL, {"page": page} if page else {})["url"]
        self._open_url(link, "Print the link with: multi-mcp panel --no-browser")

    def _open_url(self, url: object, hint: str) -> None:
        if not self._means.open_url(str(url)):
            raise MultiMcpError("No browser was found here", hint)

    def _open_file(self, path: str) -> None:
        """Open a file that has a problem or, if `path` is "", servers.yaml. Create servers.yaml if it is missing."""
        own = self._means.paths.config_file
        file = Path(path) if path else own
        if file == own and not file.exists():
            self._means.create_file()
        self._means.open_file(file)

    def _show_log(self, server: str) -> None:
        """Show a server's log below the gateway's warnings about it: a server that hangs does not log the cause.

        If the server has no log, for example because it has a `url`, show the gateway's log lines about it.
        """
        file = self._means.paths.log_dir / SERVER_LOGS / log_name(server)
        own, gateway = (last_lines(log, LOG_TAIL) for log in (file, self._means.paths.log_dir / GATEWAY_LOG))
        if own:
            head = "The gateway's log has these warnings about it:"
            about = [line for line in gateway if warns_about(line, server)][-WARNINGS:]
            own = ["", f"The server's log ({file}) ends with:", "", *own]
        else:
            head = "The server has written no log. The gateway's log has this about it:"
            about = [line for line in gateway if names_server(line, server)] or ["Nothing."]
        if about:
            text = "\n".join([texts.plain(server), head, "", *about, *own, ""])
            file = self._written(Path("logs", log_name(server)), text, f"multi-mcp logs {server}")
        self._means.open_file(file)

    def _show_logs(self, _: str) -> None:
        """Open the gateway's log, or the log folder if there is no log yet."""
        file = self._means.paths.log_dir / GATEWAY_LOG
        self._means.open_file(file if file.exists() else self._logs())

    def _logs(self) -> Path:
        folder = self._means.paths.log_dir
        if not folder.exists():
            raise MultiMcpError("No log has been written yet", f"Logs will be in {folder}")
        return folder

    def _copy_diagnostics(self, _: str) -> Notice:
        text = self._diagnostics()
        if not self._means.copy(text):
            return outcome_notice("Cannot copy here", f"The diagnostics are in {self._written_check(text)}")
        what = "They hold versions and the findings of doctor, and no secrets. Paste them where you ask for help."
        return outcome_notice("Diagnostics copied", what)

    def _written_check(self, text: str) -> Path:
        return self._written(Path("check.txt"), text, "multi-mcp doctor")

    def _diagnostics(self) -> str:
        """Return a text with our version and the findings of `multi-mcp doctor`. It contains no secrets."""
        return outcomes.diagnostics(self._means.version, self._means.run(["doctor"], VERB_S))

    def _written(self, name: Path, text: str, command: str) -> Path:
        """Write a text for the user to the cache folder. Return the file.

        If this fails, raises MultiMcpError. Its hint names `command`, the command that prints the text.
        """
        file = self._means.paths.cache_dir / name
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise MultiMcpError(f"Cannot write {file}: {error.strerror}", f"See it with: {command}") from None
        return file

    def _client(self, name: str, on: bool) -> Notice:
        done = self._means.run(["connect" if on else "disconnect", name], VERB_S)["clients"][0]
        self._means.changed()
        return outcomes.client(str(done["title"]), on, done)

    def _copy_command(self, _: str) -> Notice:
        command = shlex.join(self._means.shim)
        if self._means.copy(command):
            return outcome_notice("Copied", "Paste it where your AI tool expects a command:", command)
        why = "Copy it from here. On Wayland, install wl-clipboard to copy automatically."
        return outcome_notice("This is the stdio command", command, why)

    def _offered(self, kind: str) -> tuple[Offered, ...]:
        return offered_of(self._means.run(["import", kind, "--dry-run"], VERB_S), known=kind == "--doubled")

    def _chosen(self, kind: str, key: str) -> tuple[Offered, ...]:
        """Return the servers that `import` offers with the option `kind`.

        Raises MultiMcpError if these are not the servers that the user was shown, whose offer_key is `key`.
        """
        offered = self._offered(kind)
        if offer_key(offered) != key:
            self._means.changed()
            raise MultiMcpError("The list changed after it was shown", "Review it in the menu and choose again")
        return offered

    def _show_offer(self, _: str) -> None:
        """Open a text with all offered servers: a notification shows only two, and some panels show no menu."""
        text = outcomes.offer_text(self._offered("--first"))
        self._means.open_file(self._written(Path("servers-found.txt"), text, "multi-mcp import"))

    def _take_over(self, key: str, how: str) -> Notice:
        """Copy the offered servers to servers.yaml, and return a notice. The AI tools' files stay unchanged.

        `key`: the offer_key of the servers that the user was shown.
        `how`: `--keyring` to store their secrets in the keyring, or `--clear` to keep them in clear text.
        """
        offered = self._chosen("--first", key)
        try:
            self._means.run(["import", "--first", "--copy", "--yes", how], TAKE_OVER_S)
        except MultiMcpError as error:
            if how == "--keyring":
                error.hint = f"Unlock a keyring, or choose: {texts.TAKE_OVER_CLEAR}"
            raise
        self._means.changed()
        return outcomes.taken_over(len(offered), sum(one.secrets for one in offered) if how == "--clear" else 0)

    def _take_out(self, key: str) -> Notice:
        """Remove the servers that multi-mcp also has from AI tools' files. Return a notice. `key`: as in _take_over."""
        doubled = self._chosen("--doubled", key)
        self._means.run(["import", "--doubled", "--move", "--yes"], VERB_S)
        self._means.changed()
        return outcomes.taken_out(doubled)

    def _leave_servers(self, _: str) -> Notice:
        self._means.run(["import", "--no-offer"], VERB_S)
        self._means.changed()
        after = "To import them later, run in a terminal: multi-mcp import"
        return notice_of(NoticeKind.OFFER, "They stay where they are", after)

    def _autostart(self, on: bool) -> Notice:
        self._means.autostart.turn(on)
        self._means.changed()
        if on:
            return outcome_notice("multi-mcp starts at login", "This takes effect at the next login.")
        after = "Your AI tools still start the gateway when they need it."
        return outcome_notice("multi-mcp no longer starts at login", after)

    def _show_state(self, _: str) -> Notice:
        shown = self._means.view()
        return notice_of(outcomes.KEY, texts.APP, shown.summary, *shown.buttons[: texts.BUTTONS])

    def _about(self, _: str) -> Notice:
        paths = self._means.paths
        where = f"Configuration: {paths.config_file}", f"Logs: {paths.log_dir}"
        return outcome_notice(f"multi-mcp {self._means.version}", *where)
