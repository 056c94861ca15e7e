"""`multi-mcp tray` from its start to its end: the one tray of this user, or the word of it to the one that runs.

Never here: how the parts work together (app).
"""

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

from trayapp.config.environment import own_environment
from trayapp.config.paths import Paths, find_paths
from trayapp.model.errors import MultiMcpError, StorageError
from trayapp.model.logs import TRAY_LOG
from trayapp.service.about import version_text
from trayapp.service.autostart.switch import Autostart, absolute_home, find_autostart
from trayapp.service.clipboard import copy
from trayapp.service.command_line import shim_command, tray_command
from trayapp.service.connect import connect_gateway
from trayapp.service.gateway_process import GatewayProcess
from trayapp.service.installed import Update
from trayapp.service.logging import start_logging
from trayapp.service.opener import open_file, open_url
from trayapp.service.single_instance import SingleTray
from trayapp.service.supervisor import Supervisor
from trayapp.service.verb import run_verb
from trayapp.tray import darwin, icons, windows
from trayapp.tray.actions import Actions, Means, offered_of
from trayapp.tray.app import ENDED_BY, App, ByIcon, OverBus, Speaker
from trayapp.tray.desk import Desk
from trayapp.tray.icon_class import icon_class
from trayapp.tray.linux.hosts import PANEL_WAIT_S, STARTED_WAIT_S
from trayapp.tray.linux.notifications import Notifier
from trayapp.tray.state.notices import Notice, NoticeKind
from trayapp.tray.state.outcomes import no_host
from trayapp.tray.state.state import Action, ClientState, IconKind, Offered
from trayapp.tray.updates import Updates
from trayapp.wire.rundir import run_dir

log = logging.getLogger(__name__)

NAME = "multi-mcp"
NO_HOST_TOLD = "no-host-told"  # in the cache folder
OFFER_TOLD = "offer-told"  # there too
UPDATE_TOLD = "update-told"  # there, too: the version
UPDATE_S = 40.0  # for a slow network
SHOW = "show"  # the wish of a second start
CLIENTS_S = 20.0  # to read some twenty small files
OPENS_S = 2.0  # within this an opener that finds no program has said so
RETINA_PX = 44  # twice the height of the menu bar's icons

Say = Callable[[str], None]


def run_tray(environ: Mapping[str, str], *, autostart: bool, say: Say) -> int:
    """Be the tray until it is quit; the exit code. `say` prints a line, where there is somebody who reads.

    A second one lets the first one show itself, says so, and ends; started at login, in silence. Raises StorageError.
    """
    environ = absolute_home(environ)
    run = run_dir(dict(environ))
    single = SingleTray(run)
    holder = single.take()
    if holder is not None:
        if not autostart:
            say(second_words(holder, single.send(SHOW)))
        return 0
    try:
        is_replaced = _be_the_tray(dict(environ), run, single, autostart, say)
    finally:
        single.close()
    if is_replaced:
        _become_the_new_one(environ)
    return 0


def quit_tray(environ: Mapping[str, str]) -> int | None:
    """Let this user's tray end, with the gateway that it started; its process id, None when none runs.

    Raises MultiMcpError when it does not answer, StorageError.
    """
    single = SingleTray(run_dir(dict(absolute_home(environ))))
    holder = single.take()
    if holder is None:
        single.close()
        return None
    if single.send(ENDED_BY) is None:
        how = f"taskkill /F /PID {holder}" if os.name == "nt" else f"kill {holder}"
        raise MultiMcpError(f"The tray (process {holder}) does not answer", f"End it with: {how}")
    return holder


def _become_the_new_one(environ: Mapping[str, str]) -> None:
    """This process goes on as the program that now has our name: the session that started it sees no end."""
    argv = tray_command()
    os.execve(argv[0], argv, own_environment(environ))


def second_words(holder: int, answer: str | None) -> str:
    """What a second start says; `answer`: the state that the first one shows, None when it does not answer."""
    who = f"multi-mcp is already running (process {holder})" if holder else "multi-mcp is already running"
    return f"{who}\n{answer}" if answer else f"{who}, but it does not answer"


def _be_the_tray(environ: dict[str, str], run: str, single: SingleTray, autostart: bool, say: Say) -> bool:
    """Whether the program was replaced meanwhile."""
    paths = find_paths(environ)
    start_logging(paths.log_dir, name=TRAY_LOG)
    log.info("Tray %s starts (process %d)", version_text(), os.getpid())
    switch = find_autostart(environ, tray_command())
    told = paths.cache_dir / NO_HOST_TOLD
    app = build(environ, run, paths, switch, SystemFace(say, told if autostart else None))
    _serve(single, app)
    threading.Thread(target=_keep_true, args=(switch,), name="start at login", daemon=True).start()
    Updates(lambda: run_verb(["update-check"], environ, UPDATE_S), app.show, paths.cache_dir / UPDATE_TOLD).start()
    if not autostart:
        say("multi-mcp is running: Quit in its tray menu, or Ctrl-C here, ends it")
    app.run()
    log.info("Tray ended")
    return app.is_replaced


def _serve(single: SingleTray, app: App) -> None:
    try:
        single.serve(app.second_start)
    except (OSError, StorageError) as error:  # then a second start cannot say more than that there is a first one
        log.warning("Second starts cannot be heard: %s", error)


def _keep_true(switch: Autostart) -> None:
    try:
        if switch.keep_true():
            log.info("The entry for start at login points at this program now: %s", switch.where)
    except MultiMcpError as error:
        log.warning("The entry for start at login could not be renewed: %s", error)


def build(environ: dict[str, str], run: str, paths: Paths, switch: Autostart, face: SystemFace) -> App:
    """All parts of one tray, joined."""
    told = paths.cache_dir / OFFER_TOLD
    face.offer_told = told
    desk = Desk(
        switch,
        partial(_clients, environ),
        partial(_offer, environ),
        partial(_doubled, environ),
        offer_told=told.exists(),
    )
    app = App(desk, face, time.monotonic, Update(run))
    face.app = app
    supervisor = Supervisor(GatewayProcess(environ, run, paths.log_dir), app.saw)
    means = Means(
        ask=partial(_ask, run),
        run=lambda argv, timeout_s: run_verb(argv, environ, timeout_s),
        command=supervisor.command,
        create_file=partial(_create, paths.config_file),
        open_file=lambda path: open_file(path, environ, OPENS_S),
        open_url=lambda url: open_url(url, environ, OPENS_S),
        copy=lambda text: copy(text, environ) or _own_selection(text, environ),
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


def _ask(run: str, method: str, params: dict[str, Any]) -> Any:
    with connect_gateway(run, None) as client:
        return client.call(method, params)


def _own_selection(text: str, environ: Mapping[str, str]) -> bool:
    if sys.platform != "linux":
        return False
    from trayapp.tray.linux import selection  # python-xlib is Linux's, and takes its time

    return selection.own(text, environ)


def _create(path: Path) -> None:
    """Write the first servers.yaml. The file's libraries are loaded for that only: the tray does not need them."""
    from trayapp.config.sample import sample_text
    from trayapp.config.store import ConfigStore

    ConfigStore(path, first_text=sample_text).create()


def _clients(environ: Mapping[str, str]) -> tuple[ClientState, ...]:
    """The AI tools that are here, as the verb sees them: reading their files is not for this process."""
    try:
        rows = run_verb(["connect"], environ, CLIENTS_S)["clients"]
    except MultiMcpError as error:
        log.warning("The AI tools of this computer cannot be looked at: %s", error)
        return ()
    return tuple(map(client_of, rows))


def _offer(environ: Mapping[str, str]) -> tuple[Offered, ...] | None:
    """On a first start: the servers that the AI tools have; None when they cannot be looked at now."""
    try:
        return offered_of(run_verb(["import", "--first", "--dry-run"], environ, CLIENTS_S))
    except MultiMcpError as error:
        log.warning("The servers of the AI tools cannot be looked at: %s", error)
        return None


def _doubled(environ: Mapping[str, str]) -> tuple[Offered, ...]:
    """The servers that connected AI tools still start themselves; none when they cannot be looked at now."""
    try:
        return offered_of(run_verb(["import", "--doubled", "--dry-run"], environ, CLIENTS_S), known=True)
    except MultiMcpError as error:
        log.warning("The servers of the AI tools cannot be looked at: %s", error)
        return ()


def client_of(row: Mapping[str, Any]) -> ClientState:
    """One row of `multi-mcp connect --json`."""
    state, reason = row["state"], str(row.get("reason") or "")
    linked = state in ("connected", "drifted")
    return ClientState(row["name"], row["title"], linked, state != "not found", reason if state == "drifted" else None)


class SystemFace:
    """The icon and its notifications on this system. Implements app.TrayPlatform.

    `told`: a file that is there once it was said that nothing shows icons; None = a person started us: the panel is
    there or starts in this moment too, and it is said in any case.
    """

    def __init__(self, say: Say, told: Path | None = None) -> None:
        self.app: App
        self.offer_told: Path | None = None  # a file that is there once servers to be taken over were told of
        self._say = say
        self._told = told
        self.speaker: Speaker  # comes with the icon

    def make_icon(self) -> Any:
        """See TrayPlatform; with the icon comes the way to notify."""
        if sys.platform == "win32":
            import ctypes

            windows.be_dpi_aware(ctypes.windll)
        if sys.platform in ("win32", "darwin"):
            icon = _native_class()(NAME)
            self.speaker = ByIcon(icon)
            return icon
        notifier = Notifier(None, NAME, picture=icons.app_icon)
        self.speaker = OverBus(notifier)
        wait_s = STARTED_WAIT_S if self._told is None else PANEL_WAIT_S
        return icon_class()(NAME, on_no_host=self._nobody, on_bus=notifier.join, panel_wait_s=wait_s)

    def label(self, text: str) -> str:
        """See TrayPlatform."""
        return windows.menu_text(text) if sys.platform == "win32" else text

    def picture(self, kind: IconKind) -> Any:
        """See TrayPlatform."""
        if sys.platform == "win32":
            return icons.icon(kind, windows.icon_px(), not windows.light_taskbar())
        return icons.icon(kind, RETINA_PX) if sys.platform == "darwin" else partial(icons.icon, kind)

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        """See TrayPlatform."""
        seen = self.speaker.show(notice, click)
        if seen and notice.key == NoticeKind.OFFER and self.offer_told is not None:
            _touch(self.offer_told)
        return seen

    def withdraw(self, key: str) -> None:
        """See TrayPlatform."""
        self.speaker.withdraw(key)

    def _nobody(self) -> None:
        """Said once: there is no place for an icon. Not at every login of a desktop that has none."""
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
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _native_class() -> type[Any]:
    base = icon_class()
    return darwin.adapted(base) if sys.platform == "darwin" else windows.mended(base)
