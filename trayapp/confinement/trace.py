"""Trace of the files that a program opens or changes by name, for a trial: every such call asks the gateway.

Never here: allowing or refusing anything. A name is read from the program's memory, which could change meanwhile: good
enough for a proposal, not for a limit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from trayapp.confinement.seccomp import TRACED, machine

PATH_BYTES = 4096
MOST = 5000  # files that are kept
_WORKING_FOLDER = (1 << 32) - 100  # AT_FDCWD
_OF_ITSELF = ("/proc/self/", "/proc/thread-self/")  # every program looks there, and works without
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# name -> the arguments with the folder's descriptor (-1: none), the path, and the flags (-1: it writes)
_ARGUMENTS = {
    "open": (-1, 0, 1), "creat": (-1, 0, -1), "openat": (0, 1, 2), "mkdir": (-1, 0, -1), "mkdirat": (0, 1, -1),
    "unlink": (-1, 0, -1), "unlinkat": (0, 1, -1), "rmdir": (-1, 0, -1), "rename": (-1, 1, -1),
    "renameat": (2, 3, -1), "renameat2": (2, 3, -1),
}  # fmt: skip


class Trace:
    """The files of one trial: real paths, True if the program opened one for writing."""

    def __init__(self) -> None:
        self.files: dict[str, bool] = {}
        at = ("x86_64", "aarch64").index(machine())
        self._calls = {numbers[at]: _ARGUMENTS[name] for name, numbers in TRACED.items() if numbers[at] >= 0}

    def note(self, pid: int, number: int, arguments: Sequence[int]) -> None:
        """Record the file of a call. A call that cannot be read is skipped: its process may have ended."""
        folder, path, flags = self._calls[number]
        try:
            name = _text(pid, arguments[path])
            base = "/" if name.startswith("/") else _folder(pid, arguments[folder] if folder >= 0 else _WORKING_FOLDER)
        except OSError:
            return
        if name.startswith(_OF_ITSELF):
            return
        real = os.path.realpath(os.path.join(base, name))
        writes = flags < 0 or bool(arguments[flags] & _WRITING)
        if len(self.files) < MOST or real in self.files:
            self.files[real] = self.files.get(real, False) or writes


def _text(pid: int, address: int) -> str:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    try:
        return os.fsdecode(os.pread(memory, PATH_BYTES, address).partition(b"\0")[0])
    finally:
        os.close(memory)


def _folder(pid: int, descriptor: int) -> str:
    number = descriptor & 0xFFFFFFFF
    return os.readlink(f"/proc/{pid}/cwd" if number == _WORKING_FOLDER else f"/proc/{pid}/fd/{number}")


def new_trace() -> Trace | None:
    """Return a trace, or None if this system cannot ask at every call."""
    return Trace() if machine() else None
