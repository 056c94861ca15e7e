"""The users of local TCP ports and of loopback connections.

Only Linux reports them (sock_diag(7), about 20 us); elsewhere nothing is known.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from contextlib import suppress
from typing import NamedTuple

if sys.platform != "win32":
    import pwd

Address = tuple[str, int]

SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
REQUEST = 1  # NLM_F_REQUEST
HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, number, sender
QUESTION = struct.Struct("=BBBBI")  # struct inet_diag_req_v2: family, protocol, extensions, padding, states
PORTS = struct.Struct("!HH")
ANY_STATE = NO_COOKIE = 0xFFFFFFFF
FACTS = struct.Struct("=IIIII")  # the end of struct inet_diag_msg: expires, two queues, user, inode
FACTS_AT = HEADER.size + 4 + 48
ROOT = 0


class SocketFacts(NamedTuple):
    """The user of a socket. Inode 0 means that its process has closed it; the user is then unknown."""

    uid: int
    inode: int


def facts_of(here: Address, there: Address) -> SocketFacts | None:
    """Return the owner and inode of the IPv4 TCP socket at `here` whose peer is `there`.

    Return None if there is no such socket, or the system does not report sockets. IPv6 sockets that
    carry IPv4 are found, too. For a listening socket, pass ("0.0.0.0", 0) as `there`.
    """
    if sys.platform != "linux":
        return None
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as netlink:
            netlink.send(question(here, there))
            answer = netlink.recv(4096)
    except OSError:  # a confined process, or a kernel without sock_diag
        return None
    if len(answer) < FACTS_AT + FACTS.size or HEADER.unpack_from(answer)[1] != BY_FAMILY:
        return None  # an error: there is no such socket
    return SocketFacts(*FACTS.unpack_from(answer, FACTS_AT)[3:])


def question(here: Address, there: Address) -> bytes:
    addresses = b"".join(socket.inet_aton(host).ljust(16, b"\0") for host, _ in (here, there))
    body = (
        QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, ANY_STATE)
        + PORTS.pack(here[1], there[1])
        + addresses
        + struct.pack("=III", 0, NO_COOKIE, NO_COOKIE)
    )
    return HEADER.pack(HEADER.size + len(body), BY_FAMILY, REQUEST, 1, 0) + body


def port_holder(port: int) -> int | None:
    """Return the uid of the user who listens on that port of 127.0.0.1; None if unknown."""
    facts = facts_of(("127.0.0.1", port), ("0.0.0.0", 0))
    return facts.uid if facts is not None else None


def comes_from_another_user(here: Address, there: Address) -> bool:
    """Return True if the far end of a connection to us belongs, or may belong, to a user other than us and root.

    A far end that is closed may have belonged to any user. If not even our own end is found, the system does not
    report sockets: return False.
    """
    if facts_of(here, there) is None:
        return False
    facts = facts_of(there, here)
    return facts is None or facts.inode == 0 or facts.uid not in (os.getuid(), ROOT)


def is_ours(holder: int | None) -> bool:
    """Return True if a port's holder is known to be this user."""
    return sys.platform != "win32" and holder == os.getuid()


def holder_words(holder: int | None) -> str:
    """Return a phrase for the holder of a port, such as "another program of yours"."""
    if sys.platform == "win32" or holder is None:
        return "another program"
    if is_ours(holder):
        return "another program of yours"
    name = f"uid {holder}"
    with suppress(KeyError):
        name = f"{pwd.getpwuid(holder).pw_name}, {name}"
    return f"a program of another user ({name})"
