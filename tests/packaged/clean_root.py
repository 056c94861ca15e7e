"""A clean root: only the essential packages of a Debian system, in separate namespaces.

Its files and dpkg's records are copied from this machine's packages, so nothing is fetched. dpkg checks the `Depends:`
of packages installed there against these records only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.tools import missing, require
from trayapp.service.gateway_launch import is_alive

UID = 1000
USER = "guest"
HOME = f"/home/{USER}"
RUNTIME = f"/run/user/{UID}"
SESSION_BUS = f"{RUNTIME}/bus"
STANDARD_PATH = "/usr/local/bin:/usr/bin:/bin"
MERGED = ("bin", "sbin", "lib", "lib64")  # links into /usr on current systems
NOT_COPIED = re.compile(
    r"/usr/share/(doc|man|locale|info|lintian|bash-completion|perl5)/|/usr/lib/[^/]*/(gconv|perl-base)/"
)
QUERY = "${Package}\\t${Essential}\\t${Pre-Depends}, ${Depends}\\t${Provides}\\n"
NAMES = re.compile(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]*)")  # the names of packages, without versions and architectures
# The first process in the root ends when its stdin closes, and the kernel then kills the others. The shell's `wait`
# reaps orphans.
FIRST = "echo ready; exec 3<&0; cat <&3 >/dev/null & wait $!"
MOUNTS = """set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
[ -z "$2" ] || { : > "$1/$3"; mount --bind "$2" "$1/$3"; }
exec chroot "$1" /bin/sh -c "$4"
"""


class CleanRoot:
    """A running root. All its processes end together with the process `first`."""

    def __init__(self, folder: Path, first: psutil.Process, environ: Mapping[str, str]) -> None:
        self.folder, self.first = folder, first
        self.environ = {"HOME": HOME, "PATH": STANDARD_PATH, "XDG_RUNTIME_DIR": RUNTIME, "LANG": "C.UTF-8", **environ}
        self.held = essential()
        self._space = _space_of(first.pid)
        self._own = {first.pid, *(child.pid for child in first.children())}

    @property
    def home(self) -> Path:
        """The user's home, as a path outside the root."""
        return self.folder / HOME.lstrip("/")

    def command(self, *argv: str, user: bool = True) -> list[str]:
        """Return a command line that runs `argv` in the root, as root or as a user who has just logged in."""
        pairs = [f"{key}={value}" for key, value in self.environ.items()]
        who = ["-S", str(UID), "-G", str(UID)] if user else []
        enter = [require("nsenter"), "-t", str(self.first.pid), "-m", "-p", "-r", "-w", *who]
        return [*enter, "--", "/usr/bin/env", "-i", *(pairs if user else ["PATH=/usr/sbin:/usr/bin"]), *argv]

    def run(self, *argv: str, user: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the root, assert that it succeeds, and return its result."""
        done = subprocess.run(self.command(*argv, user=user), cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done

    def dpkg(self, *argv: str) -> None:
        """Run dpkg as root. An installation fails if dependencies are missing."""
        self.run("/usr/bin/dpkg", *argv, user=False)

    def add(self, name: str) -> None:
        """Add one of this machine's packages to the root, with all its dependencies."""
        more = [package for package in closure([name]) if package not in self.held]
        lay(self.folder, more)
        self.held += more

    def processes(self) -> list[str]:
        """Return the paths of the programs that run in the root. A replaced program's path ends in `(deleted)`."""
        found = []
        for process in psutil.process_iter():
            with suppress(OSError, psutil.Error):
                inside = _space_of(process.pid) == self._space and process.pid not in self._own
                found += [str(Path(f"/proc/{process.pid}/exe").readlink())] if inside and is_alive(process) else []
        return found


@contextmanager
def clean_root(folder: Path, bus: str = "", **environ: str) -> Iterator[CleanRoot]:
    """Yield a root whose processes end with the context. `bus`: the socket of a session bus outside, for the user."""
    for tool in ("dpkg-query", "unshare", "nsenter"):
        require(tool)
    if os.geteuid() != 0:
        missing("only root makes a root of its own")
    build(folder)
    lent = {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={SESSION_BUS}"} if bus else {}
    argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", MOUNTS, "sh"]
    pipe: Any = subprocess.PIPE
    with subprocess.Popen([*argv, str(folder), bus, SESSION_BUS, FIRST], stdin=pipe, stdout=pipe, text=True) as outer:
        assert outer.stdout is not None
        if outer.stdout.readline() != "ready\n":
            missing("this system lets nobody make namespaces")
        try:
            yield CleanRoot(folder, psutil.Process(outer.pid).children()[0], {**environ, **lent})
        finally:
            assert outer.stdin is not None
            outer.stdin.close()


def build(root: Path) -> None:
    """Copy the essential packages into the root, and create a user and the mount points."""
    for name in MERGED:
        if (link := Path("/") / name).is_symlink():
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(link.readlink())
    lay(root, essential())
    for name in ("proc", "dev", "tmp", f"run/user/{UID}", HOME.lstrip("/"), "var/lib/dpkg/updates", "root"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for name in (f"run/user/{UID}", HOME.lstrip("/")):
        os.chown(root / name, UID, UID)
        (root / name).chmod(0o700)
    (root / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/sh\n{USER}:x:{UID}:{UID}::{HOME}:/bin/sh\n")
    (root / "etc/group").write_text(f"root:x:0:\n{USER}:x:{UID}:\n")


def lay(root: Path, packages: list[str]) -> None:
    """Copy the packages' files and dpkg's records. The essential packages work without being configured."""
    listed = asked("dpkg-query", "-L", *packages).splitlines()
    names = sorted({name.lstrip("/") for name in listed if os.path.lexists(name) and not NOT_COPIED.search(f"{name}/")})
    there = [name for name in names if name and name not in MERGED]
    files = "\0".join(there).encode()
    made = subprocess.run(
        ["tar", "-C", "/", "--no-recursion", "--null", "-T", "-", "-c"], input=files, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-C", root, "--keep-directory-symlink", "-x"], input=made.stdout, check=True)
    records = root / "var/lib/dpkg"
    (records / "info").mkdir(parents=True, exist_ok=True)
    with (records / "status").open("a", encoding="utf-8") as status:
        status.write(asked("dpkg-query", "-s", *packages).strip() + "\n\n")
    for package in packages:
        for path in Path("/var/lib/dpkg/info").glob(f"{package}[.:]*list"):
            shutil.copy(path, records / "info")


def essential() -> list[str]:
    """Return the essential packages (Debian policy 3.8) and all their dependencies."""
    return closure([row[0] for row in rows() if row[1] == "yes"])


def closure(names: list[str]) -> list[str]:
    """Return these packages and all their dependencies, as installed on this machine."""
    table = rows()
    needs = {package: needed for package, _, needed, _ in table}
    provides = {word: package for package, _, _, words in table for word in NAMES.findall(words)}
    found: set[str] = set()
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.add(name)
            wanted += [one for group in needs[name].split(",") for one in _chosen(group, needs, provides)]
    return sorted(found)


def _chosen(group: str, needs: Mapping[str, str], provides: Mapping[str, str]) -> list[str]:
    """Return the first alternative of `a (>= 1) | b` that is installed or provided."""
    choices = NAMES.findall(group)
    return [one if one in needs else provides[one] for one in choices if one in needs or one in provides][:1]


def rows() -> list[list[str]]:
    """Return the name, essential flag, dependencies and provided names of every installed package."""
    return [line.split("\t") for line in asked("dpkg-query", "-W", "-f", QUERY).splitlines()]


def asked(*command: str) -> str:
    """Run a command and return its output."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _space_of(pid: int) -> str:
    """Return the process namespace of a process."""
    return str(Path(f"/proc/{pid}/ns/pid").readlink())
