"""Tests of the whole tray on a real bus with a real gateway: all menu entries, and the death of each process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("these are Linux's desktops", allow_module_level=True)

from tests.auth.issuer import guarded
from tests.e2e.client import RawClient, RpcFailure, client_of
from tests.tray.bus import session_bus, until
from tests.tray.running import END_S, Panel, TrayApp, tray_app
from trayapp.cli.tray import has_desktop
from trayapp.model.child import CRASHES_MOST
from trayapp.service.command_line import own_command, sample_command
from trayapp.service.pause import RESUME_HINT as PAUSED_HINT
from trayapp.tray.linux.icon import PANEL_WAIT_S
from trayapp.wire.control import STOP

READY = "1 of 1 server ready, 3 tools"


class KeptTray:
    """A tray with its panel and gateway, shared by tests that leave all of them unchanged.

    Each test begins when the menu shows READY. After a failed test, the tray is replaced by a new one.
    """

    def __init__(self) -> None:
        self._running: ExitStack | None = None
        self.app: TrayApp
        self.panel: Panel

    def ready(self) -> TrayApp:
        """Start a tray if none is running, and return it."""
        if self._running is None:
            self._running = ExitStack()
            home = Path(self._running.enter_context(tempfile.TemporaryDirectory(prefix="mm-", dir="/tmp")))
            address, _ = self._running.enter_context(session_bus())
            self.panel = self._running.enter_context(closing(Panel(address)))
            self.app = self._running.enter_context(tray_app(home, address))
            self.panel.until_header(READY)
        return self.app

    def put_back(self) -> None:
        """Restore servers and programs, and wait until the effects of all clicks in the test are over."""
        self.app.servers()
        self.panel.until_header("no servers yet")
        self.app.servers("sample")
        self.panel.until_header(READY)
        self.app.offer_programs()
        self.panel.server.shown.clear()
        self.panel.item.activate()
        self.panel.told("multi-mcp", READY)  # notifications arrive in order, so this is the last one
        self.panel.server.shown.clear()

    def end(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None


@pytest.fixture(scope="module")
def kept() -> Iterator[KeptTray]:
    made = KeptTray()
    yield made
    made.end()


@pytest.fixture
def app(kept: KeptTray, request: pytest.FixtureRequest) -> Iterator[TrayApp]:
    """Yield a tray that several tests share."""
    failed = request.session.testsfailed
    yield kept.ready()
    try:
        assert request.session.testsfailed == failed
        kept.put_back()
    except BaseException:
        kept.end()
        if request.session.testsfailed == failed:
            raise


@pytest.fixture
def own_app(home: Path, address: str, panel: Panel) -> Iterator[TrayApp]:
    """Yield a tray for a single test."""
    with tray_app(home, address) as made:
        panel.until_header(READY)
        yield made


@pytest.fixture
def panel(request: pytest.FixtureRequest) -> Iterator[Panel]:
    """Yield the panel of the tray that the test uses."""
    if "app" in request.fixturenames:
        request.getfixturevalue("app")
        yield request.getfixturevalue("kept").panel
    else:
        with closing(Panel(request.getfixturevalue("address"))) as made:
            yield made


# -- the menu ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-actions", "tray-real")
def test_servers_are_reconnected_refreshed_switched_and_their_logs_shown(app: TrayApp, panel: Panel) -> None:
    app.servers("sample", "other", broken={"command": ["false"]})
    panel.until_header("2 of 3 servers ready, 6 tools")
    for name in ("sample", "other"):  # "Reconnect all" skips idle servers
        panel.click(f"Servers > {name} > Reconnect")
        panel.told(f"Reconnected: {name}")
    panel.click("Reconnect all")
    panel.told("2 of 3 servers reconnected", "broken")
    snapshot = app.snapshot()
    assert snapshot is not None
    assert [row["state"] for row in snapshot["servers"]] == ["connected", "connected", "failed"]
    until(lambda: any("other: connected" in line for line in panel.item.texts()), "other is connected")
    panel.click("Refresh tools")
    panel.told("2 of 3 servers refreshed")
    panel.click("Servers > other > Refresh tools")
    panel.told("Refreshed: other", "No change")
    panel.click("Servers > broken > Reconnect")
    panel.told("Not reconnected: broken")
    panel.click("Servers > other > Enabled")
    panel.told("other is disabled")
    panel.until_header("1 of 2 servers ready, 3 tools")
    assert not panel.checked("Servers > – other: off > Enabled")
    panel.click("Servers > other > Enabled")
    panel.told("other is enabled")
    panel.until_header("2 of 3 servers ready, 6 tools")
    panel.click("Servers > sample > Show log")  # the server logs nothing, so the gateway's warnings about it are shown
    until(lambda: app.opened() == [str(app.home / "cache" / "logs" / "sample.log")], "its log is opened")
    panel.click("! broken > Show log")
    until(lambda: len(app.opened()) == 2, "the other one's log is opened")


@pytest.mark.requirement("tray-actions")
def test_the_menu_is_read_and_clicked_while_a_click_is_still_at_work(own_app: TrayApp, panel: Panel) -> None:
    begun = own_app.home / "begun"
    own_app.servers("sample", slow={"command": ["sh", "-c", f"touch {begun}; exec sleep 60"], "connect_timeout": 60})
    until(begun.exists, "slow is started, and lists nothing for a minute")
    panel.click("Refresh tools")
    panel.click("Servers > sample > Reconnect")
    panel.told("Reconnected: sample")
    assert not any("refreshed" in shown["title"] for shown in panel.server.shown.values())


@pytest.mark.requirement("tray-actions")
def test_a_button_on_a_notification_does_what_it_says(app: TrayApp, panel: Panel) -> None:
    app.servers("sample", broken={"command": ["false"], "lifecycle": "eager"})
    panel.told("broken failed")
    number, shown = next((n, s) for n, s in panel.server.shown.items() if "broken failed" in s["title"])
    labels = shown["actions"][1::2]
    assert labels[-1] == "Reconnect"
    panel.server.choose(number, shown["actions"][-2])
    panel.told("Not reconnected: broken")


@pytest.mark.requirement("tray-actions", "tray-real")
def test_files_are_opened_or_it_is_said_that_nothing_opens_them(app: TrayApp, panel: Panel) -> None:
    panel.click("Open servers.yaml")
    until(lambda: app.opened() == [str(app.file)], "servers.yaml is opened")
    panel.click("Logs and help > Gateway log")
    until(lambda: app.opened()[1:] == [str(app.home / "logs" / "gateway.log")], "the log is opened")
    app.file.write_text("servers: [")
    panel.click("! servers.yaml > Open servers.yaml")
    until(lambda: app.opened()[2:] == [str(app.file)], "the file with the problem is opened")
    app.program("xdg-open", "exit 4")
    panel.click("Open servers.yaml")
    panel.told("Cannot open the file", "No program was found")


@pytest.mark.requirement("tray-actions")
def test_a_client_is_connected_and_disconnected_and_the_command_copied(home: Path, address: str, panel: Panel) -> None:
    def with_cursor(made: TrayApp) -> None:
        (made.user / ".cursor").mkdir()
        made.env["WAYLAND_DISPLAY"] = "none"

    with tray_app(home, address, with_cursor) as app:
        panel.click("AI tools > Cursor")
        panel.told("Cursor is connected")
        until(lambda: panel.checked("AI tools > Cursor"), "it has its mark")
        assert "multi-mcp" in (app.user / ".cursor" / "mcp.json").read_text()
        panel.click("AI tools > Cursor")
        panel.told("Cursor is disconnected")
        until(lambda: not panel.checked("AI tools > Cursor"), "its mark is gone")
        app.program("wl-copy", f"/bin/cat > {app.user}/copied")
        panel.click("AI tools > Copy stdio command")
        panel.told("Copied", "stdio")
        assert (app.user / "copied").read_text().endswith(" stdio")


@pytest.mark.requirement("tray-actions")
def test_what_was_changed_elsewhere_is_in_the_menu_once_it_is_opened(home: Path, address: str, panel: Panel) -> None:
    def with_cursor(made: TrayApp) -> None:
        (made.user / ".cursor").mkdir()

    def opened() -> bool:
        panel.item.menu("AboutToShow", "i", (0,))
        return panel.checked("AI tools > Cursor") and panel.checked("Start at login")

    with tray_app(home, address, with_cursor) as app:
        until(lambda: "AI tools > Cursor" in panel.item.texts(), "the first look is over")
        assert not opened()
        for words in (("connect", "cursor"), ("autostart", "on")):
            subprocess.run([*own_command(), *words], env=app.env, cwd=home, capture_output=True, check=True)
        until(opened, "the marks are there")


@pytest.mark.requirement("tray-actions")
def test_a_sign_in_wanted_is_told_done_from_the_menu_and_undone(home: Path, address: str, panel: Panel) -> None:
    async def work() -> None:
        async with guarded() as server:
            entry = {"url": server.url("/mcp"), "lifecycle": "eager"}
            await anyio.to_thread.run_sync(through_the_menu, entry)

    def through_the_menu(entry: dict[str, Any]) -> None:
        with tray_app(home, address, lambda made: made.servers(linear=entry)) as app:
            panel.told("linear needs a sign-in")
            app.program("xdg-open", "exit 4")  # a desktop without a browser
            panel.click("! Sign in to linear")
            panel.told("Sign-in failed: linear", "No browser was found here", "multi-mcp auth linear")
            app.program("xdg-open", f"{sys.executable} {app.user}/browser.py $1")
            (app.user / "browser.py").write_text("import sys, urllib.request as u; u.urlopen(sys.argv[1]).read()")
            panel.click("! Sign in to linear")
            panel.told("Signed in to linear")
            panel.until_header("1 of 1 server ready")
            asks = "linear needs a sign-in"
            until(lambda: all(asks not in n["title"] for n in list(panel.server.shown.values())), "nothing asks for it")
            panel.click("Servers > linear > Sign out")
            panel.told("Signed out of linear")

    anyio.run(work)


@pytest.mark.requirement("tray-actions", "autostart")
def test_start_at_login_is_switched_in_the_menu_and_by_the_verb(own_app: TrayApp, panel: Panel) -> None:
    entry = own_app.user / ".config" / "autostart" / "multi-mcp.desktop"
    assert not panel.checked("Start at login")
    panel.click("Start at login")
    panel.told("multi-mcp starts at login")
    until(lambda: panel.checked("Start at login"), "it has its mark")
    assert entry.exists()
    panel.click("Start at login")
    panel.told("no longer starts at login")
    until(lambda: not panel.checked("Start at login"), "its mark is gone")
    assert not entry.exists()
    entry.parent.chmod(0o555)
    if os.access(entry.parent, os.W_OK):
        entry.parent.rmdir()  # root can write everywhere, so a file takes the folder's place
        entry.parent.write_text("")
    panel.click("Start at login")
    panel.told("Start at login not turned on", "Cannot")


@pytest.mark.requirement("tray-actions")
def test_state_and_about_are_shown_and_quit_ends_tray_and_gateway(own_app: TrayApp, panel: Panel) -> None:
    panel.item.activate()
    panel.told("multi-mcp", READY, "All is well")
    panel.click("About multi-mcp ...")
    panel.told("multi-mcp 0.1.0", str(own_app.file))
    gateway = psutil.Process(own_app.gateway())
    panel.click("Quit")
    assert own_app.tray.wait(END_S) == 0
    assert psutil.wait_procs([gateway], END_S)[1] == []


# -- pause and restart ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-pause", "tray-actions")
def test_while_it_is_paused_clients_are_told_so_and_after_resume_they_go_on(app: TrayApp, panel: Panel) -> None:
    async def work() -> None:
        async with client_of([*own_command(), "stdio"], app.env, app.home) as client:
            assert await echo(client) == "hello"
            await anyio.to_thread.run_sync(panel.click, "Pause")
            await anyio.to_thread.run_sync(panel.until_header, "paused")
            with pytest.raises(
                RpcFailure, match=r"The user paused multi-mcp. Ask them to choose Resume in its tray menu"
            ):
                await echo(client)
            assert app.snapshot() is None
            said = {verb: await anyio.to_thread.run_sync(app.says, verb) for verb in ("status", "stdio")}
            assert "multi-mcp is paused" in said["status"]
            assert PAUSED_HINT in said["status"]
            assert "The user paused multi-mcp" in said["stdio"]
            await anyio.to_thread.run_sync(panel.click, "Resume")
            await anyio.to_thread.run_sync(panel.until_header, READY)
            assert await echo(client) == "hello"

    anyio.run(work)


async def echo(client: RawClient) -> str:
    result = await client.request("tools/call", {"name": "sample_echo", "arguments": {"text": "hello"}})
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.requirement("tray-actions")
def test_restart_brings_another_gateway(app: TrayApp, panel: Panel) -> None:
    before = app.gateway()
    panel.click("Restart gateway")
    app.next_gateway(before)
    panel.until_header(READY)


# -- killed processes ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("tray-restart")
def test_a_killed_gateway_is_followed_by_another_and_clients_go_on(own_app: TrayApp, panel: Panel) -> None:
    async def work() -> None:
        async with client_of([*own_command(), "stdio"], own_app.env, own_app.home) as client:
            assert await echo(client) == "hello"
            before = own_app.kill_gateway()
            await anyio.to_thread.run_sync(own_app.next_gateway, before)
            with suppress(RpcFailure):  # only a call that the killed gateway had received may fail
                await echo(client)
            assert await echo(client) == "hello"

    anyio.run(work)
    panel.told("The gateway stopped unexpectedly")
    panel.until_header(READY)


@pytest.mark.requirement("tray-crash-loop", "tray-actions")
def test_after_five_deaths_nothing_is_started_until_retry(own_app: TrayApp, panel: Panel) -> None:
    pid = 0
    for _ in range(CRASHES_MOST):
        pid = own_app.next_gateway(pid)
        own_app.kill_gateway()
    panel.until_header("keeps crashing")
    panel.told("The gateway keeps crashing")
    assert own_app.snapshot() is None
    assert own_app.log().count("-> starting") == CRASHES_MOST - 1
    panel.click("! Retry")
    panel.until_header(READY)


@pytest.mark.requirement("tray-hung")
def test_a_stopped_gateway_is_seen_as_hung_and_its_return_too(app: TrayApp, panel: Panel) -> None:
    pid = app.kill_gateway(signal.SIGSTOP)
    panel.until_header("does not answer")
    os.kill(pid, signal.SIGCONT)
    panel.until_header(READY)
    assert app.gateway() == pid


@pytest.mark.requirement("tray-adopts")
def test_a_killed_tray_leaves_gateway_and_clients_and_the_next_one_adopts_it(own_app: TrayApp, panel: Panel) -> None:
    async def work() -> None:
        async with client_of([*own_command(), "stdio"], own_app.env, own_app.home) as client:
            assert await echo(client) == "hello"
            pid = own_app.gateway()
            own_app.tray.kill()
            own_app.tray.communicate()
            assert await echo(client) == "hello"
            panel.watcher.items.clear()
            own_app.start()
            await anyio.to_thread.run_sync(panel.until_header, READY)
            assert own_app.gateway() == pid
            panel.click("Quit")
            assert await anyio.to_thread.run_sync(own_app.tray.wait, END_S) == 0
            assert not psutil.pid_exists(pid)
            assert await echo(client) == "hello"  # the shim has started another gateway
            panel.watcher.items.clear()
            own_app.start()
            await anyio.to_thread.run_sync(panel.until_header, READY)
            shims = own_app.gateway()
            panel.click("Restart gateway")
            await anyio.to_thread.run_sync(own_app.next_gateway, shims)

    anyio.run(work)


@pytest.mark.requirement("tray-attached")
def test_a_gateway_that_was_stopped_elsewhere_stays_stopped_and_one_started_elsewhere_is_attached(
    own_app: TrayApp, panel: Panel
) -> None:
    own_app.ask(STOP)
    panel.until_header("paused")
    other = subprocess.run([*own_command(), "start", "--detach"], env=own_app.env, capture_output=True, check=True)
    assert b"Gateway ready" in other.stderr
    panel.until_header(READY)
    assert "Quit (the gateway keeps running)" in panel.item.texts()


# -- a second tray, clicks on the icon, and missing desktops -------------------------------------------------------


@pytest.mark.requirement("tray-single")
def test_a_second_tray_says_so_and_the_first_shows_itself(app: TrayApp, panel: Panel) -> None:
    run = [*own_command(), "tray"]
    done = subprocess.run(run, env=app.env, capture_output=True, encoding="utf-8", timeout=END_S, check=False)
    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == [f"multi-mcp is already running (process {app.tray.pid})", READY]
    panel.told("multi-mcp", READY)
    silent = subprocess.run(
        [*own_command(), "--autostart"], env=app.env, capture_output=True, timeout=END_S, check=False
    )
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, b"", b"")
    assert len(panel.watcher.items) == 1


@pytest.mark.requirement("tray-panel-without-menu")
def test_a_click_on_the_icon_shows_the_state_with_buttons_and_one_of_them_works(app: TrayApp, panel: Panel) -> None:
    app.servers("sample", kept={"command": sample_command(), "lifecycle": "keep-alive"})
    panel.until_header("2 of 2 servers ready")
    panel.item.activate()
    shown = panel.told("multi-mcp", "2 of 2 servers ready")
    assert shown["actions"][3::2] == ["Reconnect all", "Quit"]
    number = next(number for number, one in panel.server.shown.items() if one is shown)
    panel.server.choose(number, shown["actions"][2])
    panel.told("Reconnected: kept")
    snapshot = app.snapshot()
    assert snapshot is not None
    assert [row["state"] for row in snapshot["servers"]] == ["idle", "connected"]


@pytest.mark.requirement("tray-actions")
def test_a_click_on_the_icon_opens_the_panel(app: TrayApp, panel: Panel) -> None:
    app.file.write_text("settings: {http: {port: 0}}\nservers: {}\n", encoding="utf-8")
    panel.until_header("no servers yet")
    panel.item.activate()
    until(lambda: [url for url in app.opened() if "/panel/enter?code=" in url], "the panel is opened")


@pytest.mark.requirement("tray-panel-without-menu")
def test_quit_on_the_command_line_ends_the_tray_and_its_gateway(own_app: TrayApp, panel: Panel) -> None:
    pid = own_app.gateway()
    run = [*own_command(), "quit"]
    done = subprocess.run(run, env=own_app.env, capture_output=True, encoding="utf-8", timeout=END_S, check=False)
    assert (done.returncode, done.stdout) == (0, f"The tray app is quitting (process {own_app.tray.pid})\n")
    assert own_app.tray.wait(END_S) == 0
    until(lambda: not psutil.pid_exists(pid), "its gateway has ended")
    again = subprocess.run(run, env=own_app.env, capture_output=True, encoding="utf-8", timeout=END_S, check=False)
    assert (again.returncode, again.stdout) == (
        0,
        "The tray app is not running. To stop the gateway: multi-mcp stop\n",
    )


@pytest.mark.requirement("tray-no-host")
def test_without_a_panel_it_goes_on_and_a_panel_that_comes_has_the_icon(home: Path, address: str) -> None:
    with tray_app(home, address) as app:
        pid = app.kill_gateway()
        app.next_gateway(pid)
        panel = Panel(address)
        panel.until_header(READY)
        panel.close()


@pytest.mark.requirement("tray-no-host")
@pytest.mark.timeout(PANEL_WAIT_S + 60)
def test_without_bus_and_display_it_goes_on_and_says_so_once(home: Path) -> None:
    app = TrayApp(home, "")
    app.servers("sample")
    for name in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS"):
        del app.env[name]
    app.env["XDG_RUNTIME_DIR"] = str(home)
    try:
        assert not has_desktop(app.env)
        app.start()
        pid = app.kill_gateway()
        app.next_gateway(pid)
        until(lambda: "runs without an icon" in app.log(), "it is in the log")
        app.tray.terminate()
        said, errors = app.tray.communicate(timeout=END_S)
        assert app.tray.returncode == 0
        assert errors == ""
        assert said.count("multi-mcp runs without an icon") == 1
    finally:
        app.end()


@pytest.mark.requirement("tray-light")
def test_the_tray_imports_neither_mcp_nor_what_reads_the_configuration() -> None:
    code = "import sys, trayapp.tray.start, trayapp.cli.tray; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    heavy = {"mcp", "pydantic", "yaml", "ruamel", "keyring", "cryptography", "starlette", "httpx2", "asyncio", "anyio"}
    assert {name.partition(".")[0] for name in done.stdout.split()} & heavy == set()
