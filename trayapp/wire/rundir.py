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
    base = environ.get("XDG_RUNTIME_DIR") or ""
    if os.path.isabs(base) and os.path.isdir(base):
        return os.path.join(base, "multi-mcp")
    # A login without a session manager (ssh, cron, a container) must find the same gateway: the home folder it is.
    return os.path.expanduser("~/.cache/multi-mcp/run")


def socket_path(run: str) -> str:
    """Path of the Unix socket for a runtime folder; a folder too deep for a socket gets a short private one."""
    path = os.path.join(run, "gateway.sock")
    if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
        return path
    from zlib import crc32  # rare: kept off the shim's usual way

    short = f"multi-mcp-{os.getuid()}-{crc32(os.fsencode(run)):08x}"
    return os.path.join("/tmp", short, "gateway.sock")
