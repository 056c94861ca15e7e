"""Changes of files' modes, owners and times that a confined program asks for. Landlock does not cover them.

The gateway makes each change itself, on a file that it has opened and checked, so the program cannot swap the file
between check and change.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Sequence

from trayapp.confinement.landlock import system_call
from trayapp.confinement.policy import Policy, is_inside
from trayapp.confinement.seccomp import ARCHITECTURES, ATTRIBUTES, machine

WORKING_FOLDER = (1 << 32) - 100  # AT_FDCWD
PATH_BYTES = 4096
_AT = list(ARCHITECTURES).index(machine()) if machine() else 0
_NOT_FOLLOWED, _EMPTY_PATH = 0x100, 0x1000  # AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
_NOBODY = (1 << 32) - 1  # leaves the owner or the group unchanged
# name -> the arguments with the descriptor (-1: none), the path and the flags
_ARGUMENTS = {
    "chmod": (-1, 0, -1), "fchmod": (0, -1, -1), "fchmodat": (0, 1, -1), "fchmodat2": (0, 1, 3),
    "chown": (-1, 0, -1), "lchown": (-1, 0, -1), "fchown": (0, -1, -1), "fchownat": (0, 1, 4),
    "utime": (-1, 0, -1), "utimes": (-1, 0, -1), "futimesat": (0, 1, -1), "utimensat": (0, 1, 3),
}  # fmt: skip


class AttributeChanges:
    """Changes attributes for one confined program. `refused` is called with each path that the program may not change.

    Methods block on files: they are called in a thread.
    """

    def __init__(self, policy: Policy, refused: Callable[[str], None]) -> None:
        self._write = policy.write
        self._refused = refused
        self.calls = {numbers[_AT]: name for name, numbers in ATTRIBUTES.items() if numbers[_AT] >= 0}

    def make(self, pid: int, call: int, arguments: Sequence[int]) -> int:
        """Make the change that a process asked for by a system call. Return 0, or the error as a negative number."""
        name = self.calls[call]
        try:
            opened, has_name = _opened(pid, name, arguments)
            try:
                if not self._may_change(opened, has_name):
                    return -errno.EPERM
                _change(pid, name, opened, arguments[max(_ARGUMENTS[name][:2]) + 1 :])
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
    """Return a descriptor for the file that the call means, and True if it names the file. Raises OSError."""
    descriptor, path, flags = _ARGUMENTS[name]
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
    """Make the change. Raises OSError."""
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
    """Return the times at an address as two `struct timespec`; None: now."""
    if not address:
        return None
    if name == "utime":
        accessed, modified = struct.unpack("qq", read_memory(pid, address, 16))
        return struct.pack("4q", accessed, 0, modified, 0)
    times = read_memory(pid, address, 32)
    if name == "utimensat":
        return times
    accessed, micro, modified, other = struct.unpack("4q", times)
    if not (0 <= micro < 1_000_000 and 0 <= other < 1_000_000):
        raise ValueError
    return struct.pack("4q", accessed, micro * 1000, modified, other * 1000)


# --- the memory and the folders of a process that waits for the answer to its system call


def read_memory(pid: int, address: int, size: int) -> bytes:
    """Return the bytes at an address, fewer if the memory ends there. Raises OSError."""
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
