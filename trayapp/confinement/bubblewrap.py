"""Confinement by bubblewrap (namespaces), where Landlock is missing or a program needs its own Unix sockets."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path

from trayapp.config.programs import own_environment
from trayapp.confinement.policy import LINUX_DEVICES, LINUX_SYSTEM, Policy, Program
from trayapp.model.text import first_line

CHECK_S = 1.5  # limit for the check, which usually takes 10 ms
# Settings of the kernel that forbid user namespaces: the name, the value that forbids them, and one that does not.
FORBIDDING = (
    ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu
    ("user.max_user_namespaces", "0", "10000"),
)


@cache
def fault() -> str:
    """Try bubblewrap. Return why it cannot be used here, or "" if it can. Only the first call runs it, and blocks."""
    program = _program()
    if program is None:
        return "bubblewrap is not installed"
    command = [program, "--ro-bind", "/", "/", "--unshare-user", "--unshare-pid", "--proc", "/proc", "true"]
    env = own_environment(os.environ)
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=CHECK_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work: {error}"
    # The first sentence of bubblewrap's message says why. The others are advice about some systems.
    why = first_line(done.stderr).removeprefix("bwrap: ").partition(". ")[0]
    return "" if done.returncode == 0 else f"bubblewrap does not work: {why or f'exit code {done.returncode}'}"


def remedy(system: Path = Path("/proc/sys")) -> str:
    """Return what the user can do about a `fault`. `system`: the folder of the kernel's settings."""
    if _program() is None:
        return "Install the package bubblewrap"
    for name, bad, good in FORBIDDING:
        with suppress(OSError):
            if (system / name.replace(".", "/")).read_text(encoding="ascii").strip() == bad:
                return f"Allow user namespaces: sudo sysctl {name}={good}"
    return "Allow user namespaces, which this system or its container forbids"


def _program() -> str | None:
    import shutil  # imported late: with its archive modules, it is half of what a first confined start loads

    return shutil.which("bwrap")


def command_line(policy: Policy, program: Program, filter_fd: int) -> list[str]:
    """Return the command line that runs the program in its own namespaces.

    `filter_fd`: the descriptor from which bubblewrap reads the seccomp filter.
    """
    words = [_program() or "bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc"]
    words += ["--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL", "--dev", "/dev", "--proc", "/proc"]
    words += ["--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--dir", program.home, "--dir", program.cwd]
    words += ["--ro-bind", "/proc/sys", "/proc/sys"]  # otherwise, a program run as root could change kernel settings
    if policy.network is not True:
        words.append("--unshare-net")
    for path in LINUX_SYSTEM:
        words += [] if path.startswith("/proc/") else ["--ro-bind-try", path, path]
    # Inner folders after outer ones: the later mount takes precedence.
    given = dict.fromkeys(policy.read, "--ro-bind-try") | dict.fromkeys(policy.write, "--bind-try")
    for path in sorted(given, key=len):
        if path not in LINUX_SYSTEM and path not in LINUX_DEVICES and not path.startswith(("/proc", "/dev/null")):
            words += [given[path], path, path]
    words += ["--remount-ro", "/"]  # a write anywhere else fails, instead of being lost
    return [*words, "--chdir", program.cwd, "--seccomp", str(filter_fd), "--", *program.argv]
