"""The accesses that a confined server was refused, and the line of servers.yaml that would allow each.

The kernel does not report refusals to an ordinary user. Other sources show them: a program's own error messages, its
requests for sockets, and the hosts that it requested from the proxy. A trial (`multi-mcp confine`) records every file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from trayapp.config.yaml.rendering import flow
from trayapp.confinement.policy import Policy, is_inside
from trayapp.confinement.seccomp_requests import Trace
from trayapp.model.config import Confine
from trayapp.model.status import ConfinementStatus, RefusedAccess

MOST = 50  # refusals kept per server; a program that searches a whole disk causes thousands
MOST_LINES = 1000  # different messages that are read per server
PATHS = 8  # paths that are examined per message
LINE_BYTES = 4096
ANSWER_BYTES = 8192  # longer answers are not searched: errors are short
Access = Literal["read", "write", "network", "sockets"]
NETWORK = "the network"
SOCKETS = "Unix sockets"
OWN_PROCESS = "/proc/self"
TERMINALS = "/dev/ptmx"  # only namespaces give a program terminals of its own
_REFUSED = re.compile(
    rb"EACCES|EPERM|EXDEV|EROFS|permission denied|operation not permitted|cross-device link|read-only file system",
    re.IGNORECASE,
)
# A path in a message: in quotes, or bare. Relative paths begin with a dot. Bare ones may contain spaces.
_BARE = r"""[^\s'"`:,;()\[\]]+"""
_PATH = re.compile(
    rf"""['"`]((?:/|\.\.?/)[^'"`\n]+)['"`]|(?<![\w.:/~-])((?:/|\.\.?/){_BARE})((?:[ ](?![/.]){_BARE})*)"""
)
_PROCESS = re.compile(r"/proc/(?:\d+|self|thread-self)(?:/|$)")  # not recorded: the number differs at each start
# Node's error if its process.memoryUsage() cannot read /proc/self: only namespaces give a program its own /proc.
_MEMORY_USAGE = "uv_resident_set_memory"
_WRITES = re.compile(
    r"\b(?:mkdir|rmdir|unlink|rename|symlink|link|create|creating|write|writing|copyfile|truncate)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One access that a server was refused. `what`: a path, a host, NETWORK or SOCKETS."""

    access: Access
    what: str

    def allowed_in(self, confine: Confine, home: str) -> Confine:
        """Return `confine`, extended to allow this access."""
        if self.access == "sockets":
            return confine._replace(sockets=True)
        if self.access == "network":
            hosts = confine.network if isinstance(confine.network, tuple) else ()
            return confine._replace(network=True if self.what == NETWORK else (*hosts, self.what))
        path = self.what
        if self.access == "write":  # usually the folder: programs create and replace files there
            folder = path if os.path.isdir(path) else os.path.dirname(path)
            path = path if folder in (home, "/", "/tmp", "/dev", "/run") else folder
        short = shorten(path, home)
        said: tuple[str, ...] = getattr(confine, self.access)
        if short in said or (self.access == "read" and short in confine.write):
            return confine
        return confine._replace(**{self.access: (*said, short)})  # type: ignore[arg-type]


def shorten(path: str, home: str) -> str:
    """Return a path with `~` for the home folder."""
    return "~" + path[len(home) :] if path == home or path.startswith(home + "/") else path


@dataclass
class RefusalRecord:
    """One server's confinement and refusals.

    `way`: the mechanism; "" until the server runs, "open" if it runs unconfined (`confine: try`). `heard`: called with
    each new refusal.
    """

    server: str
    confine: Confine
    home: str
    cwd: str = "/"  # the server's working folder, to resolve relative paths in its messages
    way: str = ""
    why_open: str = ""
    policy: Policy | None = None
    refusals: dict[Refusal, None] = field(default_factory=dict)
    heard: Callable[[Refusal], None] = lambda refusal: None
    trace: Trace | None = None  # set only in a trial

    _rest: bytes = b""
    _read_lines: set[str] = field(default_factory=set)  # to skip messages that a program repeats

    def add(self, refusal: Refusal) -> None:
        """Record a new refusal, up to MOST, and pass it to `heard`. A refused read after a refused write is not new."""
        if refusal.what == TERMINALS:
            refusal = Refusal("sockets", TERMINALS)
        if refusal.access == "read" and Refusal("write", refusal.what) in self.refusals:
            return
        if refusal not in self.refusals and len(self.refusals) < MOST:
            self.refusals[refusal] = None
            self.heard(refusal)

    def read(self, data: bytes) -> None:
        """Search new stderr output of the server for refusals, and record them."""
        if not self._rest and not _REFUSED.search(data) and data.endswith(b"\n"):
            return
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-LINE_BYTES:]
        self._note_lines(lines)

    def read_answer(self, data: bytes) -> None:
        """Search a short error answer for refusals, since many tools report them as errors and print nothing."""
        if len(data) <= ANSWER_BYTES and (b'"isError"' in data or b'"error"' in data) and _REFUSED.search(data):
            self._note_lines(data.replace(rb"\n", b"\n").replace(rb"\"", b"'").split(b"\n"))

    def _note_lines(self, lines: list[bytes]) -> None:
        for line in lines:
            if _REFUSED.search(line):
                self._note(line[:LINE_BYTES].decode("utf-8", "replace"))

    def _note(self, line: str) -> None:
        """Record as refused the paths in a message that are not granted.

        If all of them are granted, record a write to the last one if it is read-only.
        """
        policy = self.policy
        if policy is None or line in self._read_lines:
            return
        if len(self.refusals) >= MOST or len(self._read_lines) >= MOST_LINES:  # reading more would block the event loop
            return
        self._read_lines.add(line)
        if _MEMORY_USAGE in line:
            self.add(Refusal("sockets", OWN_PROCESS))
        found = (match.groups("") for match in islice(_PATH.finditer(line), PATHS))
        named = [(os.path.join(self.cwd, quoted or bare), more) for quoted, bare, more in found]
        named = [(path, more) for path, more in named if "\0" not in path and not _PROCESS.match(path)]
        paths = [os.path.realpath(_existing(path, more)) for path, more in named]
        hidden = [path for path in paths if not policy.allows(path, write=False)]
        writes = _WRITES.search(line) is not None
        for path in hidden:
            wants_write = writes or not os.path.lexists(path)
            self.add(Refusal("write" if wants_write else "read", path))
        if paths and not hidden and not policy.allows(paths[-1], write=True):
            self.add(Refusal("write", paths[-1]))

    def traced(self) -> tuple[list[str], list[str]]:
        """Return the granted paths that the program of a trial read from, and the files that it wrote. Record refusals.

        A missing file does not count as refused, since programs look in many places. Neither does the terminal, which
        shells try to open.
        """
        read: dict[str, None] = {}
        written: list[str] = []
        policy = self.policy
        for path, writes in self.trace.files.items() if self.trace and policy else ():
            assert policy is not None
            if policy.allows(path, write=writes):
                if writes and os.path.lexists(path):
                    written.append(path)
                elif os.path.lexists(path):
                    read[next((one for one in policy.roots if is_inside(path, one)), path)] = None
            elif path != "/dev/tty":
                place = os.path.dirname(path) if writes and not os.path.exists(path) else path
                if os.access(place, os.W_OK if writes else os.R_OK):  # unconfined, the access would succeed
                    refusal = Refusal("write" if writes else "read", path)
                    self.refusals.pop(refusal, None)  # if already found in stderr: keep the order of the accesses
                    self.add(refusal)
        return sorted(read), sorted(written)

    def line(self, refusal: Refusal) -> str:
        """Return a refusal in words, with the line of servers.yaml that would allow the access."""
        what = shorten(refusal.what, self.home)
        verb = {"read": "reading ", "write": "writing ", "network": "reaching ", "sockets": "using "}[refusal.access]
        allow = written(refusal.allowed_in(self.confine, self.home))
        doubt = " (protected: do not allow it only because the server asks)" if self.is_secret(refusal) else ""
        return f"Refused {verb}{what}{doubt}. To allow it: {allow}"

    def status(self) -> ConfinementStatus:
        """Return the status for the snapshot."""
        refused: list[RefusedAccess] = []
        for one in self.refusals:
            allow = written(one.allowed_in(self.confine, self.home))
            refused.append(RefusedAccess(one.access, shorten(one.what, self.home), allow, self.is_secret(one)))
        return ConfinementStatus(self.way, self.why_open, tuple(refused))

    def remedy(self) -> Confine:
        """Return the `confine` that would also allow the last refused access, which probably ended the program.

        Secrets are never allowed. If there is nothing else to allow, return the present `confine`.
        """
        allowable = (one for one in reversed(self.refusals) if not self.is_secret(one))
        wanted = (one.allowed_in(self.confine, self.home) for one in allowable)
        return next((confine for confine in wanted if confine != self.confine), self.confine)

    def is_secret(self, refusal: Refusal) -> bool:
        """Return True if the access is to a secret. A server may report the refusal only to get the access allowed."""
        return refusal.access in ("read", "write") and self.policy is not None and self.policy.is_secret(refusal.what)


def _existing(path: str, more: str) -> str:
    """Return `path` with the words of `more` that belong to it, since a path may contain spaces.

    That is the longest path that exists, or else the shortest one whose folder exists.
    """
    parts = [path + more]
    while len(parts[-1]) > len(path):
        parts.append(parts[-1].rpartition(" ")[0])
    whole = [one for one in reversed(parts) if "/" not in parts[0][len(one) :] and os.path.isdir(os.path.dirname(one))]
    return next(filter(os.path.lexists, parts), None) or next(iter(whole), path)


def written(confine: Confine) -> str:
    """Return the line of servers.yaml for `confine`."""
    return f"confine: {flow(confine.value())}"
