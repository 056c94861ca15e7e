"""Find the processes that belong to a server and end them: when the server stops, and after the gateway crashed.

As a program (`python -I -S guardian.py REGISTRY`) it outlives a killed gateway by seconds and ends its servers.
It imports only the smallest parts of the standard library and nothing of ours: the program must stay small.
Windows uses job objects instead (windows_jobs).

A server's processes are recognized by their session, by an environment variable, and on Linux by a tag. The tag is the
soft value of a resource limit that has no effect (RLIMIT_LOCKS, man 2 getrlimit). All descendants inherit it, whatever
they do to their session, parent and environment. A subreaper would not do: its adopted children do not show their
origin. Other systems have no such tag: macOS shows only sessions, groups and parents.
"""

from __future__ import annotations

import os
import signal
import sys
import time

GRACE_S = 2.0  # time for a server to end after its stdin was closed, and again after SIGTERM
KILL_S = 0.5
KILL_ROUNDS = 3  # a wrapper may start another process between the listing and the kill
POLL_S = 0.1
ORDERLY = b"end\n"  # sent to the guardian by a gateway that has stopped its servers itself
MARK = "MULTI_MCP_BACKEND"  # environment variable of every server process; descendants inherit it
TAG_LIMIT = 10  # RLIMIT_LOCKS, which the standard library does not name
TAG_LINE = b"Max file locks"  # the name of that limit in /proc/PID/limits
TAG_NUMBER_BITS = 20  # low bits of a tag: the server's number in its gateway; above them, 41 bits for the gateway
ENDED = " ended"  # follows the mark in the line that removes a server; a mark contains no space
REGISTRY = ("backends-", ".tsv")  # file name of a gateway's registry, with the gateway's mark in between

Identity = tuple[int, str]  # process id and start time: a reused id has another start time
Kin = tuple[Identity, str]  # a server's first process and the mark of its descendants; a mark ending in "-" is a prefix
NOBODY: Identity = (0, "")


def start_time(pid: int) -> str:
    """Return the process's start time in the system's format, or "" if there is no such process or it is a zombie."""
    if sys.platform == "linux":
        fields = _stat(pid)
        return "" if fields is None or fields[0] in ("Z", "X") else fields[19] + BOOT
    import subprocess

    shown = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = shown.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else started.strip()


# A suffix for this boot: Linux counts start times from the boot, so records of earlier boots must not match.
try:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot_id:  # noqa: PTH123
        BOOT = "." + boot_id.read(8)
except OSError:
    BOOT = ""


def alive(identity: Identity) -> bool:
    """Return True if that same process still runs."""
    pid, started = identity
    return bool(started) and start_time(pid) == started


def tag_of(mark: str) -> int:
    """Return a mark's tag: a hash (FNV-1a) of the gateway's part, followed by the server's number (0 for a prefix)."""
    gateway, _, number = mark.rpartition("-")
    tag = 0xCBF29CE484222325
    for byte in gateway.encode():
        tag = (tag ^ byte) * 0x100000001B3 % (1 << 64)
    return ((tag >> 23) << TAG_NUMBER_BITS) + (int(number) if number.isdecimal() else 0) % (1 << TAG_NUMBER_BITS)


def family(kin: list[Kin]) -> list[Identity]:
    """Return every living process in the session of a server's first process (leader), or with a mark or tag of `kin`.

    Once a leader is gone, its process id may be reused: then only mark and tag count. On systems other than Linux, only
    living leaders, their sessions, groups and descendants are found.
    """
    leaders = [leader[0] for leader, _ in kin if alive(leader)]
    if sys.platform != "linux":
        return _family_by_ps(leaders) if leaders else []
    sessions = {str(leader) for leader in leaders}
    marks = [f"{MARK}={mark}".encode() for _, mark in kin if mark]
    tags = {tag_of(mark) for _, mark in kin if "-" in mark}
    if not leaders and not marks:
        return []
    # A process that started before a server cannot descend from it. Skipping it saves reading its environment, which is
    # most of the work.
    ticks = (started.partition(".")[0] for (_, started), mark in kin if mark)
    since = min((int(count) if count.isascii() and count.isdecimal() else 0 for count in ticks), default=0)
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 (pathlib would be most of this program)
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        fields = _stat(int(name))
        if fields is None or fields[0] in ("Z", "X"):
            continue
        if fields[3] in sessions or (marks and int(fields[19]) >= since and _carries(int(name), marks, tags)):
            found.append((int(name), fields[19] + BOOT))
    return found


def send(identities: list[Identity], number: int) -> None:
    """Send a signal to each of these processes whose id has not been reused."""
    for pid, started in identities:
        if start_time(pid) == started:
            try:
                os.kill(pid, number)
            except OSError:
                continue  # gone, or not ours


def signal_group(leader: int, number: int) -> bool:
    """Signal a process's group (Windows: the process). Return False if there is none. Signal 0 only checks (POSIX)."""
    try:
        if sys.platform == "win32":
            os.kill(leader, number)
        else:
            os.killpg(leader, number)
    except OSError:
        return False  # gone, or not ours
    return True


def reap(registry: str) -> None:
    """End all processes that a gateway left behind, and remove its registry. Takes up to 6 s.

    On Linux, the mark in the registry's name also finds processes that could not be recorded.
    """
    mark = os.path.basename(registry).removeprefix(REGISTRY[0]).removesuffix(REGISTRY[1])  # noqa: PTH119
    all_of_it = [(NOBODY, mark + "-")] if "-" in mark else []
    end([*read_registry(registry), *all_of_it], GRACE_S)
    try:
        os.unlink(registry)  # noqa: PTH108
    except OSError:
        return


def end(kin: list[Kin], patience_s: float) -> None:
    """Wait up to `patience_s` for the processes to end. Send the others SIGTERM and, after GRACE_S, SIGKILL."""
    members = family(kin) if patience_s else []
    _wait_until_none_alive(members, patience_s)
    for number, seconds in ((signal.SIGTERM, GRACE_S), *[(signal.SIGKILL, KILL_S)] * KILL_ROUNDS):
        members = [member for member in {*members, *family(kin)} if alive(member)]
        if not members:
            return
        send(members, number)
        _wait_until_none_alive(members, seconds)


def line_of(kin: Kin, ended: bool = False) -> str:
    """Return the registry's line about the start of a server or, with `ended`, about its end.

    The leading line break separates the line from a previous one that a full disk may have cut off. A cut-off line
    matches no process, or a process of the same gateway.
    """
    (pid, started), mark = kin
    return f"\n{pid}\t{started}\t{mark}{ENDED if ended else ''}\n"


def read_registry(path: str) -> list[Kin]:
    """Return ((process id, start time), mark) of each server that has not ended. Unreadable lines are skipped."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            rows = [line.rstrip("\n").split("\t") for line in file]
    except OSError:
        return []
    sound = [row for row in rows if len(row) == 3 and row[0].isascii() and row[0].isdecimal() and len(row[0]) < 10]
    named = [((int(pid), started), mark) for pid, started, mark in sound]
    ended = {(identity, mark.removesuffix(ENDED)) for identity, mark in named if mark.endswith(ENDED)}
    return [one for one in named if one not in ended and not one[1].endswith(ENDED)]


def _wait_until_none_alive(identities: list[Identity], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(alive(identity) for identity in identities):
        time.sleep(POLL_S)


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third on, or None: [0] state, [3] session, [19] start time, ..."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def _carries(pid: int, marks: list[bytes], tags: set[int]) -> bool:
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:  # noqa: PTH123
            tag = file.read().partition(TAG_LINE)[2].split(None, 1)[0]
        if tag.isdigit() and not tags.isdisjoint((int(tag), int(tag) >> TAG_NUMBER_BITS << TAG_NUMBER_BITS)):
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            variables = file.read().split(b"\0")
    except (OSError, IndexError):
        return False  # gone, or owned by another user
    return any(
        variable == mark or (mark.endswith(b"-") and variable.startswith(mark))
        for variable in variables
        for mark in marks
    )


def _family_by_ps(leaders: list[int]) -> list[Identity]:
    """Return the members of the leaders' sessions or groups and all their descendants. For systems without /proc."""
    import subprocess

    command = ["ps", "-axo", "pid=,ppid=,pgid=,sess="]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line.split() for line in listing.stdout.splitlines()]
    wanted = {str(leader) for leader in leaders}
    members = {int(row[0]) for row in rows if len(row) == 4 and wanted.intersection((row[0], row[2], row[3]))}
    grew = True
    while grew:
        children = {int(row[0]) for row in rows if len(row) == 4 and int(row[1]) in members} - members
        members |= children
        grew = bool(children)
    members.discard(os.getpid())
    return [(pid, started) for pid in sorted(members) if (started := start_time(pid))]


def main(registry: str) -> None:
    """Wait until the gateway at the other end of stdin is gone. Unless it stopped cleanly, end its servers."""
    if os.fork():
        os._exit(0)  # detach: the gateway must not wait for this process or count it among its children
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    last = b""
    while data := os.read(0, 4096):
        last = (last + data)[-len(ORDERLY) :]
    if last != ORDERLY:
        reap(registry)


if __name__ == "__main__":
    main(sys.argv[1])
