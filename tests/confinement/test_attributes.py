"""A confined program changes the attributes of its files, and its scheduling, as if it were not confined."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.backends.world import real_connection
from tests.confinement.test_hostile import ALONE, needs
from trayapp.backends.confinements import Confinements
from trayapp.model.config import ServerConfig
from trayapp.model.errors import ServerError

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp")]

OWN = """
import ctypes, json, os, platform, shutil, subprocess, sys, threading
os.chdir(sys.argv[1])
found, folder, other = {}, os.open(".", os.O_RDONLY), os.path.join(os.path.dirname(sys.argv[1]), sys.argv[2])
open("a", "w").close(); os.symlink("a", "link"); os.symlink(other, "out")
a = os.open("a", os.O_RDWR)
def note(name, act, look):
    try: act(); found[name] = look()
    except OSError as error: found[name] = error.strerror
mode = lambda: oct(os.stat("a").st_mode & 0o777)
mtime = lambda: os.stat("a").st_mtime_ns
note("path", lambda: os.chmod(os.path.abspath("a"), 0o711), mode)
note("relative", lambda: os.chmod("a", 0o722), mode)
note("folder", lambda: os.chmod("a", 0o733, dir_fd=folder), mode)
note("descriptor", lambda: os.fchmod(a, 0o744), mode)
note("link", lambda: os.chmod("link", 0o755), mode)
note("memory", lambda: os.fchmod(os.memfd_create("m"), 0o700), lambda: "changed")
note("pipe", lambda: os.fchmod(os.pipe()[0], 0o600), lambda: "changed")
note("nothing", lambda: os.chmod("nothing", 0o700), mode)
note("times", lambda: os.utime("a", ns=(1, 1_000_000_007)), mtime)
note("descriptor's times", lambda: os.utime(a, (1, 2)), mtime)
note("link's own times", lambda: os.utime("link", (1, 3), follow_symlinks=False), lambda: os.lstat("link").st_mtime)
note("times behind the link", lambda: None, mtime)
system = ctypes.CDLL(None, use_errno=True)
system.mmap.restype = ctypes.c_void_p
page = system.mmap(None, 8192, 3, 0x22, -1, 0)
system.munmap(ctypes.c_void_p(page + 4096), 4096)
def times_at(address, *call):
    result, error = system.syscall(*call, ctypes.c_void_p(address), 0), ctypes.get_errno()
    if result < 0: raise OSError(error, os.strerror(error))
x86 = platform.machine() == "x86_64"
for call in ((280 if x86 else 88, -100, b"a"), *([(235, b"a"), (132, b"a")] if x86 else [])):
    note(f"{len(found)}: times cut off", lambda: times_at(page + 4088, *call), mtime)
    note(f"{len(found)}: times nowhere", lambda: times_at(1 << 63, *call), mtime)
note("times after that", lambda: os.utime("a", (1, 2)), mtime)
note("owner", lambda: os.chown("a", os.geteuid(), -1), lambda: "kept")
note("link's owner", lambda: os.lchown("link", -1, os.getegid()), lambda: "kept")
note("copy", lambda: shutil.copy2("a", "b"), lambda: os.stat("b").st_mtime_ns == os.stat("a").st_mtime_ns)
note("child", lambda: subprocess.run(["chmod", "700", "a"], check=True), mode)
note("out by a link", lambda: os.chmod("out", 0o600), mode)
note("out by its path", lambda: os.utime(other), mode)
note("by the gateway's /proc", lambda: os.chmod("/proc/self/cwd", 0o777), lambda: "changed")
threads, end = [], threading.Event()
def run():
    threads.append(threading.get_native_id()); end.wait()
threading.Thread(target=run).start()
while not threads: pass
for who, number in (("itself", 0), ("its process", os.getpid()), ("its thread", threads[0])):
    note(who, lambda: os.sched_setaffinity(number, os.sched_getaffinity(number)), lambda: "changed")
note("nice", lambda: os.setpriority(os.PRIO_PROCESS, threads[0], 1), lambda: "changed")
note("all of the user", lambda: os.setpriority(os.PRIO_USER, 0, 1), lambda: "changed")
end.set()
open("found.json", "w").write(json.dumps(found))
"""


@pytest.mark.requirement("confine-life", "confine-refused")
async def test_a_confined_program_changes_the_attributes_of_its_own_files_alone(tmp_path: Path) -> None:
    needs(ALONE)
    folder, other = tmp_path / "mine", tmp_path / "other"
    folder.mkdir()
    other.write_text("x")
    os.utime(other, (5, 5))
    other.chmod(0o640)
    server = ServerConfig(
        "s", command=sys.executable, args=("-c", OWN, str(folder), other.name), cwd=str(folder), confine=ALONE
    )
    kept = Confinements()
    async with real_connection(server, confinements=kept) as (connection, _):
        with pytest.raises(ServerError):
            await connection.request("tools/call", {"name": "x", "arguments": {}})
    found = json.loads((folder / "found.json").read_text())
    unread = [found.pop(name) for name in list(found) if ": times" in name]
    assert len(unread) in (2, 6)
    assert set(unread) == {"Bad address"}
    assert found == {
        "path": "0o711", "relative": "0o722", "folder": "0o733", "descriptor": "0o744", "link": "0o755",
        "memory": "changed", "pipe": "changed", "nothing": "No such file or directory",
        "times": 1_000_000_007, "descriptor's times": 2_000_000_000, "link's own times": 3.0,
        "times behind the link": 2_000_000_000, "times after that": 2_000_000_000,
        "owner": "kept", "link's owner": "kept", "copy": True,
        "child": "0o700", "out by a link": "Operation not permitted", "out by its path": "Operation not permitted",
        "by the gateway's /proc": "Operation not permitted",
        "itself": "changed", "its process": "changed", "its thread": "changed", "nice": "changed",
        "all of the user": "Operation not permitted",
    }  # fmt: skip
    assert (other.stat().st_mode & 0o777, other.stat().st_mtime) == (0o640, 5)
    status = kept.status("s")
    assert status is not None
    assert ("write", str(other)) in {(one.access, one.what) for one in status.refused}
