"""The stdio process that an AI tool starts: its stdin and stdout, joined to the gateway's local socket.

Never here: asyncio, json, threads, anything that costs start-up time (DESIGN, decision 3).
"""

import os
import select
import sys
import time

from trayapp.wire.rundir import run_dir, socket_path

CHUNK = 1 << 20  # bytes a read
PIPE_HOLDS = 1 << 16  # bytes, unless told otherwise
START_PATIENCE_S = 20.0  # how long a gateway that was just started may take to listen
USAGE = "usage: multi-mcp stdio [--expose auto|tools|search] [--servers A,B] [--profile NAME]"
OPTIONS = ("--expose", "--servers", "--profile")


def main(argv: list[str]) -> int:
    """Relay until either side ends. `argv` without the verb; the exit code."""
    options = parse(argv)
    if options is None:
        print(USAGE, file=sys.stderr)
        return 2
    if sys.platform == "win32":
        from trayapp.shim_windows import relay_with_threads

        return relay_with_threads(greeting(options))
    descriptor = open_gateway(greeting(options))
    if descriptor < 0:
        return 4
    try:
        relay(descriptor)
    except KeyboardInterrupt:
        return 130
    return 0


def parse(argv: list[str]) -> dict[str, str] | None:
    """`--name value` and `--name=value` as a dictionary; None when there is anything else."""
    options: dict[str, str] = {}
    words = list(argv)
    while words:
        name, given, value = words.pop(0).partition("=")
        if name not in OPTIONS or not (given or words):
            return None
        options[name[2:]] = value if given else words.pop(0)
    return options


def greeting(options: dict[str, str]) -> bytes:
    """The first line of the connection (wire/endpoint), written without the json module."""
    members = {"kind": "session", "cwd": os.getcwd(), "pid": str(os.getpid()), **options}
    text = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in members.items())
    return f"multi-mcp/1 {{{text}}}\n".encode("utf-8", "replace")


def quoted(text: str) -> str:
    """`text` as a JSON string."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in text) + '"'


def open_gateway(hello: bytes) -> int:
    """File descriptor of a connection to the gateway, which is started when none runs; -1 when that failed."""
    run = run_dir(os.environ)
    sock = connect(run)
    if sock < 0:
        start_gateway()
        deadline = time.monotonic() + START_PATIENCE_S
        pause = 0.01
        while sock < 0 and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)
            sock = connect(run)
    if sock < 0:
        print("multi-mcp: the gateway did not start\nSee what it says with: multi-mcp start", file=sys.stderr)
        return -1
    write_all(sock, hello)
    return sock


def connect(run: str) -> int:
    """A connected, blocking socket's descriptor, or -1."""
    import _socket  # half of what `socket` costs

    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.connect(socket_path(run))
    except OSError:
        sock.close()
        return -1
    return sock.detach()


def start_gateway() -> None:
    """Start a gateway of its own, detached: it outlives this shim and ends by itself when nobody needs it."""
    from trayapp.service.child import start_detached

    start_detached(dict(os.environ), linger=True)


def relay(gateway: int) -> None:
    """Copy stdin to the gateway and the gateway to stdout until one of them ends."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(gateway, select.POLLIN)
    target = {0: gateway, gateway: 1}
    large = False
    while True:
        for source, _ in poll.poll():
            data = os.read(source, CHUNK)
            if not data:
                return
            if len(data) > PIPE_HOLDS and not large:
                large = True
                widen(1)
            write_all(target[source], data)


def widen(descriptor: int) -> None:
    """Let a pipe hold 1 MiB where the system can: a large answer then needs one turn of its reader, not sixteen."""
    if sys.platform != "linux":
        return
    import fcntl

    try:
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, 1 << 20)
    except OSError:
        return  # a file, a socket, or the user's quota for pipes: it works as it is


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; waits where the other side is slow."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])
