"""An MCP server over stdio that logs each call that it executes: `python -I -S servers.py [--switch [value]]`.

--log FILE      append the argument `n` of each executed call, one per line
--name NAME     the server's name, which its answers contain
--stays         keep running after the end of stdin
--deaf          like --stays, and ignore SIGTERM
--family FILE   start a process in a new session and another in a new process group; write their ids to FILE
--runaway FILE  start an orphan in a new session and with an empty environment; write its id to FILE
--hang FILE     at the start, neither answer nor notice the end of stdin while FILE exists
--mood FILE     at the start and at each call, do what FILE names: `dies_at_start` or a function in MOODS

The processes of --family and --runaway ignore SIGTERM.

Tools, which all take `n`:
wait            do not answer
count {size}    answer with `size` extra characters
flood {mb}      write `mb` MB to stderr, then answer
huge {mb}       answer with `mb` MB, in pieces of 1 MB
half            write half an answer and exit
"""

# ruff: noqa: PTH110, PTH118, PTH120, PTH123 (pathlib would double the start-up time)

from __future__ import annotations

import itertools
import os
import sys
import time

TYPE_CHECKING = False  # importing typing and subprocess would take over a third of the start-up time
if TYPE_CHECKING:
    from typing import Any

if TYPE_CHECKING or __name__ != "__main__":
    import json
else:  # json would take a third of the start-up time
    sys.path.append(os.path.join(os.path.dirname(__file__), "..", "fixtures"))
    import small_json as json

argv = sys.argv[1:]
MB = 1 << 20
MOST_MB = 64  # the gateway's limit per frame. Data far beyond it is sent slowly, to save processor time
DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)"
TOOLS = ("count", "wait", "flood", "huge", "half")


def value(switch: str, default: str = "") -> str:
    return argv[argv.index(switch) + 1] if switch in argv else default


NAME, LOG, HANG, MOOD = value("--name", "counting"), value("--log"), value("--hang"), value("--mood")


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def answer(request_id: Any, result: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}, separators=(",", ":")).encode() + b"\n")


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def executed(n: Any) -> None:
    """Log a call with a single write, so that lines stay whole when other processes also write."""
    if LOG:
        file = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, f"{n}\n".encode())
        os.close(file)


def mood() -> str:
    try:
        with open(MOOD, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def twice(request_id: Any) -> None:
    answer(request_id, text("first"))
    answer(request_id, text("second"))


def foreign(request_id: Any) -> None:
    for other in (None, 10**9, "text", 1.5, [request_id], {"id": request_id}, True):
        answer(other, text("nobody asked"))
    answer(request_id, text("asked"))


def neither(request_id: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": request_id}).encode() + b"\n")


def both(request_id: Any) -> None:
    error = {"code": -1, "message": f"{NAME} is of two minds"}
    write(json.dumps({"jsonrpc": "2.0", "id": request_id, "result": text("x"), "error": error}).encode() + b"\n")


def odd_error(request_id: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": "no object"}).encode() + b"\n")


def binary(request_id: Any) -> None:
    write(bytes(range(256)) * 4096 + b"\n\0\n\r\n\xff\xfe\n")
    answer(request_id, text("after junk"))


def deep(request_id: Any) -> None:
    write(b'{"jsonrpc":"2.0","id":%d,"result":' % request_id + b"[" * 100_000 + b"]" * 100_000 + b"}\n")


def endless(request_id: Any) -> None:
    for sent in itertools.count():  # the line never ends
        write(b"x" * MB)
        if sent > 2 * MOST_MB:
            time.sleep(0.05)


def mute(request_id: Any) -> None:
    os.close(1)
    time.sleep(3600)


def deaf(request_id: Any) -> None:
    os.close(0)
    time.sleep(3600)


def stuck(request_id: Any) -> None:
    time.sleep(3600)  # stops reading its input


def leave(request_id: Any) -> None:
    os._exit(0)


def heirs(request_id: Any) -> None:
    """Exit while a child process keeps stdout and stderr open."""
    import subprocess

    subprocess.Popen([sys.executable, "-I", "-S", "-c", DEAF], stdin=subprocess.DEVNULL)
    os._exit(7)


def ask(request_id: Any) -> None:
    """Send 200 requests to the client before the answer."""
    for number in range(200):
        question = {"jsonrpc": "2.0", "id": f"q{number}", "method": "sampling/createMessage", "params": {}}
        write(json.dumps(question).encode() + b"\n")
    answer(request_id, text("asked"))


def shout(request_id: Any) -> None:
    """Send 2000 list changes and log messages before the answer."""
    for number in range(2000):
        method, params = "notifications/tools/list_changed", {}
        if number % 2:
            method, params = "notifications/message", {"level": "info", "data": "x" * 500}
        write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")
    answer(request_id, text("shouted"))


MOODS = (twice, foreign, neither, both, odd_error, binary, deep, endless, mute, deaf, stuck, leave, heirs, ask, shout)


def call(request_id: Any, params: dict[str, Any]) -> None:
    name, arguments = params.get("name"), params.get("arguments") or {}
    executed(arguments.get("n", "?"))
    if name == "wait":
        return
    for act in MOODS:
        if act.__name__ == mood():
            act(request_id)
            return
    if name == "flood":
        line = b"noise and nothing but noise " * 36 + b"\n"
        for _ in range(arguments["mb"] * MB // len(line)):
            os.write(2, line)
    elif name == "huge":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request_id)
        for _ in range(arguments["mb"]):
            write(b"x" * MB)
        write(b'"}]}}\n')
        return
    elif name == "half":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[' % request_id)
        os._exit(5)
    answer(request_id, text(f"{NAME} {os.getpid()} {arguments.get('n')} " + "x" * arguments.get("size", 0)))


def handle(message: dict[str, Any]) -> None:
    method, request_id = message.get("method"), message.get("id")
    if request_id is None:
        return
    if method == "initialize":
        info = {"name": NAME, "version": "1"}
        version = message["params"]["protocolVersion"]
        answer(request_id, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        answer(request_id, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
    elif method == "tools/call":
        call(request_id, message["params"])
    elif method == "ping":
        answer(request_id, {})
    else:
        error = {"code": -32601, "message": "Method not found"}
        write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode() + b"\n")


def start_family(path: str) -> None:
    command = [sys.executable, "-I", "-S", "-c", DEAF]
    import subprocess

    null = subprocess.DEVNULL
    apart = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True)
    grouped = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, process_group=0)
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(f"{apart.pid} {grouped.pid}")
    os.replace(path + ".new", path)  # noqa: PTH105


RUNAWAY = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
os.chdir("/")
os.execve(sys.executable, ["-bash", "-I", "-S", "-c", sys.argv[2]], {})
"""


def main() -> None:
    if runaway := value("--runaway"):
        import subprocess

        subprocess.run([sys.executable, "-I", "-S", "-c", RUNAWAY, runaway, DEAF], stdin=subprocess.DEVNULL, check=True)
    if "--deaf" in argv:
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if family := value("--family"):
        start_family(family)
    while HANG and os.path.exists(HANG):
        time.sleep(0.01)
    if mood() == "dies_at_start":
        sys.exit(3)
    buffer = b""
    while data := os.read(0, 1 << 18):
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            handle(json.loads(line))
    while "--deaf" in argv or "--stays" in argv:
        time.sleep(60)


if __name__ == "__main__":
    main()
