"""Confinement by Landlock: limits the calling thread, and all that it starts, to paths, ports and its own processes.

System calls are made by number, since libc has no wrappers. Reference: man 7 landlock, include/uapi/linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every architecture
PATH_BENEATH, NET_PORT = 1, 2
LEAST_ABI = 6  # Linux 6.12: scopes for signals and abstract sockets; without them a server could kill the gateway

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REMOVE_DIR, REMOVE_FILE = 16, 32
MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_SYM = 128, 256, 512, 1024, 4096
REFER, TRUNCATE, IOCTL_DEV = 8192, 16_384, 32_768
ALL_FILE_RIGHTS = (1 << 16) - 1  # includes making device nodes, which is never granted: root could open a disk
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = (
    READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM
    | REFER | TRUNCATE
)  # fmt: skip
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
BIND_TCP, CONNECT_TCP = 1, 2
SCOPES = 3  # LANDLOCK_SCOPE_*: abstract Unix sockets, signals
NO_NEW_PRIVS = 38  # PR_SET_NO_NEW_PRIVS
CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def abi() -> int:
    """Return the Landlock version of this kernel, or 0 if there is none or it is disabled."""
    if _libc is None:
        return 0
    return max(0, int(_libc.syscall(ctypes.c_long(CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def is_forbidden() -> bool:
    """Return True if a system call filter keeps this process from using Landlock."""
    return _libc is not None and abi() == 0 and ctypes.get_errno() == errno.EPERM


def system_call(number: int, *arguments: object) -> int:
    """Make a system call by its number, and return its result. Raises OSError."""
    assert _libc is not None
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def restrict_thread(read: Iterable[str], write: Iterable[str], devices: Iterable[str], ports: list[int] | None) -> None:
    """Confine the calling thread, and all that it starts, permanently. After an OSError, nothing may be started.

    `read`, `write`: files, or folders with all their contents; missing ones are skipped. `devices`: files to read and
    write, without creating or replacing them. `ports`: the only TCP ports to connect to, or None for all ports.
    """
    assert _libc is not None
    with _restricting(ALL_FILE_RIGHTS, 0 if ports is None else BIND_TCP | CONNECT_TCP) as ruleset:
        for rights, paths in ((READ, read), (WRITE, write), (READ_FILE | WRITE_FILE, devices)):
            for path in paths:
                _allow_path(ruleset, path, rights)
        for port in ports or ():
            _add_rule(ruleset, NET_PORT, struct.pack("QQ", CONNECT_TCP, port))
        _forbid_privileges()
        # Root has privileges over the files of other users. Other users have none to drop.
        if _libc.capset(struct.pack("=Ii", CAPABILITY_VERSION, 0), bytes(24)):
            raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")


def scope_thread() -> None:
    """Keep the calling thread, and all that it starts, from using abstract sockets of other programs or signaling them.

    Also forbid new privileges, which is all that is done if Landlock has no scopes. Raises OSError.
    """
    _forbid_privileges()
    if abi() >= LEAST_ABI:
        with _restricting(0, 0):
            pass


@contextmanager
def _restricting(files: int, network: int) -> Iterator[int]:
    """Yield a ruleset for these rights and all scopes. If the block succeeds, apply the ruleset to the thread."""
    attributes = struct.pack("QQQ", files, network, SCOPES)
    ruleset = system_call(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        yield ruleset
        system_call(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _forbid_privileges() -> None:
    assert _libc is not None
    if _libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    try:
        # The path is a real path. If its last component is a link, it was replaced after the check and grants nothing.
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
            return
        raise
    try:
        mode = os.fstat(folder).st_mode
        if stat.S_ISLNK(mode):
            return
        granted = rights if stat.S_ISDIR(mode) else rights & OF_FILES
        _add_rule(ruleset, PATH_BENEATH, struct.pack("=Qi", granted, folder))
    finally:
        os.close(folder)


def _add_rule(ruleset: int, kind: int, rule: bytes) -> None:
    system_call(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(kind), rule, ctypes.c_uint32(0))
