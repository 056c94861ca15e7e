"""A client's session outlives the gateway: each call gets one answer, none is sent twice, and all frames are whole."""

from __future__ import annotations

import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway
from tests.faults.world import (
    Counting,
    ShimClient,
    frame,
    gateway_pid,
    is_lost,
    kill_gateway,
    processes_of,
    shim_client,
    threads_of,
    wait_until,
)
from tests.fixtures.odd import Odd
from trayapp.model.errors import MultiMcpError
from trayapp.shim.ledger import REFUSED

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the shim of Windows is another one"),
    pytest.mark.usefixtures("forked"),
]
MB = 1 << 20


def sessions_of(gateway: Gateway) -> list[dict[str, str]]:
    return list(gateway.snapshot()["gateway"]["sessions"])


def started(gateway: Gateway, *odds: Odd | Counting, **settings: float) -> None:
    entries = {odd.name: odd.entry() if isinstance(odd, Counting) else {"command": odd.argv} for odd in odds}
    gateway.write(entries, **settings)
    gateway.start()
    gateway.control("settle")


# -- the gateway is killed -------------------------------------------------------------------------------------------


@pytest.mark.requirement("shim-replays-handshake", "shim-stdout-clean")
def test_an_idle_session_is_where_it_was_in_the_next_gateway(gateway: Gateway, tmp_path: Path) -> None:
    odd = Odd(tmp_path, switches=("--full",))
    started(gateway, odd)
    with shim_client(gateway) as client:
        client.ask("logging/setLevel", {"level": "critical"})
        before = sessions_of(gateway)
        first = kill_gateway(gateway)
        wait_until(lambda: gateway_answers(gateway))
        assert gateway_pid(gateway) != first
        wait_until(lambda: sessions_of(gateway) == before)  # without any message from the client
        assert "odd_echo" in [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]
        assert "odd" in client.text("odd_whoami")
        levels = [event["params"]["level"] for event in odd.received("logging/setLevel")]
        assert levels == ["critical"]  # the server that the new gateway started gets the level
        added = {"name": "odd_add_tool", "arguments": {"text": "new"}}
        assert "result" in client.ask("tools/call", added)
        client.heard("notifications/tools/list_changed")  # the new gateway knows that the client is initialized
        assert sorted(client.answers) == client.asked


def gateway_answers(gateway: Gateway) -> bool:
    try:
        return bool(gateway.snapshot())
    except MultiMcpError:
        return False


@pytest.mark.requirement("shim-never-calls-twice", "shim-replays-handshake", "shim-stdout-clean")
def test_open_calls_get_one_error_each_and_what_was_answered_none(gateway: Gateway, tmp_path: Path) -> None:
    odd, counting = Odd(tmp_path), Counting(tmp_path)
    started(gateway, odd, counting)
    with shim_client(gateway) as client:
        for n in range(3):
            client.text("counting_count", n=n)
        held = [client.call("odd_hold", key=str(n)) for n in range(5)]
        given_up = client.call("odd_hold", key="cancelled")
        wait_until(lambda: len(odd.events("held")) == 6)
        client.notify("notifications/cancelled", {"requestId": given_up})
        wait_until(lambda: odd.received("notifications/cancelled"))
        kill_gateway(gateway)
        assert [is_lost(client.answer(request_id)) for request_id in held] == [True] * 5
        client.text("counting_count", n=3)
        client.text("odd_whoami")
        assert given_up not in client.answers
        assert len(odd.events("held")) == 6
        assert counting.executed() == {"0": 1, "1": 1, "2": 1, "3": 1}


@pytest.mark.requirement("shim-stdout-clean", "shim-never-calls-twice")
def test_a_kill_amid_large_answers_gives_whole_answers_or_one_error_each(gateway: Gateway, tmp_path: Path) -> None:
    """The client does not read, so that answers fill all pipes and one is half sent when the gateway dies."""
    counting = Counting(tmp_path)
    started(gateway, counting)
    with shim_client(gateway) as client:
        calls = [client.call("counting_count", n=n, size=MB) for n in range(12)]
        wait_until(lambda: len(counting.executed()) == 12)
        kill_gateway(gateway)
        answers = [client.answer(request_id) for request_id in calls]
        whole = [len(a["result"]["content"][0]["text"]) > MB for a in answers if "result" in a]
        assert all(whole)
        assert 0 < len(whole) < 12
        assert all("result" in a or is_lost(a) for a in answers)
        client.text("counting_count", n="after")
        assert set(counting.executed().values()) == {1}


@pytest.mark.requirement("shim-stdout-clean")
def test_half_a_request_is_whole_for_the_next_gateway(gateway: Gateway, tmp_path: Path) -> None:
    counting = Counting(tmp_path)
    started(gateway, counting)
    with shim_client(gateway) as client:
        line = frame("half", "tools/call", {"name": "counting_count", "arguments": {"n": 1, "x": "y" * MB}})
        client.asked.append("half")
        client.write(line[: MB // 2])
        kill_gateway(gateway)
        wait_until(lambda: gateway_answers(gateway))
        client.write(line[MB // 2 :])
        assert "result" in client.answer("half")
        assert counting.executed() == {"1": 1}


@pytest.mark.requirement("shim-replays-handshake")
def test_a_handshake_under_way_is_answered_by_the_next_gateway(gateway: Gateway) -> None:
    gateway.write({})
    gateway.start()
    os.kill(gateway.pid, signal.SIGSTOP)  # accepts connections, but does not answer
    client = ShimClient(gateway)
    about = {"name": "t", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    first = client.send("initialize", params)
    wait_until(lambda: waits_on_the_gateway(client))
    os.kill(gateway.pid, signal.SIGKILL)
    assert gateway.process is not None
    gateway.process.wait()
    assert client.answer(first)["result"]["protocolVersion"] == "2025-11-25"
    client.notify("notifications/initialized")
    assert client.ask("tools/list")["result"]["tools"] == []
    assert client.close() == 0


def waits_on_the_gateway(client: ShimClient) -> bool:
    """True if the shim sleeps in poll, because it has read all that the client wrote. Always true outside Linux."""
    place = Path(f"/proc/{client.process.pid}/wchan")
    return not place.exists() or "poll" in place.read_text()


@pytest.mark.requirement("shim-replays-handshake")
def test_gateways_killed_one_after_the_other_cost_no_session(gateway: Gateway, tmp_path: Path) -> None:
    counting = Counting(tmp_path)
    started(gateway, counting)
    with shim_client(gateway) as one, shim_client(gateway) as two:
        pids = set()
        for n in range(3):
            pids.add(kill_gateway(gateway))
            assert one.text("counting_count", n=f"one-{n}").startswith("counting")
            assert two.text("counting_count", n=f"two-{n}").startswith("counting")
        assert len(pids | {gateway_pid(gateway)}) == 4
        assert sorted(counting.executed().items()) == [(f"{who}-{n}", 1) for who in ("one", "two") for n in range(3)]
        assert exit_code_of_a_server(gateway, one, counting) == "SIGKILL"


def exit_code_of_a_server(gateway: Gateway, client: ShimClient, counting: Counting) -> str:
    """Kill the server. Return `SIGKILL` if the gateway reports that signal, otherwise `lost`."""
    waiting = client.send("tools/call", {"name": "counting_count", "arguments": {"n": "size", "size": 1}})
    client.answer(waiting)
    (row,) = gateway.snapshot()["servers"]
    os.kill(row["pid"], signal.SIGKILL)
    wait_until(lambda: gateway.server("counting")["error"])
    return "SIGKILL" if "SIGKILL" in gateway.server("counting")["error"]["title"] else "lost"


# -- the gateway is stopped, or cannot be started --------------------------------------------------------------------


@pytest.mark.requirement("shim-replays-handshake", "cli-stop")
def test_a_gateway_stopped_on_purpose_is_started_by_the_next_request_only(gateway: Gateway, tmp_path: Path) -> None:
    counting = Counting(tmp_path)
    started(gateway, counting)
    with shim_client(gateway) as client:
        held = client.text("counting_count", n=1)
        assert held
        assert gateway.stop() == 0
        client.notify("notifications/roots/list_changed")
        client.notify("notifications/cancelled", {"requestId": 99})
        # Once the shim has read this half line, it has handled both notifications. They must not have started a
        # gateway.
        client.write(b'{"jsonrpc":"2.0",')
        wait_until(lambda: unread(client) == 0)
        assert [words for words in processes_of(gateway.home).values() if " start" in words] == []
        client.asked.append("next")
        client.write(b'"id":"next","method":"tools/call","params":{"name":"counting_count","arguments":{"n":2}}}\n')
        assert "result" in client.answer("next")
        assert "--linger" in str(processes_of(gateway.home))
        assert client.told == []  # the shim does not forward the gateway's notice that it is stopping


def unread(client: ShimClient) -> int:
    """Return how many bytes the client has written and the shim has not read."""
    import array
    import fcntl
    import termios

    number = array.array("i", [0])
    fcntl.ioctl(client._in.fileno(), termios.FIONREAD, number)
    return number[0]


@pytest.mark.requirement("shim-never-calls-twice", "shim-replays-handshake")
@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_an_answer_that_lay_ready_when_the_gateway_ended_is_not_turned_into_an_error(
    gateway: Gateway, tmp_path: Path, end: str
) -> None:
    """When the suspended shim continues, it finds a request, an answer and the gateway's end at the same time."""
    odd = Odd(tmp_path)
    started(gateway, odd)
    with shim_client(gateway) as client, shim_client(gateway) as other:
        kill_gateway(gateway)  # a reconnected shim reads from its client first
        for each in (client, other):
            each.ask("ping")
        held = client.call("odd_hold", key="k")
        wait_until(lambda: odd.events("held"))
        os.kill(client.process.pid, signal.SIGSTOP)
        other.text("odd_release", key="k")
        pid = gateway_pid(gateway)
        if end == "stopped":
            gateway.control("stop")
            wait_until(lambda: threads_of(pid) == 0)
        else:
            kill_gateway(gateway)
        ping = client.send("ping")
        os.kill(client.process.pid, signal.SIGCONT)
        assert "released" in str(client.answer(held)["result"])
        assert client.answer(ping)["result"] == {}
        assert client.told == []


@pytest.mark.requirement("shim-stdout-clean", "shim-replays-handshake")
def test_while_no_gateway_can_be_started_each_request_is_told_and_the_session_lives_on(
    gateway: Gateway, tmp_path: Path
) -> None:
    counting = Counting(tmp_path)
    started(gateway, counting)
    with shim_client(gateway) as client:
        client.text("counting_count", n=1)
        run = gateway.home / "run"
        aside = gateway.home / "run.aside"
        pid = gateway_pid(gateway)
        run.rename(aside)
        run.write_text("a file where the folder should be")
        os.kill(pid, signal.SIGKILL)
        assert gateway.process is not None
        gateway.process.wait()
        for _ in range(2):
            answer = client.answer(client.call("counting_count", n="never"))
            assert answer["error"]["message"] == REFUSED
        run.unlink()
        aside.rename(run)
        wait_until(lambda: "result" in client.answer(client.call("counting_count", n="again")), 10)
        assert "never" not in counting.executed()
        assert counting.executed()["again"] == 1


@pytest.mark.requirement("shim-stdout-clean")
def test_a_session_that_began_without_a_gateway_is_told_so_and_begins_later(gateway: Gateway, tmp_path: Path) -> None:
    run = gateway.home / "run"
    run.write_text("a file where the folder should be")
    client = ShimClient(gateway)
    about = {"name": "t", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    assert client.ask("initialize", params)["error"]["message"] == REFUSED
    run.unlink()
    gateway.write({"counting": Counting(tmp_path).entry()})
    wait_until(lambda: "result" in client.ask("initialize", params), 10)
    client.notify("notifications/initialized")
    assert "counting" in client.text("counting_count", n=1)
    assert client.close() == 0


def is_deaf(gateway: Gateway) -> bool:
    try:
        gateway.snapshot()
    except MultiMcpError:
        return True
    return False


@pytest.mark.requirement("shim-replays-handshake")
def test_a_gateway_that_is_just_stopping_is_waited_for(gateway: Gateway, tmp_path: Path) -> None:
    """For 4 s, until its deaf server is gone, the stopping gateway holds the lock, and new gateways exit with 7."""
    deaf = Counting(tmp_path, "deaf", ("--deaf",))
    gateway.write({"deaf": deaf.entry(lifecycle="eager")})
    gateway.start()
    wait_until(lambda: gateway.server("deaf")["state"] == "connected")
    gateway.control("stop")
    wait_until(lambda: is_deaf(gateway))  # until then, the shim could still reach the gateway
    gateway.write({})
    with shim_client(gateway) as client:
        assert gateway_pid(gateway) != gateway.pid
        assert client.ask("tools/list")["result"]["tools"] == []


# -- the client goes away --------------------------------------------------------------------------------------------


@pytest.mark.requirement("call-cancel")
@pytest.mark.parametrize("end", ["close", "kill", "kill the shim"])
def test_when_the_client_goes_its_calls_are_cancelled_and_nothing_of_it_is_left(
    gateway: Gateway, tmp_path: Path, end: str
) -> None:
    odd = Odd(tmp_path)
    started(gateway, odd)
    with shim_client(gateway) as stays:
        leaves = ShimClient(gateway)
        leaves.initialize()
        calls = {leaves.call("odd_hold", key=str(n)) for n in range(3)}
        wait_until(lambda: len(odd.events("held")) == 3)
        if end == "close":
            assert leaves.close() == 0
        else:
            if end == "kill the shim":
                leaves.process.kill()
            leaves.kill()
        cancelled = wait_until(lambda: len(found := odd.received("notifications/cancelled")) == 3 and found)
        assert len({event["params"]["requestId"] for event in cancelled}) == 3
        assert calls.isdisjoint(leaves.answers)
        assert "odd" in stays.text("odd_whoami")
        wait_until(lambda: len(gateway.snapshot()["gateway"]["sessions"]) == 1)


def test_a_client_that_goes_while_no_gateway_comes_up_is_not_survived_by_its_shim(gateway: Gateway) -> None:
    """A suspended gateway holds the lock but cannot be reached, so that no other gateway can start."""
    gateway.write({})
    gateway.forked = False  # a forked gateway would not be counted below
    gateway.start()
    os.kill(gateway.pid, signal.SIGSTOP)
    (gateway.home / "run" / "gateway.sock").unlink()  # new gateways exit with 7, because this one still runs
    client = ShimClient(gateway)
    client.send("ping")
    wait_until(lambda: sum(" start" in words for words in processes_of(gateway.home).values()) > 1)
    client.kill()  # waits until the shim has exited
    os.kill(gateway.pid, signal.SIGKILL)
    assert gateway.process is not None
    gateway.process.wait()


def test_what_the_shim_leaves_on_the_disk_is_for_this_user_only(gateway: Gateway) -> None:
    with shim_client(gateway):
        run = gateway.home / "run"
        assert stat.S_IMODE(run.stat().st_mode) == 0o700
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in run.iterdir()}
        assert set(modes.values()) == {0o600}, modes
