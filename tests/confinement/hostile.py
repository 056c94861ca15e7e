"""An MCP server that tries to escape its confinement: `hostile.py FACTS`, with one tool for each way out.

`hostile.py FACTS WAY...` tries these ways and prints their outcomes as JSON.

FACTS is a JSON file (see world.py) with the paths, addresses and process ids that the ways need. A way returns if it
works, and raises an exception if it fails. Only the standard library is imported, so that any user can run this with
any Python.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
WAYS: dict[str, Callable[[Facts], object]] = {}
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
MOST_DESCRIPTORS = 4096  # more than any of our processes has open


def way(act: Callable[[Facts], object]) -> Callable[[Facts], object]:
    """Register a function as a way out, under its name."""
    WAYS[act.__name__] = act
    return act


def system_call(x86: int, arm: int, *arguments: object) -> int:
    """Make a system call, given its numbers on x86-64 and on ARM, and return its result. Raises OSError."""
    result = int(LIBC.syscall(ctypes.c_long(x86 if X86 else arm), *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def secret(path: str) -> None:
    """Assert that a file can be read and contains the mark of a secret."""
    assert "hush" in Path(path).read_text()


def spoil(path: str) -> None:
    """Append a line to a file, which is created if missing."""
    with Path(path).open("a") as file:
        file.write("# hostile\n")


# -- reading ---------------------------------------------------------------------------------------------------------


def reads(name: str) -> None:
    """Register the way that reads the secret file `name`."""

    def read(facts: Facts) -> None:
        secret(facts["secrets"][name])

    read.__name__ = f"read_{name}"
    way(read)


for _name in (
    "ssh_key", "keyring", "browser_profile", "our_token", "servers_yaml", "our_secrets", "shell_history", "cloud_key",
    "package_token", "other_project", "other_server_cache", "foreign_temporary_file", "claude_settings",
):  # fmt: skip
    reads(_name)


@way
def list_home(facts: Facts) -> None:
    assert ".ssh" in os.listdir(facts["home"])


@way
def environment_of_another_server(facts: Facts) -> None:
    assert b"hush" in Path(f"/proc/{facts['victim']}/environ").read_bytes()


@way
def command_line_of_another_server(facts: Facts) -> None:
    assert Path(f"/proc/{facts['victim']}/cmdline").read_bytes()


@way
def list_processes(facts: Facts) -> None:
    assert str(facts["victim"]) in os.listdir("/proc")


# -- writing ---------------------------------------------------------------------------------------------------------


def writes(name: str) -> None:
    """Register the way that writes to the file `name`, which other programs run or rely on."""

    def write(facts: Facts) -> None:
        spoil(facts["targets"][name])

    write.__name__ = f"write_{name}"
    way(write)


for _name in (
    "bashrc", "zshrc", "autostart", "systemd_unit", "cron", "other_project", "servers_yaml", "our_cache", "our_log",
    "npx_cache", "uv_cache", "own_program", "git_config", "ssh_authorized_keys",
):  # fmt: skip
    writes(_name)


@way
def truncate_a_file(facts: Facts) -> None:
    os.truncate(facts["targets"]["truncated"], 0)


@way
def remove_a_file(facts: Facts) -> None:
    os.unlink(facts["targets"]["removed"])


@way
def move_a_file_out(facts: Facts) -> None:
    inside = Path(facts["cwd"], "mine")
    inside.write_text("x")
    inside.rename(facts["targets"]["moved"])


# attribute -> the call that changes it, given the path or the descriptor of a file that the program may not write
ATTRIBUTES: dict[str, Callable[[Any], None]] = {
    "mode": lambda file: os.chmod(file, 0o644),
    "owner": lambda file: os.chown(file, os.geteuid(), os.getegid()),
    "times": lambda file: os.utime(file, (1, 1)),
    "extended_attribute": lambda file: os.setxattr(file, "user.hostile", b"x"),
}


def changes(name: str) -> None:
    """Register two ways to change an attribute: of a secret file by path, and of a readable file by descriptor."""

    def change(facts: Facts) -> None:
        ATTRIBUTES[name](facts["secrets"]["other_project"])

    def change_by_descriptor(facts: Facts) -> None:
        descriptor = os.open(facts["targets"]["toolchain"], os.O_RDONLY)
        try:
            ATTRIBUTES[name](descriptor)
        finally:
            os.close(descriptor)

    change.__name__ = f"change_{name}"
    change_by_descriptor.__name__ = f"change_{name}_by_descriptor"
    way(change)
    way(change_by_descriptor)


for _name in ATTRIBUTES:
    changes(_name)


@way
def shared_memory_file_of_another(facts: Facts) -> None:
    secret(facts["shared_memory_file"])


# -- links -----------------------------------------------------------------------------------------------------------


@way
def symbolic_link_made_before(facts: Facts) -> None:
    secret(facts["link_before"])


@way
def symbolic_link_made_after(facts: Facts) -> None:
    link = Path(facts["cwd"], "after")
    link.unlink(missing_ok=True)
    link.symlink_to(facts["secrets"]["ssh_key"])
    secret(str(link))


@way
def hard_link_made_after(facts: Facts) -> None:
    link = Path(facts["cwd"], "hard")
    link.unlink(missing_ok=True)
    os.link(facts["secrets"]["other_project"], link)
    secret(str(link))
    link.unlink()


# -- sockets ---------------------------------------------------------------------------------------------------------


def _tcp(address: tuple[str, int], family: int = socket.AF_INET) -> None:
    with socket.socket(family) as made:
        made.settimeout(5)
        made.connect(address)
        assert made.recv(4) == b"hush"


@way
def connect_out(facts: Facts) -> None:
    _tcp(("127.0.0.1", facts["tcp"]))


@way
def connect_to_the_gateway(facts: Facts) -> None:
    _tcp(("127.0.0.1", facts["gateway_port"]))


@way
def connect_by_ipv6(facts: Facts) -> None:
    _tcp(("::ffff:127.0.0.1", facts["tcp"]), socket.AF_INET6)


@way
def connect_by_fast_open(facts: Facts) -> None:
    """Connect while sending the first data, without calling connect."""
    with socket.socket() as made:
        made.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", facts["gateway_port"]))
        assert made.recv(4) == b"hush"


@way
def listen_without_a_name(facts: Facts) -> None:
    """Listen without binding first, so that the kernel chooses the port."""
    with socket.socket() as made:
        made.listen()


@way
def listen(facts: Facts) -> None:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()


@way
def send_udp(facts: Facts) -> None:
    _udp(facts, b"out")


@way
def ask_dns(facts: Facts) -> None:
    _udp(facts, b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0\x04hush\x04test\0\0\x01\0\x01")


def _udp(facts: Facts, words: bytes) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as made:
        made.settimeout(5)
        made.sendto(words, ("127.0.0.1", facts["udp"]))
        assert made.recv(4) == b"hush"


def connects(name: str) -> None:
    """Register the way that connects to the Unix socket `name` of the desktop or of our gateway."""

    def connect(facts: Facts) -> None:
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(5)
            made.connect(facts["sockets"][name])
            made.sendall(b"\0AUTH EXTERNAL\r\n")
            assert made.recv(4) == b"hush"

    connect.__name__ = f"connect_{name}"
    way(connect)


for _name in ("session_bus", "keyring_over_dbus", "x11", "wayland", "ssh_agent", "our_socket", "systemd"):
    connects(_name)


@way
def transient_unit_of_systemd(facts: Facts) -> None:
    """Start a child that requests an unconfined program from the user's systemd over the session bus."""
    code = (
        "import socket,sys\n"
        "with socket.socket(socket.AF_UNIX) as bus:\n"
        "    bus.settimeout(5)\n"
        "    bus.connect(sys.argv[1])\n"
        "    bus.sendall(b'\\0AUTH EXTERNAL 30\\r\\nBEGIN\\r\\norg.freedesktop.systemd1.Manager.StartTransientUnit')\n"
        "    assert bus.recv(4) == b'hush'\n"
    )
    command = [sys.executable, "-I", "-S", "-c", code, facts["sockets"]["session_bus"]]
    subprocess.run(command, capture_output=True, check=True)


@way
def have_the_gateway_start_a_server(facts: Facts) -> None:
    """Send a `reload` request to the gateway's own socket, through which an unconfined server could be started."""
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(5)
        made.connect(facts["sockets"]["our_socket"])
        made.sendall(b'{"jsonrpc":"2.0","id":1,"method":"reload"}\n')
        assert made.recv(4) == b"hush"


@way
def abstract_socket(facts: Facts) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(5)
        made.connect("\0" + facts["abstract"])
        assert made.recv(4) == b"hush"


@way
def datagram_pair_connected_again(facts: Facts) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.connect(facts["sockets"]["datagram"])
        ours.send(b"out")


@way
def netlink_to_other_programs(facts: Facts) -> None:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2).close()


# -- processes -------------------------------------------------------------------------------------------------------


@way
def ptrace_attach(facts: Facts) -> None:
    if LIBC.ptrace(16, facts["victim"], 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(facts["victim"], 0x40000000)
    LIBC.ptrace(17, facts["victim"], 0, 0)


@way
def signal_another(facts: Facts) -> None:
    os.kill(facts["victim"], signal.SIGCONT)


@way
def signal_the_gateway(facts: Facts) -> None:
    os.kill(facts["gateway"], 0)


@way
def memory_of_another(facts: Facts) -> None:
    with Path(f"/proc/{facts['victim']}/mem").open("rb") as file:
        file.seek(facts["address"])
        assert file.read(1)


@way
def memory_of_another_by_call(facts: Facts) -> None:
    buffer = ctypes.create_string_buffer(1)
    ours = struct.pack("QQ", ctypes.addressof(buffer), 1)
    theirs = struct.pack("QQ", facts["address"], 1)
    system_call(310, 270, facts["victim"], ours, ctypes.c_ulong(1), theirs, ctypes.c_ulong(1), ctypes.c_ulong(0))


@way
def descriptor_of_another(facts: Facts) -> None:
    handle = os.pidfd_open(facts["victim"])
    system_call(438, 438, handle, 0, 0)


@way
def limits_of_another(facts: Facts) -> None:
    import resource

    resource.prlimit(facts["victim"], resource.RLIMIT_CORE, resource.prlimit(facts["victim"], resource.RLIMIT_CORE))


@way
def priority_of_another(facts: Facts) -> None:
    os.setpriority(os.PRIO_PROCESS, facts["victim"], os.getpriority(os.PRIO_PROCESS, facts["victim"]))


@way
def processors_of_another(facts: Facts) -> None:
    os.sched_setaffinity(facts["victim"], os.sched_getaffinity(facts["victim"]))


@way
def scheduling_of_another(facts: Facts) -> None:
    os.sched_setscheduler(facts["victim"], os.SCHED_BATCH, os.sched_param(0))


@way
def disk_priority_of_another(facts: Facts) -> None:
    system_call(251, 30, 1, facts["victim"], 2 << 13 | 7)  # one process: best-effort class, lowest priority


@way
def child_of_the_gateway(facts: Facts) -> None:
    """Create a sibling process (CLONE_PARENT), whose exit is reported to the gateway alone."""
    made = system_call(56, 220, 0x8000 | signal.SIGCHLD, None, None, None, None)
    if made == 0:
        os._exit(0)


@way
def io_uring(facts: Facts) -> None:
    os.close(system_call(425, 425, 4, ctypes.create_string_buffer(120)))


@way
def user_namespace_by_clone(facts: Facts) -> None:
    pid = system_call(56, 220, ctypes.c_ulong(0x10000000 | signal.SIGCHLD), None, None, None, None)
    if pid == 0:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@way
def setuid_program(facts: Facts) -> None:
    shown = subprocess.run([facts["setuid_program"], "-u"], capture_output=True, text=True, check=True)
    assert int(shown.stdout) == facts["setuid_uid"], shown.stdout


@way
def system_v_memory(facts: Facts) -> None:
    LIBC.shmget.restype = ctypes.c_int
    found = LIBC.shmget(facts["shm_key"], 0, 0)
    if found < 0:
        raise OSError(ctypes.get_errno(), "shmget")


@way
def kernel_key(facts: Facts) -> None:
    system_call(248, 217, b"user", b"multi-mcp-test", b"x", ctypes.c_size_t(1), ctypes.c_int(-1))  # process keyring


@way
def message_queue(facts: Facts) -> None:
    name = f"multi-mcp-{os.getpid()}".encode()
    os.close(system_call(240, 180, name, os.O_CREAT | os.O_RDWR, 0o600, None))
    system_call(241, 181, name)


# -- through descriptors, children and memory ------------------------------------------------------------------------


@way
def inherited_descriptor(facts: Facts) -> None:
    for number in range(3, MOST_DESCRIPTORS):
        try:
            if b"hush" in os.pread(number, 100, 0):
                return
        except OSError:
            continue
    raise PermissionError("no descriptor leads out")


@way
def folder_descriptor_inherited(facts: Facts) -> None:
    for number in range(3, MOST_DESCRIPTORS):
        try:
            with open(os.open("id_rsa", os.O_RDONLY, dir_fd=number)) as file:
                assert "hush" in file.read()
                return
        except OSError:
            continue
    raise PermissionError("no descriptor leads out")


@way
def by_a_child(facts: Facts) -> None:
    shown = subprocess.run(["/bin/cat", facts["secrets"]["ssh_key"]], capture_output=True, check=True)
    assert b"hush" in shown.stdout


@way
def by_an_orphan(facts: Facts) -> None:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            try:
                secret(facts["secrets"]["keyring"])
                os.write(writer, b"out")
            finally:
                os._exit(0)
        os._exit(0)
    os.close(writer)
    os.wait()
    assert os.read(reader, 3) == b"out"


@way
def executable_memory_file(facts: Facts) -> None:
    """Run a program that exists only in memory, outside every folder."""
    made = os.memfd_create("x")
    os.write(made, Path("/bin/cat").read_bytes())
    with mmap.mmap(made, 0, prot=mmap.PROT_READ):
        run = [f"/proc/self/fd/{made}", facts["secrets"]["ssh_key"]]
        shown = subprocess.run(run, capture_output=True, check=True, pass_fds=(made,))
    assert b"hush" in shown.stdout


# -- the last way ----------------------------------------------------------------------------------------------------


@way
def user_namespace(facts: Facts) -> None:
    """Enter a user namespace. This way comes last, because it changes what this process can do afterwards."""
    if LIBC.unshare(0x10000000):
        raise OSError(ctypes.get_errno(), "unshare")


# -- the server ------------------------------------------------------------------------------------------------------


def attempt(name: str, facts: Facts) -> str:
    """Try one way. Return "out" if it works, or the error if it fails."""
    try:
        WAYS[name](facts)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "out"


def serve(facts: Facts) -> None:
    """Serve MCP over stdin and stdout, as far as tool calls need it."""
    for line in sys.stdin:
        frame = json.loads(line)
        if "id" not in frame:
            continue
        params = frame.get("params") or {}
        if frame["method"] == "initialize":
            result: dict[str, Any] = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1"},
            }
        elif frame["method"] == "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in WAYS]}
        else:
            result = {"content": [{"type": "text", "text": attempt(params["name"], facts)}]}
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}), flush=True)


if __name__ == "__main__":
    told = json.loads(Path(sys.argv[1]).read_text())
    if len(sys.argv) > 2:
        print(json.dumps({name: attempt(name, told) for name in sys.argv[2:]}))
    else:
        serve(told)
