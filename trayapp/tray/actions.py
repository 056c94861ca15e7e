"""What a click does: one function a verb, each ends in a Notice, in a new state, or in an error for people.

Never here: threads, the icon; the words (outcomes); how the gateway's process is held (service/supervisor).
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trayapp.config.paths import Paths
from trayapp.model.errors import MultiMcpError
from trayapp.model.logs import GATEWAY_LOG, SERVER_LOGS, log_name, names_server
from trayapp.service.autostart.switch import Autostart
from trayapp.service.supervision import CommandKind
from trayapp.tray.state import outcomes, texts
from trayapp.tray.state.notices import Notice
from trayapp.tray.state.state import Action, Offered, TrayView, Verb, offer_key
from trayapp.wire.control import (
    ALLOW,
    APPROVALS,
    APPROVE,
    ASKS,
    DENY,
    KEYRING,
    LOGIN,
    LOGIN_WAIT,
    LOGOUT,
    PANEL,
    RECONNECT,
    REFRESH,
)

log = logging.getLogger(__name__)

CHANGES_FOLDER = "changes"  # in the cache folder
LOGS_FOLDER = "logs"  # there too: what the gateway's log says of servers that write nothing
CHECK_NAME = "check.txt"
LOG_TAIL = 1 << 20  # bytes of the gateway's log that are looked through
BY = "the tray"  # who answered, in what a late answer is told
VERB_S = 30.0  # for an edit of one file
TAKE_OVER_S = 180.0  # the user may have to unlock the keyring
OFFER_NAME = "servers-found.txt"  # in the cache folder


@dataclass(frozen=True, slots=True)
class Means:
    """What actions are done with; tests pass fakes of the same shapes. All may block and raise MultiMcpError."""

    ask: Callable[[str, dict[str, Any]], Any]  # a control request, however long it takes
    run: Callable[[Sequence[str], float], Any]  # a verb of the command line, within so many seconds
    command: Callable[[CommandKind], None]
    create_file: Callable[[], None]  # the first servers.yaml
    open_file: Callable[[Path], None]
    open_url: Callable[[str], bool]
    copy: Callable[[str], bool]
    autostart: Autostart
    paths: Paths
    shim: list[str]
    version: str
    view: Callable[[], TrayView]  # what is shown now
    changed: Callable[[], None]  # something is different that no snapshot tells
    quit: Callable[[], None]


def offered_of(answer: Mapping[str, Any], *, known: bool = False) -> tuple[Offered, ...]:
    """The rows of `multi-mcp import --json`; `known`: those of servers that are here already."""
    return tuple(
        Offered(row["name"], row["title"], str(row["url"] or shlex.join(row["command"] or ())), len(row["secrets"]))
        for row in answer["servers"]
        if bool(row["known"]) is known
    )


def lines_about(server: str, log_file: Path) -> list[str]:
    """The lines of the newest part of a log that name this server."""
    try:
        with log_file.open("rb") as file:
            file.seek(max(0, log_file.stat().st_size - LOG_TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if names_server(line, server)]


class Actions:
    """Does what clicks ask for: a method for each action of the menu."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._shown: dict[str, list[dict[str, str]]] = {}  # of each server, what the user has looked at
        self._table: dict[Verb, Callable[[str], Notice | None]] = {
            Verb.RECONNECT: self._reconnect,
            Verb.REFRESH: self._refresh,
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
            Verb.DENY: self._deny,
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
            Verb.LOG_FOLDER: self._log_folder,
            Verb.CHECK: self._check,
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
        """Do it; what there is to say, None when the new state says it. Raises nothing."""
        log.info("Click: %s %s", action.verb, action.target)
        try:
            return self._table[action.verb](action.target)
        except MultiMcpError as error:
            log.info("%s failed: %s", action.verb, error)
            return outcomes.failed(action, error)
        except Exception as error:  # the boundary of a click: whatever it is, the user hears of it
            log.exception("%s failed in a way that we do not know", action.verb)
            return outcomes.unknown(action, error)

    # -- servers -------------------------------------------------------------------------------------------------

    def _reconnect(self, server: str) -> Notice:
        return outcomes.reconnected(self._means.ask(RECONNECT, {"server": server or None})["servers"])

    def _refresh(self, server: str) -> Notice:
        return outcomes.refreshed(self._means.ask(REFRESH, {"server": server or None})["servers"])

    def _sign_in(self, server: str) -> Notice:
        """Waits for the user, who has the time that the browser's page is waited for."""
        begun = self._means.ask(LOGIN, {"server": server})
        if begun["url"] is None:  # found in the keyring, which the user has just unlocked
            return outcomes.signed_in(server, begun["outcome"])
        if not self._means.open_url(str(begun["url"])):
            raise MultiMcpError("No browser was found here", f"Sign in on a terminal: multi-mcp auth {server}")
        outcome = self._means.ask(LOGIN_WAIT, {"server": server})
        return outcomes.signed_in(server, outcome)

    def _sign_out(self, server: str) -> Notice:
        self._means.ask(LOGOUT, {"server": server})
        return outcomes.signed_out(server)

    def _unlock(self, _: str) -> Notice:
        """The desktop's own dialog asks for the password."""
        error = self._means.ask(KEYRING, {"unlock": True}).get("error")
        if error:
            raise MultiMcpError(str(error["title"]), str(error["hint"]))
        return outcomes.unlocked()

    def _show_changes(self, server: str) -> None:
        """Tools that wait for the user, as a text; what was shown is what an approval is of."""
        rows = self._means.ask(APPROVALS, {"server": server})["rows"]
        name = Path(CHANGES_FOLDER, log_name(server)).with_suffix(".txt")
        file = self._written(name, outcomes.changes_text(server, rows), f"multi-mcp approve {server}")
        self._shown[server] = [{name: row[name] for name in ("server", "tool", "hash")} for row in rows]
        self._means.open_file(file)

    def _approve(self, server: str) -> Notice:
        """What was shown, and nothing that came after."""
        if not self._shown.get(server):
            raise MultiMcpError("Nobody has looked at it yet", f"Choose {texts.SHOW_CHANGES} first")
        return outcomes.approved(server, self._means.ask(APPROVE, {"tools": self._shown.pop(server)}))

    # -- asks ----------------------------------------------------------------------------------------------------

    def _allow(self, ask: str, answer: str) -> None:
        """The first answer counts; a later one is an error, which says so."""
        self._means.ask(ALLOW, {"id": ask, "answer": answer, "by": BY})

    def _deny(self, ask: str) -> None:
        self._means.ask(DENY, {"id": ask, "by": BY})

    def _open_asked(self, ask: str) -> None:
        """Open the page that a server wants the user to see. That the user did is the answer."""
        url = next((row["url"] for row in self._means.ask(ASKS, {})["asks"] if row["id"] == ask), None)
        if url is not None and not self._means.open_url(str(url)):
            raise MultiMcpError("No browser was found here", "See the address with: multi-mcp asks")
        self._allow(ask, "once")

    def _switch(self, server: str, on: bool) -> Notice:
        self._means.run(["enable" if on else "disable", server], VERB_S)
        return outcomes.switched(server, on)

    # -- files ---------------------------------------------------------------------------------------------------

    def _open_panel(self, _: str) -> None:
        """In the user's browser; the link works once."""
        if not self._means.open_url(str(self._means.ask(PANEL, {})["url"])):
            raise MultiMcpError("No browser was found here", "Print a link for one: multi-mcp panel --no-browser")

    def _open_file(self, path: str) -> None:
        """servers.yaml, which is written first if there is none; or another file that a problem is in."""
        own = self._means.paths.config_file
        file = Path(path) if path else own
        if file == own and not file.exists():
            self._means.create_file()
        self._means.open_file(file)

    def _show_log(self, server: str) -> None:
        """What it wrote itself; else what the gateway's log says of it: a url server has nothing else."""
        file = self._means.paths.log_dir / SERVER_LOGS / log_name(server)
        if not (file.exists() and file.stat().st_size):
            lines = lines_about(server, self._means.paths.log_dir / GATEWAY_LOG)
            text = "\n".join([texts.plain(server), texts.NOTHING_LOGGED, "", *(lines or ["Nothing."]), ""])
            file = self._written(Path(LOGS_FOLDER, log_name(server)), text, f"multi-mcp logs {server}")
        self._means.open_file(file)

    def _show_logs(self, _: str) -> None:
        """The gateway's; the folder where there is none yet."""
        file = self._means.paths.log_dir / GATEWAY_LOG
        self._means.open_file(file if file.exists() else self._logs())

    def _log_folder(self, _: str) -> None:
        self._means.open_file(self._logs())

    def _logs(self) -> Path:
        folder = self._means.paths.log_dir
        if not folder.exists():
            raise MultiMcpError("Nothing has been written yet", f"Logs will lie in {folder}")
        return folder

    def _check(self, _: str) -> None:
        self._means.open_file(self._written(Path(CHECK_NAME), self._diagnostics(), "multi-mcp doctor"))

    def _copy_diagnostics(self, _: str) -> Notice:
        text = self._diagnostics()
        if not self._means.copy(text):
            file = self._written(Path(CHECK_NAME), text, "multi-mcp doctor")
            return outcomes.diagnostics_in(str(file))
        return outcomes.diagnostics_copied()

    def _diagnostics(self) -> str:
        """What `multi-mcp doctor` finds; it repeats no secret."""
        return outcomes.diagnostics(self._means.version, self._means.run(["doctor"], VERB_S))

    def _written(self, name: Path, text: str, command: str) -> Path:
        """A text to be read, in the cache folder; `command` shows the same on a terminal."""
        file = self._means.paths.cache_dir / name
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise MultiMcpError(f"Cannot write {file}: {error.strerror}", f"See it with: {command}") from None
        return file

    # -- clients -------------------------------------------------------------------------------------------------

    def _client(self, name: str, on: bool) -> Notice:
        done = self._means.run(["connect" if on else "disconnect", name], VERB_S)["clients"][0]
        self._means.changed()
        return outcomes.client(str(done["title"]), on, done)

    def _copy_command(self, _: str) -> Notice:
        command = shlex.join(self._means.shim)
        return outcomes.copied(command) if self._means.copy(command) else outcomes.not_copied(command)

    # -- servers that AI tools have ------------------------------------------------------------------------------

    def _offered(self) -> tuple[Offered, ...]:
        return offered_of(self._means.run(["import", "--first", "--dry-run"], VERB_S))

    def _show_offer(self, _: str) -> None:
        """All of them, as a text: a notification has room for two, and not every panel shows a menu."""
        text = outcomes.offer_text(self._offered())
        self._means.open_file(self._written(Path(OFFER_NAME), text, "multi-mcp import"))

    def _take_over(self, key: str, how: str) -> Notice:
        """Copies: the tools' files stay as they are. What came after the look at them has had no yes."""
        offered = self._offered()
        if offer_key(offered) != key:
            self._means.changed()
            raise MultiMcpError("They are not those any more that were shown", "See them in the menu, and choose again")
        try:
            self._means.run(["import", "--first", "--copy", "--yes", how], TAKE_OVER_S)
        except MultiMcpError as error:
            if how == "--keyring":
                error.hint = f"Unlock one, or choose: {texts.TAKE_OVER_CLEAR}"
            raise
        self._means.changed()
        return outcomes.taken_over(len(offered), sum(one.secrets for one in offered) if how == "--clear" else 0)

    def _take_out(self, key: str) -> Notice:
        """Out of the files of AI tools what runs here anyway. What came after the look at them has had no yes."""
        doubled = offered_of(self._means.run(["import", "--doubled", "--dry-run"], VERB_S), known=True)
        if offer_key(doubled) != key:
            self._means.changed()
            raise MultiMcpError("They are not those any more that were shown", "See them in the menu, and choose again")
        self._means.run(["import", "--doubled", "--move", "--yes"], VERB_S)
        self._means.changed()
        return outcomes.taken_out(doubled)

    def _leave_servers(self, _: str) -> Notice:
        self._means.run(["import", "--no-offer"], VERB_S)
        self._means.changed()
        return outcomes.left()

    # -- the app itself ------------------------------------------------------------------------------------------

    def _autostart(self, on: bool) -> Notice:
        self._means.autostart.turn(on)
        self._means.changed()
        return outcomes.autostart(on)

    def _show_state(self, _: str) -> Notice:
        shown = self._means.view()
        return outcomes.state(texts.APP, shown.summary, shown.buttons)

    def _about(self, _: str) -> Notice:
        paths = self._means.paths
        return outcomes.about(self._means.version, str(paths.config_file), str(paths.log_dir))
