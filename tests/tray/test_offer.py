"""Tests of the tray's first start when AI tools have servers: offer, list, and import after consent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("these are Linux's desktops", allow_module_level=True)

from tests.tray.bus import until
from tests.tray.running import Panel, TrayApp, tray_app
from tests.tray.test_drawing import FakeEntry
from trayapp.config.read.parse import parse
from trayapp.service.autostart import Autostart, StartCommand
from trayapp.service.command_line import own_command, sample_command
from trayapp.tray.app import StateSources
from trayapp.tray.start import SystemPlatform
from trayapp.tray.state.notices import Notice, NoticeKind
from trayapp.tray.state.tray_state import Action, Offered

pytestmark = pytest.mark.requirement("tray-offer")
ENTRY = "! Use the 2 servers of Cursor"


def with_cursor(made: TrayApp) -> None:
    """Configure two servers in Cursor. The first creates the file `started` whenever it starts."""
    program, *args = sample_command()
    marked = {"command": "/bin/sh", "args": ["-c", f"touch {made.user}/started; exec {program} {' '.join(args)}"]}
    path = made.user / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(
        json.dumps({"mcpServers": {"one": marked, "two": {"command": program, "args": args, "env": {"A": "b"}}}})
    )


def at_first(made: TrayApp) -> None:
    """Configure two servers in Cursor, and delete servers.yaml."""
    with_cursor(made)
    made.file.unlink()


def servers(app: TrayApp) -> set[str]:
    return set(parse(app.file.read_text(encoding="utf-8"), "f").servers)


def test_what_is_offered_is_started_after_a_click_and_never_before(home: Path, address: str, panel: Panel) -> None:
    with tray_app(home, address, with_cursor) as app:
        panel.told("Cursor has 2 servers", "one: /bin/sh", "Nothing starts until you choose")
        assert servers(app) == {"sample"}
        assert not (app.user / "started").exists()
        panel.click(f"{ENTRY} > Use them")
        panel.told("2 servers imported")
        panel.until_header("3 of 3 servers ready")
        assert servers(app) == {"sample", "one", "two"}
        until((app.user / "started").exists, "its tools are read")
        assert not any(line.startswith("! Use the") for line in panel.item.texts())


def test_a_no_is_a_no_for_the_next_start_too_and_the_list_can_be_read(home: Path, address: str, panel: Panel) -> None:
    with tray_app(home, address, at_first) as app:
        shown = panel.told("Cursor has 2 servers")
        number = next(n for n, s in panel.server.shown.items() if s["title"] == shown["title"])
        panel.server.choose(number, shown["actions"][0])
        until(lambda: app.opened() == [str(app.home / "cache" / "servers-found.txt")], "the list is opened")
        panel.click(f"{ENTRY} > Leave them where they are")
        panel.told("They stay where they are")
        until(lambda: not any(line.startswith("! Use the") for line in panel.item.texts()), "the entry is gone")
        assert servers(app) == {"sample"}
        assert json.loads((app.home / "clients.json").read_text())["no_offer"] is True


def test_servers_that_an_ai_tool_starts_beside_us_are_taken_out_of_it_after_a_click(
    home: Path, address: str, panel: Panel
) -> None:
    def connected(made: TrayApp) -> None:
        with_cursor(made)
        for words in (("import", "--copy", "--clear", "--yes"), ("connect", "cursor")):
            subprocess.run([*own_command(), *words], env=made.env, cwd=home, capture_output=True, check=True)

    with tray_app(home, address, connected) as app:
        entry = "AI tools > Remove 2 servers from them ..."
        until(lambda: f"{entry} > Cursor: one" in panel.item.texts(), "both are named")
        panel.click(f"{entry} > Remove them")
        panel.told("Cursor now uses only multi-mcp", "multi-mcp import --undo")
        assert list(json.loads((app.user / ".cursor" / "mcp.json").read_text())["mcpServers"]) == ["multi-mcp"]
        assert {"one", "two"} <= servers(app)
        until(lambda: not any("from them" in line for line in panel.item.texts()), "the entry is gone")


class Speaker:
    """A fake notifier whose `show` returns `seen`."""

    def __init__(self, seen: bool) -> None:
        self.seen = seen

    def show(self, notice: Notice, click: Callable[[Action], None]) -> bool:
        return self.seen

    def withdraw(self, key: str) -> None:
        return


@pytest.mark.parametrize(("key", "seen", "noted"), [(NoticeKind.OFFER, True, True), (NoticeKind.OFFER, False, False),
                                                    (NoticeKind.TOOLS, True, False)])  # fmt: skip
def test_that_it_was_told_is_noted_once_somebody_saw_it(
    tmp_path: Path, key: NoticeKind, seen: bool, noted: bool
) -> None:
    face = SystemPlatform(lambda line: None)
    face.offer_told = tmp_path / "cache" / "offer-told"
    face.speaker = Speaker(seen)
    face.show(Notice(key, "t", "x"), lambda action: None)
    assert face.offer_told.exists() is noted


def test_what_is_offered_is_looked_for_until_there_is_nothing() -> None:
    one, late = (Offered("a", "Cursor", "x"),), (Offered("late", "Cursor", "x"),)
    answers: list[tuple[Offered, ...] | None] = [None, one, (), late]
    sources = StateSources(
        Autostart(FakeEntry(), StartCommand(("/x",))), tuple, lambda kind: answers.pop(0), offer_told=True
    )
    assert sources.state().offered == ()
    for names in ([], ["a"], [], []):
        sources.look_around()
        assert [one.name for one in sources.state().offered] == names
    assert sources.state().offer_told
    assert len(answers) == 1
