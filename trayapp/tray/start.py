"""The command `multi-mcp tray`, which runs the user's only tray or sends a request to the tray that already runs."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from trayapp.config.files import make_folder
from trayapp.config.paths import Paths, find_paths
from trayapp.config.programs import own_environment
from trayapp.model.errors import MultiMcpError, StorageError
from trayapp.model.logs import TRAY_LOG
from trayapp.service.autostart import Autostart, absolute_home, find_autostart
from trayapp.service.command_line import shim_command, tray_command, typed_command
from trayapp.service.desktop_programs import copy, open_file, open_url
from trayapp.service.gateway_launch import connect_gateway
from trayapp.service.gateway_process import GatewayProcess
from trayapp.service.logging import start_logging
from trayapp.service.single_instance import SingleTray
from trayapp.service.supervisor import Supervisor
from trayapp.service.verb_process import end_verbs, run_verb
from trayapp.service.version import Update, version_text
from trayapp.tray import darwin, icons, windows
from trayapp.tray.actions import Actions, ActionServices, offered_of
from trayapp.tray.app import ENDED_BY, App, BalloonNotifications, NoticeDisplay, StateSources
from trayapp.tray.linux.icon import PANEL_WAIT_S, STARTED_WAIT_S, LinuxIcon
from trayapp.tray.linux.notifications import BusNotifications
from trayapp.tray.painter import NativeIcon
from trayapp.tray.state.notices import Notice, NoticeKind
from trayapp.tray.state.outcomes import new_version, no_host
from trayapp.tray.state.tray_state import Action, ClientState, IconKind, Offered
from trayapp.wire.rundir import run_dir

log = logging.getLogger(__name__)

NAME = "multi-mcp"
UPDATE_S = 40.0  # limit on the check for a new version, enough for a slow network
FIRST_CHECK_S = 60.0  # delay until the machine is no longer busy with the login
CHECK_EVERY_S = 24 * 3600.0
CLIENTS_S = 20.0  # limit on reading the AI tools' files, about twenty small ones
OPENS_S = 2.0  # a command for opening files fails within this time if it finds no program
RETINA_PX = 44  # twice the height of an icon in the menu bar

Say = Callable[[str], None]


def run_tray(environ: Mapping[str, str], *, autostart: bool, say: Say) -> int:
    """Run the tray until it quits. Return the exit code. `say` prints a line, if anything reads the output.

    If a tray is already running, make it show its state, print its answer, and return. A start at login (`autostart`)
    returns silently instead. If an update replaced the program meanwhile, this process becomes the new program.

    Raises StorageError.
    """
    environ = absolute_home(environ)
    run = run_dir(dict(environ))
    single = SingleTray(run)
    holder = single.take()
    if holder is not None:
        if not autostart:
            say(second_words(holder, single.send("show")))
        return 0
    try:
        is_replaced = _be_the_tray(dict(environ), run, single, autostart, say)
    finally:
        single.close()
    if is_replaced:  # become the new program in the same process: to the desktop session, the tray has not ended
        argv = tray_command()
        os.execve(argv[0], argv, own_environment(environ))
    return 0


def quit_tray(environ: Mapping[str, str]) -> int | None:
    """End this user's tray, and the gateway unless the user started it.

    Return the tray's process id, 0 if it is unknown, or None if there is no tray.

    Raises StorageError, or MultiMcpError if the tray does not answer.
    """
    single = SingleTray(run_dir(dict(absolute_home(environ))))
    holder = single.take()
    if holder is None:
        single.close()
        return None
    if single.send(ENDED_BY) is None:
        if not holder:  # `kill 0` would end the user's own terminal
            raise MultiMcpError("The tray does not answer", "End the process multi-mcp-tray")
        how = f"taskkill /F /PID {holder}" if os.name == "nt" else f"kill {holder}"
        raise MultiMcpError(f"The tray (process {holder}) does not answer", f"End it with: {how}")
    return holder


def second_words(holder: int, answer: str | None) -> str:
    """Return the message for a second start.

    `holder`: the running tray's process id, or 0 if unknown. `answer`: its answer, or None if there was none in time.
    """
    who = f"multi-mcp is already running (process {holder})" if holder else "multi-mcp is already running"
    return f"{who}\n{answer}" if answer else f"{who}, but it does not answer"


def _be_the_tray(environ: dict[str, str], run: str, single: SingleTray, autostart: bool, say: Say) -> bool:
    """Run the tray. Return True if the program was replaced while the tray ran."""
    paths = find_paths(environ)
    start_logging(paths.log_dir, name=TRAY_LOG)
    log.info("Starting tray %s (process %d)", version_text(), os.getpid())
    switch = find_autostart(environ, tray_command())
    told = paths.cache_dir / "no-host-told"
    app = build(environ, run, paths, switch, SystemPlatform(say, told if autostart else None))
    try:
        single.serve(app.second_start)
    except (OSError, StorageError) as error:  # without the socket, a second start can only report a running tray
        log.warning("Cannot detect further starts: %s", error)

    def keep_true() -> None:
        try:
            if switch.refresh_command():
                log.info("Start at login now points to this program: %s", switch.entry.where)
        except MultiMcpError as error:
            log.warning("Cannot update the entry for start at login: %s", error)

    threading.Thread(target=keep_true, name="start at login", daemon=True).start()
    threading.Thread(target=report_updates, args=(environ, paths, app.show), name="updates", daemon=True).start()
    if not autostart:
        say("multi-mcp is running. To end it, choose Quit in its tray menu, or press Ctrl-C here")
        say(f"First time? In another terminal: {typed_command()} setup")
    app.run()
    end_verbs()
    log.info("Tray ended")
    return app.is_replaced


def build(environ: dict[str, str], run: str, paths: Paths, switch: Autostart, face: SystemPlatform) -> App:
    """Build and connect all parts of one tray, and return its App."""
    told = paths.cache_dir / "offer-told"
    face.offer_told = told

    def clients() -> tuple[ClientState, ...]:
        answer = _read_tools(environ, "connect")
        return tuple(map(client_of, answer["clients"])) if answer is not None else ()

    def servers(kind: str) -> tuple[Offered, ...] | None:
        answer = _read_tools(environ, "import", kind, "--dry-run")
        return offered_of(answer, known=kind == "--doubled") if answer is not None else None

    sources = StateSources(switch, clients, servers, offer_told=told.exists())
    app = App(sources, face, time.monotonic, Update(run))
    face.app = app
    supervisor = Supervisor(GatewayProcess(environ, run, paths.log_dir), app.saw)

    def ask(method: str, params: dict[str, Any]) -> Any:
        with connect_gateway(run, None) as client:
            return client.call(method, params)

    def create() -> None:
        # This process needs the YAML libraries only to create the first servers.yaml.
        from trayapp.config.store import ConfigStore, sample_text

        ConfigStore(paths.config_file, first_text=sample_text).create()

    def copy_text(text: str) -> bool:
        if copy(text, environ):
            return True
        if sys.platform != "linux":
            return False
        from trayapp.tray.linux import selection  # python-xlib is needed only on Linux, and is slow to import

        return selection.own_selection(text, environ)

    means = ActionServices(
        ask=ask,
        run=lambda argv, timeout_s: run_verb(argv, environ, timeout_s),
        command=supervisor.command,
        create_file=create,
        open_file=lambda path: open_file(path, environ, OPENS_S),
        open_url=lambda url: open_url(url, environ, OPENS_S),
        copy=copy_text,
        autostart=switch,
        paths=paths,
        shim=shim_command(),
        version=version_text(),
        view=app.shown,
        changed=app.looked_around,
        quit=app.quit,
    )
    app.join(Actions(means), supervisor)
    return app


def report_updates(environ: Mapping[str, str], paths: Paths, show: Callable[[Notice], object]) -> None:
    """Check for a new version soon after startup and then daily, and report it with `show`. Does not return.

    The verb `multi-mcp update-check` uses the network only if the settings allow it (off by default).
    """
    time.sleep(FIRST_CHECK_S)
    while True:
        report_update(lambda: run_verb(["update-check"], environ, UPDATE_S), show, paths.cache_dir / "update-told")
        time.sleep(CHECK_EVERY_S)


def report_update(look: Callable[[], Any], show: Callable[[Notice], object], told: Path) -> None:
    """Report a new version once. `look`: runs `update-check`. `told`: the file with the last reported version."""
    try:
        newer = (look() or {}).get("newer")
    except MultiMcpError as error:
        log.info("%s", error)
        return
    last = ""
    with suppress(OSError, UnicodeDecodeError):
        last = told.read_text(encoding="utf-8")
    if newer and newer["version"] != last:
        show(new_version(newer["version"], newer["url"]))
        with suppress(OSError):
            make_folder(told.parent)
            told.write_text(newer["version"], encoding="utf-8")


def _read_tools(environ: Mapping[str, str], *argv: str) -> Any:
    """Run a verb that reads the AI tools' files, and return its JSON. If it fails, log why and return None."""
    try:
        return run_verb(argv, environ, CLIENTS_S)
    except MultiMcpError as error:
        log.warning("Cannot read the files of the AI tools: %s", error)
        return None


def client_of(row: Mapping[str, Any]) -> ClientState:
    """Return one row of `multi-mcp connect --json` as a ClientState."""
    state, reason = row["state"], str(row.get("reason") or "")
    linked = state in ("connected", "drifted")
    return ClientState(row["name"], row["title"], linked, state != "not found", reason if state == "drifted" else None)


class SystemPlatform:
    """The icon and the notifications of this system. Implements app.TrayPlatform.

    `told`: a file that exists once the user was told that nothing shows icons. It is None for a tray that was not
    started at login: any panel would already be running, so the user is told every time.
    """

    def __init__(self, say: Say, told: Path | None = None) -> None:
        self.app: App
        self.offer_told: Path | None = None  # this file exists once offered servers were reported
        self._say = say
        self._told = told
        self.speaker: NoticeDisplay  # set by make_icon

    def make_icon(self) -> Any:
        """Return the icon for this system, and set up its notifications."""
        if sys.platform == "win32":
            import ctypes

            windows.be_dpi_aware(ctypes.windll)
        if sys.platform in ("win32", "darwin"):
            adapted = darwin.adapted if sys.platform == "darwin" else windows.mended
            icon = adapted(NativeIcon)(NAME)
            self.speaker = BalloonNotifications(icon)
            return icon
        self.speaker = speaker = BusNotifications(NAME, icons.app_icon)
        wait_s = STARTED_WAIT_S if self._told is None else PANEL_WAIT_S
        return LinuxIcon(NAME, on_no_host=self._nobody, on_bus=speaker.join, panel_wait_s=wait_s)

    def label(self, text: str) -> str:
        """Return the text of a menu entry, with `&` escaped on Windows."""
        return windows.menu_text(text) if sys.platform == "win32" else text

    def picture(self, kind: IconKind) -> Any:
        """Return the picture for a kind. On Linux, this is a function from size to picture."""
        if sys.platform == "win32":
            return icons.icon(kind, windows.icon_px(), not windows.light_taskbar())
        return icons.icon(kind, RETINA_PX) if sys.platform == "darwin" else partial(icons.icon, kind)

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        seen = self.speaker.show(notice, click)
        if seen and notice.key == NoticeKind.OFFER and self.offer_told is not None:
            _touch(self.offer_told)
        return seen

    def withdraw(self, key: str) -> None:
        self.speaker.withdraw(key)

    def _nobody(self) -> None:
        """Tell the user that nothing on this desktop shows icons. After a start at login, do so only once."""
        notice = no_host()
        if self._told is not None and self._told.exists():
            log.info("%s", notice.title)
            return
        self._say(f"{notice.title}. {notice.text}")
        self.app.show(notice)
        if self._told is not None:
            _touch(self._told)


def _touch(path: Path) -> None:
    with suppress(OSError):
        make_folder(path.parent)
        path.touch()
