"""servers.yaml under a running gateway: saved by hand, broken, or merged by a refresh. All processes are real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run_cli
from tests.e2e.client import RpcFailure
from tests.e2e.gateway import Gateway, entry, serving
from tests.e2e.test_calls import said
from tests.fixtures.odd import Odd, until

pytestmark = pytest.mark.anyio
APPLIED_S = 1.0  # maximum time from a save until it is applied


@pytest.mark.requirement("file-broken-goes-on")
async def test_a_file_saved_with_an_error_changes_nothing_that_runs(gateway: Gateway, tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    async with serving(gateway, odd) as client:
        pid = said(await client.call("odd_whoami"))["pid"]
        broken = gateway.file.read_text() + "\n  bad: [unclosed\n"
        gateway.save(broken)
        (problem,) = await until(lambda: gateway.snapshot()["problems"])
        assert problem["file"] == str(gateway.file)
        assert problem["line"] > gateway.file.read_text().count("\n") - 4
        assert said(await client.call("odd_whoami"))["pid"] == pid
        assert "odd_whoami" in await client.tools()
        await gateway.ask("refresh")
        assert gateway.file.read_text() == broken
        gateway.write({"odd": entry(odd)})
        await until(lambda: not gateway.snapshot()["problems"])
        assert said(await client.call("odd_whoami"))["pid"] == pid


@pytest.mark.requirement("file-one-wrong-entry")
async def test_one_wrong_entry_leaves_the_others_running(gateway: Gateway, tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    async with serving(gateway, odd) as client:
        pid = said(await client.call("odd_whoami"))["pid"]
        settings = "{expose: tools, http: {port: 0}}"  # the usual port may be in use, which would be another problem
        text = f"settings: {settings}\nservers:\n  odd: {json.dumps(entry(odd))}\n  wrong:\n    command: 17\n"
        gateway.save(text)
        problems = await until(lambda: gateway.snapshot()["problems"])
        assert [(p["server"], p["line"] in (4, 5)) for p in problems] == [("wrong", True)]
        assert said(await client.call("odd_whoami"))["pid"] == pid


@pytest.mark.requirement("file-applied-on-save", "file-unchanged-run-on", "call-list-changed")
async def test_a_saved_change_is_applied_and_untouched_servers_keep_their_process(
    gateway: Gateway, tmp_path: Path
) -> None:
    stays, changes, leaves, comes = (Odd(tmp_path, name) for name in ("stays", "changes", "leaves", "comes"))
    async with serving(gateway, stays, changes, leaves) as client:
        pids = {o.name: said(await client.call(f"{o.name}_whoami"))["pid"] for o in (stays, changes, leaves)}
        held = client.ask("tools/call", {"name": "stays_hold", "arguments": {"key": "k"}})
        await until(lambda: stays.events("held"))
        told = len(client.told)
        gateway.write(
            {"comes": entry(comes), "changes": entry(changes, env={"NEW": "1"}), "stays": entry(stays, idle_timeout=5)}
        )
        await until(lambda: [row["name"] for row in gateway.snapshot()["servers"]] == ["comes", "changes", "stays"])
        await gateway.known()
        await until(lambda: gateway.server("comes")["tools"]["total"])
        await client.heard("notifications/tools/list_changed")
        assert len(client.told) > told
        assert {name.split("_")[0] for name in await client.tools()} == {"stays", "changes", "comes"}
        assert said(await client.call("stays_whoami"))["pid"] == pids["stays"]
        assert said(await client.call("changes_whoami"))["pid"] != pids["changes"]
        assert said(await client.call("comes_whoami"))["name"] == "comes"
        await until(lambda: pids["leaves"] not in gateway.children())
        with pytest.raises(RpcFailure):
            await client.call("leaves_whoami")
        await client.call("stays_release", key="k")
        assert (await held)["result"]


@pytest.mark.requirement("file-applied-on-save")
async def test_a_save_is_applied_within_a_second(gateway: Gateway, tmp_path: Path) -> None:
    """The file is alternately replaced, as editors do, and rewritten in place, as scripts do."""
    gateway.write({})
    gateway.start()
    for n in range(6):
        text = f"servers:\n  server{n}: {json.dumps(entry(Odd(tmp_path)))}\n"
        gateway.save(text) if n % 2 else gateway.file.write_text(text)
        await until(lambda name=f"server{n}": gateway.server_names() == [name], APPLIED_S)


@pytest.mark.requirement("call-disabled-refused", "call-list-changed")
async def test_a_tool_switched_off_is_not_listed_and_refused_until_it_is_back(gateway: Gateway, tmp_path: Path) -> None:
    odd = Odd(tmp_path)
    async with serving(gateway, odd) as client, gateway.client() as other:
        names = await client.tools()
        assert run_cli(gateway.home, "disable", "odd/who*").returncode == 0
        for session in (client, other):
            await session.heard("notifications/tools/list_changed")
            assert set(names) - set(await session.tools()) == {"odd_whoami"}
        calls = len(odd.received("tools/call"))
        with pytest.raises(RpcFailure, match="whoami"):
            await client.call("odd_whoami")
        assert len(odd.received("tools/call")) == calls
        await gateway.ask("reconnect", server="odd")
        assert "odd_whoami" not in await client.tools()
        assert run_cli(gateway.home, "enable", "odd/whoami").returncode == 0
        await client.heard("notifications/tools/list_changed", 2)
        assert await client.tools() == names
        assert said(await client.call("odd_whoami"))


async def test_a_disabled_server_is_neither_listed_nor_started(gateway: Gateway, tmp_path: Path) -> None:
    odd, off = Odd(tmp_path), Odd(tmp_path, "off")
    gateway.write({"odd": entry(odd), "off": entry(off, disabled=True)})
    gateway.start()
    await gateway.known()
    async with gateway.client() as client:
        assert {name.split("_")[0] for name in await client.tools()} == {"odd"}
        with pytest.raises(RpcFailure):
            await client.call("off_whoami")
        assert off.pids == []


COMMENTED = """\
# my servers
settings: {expose: tools, http: {enabled: false}}   # as I like it
servers:
    # the odd one
    odd:
        command: %s
        tools:
            # never this one
            'beta':  {enabled: false}   # dangerous
            gamma: {"enabled": true}
    other: {command: no-such-program-anywhere, disabled: true}   # later
# the end
"""


@pytest.mark.requirement("merge-kept", "merge-stale", "file-comments-kept", "cat-found-tools-written")
async def test_a_refresh_merges_and_every_other_byte_survives(gateway: Gateway, tmp_path: Path) -> None:
    names = tmp_path / "tools.json"
    names.write_text('["alpha", "beta"]')
    odd = Odd(tmp_path, switches=("--tools", str(names)))
    gateway.save(COMMENTED % json.dumps(odd.argv))
    gateway.start()
    await gateway.known()
    listed = {"alpha": (True, False), "beta": (False, False), "gamma": (True, True)}
    await until(lambda: rows_of(gateway) == listed)
    before, after = (COMMENTED % json.dumps(odd.argv)).splitlines(), gateway.file.read_text().splitlines()
    assert [line for line in before if line not in after and "gamma" not in line] == []
    assert switches_in(gateway) == {
        "alpha": {"enabled": True},
        "beta": {"enabled": False},
        "gamma": {"enabled": True, "stale": True},
    }
    names.write_text('["gamma", "delta"]')
    outcome = (await gateway.ask("refresh", server="odd"))["servers"]["odd"]
    assert (outcome["added"], outcome["back"], sorted(outcome["gone"])) == (["delta"], ["gamma"], ["alpha", "beta"])
    assert switches_in(gateway) == {
        "alpha": {"enabled": True, "stale": True},
        "beta": {"enabled": False, "stale": True},
        "gamma": {"enabled": True},
        "delta": {"enabled": True},
    }
    text = gateway.file.read_text()
    for comment in ("# my servers", "# as I like it", "# the odd one", "# never this one", "# dangerous", "# the end"):
        assert comment in text


def rows_of(gateway: Gateway) -> dict[str, tuple[bool, bool]]:
    return {row["name"]: (row["enabled"], row["stale"]) for row in gateway.control("list", server="odd")}


def switches_in(gateway: Gateway) -> dict[str, Any]:
    import yaml

    loaded = yaml.safe_load(gateway.file.read_text())
    switches: dict[str, Any] = loaded["servers"]["odd"]["tools"]
    return switches


@pytest.mark.requirement("merge-failed-refresh")
async def test_a_failed_refresh_changes_nothing(gateway: Gateway, tmp_path: Path) -> None:
    names = tmp_path / "tools.json"
    names.write_text('["alpha", "beta"]')
    odd = Odd(tmp_path, switches=("--tools", str(names)))
    async with serving(gateway, odd) as client:
        text, listed = gateway.file.read_text(), await client.all("tools")
        assert "stale" not in text
        names.write_text("not json: the server dies while it lists")
        outcome = (await gateway.ask("refresh"))["servers"]["odd"]
        assert outcome["error"]["title"]
        names.unlink()
        assert (await gateway.ask("refresh", server="odd"))["servers"]["odd"]["error"]
        assert gateway.file.read_text() == text
        assert await client.all("tools") == listed
        assert [m for m in client.told if "list_changed" in m["method"]] == []
        names.write_text('["alpha", "beta"]')
        assert said(await client.call("odd_alpha"))["tool"] == "alpha"


@pytest.mark.requirement("call-list-changed")
async def test_a_server_s_own_change_reaches_every_session_and_what_changes_no_list_reaches_its_caller(
    gateway: Gateway, tmp_path: Path
) -> None:
    odd = Odd(tmp_path)
    async with serving(gateway, odd) as one, gateway.client() as two:
        before = await one.tools()
        # this call starts the server, so that the change below does not count as part of its start
        await one.call("odd_echo")
        await one.call("odd_notify", method="notifications/tools/list_changed")
        lists = len(odd.received("tools/list"))
        await until(lambda: len(odd.received("tools/list")) > lists or lists > 2)
        await one.heard("notifications/tools/list_changed")
        await one.call("odd_add_tool", text="fresh")
        for client, times in ((one, 2), (two, 1)):
            await client.heard("notifications/tools/list_changed", times)
            assert set(await client.tools()) - set(before) == {"odd_fresh"}
        assert said(await two.call("odd_fresh"))["tool"] == "fresh"
        assert [len([m for m in c.told if "list_changed" in m["method"]]) for c in (one, two)] == [2, 1]
        await until(lambda: "fresh" in gateway.file.read_text())
        await one.call("odd_drop_tool", text="fresh")
        await two.heard("notifications/tools/list_changed", 2)
        assert await two.tools() == before


async def test_a_tool_that_its_server_no_longer_has_is_an_error_and_the_session_lives(
    gateway: Gateway, tmp_path: Path
) -> None:
    names = tmp_path / "tools.json"
    names.write_text('["alpha"]')
    odd = Odd(tmp_path, switches=("--tools", str(names)))
    async with serving(gateway, odd) as client:
        with pytest.raises(RpcFailure) as caught:
            await client.call("odd_beta")
        assert "odd_beta" in caught.value.error["message"]
        assert said(await client.call("odd_alpha"))
