"""Where the runtime folder and the local socket lie: the one rule that gateway, shim, tray and CLI share.

Never here: imports beyond os and sys (the shim pays for each), opening anything.
"""

import os
import sys

# A gateway's last word to each session when it is stopped on purpose: the shim then does not start another at once.
STOPPING = b'{"jsonrpc":"2.0","method":"notifications/multi-mcp/stopping"}\n'
SOCKET_PATH_LIMIT = 100  # bytes; sun_path holds 104 on macOS and 108 on Linux, its end included


def run_dir(environ: "os._Environ[str] | dict[str, str]") -> str:
    """Absolute path of the folder for lock, socket and endpoint file (mode 0700 once made)."""
    home = environ.get("MULTI_MCP_HOME", "").strip()
    if home:
        return os.path.join(os.path.abspath(os.path.expanduser(home)), "run")
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
        return os.path.join(base, "multi-mcp", "run")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/multi-mcp/run")
    # Many clients start their servers with hardly any environment: the shim must find the gateway without the variable.
    for base in (environ.get("XDG_RUNTIME_DIR") or "", f"/run/user/{os.getuid()}"):
        if os.path.isabs(base) and _own_folder(base, os.stat):
            return os.path.join(base, "multi-mcp")
    # A login without a session manager (ssh, cron, a container) must find the same gateway: the home folder it is.
    return os.path.expanduser("~/.cache/multi-mcp/run")


def _own_folder(path: str, look: "Callable[[str], os.stat_result]", forbidden: int = 0) -> bool:
    """Whether there is a folder of this user without the `forbidden` bits of mode; `look`: os.lstat takes no links."""
    try:
        facts = look(path)
    except OSError:
        return False
    return facts.st_uid == os.getuid() and facts.st_mode & (0o170000 | forbidden) == 0o040000


def socket_folder(run: str) -> str:
    """Folder of the Unix socket for a runtime folder: itself, or a short private one where it is too deep."""
    if len(os.fsencode(run)) + len("/gateway.sock") <= SOCKET_PATH_LIMIT:
        return run
    from zlib import crc32  # rare: kept off the shim's usual way

    return os.path.join("/tmp", f"multi-mcp-{os.getuid()}-{crc32(os.fsencode(run)):08x}")


def socket_path(run: str) -> str:
    """Path of the Unix socket for a runtime folder.

    Raises PermissionError when the short folder is not ours alone: anybody may have made one of that name in /tmp.
    """
    folder = socket_folder(run)
    if folder != run and os.path.lexists(folder) and not _own_folder(folder, os.lstat, forbidden=0o077):
        raise PermissionError(1, "not a private folder of this user", folder)
    return os.path.join(folder, "gateway.sock")


TYPE_CHECKING = False  # typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
