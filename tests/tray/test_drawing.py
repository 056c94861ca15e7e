"""Tests of drawing states: only differences are drawn, at a bounded rate, and the last state is always drawn."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.tray.states import server, snapshot
from tests.tray.test_actions import ONE, World
from trayapp.model.child import ChildState
from trayapp.model.lifecycle import State
from trayapp.service.autostart import Autostart, StartCommand
from trayapp.service.supervisor import Supervisor, SupervisorView
from trayapp.service.version import Update
from trayapp.tray.actions import Actions
from trayapp.tray.app import LOOK_AGAIN_S, App, StateSources, state_of
from trayapp.tray.painter import PAUSE_S, WANTS_EYES, Painter, Redraws
from trayapp.tray.state.notices import Notice
from trayapp.tray.state.tray_state import SEPARATOR, Action, ClientState, IconKind, Item, TrayState, TrayView, Verb
from trayapp.tray.state.view import view

PATIENCE_S = 20.0


# -- redraws -------------------------------------------------------------------------------------------------------


class Steps:
    """A fake sleep that lasts until the test ends it."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._begun = threading.Semaphore(0)
        self._end = threading.Semaphore(0)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._begun.release()
        assert self._end.acquire(timeout=PATIENCE_S)

    def drawn(self) -> None:
        """Wait for the pause after the next redraw."""
        assert self._begun.acquire(timeout=PATIENCE_S)

    def go_on(self) -> None:
        self._end.release()

    def one_more(self, redraws: Redraws) -> None:
        """Check that exactly one more picture is drawn."""
        self.go_on()
        self.drawn()
        redraws.close(0.0)
        self.go_on()
        redraws.close()


@pytest.mark.requirement("tray-redraws")
def test_a_thousand_changes_within_a_pause_are_one_redraw_of_the_last_state() -> None:
    steps, state, drawn = Steps(), [0], list[int]()
    redraws = Redraws(lambda: drawn.append(state[0]), steps.sleep)
    redraws.start()
    steps.drawn()
    for number in range(1, 1001):
        state[0] = number
        redraws.request()
    steps.one_more(redraws)
    assert drawn == [0, 1000]
    assert steps.pauses == [PAUSE_S, PAUSE_S]
    assert PAUSE_S >= 0.25


def test_what_is_due_later_is_drawn_without_anybody_asking() -> None:
    times: list[float | None] = [0.01, 0.01, None]
    steps = Steps()
    redraws = Redraws(lambda: times.pop(0), steps.sleep)
    redraws.start()
    for _ in range(3):
        steps.drawn()
        steps.go_on()
    redraws.close()
    assert times == []


def test_a_redraw_that_fails_is_followed_by_the_next(caplog: pytest.LogCaptureFixture) -> None:
    steps, calls = Steps(), list[int]()

    def draw() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("a mistake of ours")

    redraws = Redraws(draw, steps.sleep)
    with caplog.at_level(logging.CRITICAL):
        redraws.start()
        steps.drawn()
        redraws.request()
        steps.one_more(redraws)
    assert len(calls) == 2


# -- the painter ---------------------------------------------------------------------------------------------------


class FakeIcon:
    """An icon that records the attributes set on it, in order."""

    def __init__(self) -> None:
        object.__setattr__(self, "touched", [])

    def __setattr__(self, name: str, value: Any) -> None:
        self.touched.append((name, value))

    touched: list[tuple[str, Any]]

    def take(self) -> dict[str, Any]:
        """Return the attributes that were set since the last call."""
        taken = dict(self.touched)
        self.touched.clear()
        return taken


class Drawn:
    def __init__(self) -> None:
        self.icon = FakeIcon()
        self.clicks: list[Action] = []
        self.painter = Painter(self.icon, lambda kind: f"picture of {kind}", self.clicks.append)


def a_view(**more: Any) -> TrayView:
    menu = (Item("a", "About ...", Action(Verb.ABOUT)), SEPARATOR, Item("q", "Quit", Action(Verb.QUIT)))
    return TrayView(**{"icon": IconKind.HEALTHY, "tooltip": "tip", "menu": menu, "summary": "all", **more})


def test_only_what_differs_is_touched() -> None:
    drawn = Drawn()
    drawn.painter.render(a_view())
    assert drawn.icon.take().keys() == {"attention", "icon", "title", "menu"}
    drawn.painter.render(a_view())
    assert drawn.icon.take() == {}
    drawn.painter.render(a_view(tooltip="other"))
    assert drawn.icon.take() == {"title": "other"}
    drawn.painter.render(a_view(tooltip="other", icon=IconKind.DOWN))
    assert drawn.icon.take() == {"icon": "picture of down", "attention": True}
    drawn.painter.render(a_view(tooltip="other", icon=IconKind.DOWN, menu=()))
    assert drawn.icon.take().keys() == {"menu"}


def test_panels_are_asked_to_show_the_icon_when_the_user_is_wanted() -> None:
    assert IconKind.DOWN in WANTS_EYES
    assert IconKind.ATTENTION in WANTS_EYES
    assert IconKind.HEALTHY not in WANTS_EYES


def test_the_menu_of_the_icon_is_that_of_the_view() -> None:
    drawn = Drawn()
    children = (Item("s/r", "Reconnect", Action(Verb.RECONNECT, "s")), SEPARATOR, Item("s/e", "On", checked=True))
    drawn.painter.render(a_view(menu=(Item("s", "s: idle", children=children), Item("x", "Off", enabled=False))))
    menu = drawn.icon.take()["menu"]
    server_entry, off = list(menu)
    assert (server_entry.text, server_entry.key, off.text, off.enabled) == ("s: idle", "s", "Off", False)
    reconnect, _, on = list(server_entry.submenu)
    assert on.checked is True
    assert reconnect.checked is None
    reconnect(drawn.icon)
    menu(drawn.icon)  # a click on the icon itself
    assert drawn.clicks == [Action(Verb.RECONNECT, "s"), Action(Verb.SHOW_STATE)]


# -- the app -------------------------------------------------------------------------------------------------------


def test_labels_are_written_as_the_system_wants_them() -> None:
    icon = FakeIcon()
    Painter(icon, str, lambda action: None, lambda text: text.replace("&", "&&")).render(
        a_view(menu=(Item("s", "R&D", children=(Item("x", "a & b"),)),))
    )
    (entry,) = list(icon.take()["menu"])
    assert (entry.text, next(iter(entry.submenu)).text) == ("R&&D", "a && b")


class FakeEntry:
    """An autostart.Entry in memory."""

    where = "here"

    def __init__(self) -> None:
        self.on = False

    def is_on(self) -> bool:
        return self.on

    def written(self) -> StartCommand | None:
        return StartCommand(("/x",)) if self.on else None

    def write(self, start: StartCommand) -> None:
        self.on = True

    def remove(self) -> None:
        self.on = False


def some_sources(clients: Callable[[], tuple[ClientState, ...]] = tuple) -> tuple[StateSources, FakeEntry]:
    entry = FakeEntry()
    return StateSources(Autostart(entry, StartCommand(("/x",))), clients, lambda kind: (), offer_told=False), entry


class FakeFace:
    """A fake app.TrayPlatform without a display."""

    def make_icon(self) -> Any:
        return SimpleNamespace()

    def picture(self, kind: IconKind) -> Any:
        return kind

    def label(self, text: str) -> str:
        return text

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        return False

    def withdraw(self, key: str) -> None:
        return


class NotingFace(FakeFace):
    """A platform that records the thread on which a notice is shown."""

    def __init__(self, threads: SimpleQueue[threading.Thread]) -> None:
        self._threads = threads

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        self._threads.put(threading.current_thread())
        return True


@pytest.mark.requirement("tray-click-one-thread")
def test_a_click_is_asked_for_and_told_on_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, told = SimpleQueue[threading.Thread](), SimpleQueue[threading.Thread]()
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    def ask(method: str, params: dict[str, Any]) -> Any:
        asked.put(threading.current_thread())
        return ONE

    app = App(some_sources()[0], NotingFace(told), lambda: 100.0, Update(str(tmp_path)))
    app.join(Actions(replace(World(tmp_path).means, ask=ask)), cast(Supervisor, None))  # a click needs no supervisor
    monkeypatch.setattr(threading.Thread, "start", noted)
    app.click(Action(Verb.RECONNECT, "github"))
    shown_by = told.get(timeout=PATIENCE_S)
    assert [asked.get_nowait()] == [shown_by] == started
    assert asked.empty()


def test_a_menu_that_is_opened_again_at_once_is_not_looked_around_for_again(tmp_path: Path) -> None:
    looks: SimpleQueue[float] = SimpleQueue()
    now = [100.0]

    def look() -> tuple[ClientState, ...]:
        looks.put(now[0])
        return ()

    app = App(some_sources(look)[0], FakeFace(), lambda: now[0], Update(str(tmp_path)))
    app.opened()
    assert looks.get(timeout=PATIENCE_S) == now[0]
    app.opened()
    now[0] += LOOK_AGAIN_S
    app.opened()
    assert looks.get(timeout=PATIENCE_S) == now[0]
    assert looks.empty()


def texts_of(shown: TrayView, key: str) -> list[str]:
    """Return the texts of the submenu entries with this key."""
    items = [item for item in shown.menu if isinstance(item, Item)]
    return [below.text for item in items for below in item.children if isinstance(below, Item) and below.key == key]


def test_the_state_is_gathered_from_all_who_know_a_part() -> None:
    client = ClientState("codex", "Codex")
    sources, entry = some_sources(lambda: (client,))
    assert sources.state() == TrayState(ChildState.STARTING, clients=None, autostart=False)
    entry.on = True
    assert texts_of(view(sources.state()), "clients/none") == ["Looking for AI tools ..."]
    sources.look_around()
    assert texts_of(view(sources.state()), "clients/none") == []
    assert sources.see(SupervisorView(ChildState.RUNNING, snapshot(server("a")).to_json()))
    state = sources.state()
    assert (state.child, state.clients, state.autostart) == (ChildState.RUNNING, (client,), True)
    assert state.snapshot == snapshot(server("a"))
    assert not sources.see(SupervisorView(ChildState.RUNNING, snapshot(server("b")).to_json()))
    assert sources.see(SupervisorView(ChildState.RUNNING, hangs=True))


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"version": 99}, "The gateway is newer than this app"),
        ({"version": 1}, ""),
        ({}, ""),
    ],
)
def test_a_snapshot_that_cannot_be_read_is_an_error_and_no_end(document: dict[str, Any], error: str) -> None:
    state = state_of(SupervisorView(ChildState.RUNNING, document))
    assert state.snapshot is None
    assert state.error is not None
    assert error in state.error
    assert view(state).icon is IconKind.DEGRADED


@pytest.mark.requirement("tray-hung")
@pytest.mark.parametrize("child", [ChildState.RUNNING, ChildState.ATTACHED])
def test_a_gateway_that_hangs_is_down_and_it_is_said_what_to_do(child: ChildState) -> None:
    shown = view(state_of(SupervisorView(child, snapshot(server("a", State.IDLE)).to_json(), hangs=True)))
    assert shown.icon is IconKind.DOWN
    assert shown.tooltip.split("\n") == [
        "multi-mcp: the gateway does not answer",
        "Choose Restart gateway in the menu, or wait",
    ]
    restart = next(item for item in shown.menu if isinstance(item, Item) and item.key == "restart")
    assert restart.enabled
