"""Which processes belong to a server, and ending them: at a stop, at a start after a crash, and as a program.

As a program (`python -I -S guardian.py REGISTRY`) it outlives a killed gateway by seconds and ends what that left.
Standard library's smallest parts only, nothing of ours: the program must stay small. Never here: Windows (job objects).

A process belongs to a server by its session, by an environment variable, and on Linux by a tag: the soft value of a
resource limit without any effect (RLIMIT_LOCKS, man 2 getrlimit), which all descendants inherit, whatever they do to
their session, parent and environment. Somebody who has become a subreaper's child, in contrast, does not show whose it
was. Elsewhere nothing of that kind is left: macOS shows sessions, groups and parents alone.
"""

from __future__ import annotations

import os
import signal
import sys
import time

GRACE_S = 2.0  # as in the stop ladder: after stdin closed, and again after SIGTERM
KILL_S = 0.5
KILL_ROUNDS = 3  # a wrapper may start another process between the look and the kill
POLL_S = 0.1
ORDERLY = b"end\n"  # what a gateway writes that has stopped its servers itself
MARK = "MULTI_MCP_BACKEND"  # environment variable of every server process; descendants inherit it
TAG_LIMIT = 10  # RLIMIT_LOCKS, which the standard library does not name
TAG_LINE = b"Max file locks"  # the same in /proc/PID/limits
TAG_NUMBER_BITS = 20  # of a tag: which server of its gateway; before them 41 bits of the gateway
ENDED = " ended"  # behind the mark in the line that takes a server out again; no mark has a blank
REGISTRY = ("backends-", ".tsv")  # name of a gateway's registry; between the two stands the gateway's own mark

Identity = tuple[int, str]  # process id and start time: a reused id has another start time
Kin = tuple[Identity, str]  # a server's first process, and the mark of all that descends from it; "...-" is a prefix
NOBODY: Identity = (0, "")


def start_time(pid: int) -> str:
    """When the process started, in the system's own terms; "" when there is none (a zombie counts as none)."""
    if sys.platform == "linux":
        fields = _stat(pid)
        return "" if fields is None or fields[0] in ("Z", "X") else fields[19] + BOOT
    import subprocess

    shown = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = shown.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else started.strip()


def _boot() -> str:
    """Linux counts start times from the boot: what an earlier boot wrote down must not fit anybody of this one."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            return "." + file.read(8)
    except OSError:
        return ""


BOOT = _boot()


def alive(identity: Identity) -> bool:
    """Whether that very process still runs."""
    pid, started = identity
    return bool(started) and start_time(pid) == started


def tag_of(mark: str) -> int:
    """The tag of a mark; of a prefix ("...-") without the number of a server. FNV-1a of the gateway's own part."""
    gateway, _, number = mark.rpartition("-")
    tag = 0xCBF29CE484222325
    for byte in gateway.encode():
        tag = (tag ^ byte) * 0x100000001B3 % (1 << 64)
    return ((tag >> 23) << TAG_NUMBER_BITS) + (int(number) if number.isdecimal() else 0) % (1 << TAG_NUMBER_BITS)


def family(kin: list[Kin]) -> list[Identity]:
    """Every living process of the sessions that these leaders lead, and every one that carries one of these marks, or
    the tag of one.

    Once a leader is gone its number may be somebody else's: then only mark and tag count.
    """
    leaders = [leader[0] for leader, _ in kin if alive(leader)]
    if sys.platform != "linux":
        return _family_by_ps(leaders) if leaders else []
    sessions = {str(leader) for leader in leaders}
    marks = [f"{MARK}={mark}".encode() for _, mark in kin if mark]
    tags = {tag_of(mark) for _, mark in kin if "-" in mark}
    if not leaders and not marks:
        return []
    since = min((_ticks(started) for (_, started), mark in kin if mark), default=0)
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


def _ticks(started: str) -> int:
    """The system's count in a start time on Linux, 0 when it is not known: who began earlier descends from nobody that
    began then, and reading an environment is most of the work."""
    count = started.partition(".")[0]
    return int(count) if count.isascii() and count.isdecimal() else 0


def send(identities: list[Identity], number: int) -> None:
    """Signal each that is still the same process."""
    for pid, started in identities:
        if start_time(pid) == started:
            try:
                os.kill(pid, number)
            except OSError:
                continue  # gone, or not ours


def reap(registry: str) -> None:
    """End all that a gateway left, and remove its registry. Takes up to 6 s.

    The mark in the registry's name finds (on Linux) even what could not be written down.
    """
    mark = os.path.basename(registry).removeprefix(REGISTRY[0]).removesuffix(REGISTRY[1])  # noqa: PTH119
    all_of_it = [(NOBODY, mark + "-")] if "-" in mark else []
    end([*read_registry(registry), *all_of_it], GRACE_S)
    try:
        os.unlink(registry)  # noqa: PTH108
    except OSError:
        return


def end(kin: list[Kin], patience_s: float) -> None:
    """Wait `patience_s` for each to end by itself, then SIGTERM to all that is left of them, 2 s, SIGKILL."""
    members = family(kin) if patience_s else []
    _wait_until_none_alive(members, patience_s)
    for number, seconds in ((signal.SIGTERM, GRACE_S), *[(signal.SIGKILL, KILL_S)] * KILL_ROUNDS):
        members = [member for member in {*members, *family(kin)} if alive(member)]
        if not members:
            return
        send(members, number)
        _wait_until_none_alive(members, seconds)


def line_of(kin: Kin, ended: bool = False) -> str:
    """A server in the registry: a line when it was started, and one when it has ended.

    The line break before it keeps a line that was cut off, by a full disk, from spoiling the next; such a line itself
    fits no process, or one of the same gateway.
    """
    (pid, started), mark = kin
    return f"\n{pid}\t{started}\t{mark}{ENDED if ended else ''}\n"


def read_registry(path: str) -> list[Kin]:
    """The ((process id, start time), mark) of each server that has not ended; what cannot be read is left out."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            rows = [line.rstrip("\n").split("\t") for line in file]
    except OSError:
        return []
    named = [((int(row[0]), row[1]), row[2]) for row in rows if len(row) == 3 and _is_pid(row[0])]
    ended = {(identity, mark.removesuffix(ENDED)) for identity, mark in named if mark.endswith(ENDED)}
    return [one for one in named if one not in ended and not one[1].endswith(ENDED)]


def _is_pid(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _wait_until_none_alive(identities: list[Identity], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(alive(identity) for identity in identities):
        time.sleep(POLL_S)


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on: state, ppid, pgrp, session, ...; the start time is [19]."""
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
        return False  # another user's, or gone
    return any(
        variable == mark or (mark.endswith(b"-") and variable.startswith(mark))
        for variable in variables
        for mark in marks
    )


def _family_by_ps(leaders: list[int]) -> list[Identity]:
    """Where there is no /proc: the members of the leaders' sessions or groups, and all of their descendants."""
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
    """Wait until the gateway at the other end of stdin is gone; unless it went in order, end what it left."""
    if os.fork():
        os._exit(0)  # nobody's child: the gateway need not wait for us, nor its children be counted with us
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
