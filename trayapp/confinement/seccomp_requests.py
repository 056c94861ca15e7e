"""Answers to the system calls that a confined program's seccomp filter passes to the gateway.

Sockets: the program gets none, or Internet sockets that reach only the proxy. They are bound to the loopback device, so
they reach nothing else. Binding them to another device takes privileges (SO_BINDTODEVICE). Of the loopback ports,
Landlock allows only the proxy's. Without Landlock, the program has its own network namespace, each socket that it gets
is already connected to the proxy, and its `connect` does nothing. The arguments of a request are in registers, so they
cannot change between check and answer. Without the gateway, every request fails.

Modes, owners and times of files: Landlock does not cover changes of these. The gateway opens the file and makes each
change itself, so the program cannot swap the file between check and change. A separate thread makes the changes, since
a network folder may never answer.

Scheduling: a process may change the scheduling of its own threads.

Files, in a trial: every call that opens or changes a file by name is recorded and allowed. The name is read from the
program's memory, which could change before the kernel reads it. That is good enough for a proposal, not for a limit.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue

from trayapp.confinement.landlock import system_call
from trayapp.confinement.policy import Policy, is_inside
from trayapp.confinement.seccomp import ARCHITECTURES, ATTRIBUTES, CONNECT, KINDS, SCHEDULING, SOCKET, TRACED, machine

WORKING_FOLDER = (1 << 32) - 100  # AT_FDCWD
PATH_BYTES = 4096
_NOT_FOLLOWED, _EMPTY_PATH = 0x100, 0x1000  # AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
_NOBODY = (1 << 32) - 1  # leaves the owner or the group unchanged
_AT = list(ARCHITECTURES).index(machine()) if machine() else 0
# name -> which arguments hold the descriptor, the path and the flags (-1: none does)
_OPERANDS = {
    "chmod": (-1, 0, -1), "fchmod": (0, -1, -1), "fchmodat": (0, 1, -1), "fchmodat2": (0, 1, 3),
    "chown": (-1, 0, -1), "lchown": (-1, 0, -1), "fchown": (0, -1, -1), "fchownat": (0, 1, 4),
    "utime": (-1, 0, -1), "utimes": (-1, 0, -1), "futimesat": (0, 1, -1), "utimensat": (0, 1, 3),
}  # fmt: skip


class AttributeChanges:
    """The changes of files' attributes for one confined program.

    `refused` is called with each path that the program may not change. Methods block on files: call them in a thread.
    """

    def __init__(self, policy: Policy, refused: Callable[[str], None]) -> None:
        self._write = policy.write
        self._refused = refused
        self.calls = {numbers[_AT]: name for name, numbers in ATTRIBUTES.items() if numbers[_AT] >= 0}

    def make(self, pid: int, call: int, arguments: Sequence[int]) -> int:
        """Make the change that a process requested by a system call. Return 0, or the error as a negative number."""
        name = self.calls[call]
        try:
            opened, has_name = _opened(pid, name, arguments)
            try:
                if not self._may_change(opened, has_name):
                    return -errno.EPERM
                _change(pid, name, opened, arguments[max(_OPERANDS[name][:2]) + 1 :])
            finally:
                os.close(opened)
        except (OSError, ValueError) as error:
            return -(getattr(error, "errno", None) or errno.EINVAL)
        return 0

    def _may_change(self, opened: int, has_name: bool) -> bool:
        facts = os.fstat(opened)
        real = os.readlink(f"/proc/self/fd/{opened}")
        if facts.st_uid != os.geteuid():
            return False  # as the kernel would answer: the program has no privileges, even if the gateway runs as root
        if not has_name and (not facts.st_nlink or not real.startswith("/")):
            return True  # a descriptor of a pipe, of memory or of a removed file
        if any(is_inside(real, folder) for folder in self._write):
            return True
        self._refused(real)
        return False


def _opened(pid: int, name: str, arguments: Sequence[int]) -> tuple[int, bool]:
    """Open the file that a call refers to. Return its descriptor, and True if the call has its path. Raises OSError."""
    descriptor, path, flags = _OPERANDS[name]
    said = arguments[flags] if flags >= 0 else 0
    if said & ~(_NOT_FOLLOWED | _EMPTY_PATH):
        raise OSError(errno.EINVAL, "unknown flags")
    base = arguments[descriptor] & 0xFFFFFFFF if descriptor >= 0 else WORKING_FOLDER
    text = read_text(pid, arguments[path]) if path >= 0 and arguments[path] else ""
    itself = path < 0 or not arguments[path] or (not text and said & _EMPTY_PATH)
    if itself:
        if base == WORKING_FOLDER and path >= 0 and not arguments[path]:
            raise OSError(errno.EFAULT, "no path")
        return os.open(folder_of(pid, base), os.O_PATH | os.O_CLOEXEC), False
    not_followed = os.O_NOFOLLOW if name == "lchown" or said & _NOT_FOLLOWED else 0
    folder = os.open("/" if text.startswith("/") else folder_of(pid, base), os.O_PATH | os.O_CLOEXEC)
    try:
        return os.open(text, os.O_PATH | os.O_CLOEXEC | not_followed, dir_fd=folder), True
    finally:
        os.close(folder)


def _change(pid: int, name: str, opened: int, wanted: Sequence[int]) -> None:
    """Change the mode, owner or times of an opened file. `wanted`: the call's arguments after the file.

    Raises OSError, and ValueError for invalid times.
    """
    file = f"/proc/self/fd/{opened}"
    if "mod" in name:
        os.chmod(file, wanted[0] & 0o7777)
    elif "own" in name:
        owner, group = ((-1 if one & _NOBODY == _NOBODY else one & _NOBODY) for one in wanted[:2])
        facts = os.fstat(opened)
        if os.geteuid() == 0 and (owner not in (-1, facts.st_uid) or group not in (-1, facts.st_gid)):
            raise OSError(errno.EPERM, "a confined program has none of root's privileges")
        os.chown(file, owner, group)
    else:
        number, here = ATTRIBUTES["utimensat"][_AT], ctypes.c_int(-100)
        system_call(number, here, file.encode(), _times(pid, name, wanted[0]), ctypes.c_int(0))


def _times(pid: int, name: str, address: int) -> bytes | None:
    """Return the times at an address as two `struct timespec`, or None for the current time."""
    if not address:
        return None
    size = 16 if name == "utime" else 32
    times = read_memory(pid, address, size)
    if len(times) < size:
        raise OSError(errno.EFAULT, "the memory ends before the times do")
    if name == "utime":
        accessed, modified = struct.unpack("qq", times)
        return struct.pack("4q", accessed, 0, modified, 0)
    if name == "utimensat":
        return times
    accessed, micro, modified, other = struct.unpack("4q", times)
    if not (0 <= micro < 1_000_000 and 0 <= other < 1_000_000):
        raise ValueError
    return struct.pack("4q", accessed, micro * 1000, modified, other * 1000)


# --- the memory and the folders of a process that waits for the answer to its system call


def read_memory(pid: int, address: int, size: int) -> bytes:
    """Return the bytes at an address, fewer if the memory ends there. Raises OSError."""
    if address >> 63:  # a program has no such addresses, and os.pread takes none
        raise OSError(errno.EFAULT, "not an address of a program")
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(memory, size, address)
    finally:
        os.close(memory)


def read_text(pid: int, address: int) -> str:
    """Return the path at an address. Raises OSError."""
    return os.fsdecode(read_memory(pid, address, PATH_BYTES).partition(b"\0")[0])


def folder_of(pid: int, descriptor: int) -> str:
    """Return the link in /proc to a descriptor's file, or to the working folder."""
    number = descriptor & 0xFFFFFFFF
    return f"/proc/{pid}/cwd" if number == WORKING_FOLDER else f"/proc/{pid}/fd/{number}"


# linux/seccomp.h
_RECEIVE, _ANSWER, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40182103
_GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_AND_ANSWER = 2  # SECCOMP_ADDFD_FLAG_SEND
_REQUEST = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_DESCRIPTOR = struct.Struct("=QIIII")
_NONBLOCK, _CLOEXEC, _TYPE = 0o4000, 0o2000000, 0xF
_BIND_TO_DEVICE = 25
_SCHEDULED = {numbers[_AT]: name for name, numbers in SCHEDULING.items()}
_Request = tuple[int, int, int, list[int]]  # the request's number, the requesting thread, the call, its arguments


class Requests:
    """The requests from one program's `listener`. The running event loop answers them until the last process has ended.

    - `port`: the proxy's port, if there is a proxy. The program gets TCP sockets for it, connected if `connected`.
    - `refused` is called with True for a Unix socket and, if there is no proxy, with False for any other.
    - `changes` makes changes of files' attributes.
    - `trace` records files, in a trial.
    """

    def __init__(
        self,
        listener: int,
        port: int | None,
        refused: Callable[[bool], None],
        *,
        connected: bool = False,
        changes: AttributeChanges | None = None,
        trace: Trace | None = None,
    ) -> None:
        self._listener = listener
        self._port = port
        self._connected = connected
        self._refused = refused
        self._changes = changes
        self._wanted: SimpleQueue[_Request | None] | None = None  # queue to the thread, once it runs
        self._trace = trace
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener, self._serve)

    def close(self) -> None:
        """Stop answering. The kernel then refuses all requests."""
        if self._listener >= 0:
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = -1
            if self._wanted is not None:
                self._wanted.put(None)

    def _serve(self) -> None:
        events = self._poll.poll(0)
        if not events:
            return
        if not events[0][1] & select.POLLIN:
            self.close()  # no process is left that could send requests
            return
        import fcntl  # loaded with the first request

        request = bytearray(_REQUEST.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, request)
        except OSError:
            return  # the program has been killed
        number, pid, _, call, _, _, *arguments = _REQUEST.unpack(request)
        if self._changes is not None and call in self._changes.calls:
            if self._wanted is None:  # the first request for a change starts the thread that makes all changes
                self._wanted = SimpleQueue()
                work = (self._wanted, os.dup(self._listener), self._changes)
                threading.Thread(target=_make_changes, args=work, name="file attributes", daemon=True).start()
            self._wanted.put((number, pid, call, arguments))
            return
        if call in _SCHEDULED:
            _answer(self._listener, number, *_scheduling(pid, call, arguments))
            return
        if self._trace is not None and call not in SOCKET:
            self._trace.note(pid, call, arguments)
            _answer(self._listener, number, 0, _GO_ON)
            return
        if self._connected and call in CONNECT:
            _answer(self._listener, number, 0)
            return
        family, kind, protocol = (argument & 0xFFFFFFFF for argument in arguments[:3])
        tcp = family != socket.AF_UNIX and kind & _TYPE == socket.SOCK_STREAM and protocol in (0, socket.IPPROTO_TCP)
        with suppress(OSError):  # the program has been killed
            if not (self._port and tcp and self._hand_out(number, family, kind)):
                _answer(self._listener, number, -errno.EACCES)
                if family == socket.AF_UNIX or not self._port:
                    self._refused(family == socket.AF_UNIX)

    def _hand_out(self, number: int, family: int, kind: int) -> bool:
        import fcntl

        try:
            made = socket.socket(family, socket.SOCK_STREAM | kind & _NONBLOCK)
        except OSError:
            return False
        with made:
            if self._connected:
                made.setblocking(False)  # this thread also serves the proxy, so it must not wait for the proxy
                made.connect_ex(("127.0.0.1", self._port))
                os.set_blocking(made.fileno(), not kind & _NONBLOCK)
            else:
                made.setsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, b"lo\0")
            told = _DESCRIPTOR.pack(number, _AND_ANSWER, made.fileno(), 0, kind & _CLOEXEC)
            fcntl.ioctl(self._listener, _ADD_DESCRIPTOR, told)
        return True


def _answer(listener: int, number: int, error: int, flags: int = 0) -> None:
    import fcntl

    with suppress(OSError):  # the program has been killed
        fcntl.ioctl(listener, _ANSWER, _RESPONSE.pack(number, 0, error, flags))


def _make_changes(wanted: SimpleQueue[_Request | None], listener: int, changes: AttributeChanges) -> None:
    """Make the requested changes, one after the other, until None arrives. Then close the listener."""
    while (request := wanted.get()) is not None:
        number, pid, call, arguments = request
        _answer(listener, number, changes.make(pid, call, arguments))
    os.close(listener)


def _scheduling(pid: int, call: int, arguments: Sequence[int]) -> tuple[int, int]:
    """Return the error and the flags of the answer. A process may schedule only its own threads."""
    kinds = KINDS.get(_SCHEDULED[call])
    target = arguments[1 if kinds else 0] & 0xFFFFFFFF
    is_process = kinds is None or arguments[0] & 0xFFFFFFFF == kinds[0]
    if is_process and os.path.exists(f"/proc/{pid}/task/{target}"):
        return 0, _GO_ON
    return -errno.EPERM, 0


# --- the files that a program opens or changes by name, for a trial

MOST = 5000  # files that are recorded
_OF_ITSELF = ("/proc/self/", "/proc/thread-self/")  # every program opens these, and works without them
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# name -> which arguments hold the folder's descriptor (-1: none does), the path and the flags (-1: the call writes)
_ARGUMENTS = {
    "open": (-1, 0, 1), "creat": (-1, 0, -1), "openat": (0, 1, 2), "mkdir": (-1, 0, -1), "mkdirat": (0, 1, -1),
    "unlink": (-1, 0, -1), "unlinkat": (0, 1, -1), "rmdir": (-1, 0, -1), "rename": (-1, 1, -1),
    "renameat": (2, 3, -1), "renameat2": (2, 3, -1),
}  # fmt: skip


class Trace:
    """The files of one trial. `files`: real path -> True if the program opened it for writing or changed it."""

    def __init__(self) -> None:
        self.files: dict[str, bool] = {}
        self._calls = {numbers[_AT]: _ARGUMENTS[name] for name, numbers in TRACED.items() if numbers[_AT] >= 0}

    def note(self, pid: int, number: int, arguments: Sequence[int]) -> None:
        """Record the file of a call. A call that cannot be read is skipped: its process may have ended."""
        folder, path, flags = self._calls[number]
        try:
            name = read_text(pid, arguments[path])
            folder_link = folder_of(pid, arguments[folder] if folder >= 0 else WORKING_FOLDER)
            base = "/" if name.startswith("/") else os.readlink(folder_link)
        except OSError:
            return
        if name.startswith(_OF_ITSELF):
            return
        real = os.path.realpath(os.path.join(base, name))
        writes = flags < 0 or bool(arguments[flags] & _WRITING)
        if len(self.files) < MOST or real in self.files:
            self.files[real] = self.files.get(real, False) or writes
