"""Linux sources of sleep and network changes: the kernel's rtnetlink, and logind and NetworkManager on the system bus.

Any of them may be absent, which is not an error.

rtnetlink messages are parsed here: the library (pyroute2 0.9) costs every gateway 0.4 s and 13 MiB at its start.
Comparing the addresses before and after each message would miss an address that was removed and added again, although
its removal breaks connections.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from jeepney import Message

log = logging.getLogger(__name__)

# -- rtnetlink(7) ------------------------------------------------------------------------------------------------------

GROUPS = 0x10 | 0x40 | 0x100 | 0x400  # RTMGRP_IPV4_IFADDR, IPV4_ROUTE, IPV6_IFADDR, IPV6_ROUTE
NEWADDR, DELADDR, NEWROUTE, DELROUTE = 20, 21, 24, 25
HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
ADDRESS = struct.Struct("=BBBBI")  # ifaddrmsg: family, prefix length, flags, scope, interface
ROUTE = struct.Struct("=BBBBBBBBI")  # rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags
ATTRIBUTE = struct.Struct("=HH")  # rtattr: length, type
SCOPE_LINK = 253  # this and higher scopes: addresses valid only on the link or the host
TABLE_LOCAL = 255
IFA_ADDRESS, IFA_LOCAL = 1, 2
RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_MULTIPATH = 4, 5, 6, 9
DATAGRAM_LARGEST = 65_536


class NetworkFact(NamedTuple):
    """An address or route of the network: `holds` is True if it was added, False if it was removed."""

    holds: bool
    what: bytes


def read_facts(datagram: bytes) -> Iterator[NetworkFact]:
    """Yield the addresses that are valid beyond the link, and the default routes, in an rtnetlink datagram.

    Leave out other routes, which come and go with containers and neighbors. Leave out lifetimes and flags, too:
    otherwise a router's regular announcements would count as changes.
    """
    while len(datagram) >= HEADER.size:
        length, kind, *_ = HEADER.unpack_from(datagram)
        message, datagram = datagram[HEADER.size : length], datagram[max(_aligned(length), HEADER.size) :]
        if kind in (NEWADDR, DELADDR) and len(message) >= ADDRESS.size:
            family, prefix, _, scope, interface = ADDRESS.unpack_from(message)
            if scope < SCOPE_LINK:
                told = _attributes(message[ADDRESS.size :], IFA_ADDRESS, IFA_LOCAL)
                address = b"address" + struct.pack("BBI", family, prefix, interface) + told
                yield NetworkFact(kind == NEWADDR, address)
        elif kind in (NEWROUTE, DELROUTE) and len(message) >= ROUTE.size:
            family, destination, _, _, table, *_ = ROUTE.unpack_from(message)
            if not destination and table != TABLE_LOCAL:
                told = _attributes(message[ROUTE.size :], RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_MULTIPATH)
                yield NetworkFact(kind == NEWROUTE, b"route" + struct.pack("BB", family, table) + told)


def _attributes(data: bytes, *wanted: int) -> bytes:
    """Return the wanted attributes, concatenated as raw bytes."""
    found = b""
    while len(data) >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(data)
        if kind in wanted:
            found += data[:length]
        data = data[max(_aligned(length), ATTRIBUTE.size) :]
    return found


def _aligned(length: int) -> int:
    return (length + 3) & ~3


async def network_changes(note: Callable[[str], None]) -> None:
    """Report addresses and default routes that come or go (a Witness). Return if there is no rtnetlink."""
    with ExitStack() as stack:
        try:
            kernel = stack.enter_context(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0))
            kernel.bind((0, GROUPS))
        except OSError as error:
            log.debug("No rtnetlink: %s", error)
            return
        known: set[bytes] = set()
        while True:
            await anyio.wait_readable(kernel)
            if _is_news(kernel, known):
                note("the network changed")


def _is_news(kernel: socket.socket, known: set[bytes]) -> bool:
    """Read a datagram and update `known`. Return True if it has new facts or removals, or datagrams were lost."""
    try:
        datagram = kernel.recv(DATAGRAM_LARGEST)
    except BlockingIOError:
        return False
    except OSError:
        return True  # the socket's buffer overflowed: something did change
    news = False
    for fact in read_facts(datagram):
        news |= fact.what not in known or not fact.holds
        (known.add if fact.holds else known.discard)(fact.what)
    return news


# -- the system bus ----------------------------------------------------------------------------------------------------

BUS_SOCKETS = (Path("/run/dbus/system_bus_socket"), Path("/var/run/dbus/system_bus_socket"))
BUS_WAIT_S = 3.0  # not urgent: modules for the first session are loaded first
LOGIND = "org.freedesktop.login1"
NETWORK_MANAGER = "org.freedesktop.NetworkManager"
CONNECTED_SITE = 60  # NM_STATE_CONNECTED_SITE: a network beyond this link; 70 is the whole internet


async def bus_signals(note: Callable[[str], None], wait_s: float = BUS_WAIT_S) -> None:
    """Report that the machine woke up or a network is up (a Witness). Return without a bus, or once it ends."""
    address = os.environ.get("DBUS_SYSTEM_BUS_ADDRESS") or None
    if address is None and not any(path.exists() for path in BUS_SOCKETS):
        return
    await anyio.sleep(wait_s)
    try:
        await anyio.to_thread.run_sync(import_module, "jeepney.io.asyncio")  # takes 24 ms and 4 MB
        await _listen(note, address or "SYSTEM")
    except (OSError, EOFError, ValueError, LookupError, RuntimeError) as error:  # what jeepney raises for a bad bus
        log.debug("No system bus: %s", error)


async def _listen(note: Callable[[str], None], address: str) -> None:
    from jeepney import MatchRule, message_bus
    from jeepney.io.asyncio import open_dbus_connection
    from jeepney.io.common import RouterClosed
    from jeepney.wrappers import DBusErrorResponse

    try:
        connection = await open_dbus_connection(address)
    except (RouterClosed, DBusErrorResponse) as error:
        raise ConnectionError(f"refused: {type(error).__name__}") from error
    try:
        # The rules match the sender, because any user may send signals that look the same.
        for sender, interface, member in (
            (LOGIND, f"{LOGIND}.Manager", "PrepareForSleep"),
            (NETWORK_MANAGER, NETWORK_MANAGER, "StateChanged"),
        ):
            rule = MatchRule(type="signal", sender=sender, interface=interface, member=member)
            await connection.send(message_bus.AddMatch(rule))
        while True:
            if reason := reason_of(await connection.receive()):
                note(reason)
    finally:
        connection.writer.close()  # without waiting: the gateway's shutdown must not wait for a bus


def reason_of(message: Message) -> str | None:
    """Return why a bus message means that connections should be checked, or None for any other message.

    `PrepareForSleep(false)` is sent on waking (org.freedesktop.login1); `StateChanged` carries an NMState.
    """
    from jeepney import HeaderFields, MessageType

    header, body = message.header, message.body
    if header.message_type is not MessageType.signal:
        return None
    signal = (header.fields.get(HeaderFields.interface), header.fields.get(HeaderFields.member))
    if signal == (f"{LOGIND}.Manager", "PrepareForSleep") and body == (False,):
        return "the machine woke up"
    if signal == (NETWORK_MANAGER, "StateChanged") and len(body) == 1 and isinstance(body[0], int):
        return "a network is up" if body[0] >= CONNECTED_SITE else None
    return None
