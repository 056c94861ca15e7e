"""The sandbox profile (macOS): a policy in the language of sandbox-exec.

The profile language is Scheme-like. Apple's own profiles are in /System/Library/Sandbox/Profiles.
"""

from __future__ import annotations

from trayapp.confinement.policy import Policy, is_inside

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
_BASE = """(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))
(allow ipc-posix-sem)
(allow pseudo-tty)
(allow file-read-metadata)
(allow file-read-data (literal "/"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration"))
"""


def profile(policy: Policy, port: int | None) -> str:
    """Return the sandbox profile. `port`: the proxy's port, the only destination, if hosts are listed; else None."""
    lines = [_BASE.rstrip()]
    lines += [f"(allow file-read* file-map-executable {_place(path)})" for path in policy.read]
    lines += [f"(allow file-read* file-write* file-map-executable {_place(path)})" for path in policy.write]
    lines += [f"(allow file-read* file-write-data (literal {_quoted(path)}))" for path in policy.devices]
    # Later rules take precedence: a secret in a granted folder stays a secret.
    named = {*policy.read, *policy.write}
    lines += [
        f"(deny file-read-data file-write* {_place(path)})"
        for path in policy.secrets
        if not any(is_inside(one, path) for one in named)
    ]
    if policy.network is True:
        lines += ["(allow network-outbound (remote ip))", "(allow network-inbound (local ip))", "(allow network-bind)"]
        lines.append('(allow network-outbound (literal "/private/var/run/mDNSResponder"))')
    elif port is not None:
        lines.append(f'(allow network-outbound (remote ip "localhost:{port}"))')
    if policy.sockets:
        lines += [f"(allow network* {_place(path)})" for path in policy.write]
    return "\n".join(lines) + "\n"


def _place(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
