"""The memory and the folders of a process that waits for the answer to its system call."""

from __future__ import annotations

import os

WORKING_FOLDER = (1 << 32) - 100  # AT_FDCWD
PATH_BYTES = 4096


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
