"""Tests of reports from the kernel and the system bus, with made-up and real messages."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.tools import missing, require
from trayapp.backends.wake.linux import (
    ADDRESS,
    DELADDR,
    DELROUTE,
    HEADER,
    IFA_ADDRESS,
    NEWADDR,
    NEWROUTE,
    ROUTE,
    RTA_GATEWAY,
    RTA_OIF,
    bus_signals,
    network_changes,
    read_facts,
    reason_of,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="rtnetlink and logind are Linux's")
INET, MAIN, LOCAL, UNIVERSE, LINK = 2, 254, 255, 0, 253
CACHEINFO = 6  # IFA_CACHEINFO: address lifetimes, which every router announcement changes


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def message(kind: int, payload: bytes) -> bytes:
    return HEADER.pack(HEADER.size + len(payload), kind, 0, 0, 0) + payload + b"\0" * (-len(payload) % 4)


def address(kind: int = NEWADDR, last: int = 1, scope: int = UNIVERSE, flags: int = 0, lifetime: int = 9) -> bytes:
    told = attribute(CACHEINFO, struct.pack("=I", lifetime)) + attribute(IFA_ADDRESS, bytes((10, 0, 0, last)))
    return message(kind, ADDRESS.pack(INET, 24, flags, scope, 3) + told)


def route(kind: int = NEWROUTE, destination_bits: int = 0, table: int = MAIN, last: int = 254) -> bytes:
    told = attribute(RTA_GATEWAY, bytes((10, 0, 0, last))) + attribute(RTA_OIF, struct.pack("=I", 3))
    return message(kind, ROUTE.pack(INET, destination_bits, 0, 0, table, 3, 0, 1, 0) + told)


def told(datagram: bytes) -> list[bool]:
    return [fact.holds for fact in read_facts(datagram)]


def test_addresses_and_default_routes_are_facts() -> None:
    assert told(address()) == [True]
    assert told(address(DELADDR)) == [False]
    assert told(route()) == [True]
    assert told(route(DELROUTE)) == [False]


def test_all_messages_of_a_datagram_are_read() -> None:
    assert told(address(last=1) + message(16, b"a link") + route(DELROUTE) + address(last=2)) == [True, False, True]


def test_what_leads_nowhere_is_no_fact() -> None:
    assert told(address(scope=LINK)) == []
    assert told(route(destination_bits=24)) == []
    assert told(route(table=LOCAL)) == []


def test_the_same_address_with_another_lifetime_is_the_same_fact() -> None:
    (first,), (again,), (other,) = (
        list(read_facts(address(lifetime=9))),
        list(read_facts(address(lifetime=8, flags=0x80))),
        list(read_facts(address(last=2))),
    )
    assert first == again != other


@pytest.mark.parametrize("size", range(0, 60))
def test_cut_and_odd_datagrams_are_read_as_far_as_they_go(size: int) -> None:
    list(read_facts((address() + route())[:size]))
    list(read_facts(b"\0" * size))
    list(read_facts(b"\xff" * size))


@pytest.mark.requirement("wake-noticed")
def test_the_kernel_tells_of_addresses_and_default_routes_and_of_nothing_else() -> None:
    command = [
        require("unshare"),
        "--map-root-user",
        "--net",
        sys.executable,
        "-m",
        "tests.backends.wake.netlink_listener",
    ]
    require("ip")
    if subprocess.run([*command[:3], "true"], capture_output=True, check=False).returncode:
        missing("a network namespace may not be made here")
    heard = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert heard.stdout.splitlines() == [
        "addr add 10.9.9.9/32 dev lo: news",
        "addr change 10.9.9.9/32 dev lo valid_lft 1000 preferred_lft 500: nothing",
        "link set lo up: nothing",
        "route add default dev lo: news",
        "route add 10.8.0.0/16 dev lo: nothing",
        "addr add 169.254.7.7/32 dev lo scope link: nothing",
        "route del default dev lo: news",
        "addr del 10.9.9.9/32 dev lo: news",
    ], heard.stderr


@pytest.mark.anyio
async def test_a_change_of_this_machine_is_awaited_without_an_error() -> None:
    with anyio.move_on_after(0.1):
        await network_changes(lambda reason: None)


# -- the system bus ----------------------------------------------------------------------------------------------------

LOGIND = ("/org/freedesktop/login1", "org.freedesktop.login1.Manager", "org.freedesktop.login1")
NETWORK = ("/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager", "org.freedesktop.NetworkManager")
# (path, interface, bus name), member, D-Bus type, value, reported reason
SIGNALS: list[tuple[tuple[str, str, str], str, str, Any, str | None]] = [
    (LOGIND, "PrepareForSleep", "b", False, "the machine woke up"),
    (LOGIND, "PrepareForSleep", "b", True, None),
    (LOGIND, "PrepareForShutdown", "b", False, None),
    (NETWORK, "StateChanged", "u", 70, "a network is up"),
    (NETWORK, "StateChanged", "u", 60, "a network is up"),
    (NETWORK, "StateChanged", "u", 20, None),
    (NETWORK, "StateChanged", "s", "70", None),
    (NETWORK, "PrepareForSleep", "b", False, None),
    (LOGIND, "StateChanged", "u", 70, None),
]


def signal(source: tuple[str, str, str], member: str, kind: str, value: Any) -> Any:
    from jeepney import DBusAddress, new_signal

    path, interface, _ = source
    return new_signal(DBusAddress(path, interface=interface), member, kind, (value,))


@pytest.mark.parametrize(("source", "member", "kind", "value", "expected"), SIGNALS)
def test_only_waking_and_a_network_that_is_up_are_reasons(
    source: tuple[str, str, str], member: str, kind: str, value: Any, expected: str | None
) -> None:
    assert reason_of(signal(source, member, kind, value)) == expected


def test_what_is_no_signal_is_no_reason() -> None:
    from jeepney import message_bus

    assert reason_of(message_bus.Hello()) is None


BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/>
</policy></busconfig>"""


@pytest.fixture
def bus(home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start a private bus in place of the system bus, and yield its process."""
    program = require("dbus-daemon")
    config = home / "bus.conf"
    config.write_text(BUS.format(path=home / "bus"), encoding="utf-8")
    process = subprocess.Popen(
        [program, f"--config-file={config}", "--nofork", "--print-address"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline()  # the bus listens once it has printed its address
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={home / 'bus'}")
        yield process
        process.kill()


@asynccontextmanager
async def speaking_as(name: str) -> AsyncIterator[Any]:
    """Yield a connection to the private bus. It owns `name` if that is not empty."""

    from jeepney import message_bus
    from jeepney.io.asyncio import open_dbus_router

    async with open_dbus_router(os.environ["DBUS_SYSTEM_BUS_ADDRESS"]) as router:
        if name:
            await router.send_and_get_reply(message_bus.RequestName(name))
        yield router


@pytest.mark.anyio
@pytest.mark.requirement("wake-noticed")
async def test_a_real_bus_brings_the_signals_of_their_owners_only(bus: subprocess.Popen[bytes]) -> None:
    """A signal is ignored if its sender does not own the service's name."""
    send, receive = anyio.create_memory_object_stream[str](100)
    async with anyio.create_task_group() as tasks, send, receive:
        tasks.start_soon(bus_signals, send.send_nowait, 0.0)
        async with speaking_as("") as stranger, speaking_as(LOGIND[2]) as logind, speaking_as(NETWORK[2]) as network:
            await _listening(logind)
            await stranger.send(signal(NETWORK, "StateChanged", "u", 70))
            await logind.send(signal(LOGIND, "PrepareForSleep", "b", True))
            await logind.send(signal(LOGIND, "PrepareForSleep", "b", False))
            with anyio.fail_after(10):
                assert await receive.receive() == "the machine woke up"
                await network.send(signal(NETWORK, "StateChanged", "u", 70))
                assert await receive.receive() == "a network is up"
        tasks.cancel_scope.cancel()


async def _listening(router: Any) -> None:
    """Wait until the bus statistics show both of our match rules."""
    from jeepney import DBusAddress, new_method_call

    stats = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus.Debug.Stats")
    with anyio.fail_after(10):
        while True:
            reply = await router.send_and_get_reply(new_method_call(stats, "GetStats"))
            if dict(reply.body[0])["MatchRules"][1] >= 2:
                return


@pytest.mark.anyio
async def test_a_bus_that_goes_away_ends_the_witness_without_an_error(bus: subprocess.Popen[bytes]) -> None:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bus_signals, lambda reason: None, 0.0)
            async with speaking_as(LOGIND[2]) as logind:
                await _listening(logind)
            bus.kill()


@pytest.mark.anyio
async def test_without_a_system_bus_nothing_happens(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with anyio.fail_after(10):
        for address in (f"unix:path={home / 'nothing'}", "nonsense", "tcp:host=nowhere.invalid"):
            monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
            await bus_signals(lambda reason: None, 0.0)
