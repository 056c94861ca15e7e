"""Choose the mechanism that confines a program on this system, or say why there is none. It changes nothing."""

from __future__ import annotations

import os
import sys
from typing import Literal

from trayapp.confinement import bubblewrap, landlock, seccomp
from trayapp.confinement.seatbelt import SANDBOX_EXEC

Mechanism = Literal["landlock", "bubblewrap", "sandbox-exec"]


class NoMechanismError(Exception):
    """This system cannot confine such a program. `reason` follows "Cannot confine NAME: "."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


INSTALL = "Install bubblewrap (the package bubblewrap)"


def choose_mechanism(network: bool | tuple[str, ...], sockets: bool) -> Mechanism:
    """Return the one for a program with these needs. Raises NoMechanismError. May block 1.5 s on the first call."""
    if sys.platform == "darwin":
        if os.path.exists(SANDBOX_EXEC):
            return "sandbox-exec"
        raise NoMechanismError(f"{SANDBOX_EXEC} is missing", "Run it in a container")
    if sys.platform != "linux":
        raise NoMechanismError("this system offers no way to confine a program", "Run it in a container")
    if not seccomp.machine():
        raise NoMechanismError(
            f"multi-mcp does not know the system calls of {os.uname().machine}", "Run it in a container"
        )
    version = landlock.abi()
    if version >= landlock.LEAST_ABI and not sockets:
        return "landlock"
    lacks = f"this kernel has {f'Landlock {version}' if version else 'no Landlock'}, not 6 (Linux 6.12)"
    if landlock.is_forbidden():
        lacks = "a system call filter forbids Landlock, as of a systemd unit or a container"
    if isinstance(network, tuple) and sockets:
        raise NoMechanismError("a list of hosts and Unix sockets cannot be combined", "Remove sockets")
    if sockets and network and version < landlock.LEAST_ABI:
        raise NoMechanismError(
            f"{lacks}: Unix sockets would lead to the desktop", "Remove sockets, or write network: false"
        )
    fault = bubblewrap.fault()
    if not fault:
        return "bubblewrap"
    raise NoMechanismError(f"it needs Unix sockets, and {fault}" if sockets else f"{lacks}, and {fault}", INSTALL)
