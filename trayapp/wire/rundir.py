"""Location of the runtime folder and the local socket: the one rule that gateway, shim, tray and CLI share.

It imports os and sys alone, since each import costs the shim time and memory.
"""

import os
import sys

# The last message to each session when a gateway is stopped on purpose. The shim then starts no gateway until the
# client sends a request.
STOPPING = b'{"jsonrpc":"2.0","method":"notifications/multi-mcp/stopping"}\n'
# The last message over a session's socket if pipes replace it. It carries the shim's ends of the pipes (wire/pipes).
PIPES = b'{"jsonrpc":"2.0","method":"notifications/multi-mcp/pipes"}\n'
SOCKET_PATH_LIMIT = 100  # bytes; sun_path holds 104 on macOS and 108 on Linux, terminator included


def run_dir(environ: "os._Environ[str] | dict[str, str]") -> str:
    """Return the absolute path of the folder for lock, socket and endpoint file. It may not exist yet."""
    if home := environ.get("MULTI_MCP_HOME", "").strip():
        return os.path.join(os.path.abspath(os.path.expanduser(home)), "run")
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
        return os.path.join(base, "multi-mcp", "run")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/multi-mcp/run")
    # Clients often start servers with almost no environment. The shim must find the gateway without XDG_RUNTIME_DIR.
    for base in (environ.get("XDG_RUNTIME_DIR") or "", f"/run/user/{os.getuid()}"):
        if os.path.isabs(base) and _own_folder(base, os.stat):
            return os.path.join(base, "multi-mcp")
    # Logins without a session manager (ssh, cron, a container) must find the same gateway, so use the home folder.
    return os.path.expanduser("~/.cache/multi-mcp/run")


def _own_folder(path: str, look: "Callable[[str], os.stat_result]", forbidden: int = 0) -> bool:
    """Return True if `path` is a folder of this user without the `forbidden` mode bits.

    `look` is os.stat, or os.lstat to reject links.
    """
    try:
        facts = look(path)
    except OSError:
        return False
    return facts.st_uid == os.getuid() and facts.st_mode & (0o170000 | forbidden) == 0o040000


def socket_folder(run: str) -> str:
    """Return the folder of the Unix socket: the runtime folder, or a short private one if its path is too long."""
    if len(os.fsencode(run)) + len("/gateway.sock") <= SOCKET_PATH_LIMIT:
        return run
    from zlib import crc32  # rarely needed, so the shim does not import it at the top

    return os.path.join("/tmp", f"multi-mcp-{os.getuid()}-{crc32(os.fsencode(run)):08x}")


def socket_path(run: str) -> str:
    """Return the path of the Unix socket for a runtime folder.

    Raises PermissionError if the short folder is not private to this user: anyone may create that name in /tmp.
    """
    folder = socket_folder(run)
    if folder != run and os.path.lexists(folder) and not _own_folder(folder, os.lstat, forbidden=0o077):
        raise PermissionError(1, "not a private folder of this user", folder)
    return os.path.join(folder, "gateway.sock")


TYPE_CHECKING = False  # typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
