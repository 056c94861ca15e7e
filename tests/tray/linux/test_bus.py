"""Tests of the connection to the session bus: calls that are answered or refused, and a bus that is missing or ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

if sys.platform != "linux":
    pytest.skip("the session bus is Linux's", allow_module_level=True)

from jeepney import message_bus

from tests.tray.bus import WAIT_S, CallFailedError, Item, Watcher, session_bus, until
from trayapp.tray.linux.bus import Body, Method, NoBusError, SessionBus, connect, method_call, session_address

INTERFACE = "org.example.Thing"
ERROR = "org.freedesktop.DBus.Error"


class Thing:
    """A bus object with a property, a signal and two methods."""

    interface = INTERFACE
    signals: ClassVar[Mapping[str, str]] = {"Painted": "sai"}

    def properties(self) -> Mapping[str, tuple[str, Any]]:
        return {"Color": ("s", "green")}

    def methods(self) -> Mapping[str, Method]:
        return {"Double": ("i", "i", lambda number: (2 * number,)), "Break": ("", "", self._break)}

    def _break(self) -> Body:
        raise ZeroDivisionError


@pytest.fixture
def thing(bus: SessionBus, address: str) -> Iterator[Item]:
    """Serve a Thing at /a/thing, and yield a caller of it."""
    bus.serve("/a/thing", Thing())
    caller = Item(address, bus.name, "/a/thing")
    yield caller
    caller.close()


def test_a_connection_that_ended_leaves_no_descriptor_open(address: str) -> None:
    """The tray may reconnect many times, so nothing may be left open, whichever side ends the connection."""

    def open_descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = open_descriptors()
    for _ in range(3):
        SessionBus.open(address).close()
    assert open_descriptors() == before
    with session_bus() as (other, daemon):
        bus = SessionBus.open(other)
        daemon.terminate()
        assert bus.gone.wait(WAIT_S)
        bus.close()
    assert open_descriptors() == before


PROPERTIES, PEER = "org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Peer"
INTROSPECTABLE = "org.freedesktop.DBus.Introspectable"
# path, interface, member, signature, arguments, and the expected values or the end of the error's name
CALLS: list[tuple[str, str | None, str, str | None, tuple[Any, ...], Any]] = [
    ("/a/thing", INTERFACE, "Double", "i", (21,), (42,)),
    ("/a/thing", None, "Double", "i", (21,), (42,)),
    ("/a/thing", INTERFACE, "Double", "s", ("21",), "InvalidArgs"),
    ("/a/thing", INTERFACE, "Double", None, (), "InvalidArgs"),
    ("/a/thing", INTERFACE, "Break", None, (), "Failed"),
    ("/a/thing", INTERFACE, "Halve", "i", (42,), "UnknownMethod"),
    ("/a/thing", "org.example.Other", "Double", "i", (21,), "UnknownMethod"),
    ("/a/thing", PEER, "Ping", None, (), ()),
    ("/a/thing", PROPERTIES, "Get", "ss", (INTERFACE, "Color"), (("s", "green"),)),
    ("/a/thing", PROPERTIES, "Get", "ss", ("", "Color"), (("s", "green"),)),
    ("/a/thing", PROPERTIES, "Get", "ss", (INTERFACE, "Weight"), "UnknownProperty"),
    ("/a/thing", PROPERTIES, "Get", "ss", ("org.example.Other", "Color"), "InvalidArgs"),
    ("/a/thing", PROPERTIES, "GetAll", "s", (INTERFACE,), ({"Color": ("s", "green")},)),
    ("/a/thing", PROPERTIES, "GetAll", "s", ("org.example.Other",), ({},)),
    ("/a/thing", PROPERTIES, "Set", "ssv", (INTERFACE, "Color", ("s", "red")), "UnknownMethod"),
    ("/a", INTROSPECTABLE, "Introspect", None, (), ('<node><node name="thing"/></node>',)),
    ("/", INTROSPECTABLE, "Introspect", None, (), ('<node><node name="a"/></node>',)),
    ("/a", INTERFACE, "Double", "i", (21,), "UnknownMethod"),
    ("/nowhere", INTERFACE, "Double", "i", (21,), "UnknownObject"),
    ("/nowhere", INTROSPECTABLE, "Introspect", None, (), "UnknownObject"),
]


@pytest.mark.parametrize(("path", "interface", "member", "signature", "arguments", "expected"), CALLS)
def test_calls_are_answered_and_wrong_ones_refused(
    thing: Item,
    path: str,
    interface: str | None,
    member: str,
    signature: str | None,
    arguments: tuple[Any, ...],
    expected: Any,
) -> None:
    if isinstance(expected, str):
        with pytest.raises(CallFailedError, match=expected):
            thing.call(path, interface, member, signature, arguments)
    else:
        assert thing.call(path, interface, member, signature, arguments) == expected
    assert thing.call("/a/thing", INTERFACE, "Double", "i", (1,)) == (2,), "the next call is answered"


def test_a_thing_tells_what_it_is(thing: Item) -> None:
    (told,) = thing.call("/a/thing", INTROSPECTABLE, "Introspect")
    assert all(f'<interface name="{name}">' in told for name in (PROPERTIES, PEER, INTROSPECTABLE))
    assert told.endswith(
        f'<interface name="{INTERFACE}">'
        '<method name="Double"><arg type="i" direction="in"/><arg type="i" direction="out"/></method>'
        '<method name="Break"></method><property name="Color" type="s" access="read"/>'
        '<signal name="Painted"><arg type="s" direction="out"/><arg type="ai" direction="out"/></signal>'
        "</interface></node>"
    )


def test_a_name_is_followed_from_its_present_owner_through_every_change(bus: SessionBus, address: str) -> None:
    first = Watcher(address)
    owners: list[str] = []
    bus.follow(Watcher.bus_name, owners.append)
    until(lambda: owners == [first.connection.unique_name])
    first.close()
    until(lambda: owners == [first.connection.unique_name, ""])
    second = Watcher(address)
    until(lambda: owners[-1] == second.connection.unique_name)
    second.close()


def test_a_change_that_was_on_its_way_when_the_owner_was_asked_for_is_told_once(bus: SessionBus, address: str) -> None:
    busy, reads_again = threading.Event(), threading.Event()

    def stop_reading(reply: object) -> None:
        busy.set()
        reads_again.wait(WAIT_S)

    bus.call(message_bus.GetId(), stop_reading)
    assert busy.wait(WAIT_S)
    watcher = Watcher(address)  # the bus has announced the owner, but we have not read the message yet
    owners: list[str] = []
    bus.follow(Watcher.bus_name, owners.append)
    reads_again.set()
    bus.ask(message_bus.GetId(), WAIT_S)
    assert owners == [watcher.connection.unique_name]
    watcher.close()


def test_what_is_called_back_may_fail_and_the_next_message_is_read(bus: SessionBus) -> None:
    bus.call(message_bus.GetId(), lambda reply: 1 / 0)
    assert bus.ask(message_bus.ListNames(), 5) is not None


def test_an_error_is_no_answer(bus: SessionBus) -> None:
    assert bus.ask(message_bus.GetNameOwner("org.example.Nobody"), 5) is None


def test_waiting_on_the_thread_that_reads_is_refused(bus: SessionBus) -> None:
    raised: list[BaseException] = []

    def ask(reply: object) -> None:
        try:
            bus.ask(message_bus.GetId(), 5)
        except RuntimeError as error:
            raised.append(error)

    bus.call(message_bus.GetId(), ask)
    until(lambda: raised)


# -- missing and lost buses --------------------------------------------------------------------------------------------


def test_the_address_is_the_sessions_or_systemds_place(tmp_path: Path) -> None:
    assert session_address({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/a", "XDG_RUNTIME_DIR": str(tmp_path)}).endswith(
        "/a"
    )
    with pytest.raises(NoBusError):
        session_address({"XDG_RUNTIME_DIR": str(tmp_path)})
    (tmp_path / "bus").touch()
    assert session_address({"XDG_RUNTIME_DIR": str(tmp_path)}) == f"unix:path={tmp_path}/bus"


@pytest.mark.parametrize(
    "address", ["", "nonsense", "tcp:host=localhost", "unix:path=/nonexistent/bus", "unix:path={}"]
)
def test_without_a_bus_there_is_one_kind_of_error(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address.format(tmp_path / "file"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(NoBusError):
        SessionBus.open()
    assert connect() is None


def test_when_the_bus_goes_everyone_who_waits_is_told_and_nobody_waits_after_that() -> None:
    with session_bus() as (address, daemon):
        bus = SessionBus.open(address)
        told = threading.Event()
        bus.on_gone(told.set)
        asked: list[object] = []
        daemon.kill()
        bus.call(message_bus.GetId(), asked.append)
        assert told.wait(5)
        until(lambda: asked == [None])
        bus.emit("/a", INTERFACE, "Happened")
        assert bus.ask(message_bus.GetId(), 5) is None
        late: list[int] = []
        bus.on_gone(lambda: late.append(1))
        assert late == [1]
        bus.close()


def test_a_call_of_somebody_who_never_answers_ends_in_time(bus: SessionBus, address: str) -> None:
    deaf = SessionBus.open(address)
    silent = threading.Event()
    deaf.call(message_bus.GetId(), lambda reply: silent.wait(5))
    assert bus.ask(method_call(deaf.name, "/", INTERFACE, "Double", "i", (1,)), 0.05) is None
    silent.set()
    deaf.close()
