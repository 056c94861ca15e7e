"""The session bus: one connection, and a thread that reads it.

The thread answers calls to our objects, and delivers replies and signals. Nothing that runs on it may block.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Protocol

from jeepney import (
    DBusAddress,
    HeaderFields,
    MatchRule,
    Message,
    MessageFlag,
    MessageType,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.common import RouterClosed
from jeepney.io.threading import DBusConnection, ReceiveStopped, open_dbus_connection
from jeepney.low_level import parse_signature
from jeepney.wrappers import DBusErrorResponse

log = logging.getLogger(__name__)
BUS = "org.freedesktop.DBus"
ERROR = f"{BUS}.Error"
WELCOME_S = 5.0  # limit on connecting, enough for a machine that is busy with a login
JOIN_S = 2.0  # limit on ending the reading thread, which waits only for the bus

Body = tuple[Any, ...]
Method = tuple[str, str, Callable[..., Body]]  # the signatures of the call and the answer, and the function to call


class NoBusError(Exception):
    """Raised if there is no session bus or if it refuses the connection."""


class _UnknownPropertyError(LookupError):
    """Raised for an unknown property. Panels also request properties that we lack, and expect this error."""


class BusObject(Protocol):
    """One of our objects on the bus: one interface with read-only properties."""

    interface: str
    signals: ClassVar[Mapping[str, str]]  # name -> signature

    def properties(self) -> Mapping[str, tuple[str, Any]]:
        """Return the properties: name -> D-Bus signature and value."""

    def methods(self) -> Mapping[str, Method]:
        """Return the methods by name. The reading thread calls them."""


def session_address(environ: Mapping[str, str]) -> str:
    """Return the address of the session bus: DBUS_SESSION_BUS_ADDRESS, or systemd's default. Raises NoBusError."""
    if address := environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return address
    folder = environ.get("XDG_RUNTIME_DIR")
    if folder and (place := Path(folder) / "bus").exists():
        return f"unix:path={place}"
    raise NoBusError("no DBUS_SESSION_BUS_ADDRESS")


def close_connection(connection: DBusConnection) -> None:
    """Close a connection that no thread uses any more, and the pipe that jeepney leaves open."""
    super(DBusConnection, connection).close()  # jeepney's own `close` may close the pipe too in a later version
    os.close(connection._stop_r)
    os.close(connection._stop_w)


class SessionBus:
    """A connection to the session bus. Methods may be called from any thread unless their docstrings restrict this.

    The class is broad because calls, answers and signals share the one connection.
    """

    def __init__(self, connection: DBusConnection) -> None:
        self.name: str = connection.unique_name
        self.gone = threading.Event()  # set once the connection has ended, by close() or by the bus
        self._connection = connection
        self._objects: dict[str, BusObject] = {}
        self._replies: dict[int, Callable[[Message | None], object]] = {}
        self._listeners: dict[tuple[str, str], list[Callable[[Message], None]]] = {}
        self._endings: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="session bus", daemon=True)
        self.listen(BUS, BUS, "NameOwnerChanged", lambda message: None)  # the subscription that follow() uses
        self._thread.start()

    @classmethod
    def open(cls, address: str | None = None) -> SessionBus:
        """Return a connection to `address` or, by default, to the session's bus. Raises NoBusError."""
        try:
            return cls(open_dbus_connection(address or session_address(os.environ), auth_timeout=WELCOME_S))
        except (OSError, EOFError, ValueError, LookupError, RuntimeError, StopIteration) as error:
            raise NoBusError(str(error) or type(error).__name__) from error
        except (RouterClosed, DBusErrorResponse) as error:
            raise NoBusError(f"refused: {type(error).__name__}") from error

    def close(self) -> None:
        """End the connection. The bus then releases our names. Do not call this from the reading thread."""
        with self._lock:
            if not self.gone.is_set():
                self._connection.interrupt()
        self._thread.join(JOIN_S)

    def on_gone(self, ending: Callable[[], None]) -> None:
        """Call `ending` on the reading thread when the connection ends, or immediately if it has ended."""
        with self._lock:
            if not self.gone.is_set():
                self._endings.append(ending)
                return
        ending()

    def call(self, message: Message, on_reply: Callable[[Message | None], object] | None = None) -> None:
        """Send a method call. On the reading thread, `on_reply` gets the answer or error, or None if the bus is gone.

        If the call cannot be sent, `on_reply` gets None on the caller's thread.
        """
        serial = next(self._connection.outgoing_serial)
        if on_reply is not None:
            with self._lock:
                self._replies[serial] = on_reply
        if not self._send(message, serial) and (unanswered := self._forget(serial)):
            unanswered(None)

    def _forget(self, serial: int) -> Callable[[Message | None], object] | None:
        with self._lock:
            return self._replies.pop(serial, None)

    def ask(
        self, message: Message, timeout_s: float, on_values: Callable[[Body], object] = lambda answer: None
    ) -> Body | None:
        """Send a method call and wait for its answer. Return its values, or None after an error or `timeout_s` seconds.

        `on_values` gets the values first, on the reading thread, even if they arrive too late. Do not call this method
        on that thread.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("the thread that reads the bus must not block on it")
        answered, answer = threading.Event(), list[Body | None]()

        def on_reply(reply: Message | None) -> None:
            if (body := values(reply)) is not None:
                on_values(body)
            answer.append(body)
            answered.set()

        self.call(message, on_reply)
        answered.wait(timeout_s)
        return answer[0] if answer else None

    def serve(self, path: str, thing: BusObject) -> None:
        """Let `thing` answer calls to this object path."""
        self._objects[path] = thing

    def emit(self, path: str, interface: str, member: str, signature: str | None = None, body: Body = ()) -> None:
        """Send a signal from our object. Do nothing if the bus is gone."""
        self._send(new_signal(DBusAddress(path, interface=interface), member, signature, body))

    def listen(self, sender: str, interface: str, member: str, heard: Callable[[Message], None]) -> None:
        """Call `heard` on the reading thread for each such signal, even from another sender. It must check this."""
        self._listeners.setdefault((interface, member), []).append(heard)
        self.call(message_bus.AddMatch(MatchRule(type="signal", sender=sender, interface=interface, member=member)))

    def follow(self, name: str, on_owner: Callable[[str], None]) -> None:
        """Call `on_owner` on the reading thread, now and after each change of the owner of `name`.

        `on_owner` gets the owner's unique name, or "" if there is no owner.
        """
        told: list[str] = []

        def owned_by(owner: str) -> None:
            if told != [owner]:  # a change may arrive both as a signal and in the answer
                told[:] = [owner]
                on_owner(owner)

        def heard(message: Message) -> None:
            if message.header.fields.get(HeaderFields.sender) == BUS and message.body[0] == name:
                owned_by(message.body[2])

        self._listeners.setdefault((BUS, "NameOwnerChanged"), []).append(heard)
        self.call(message_bus.GetNameOwner(name), lambda reply: owned_by((values(reply) or ("",))[0]))

    # -- the reading thread ----------------------------------------------------------------------------------------

    def _send(self, message: Message, serial: int | None = None) -> bool:
        if self.gone.is_set():
            return False
        try:
            self._connection.send(message, serial=serial)
        except (OSError, ValueError):  # ValueError: the socket has been closed
            return False
        return True

    def _read(self) -> None:
        try:
            while True:
                self._take(self._connection.receive())
        except (ReceiveStopped, OSError, EOFError, ValueError) as error:
            log.debug("The session bus ended: %r", error)
        finally:
            with self._lock:
                self.gone.set()
                waiting, self._replies = list(self._replies.values()), {}
                endings, self._endings = self._endings, []
            close_connection(self._connection)
            for on_reply in waiting:
                self._guarded(lambda on_reply=on_reply: on_reply(None))  # type: ignore[misc]
            for ending in endings:
                self._guarded(ending)

    def _take(self, message: Message) -> None:
        kind, fields = message.header.message_type, message.header.fields
        if kind is MessageType.method_call:
            try:
                reply = self._reply(message)
            except Exception:  # the boundary of a call: the caller gets an error
                log.exception("Unexpected error in %s", fields.get(HeaderFields.member))
                reply = new_error(message, f"{ERROR}.Failed")
            if not message.header.flags & MessageFlag.no_reply_expected:
                self._send(reply)
        elif kind is MessageType.signal:
            key = (fields.get(HeaderFields.interface), fields.get(HeaderFields.member))
            for heard in tuple(self._listeners.get(key, ())):
                self._guarded(lambda heard=heard: heard(message))  # type: ignore[misc]
        elif on_reply := self._forget(fields.get(HeaderFields.reply_serial, 0)):
            self._guarded(lambda: on_reply(message))

    def _guarded(self, job: Callable[[], object]) -> None:
        try:
            job()
        except Exception:  # the boundary of a message: the thread must continue
            log.exception("Unexpected error in a message of the session bus")

    def _reply(self, message: Message) -> Message:
        fields = message.header.fields
        path, member = fields[HeaderFields.path], fields[HeaderFields.member]
        signature = fields.get(HeaderFields.signature) or ""
        interface = fields.get(HeaderFields.interface)
        if path not in self._objects and not self._below(path):
            return new_error(message, f"{ERROR}.UnknownObject")
        # A call may omit the interface (D-Bus specification).
        interfaces = self._interfaces(path).items()
        found = [methods[member] for name, methods in interfaces if interface in (name, None) and member in methods]
        if not found:
            return new_error(message, f"{ERROR}.UnknownMethod")
        wanted, answers, function = found[0]
        if signature != wanted:
            return new_error(message, f"{ERROR}.InvalidArgs", "s", (f"{member} takes ({wanted})",))
        try:
            return new_method_return(message, answers, function(*message.body))
        except _UnknownPropertyError as error:
            return new_error(message, f"{ERROR}.UnknownProperty", "s", (str(error),))
        except LookupError as error:
            return new_error(message, f"{ERROR}.InvalidArgs", "s", (f"unknown: {error}",))

    def _interfaces(self, path: str) -> dict[str, Mapping[str, Method]]:
        """Return the methods at an object path, by interface."""
        known: dict[str, Mapping[str, Method]] = {
            f"{BUS}.Peer": {"Ping": ("", "", lambda: ())},
            f"{BUS}.Introspectable": {"Introspect": ("", "s", lambda: (self._introspect(path),))},
        }
        if (thing := self._objects.get(path)) is not None:
            known |= {f"{BUS}.Properties": _property_methods(thing), thing.interface: thing.methods()}
        return known

    def _below(self, path: str) -> list[str]:
        """Return the names of the child nodes of an object path."""
        below = path.rstrip("/") + "/"
        return sorted({known[len(below) :].split("/")[0] for known in self._objects if known.startswith(below)})

    def _introspect(self, path: str) -> str:
        """Return the introspection XML of an object path. Some panels read it before they call methods."""
        nodes = "".join(f'<node name="{escape(child)}"/>' for child in self._below(path))
        thing = self._objects.get(path)
        if thing is None:
            return f"<node>{nodes}</node>"
        described = ""
        for interface, methods in self._interfaces(path).items():
            described += f'<interface name="{interface}">'
            for name, (wanted, answers, _) in methods.items():
                described += f'<method name="{name}">{_arguments(wanted, "in")}{_arguments(answers, "out")}</method>'
            if interface == thing.interface:
                for name, (signature, _) in thing.properties().items():
                    described += f'<property name="{name}" type="{signature}" access="read"/>'
                for name, signature in thing.signals.items():
                    described += f'<signal name="{name}">{_arguments(signature, "out")}</signal>'
            described += "</interface>"
        return f"<node>{described}{nodes}</node>"


def _arguments(signature: str, direction: str) -> str:
    """Return the introspection XML of a signature's arguments, without their names, which are optional."""
    left, types = list(signature), []
    while left:
        at = len(signature) - len(left)
        parse_signature(left)  # takes one complete type from the list
        types.append(signature[at : len(signature) - len(left)])
    return "".join(f'<arg type="{one}" direction="{direction}"/>' for one in types)


def connect(quietly: bool = False) -> SessionBus | None:
    """Return a connection to the session bus. On failure, log why (at debug level if `quietly`) and return None."""
    try:
        return SessionBus.open()
    except NoBusError as error:
        log.log(logging.DEBUG if quietly else logging.INFO, "No session bus: %s", error)
        return None


def _property_methods(thing: BusObject) -> dict[str, Method]:
    def get_all(interface: str) -> Body:
        return (dict(thing.properties()) if interface in (thing.interface, "") else {},)

    def get(interface: str, name: str) -> Body:
        if interface not in (thing.interface, ""):
            raise LookupError(interface)
        known = thing.properties()
        if name not in known:
            raise _UnknownPropertyError(name)
        return (known[name],)

    return {"Get": ("ss", "v", get), "GetAll": ("s", "a{sv}", get_all)}


def values(reply: Message | None) -> Body | None:
    """Return the values in a method's answer, or None if it is an error or missing."""
    if reply is None or reply.header.message_type is not MessageType.method_return:
        return None
    body: Body = reply.body
    return body


def method_call(
    name: str, path: str, interface: str, member: str, signature: str | None = None, body: Body = ()
) -> Message:
    """Return a call of another program's method. `name` is the program's bus name, `path` the object's path."""
    return new_method_call(DBusAddress(path, bus_name=name, interface=interface), member, signature, body)
