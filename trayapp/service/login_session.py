"""A function that finds the user's login session if the environment lacks its variables.

Many AI tools pass only six variables to the programs that they start.

The keyring is reached through the session bus. DISPLAY is not set, because the gateway does not need it.
"""

# No pathlib: its import would take longer than this whole module
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing takes too long here
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

RUNTIME, BUS = "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"
RUNTIME_FOLDERS = "/run/user"  # set up by systemd and elogind: one folder per user, named by the user id


def find_login_session(environ: MutableMapping[str, str], folders: str = RUNTIME_FOLDERS) -> None:
    """Set the variables for the runtime folder and the session bus if they are unset and the user owns the targets."""
    if sys.platform in ("win32", "darwin"):
        return
    folder = environ.get(RUNTIME, os.path.join(folders, str(os.getuid())))
    if not _is_own(folder, stat.S_ISDIR):
        return
    environ.setdefault(RUNTIME, folder)
    bus = os.path.join(folder, "bus")
    if _is_own(bus, stat.S_ISSOCK):
        environ.setdefault(BUS, f"unix:path={bus}")


def _is_own(path: str, is_kind: Callable[[int], bool]) -> bool:
    """Return True if the path exists, is of that kind and belongs to this user."""
    try:
        facts = os.stat(path)
    except OSError:
        return False
    return is_kind(facts.st_mode) and facts.st_uid == os.getuid()
