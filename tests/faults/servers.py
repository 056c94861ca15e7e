"""An MCP server over stdio that writes down each call that it executes: `python -I -S servers.py [--switch [value]]`.

Never here: what a well-behaved server does not need; the odd server (tests/fixtures) hangs, lies and dies.

--log FILE   one line a call that was executed: its `n`     --name NAME   in its answers
--stays      the end of stdin does not end it     --deaf   nor does SIGTERM
--family FILE   starts a process in a session and one in a process group of its own, both deaf; their ids go to FILE
--runaway FILE   starts one without environment in a session of its own, nobody's child, deaf; its id goes to FILE
--hang FILE  answers nothing while FILE exists, from the start on; not the end of stdin either
--mood FILE  what FILE holds is done at the next start or call: see MOODS
Tools: wait {n}: no answer; count {n, size}: an answer of that many characters; flood {n, mb}: so much on stderr, then
an answer; huge {n, mb}: an answer of that many MB in small pieces; half {n}: half an answer, then its process dies.
"""

# ruff: noqa: PTH110, PTH123 (pathlib would double its start)

from __future__ import annotations

import json
import os
import signal
import sys
import time

TYPE_CHECKING = False  # as in typing, which with subprocess would take more than a third of the start
if TYPE_CHECKING:
    from typing import Any

argv = sys.argv[1:]
MB = 1 << 20
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
    """Note a call in one system call: lines stay whole, whoever else writes."""
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
    while True:
        write(b"x" * MB)  # a line without an end


def mute(request_id: Any) -> None:
    os.close(1)
    time.sleep(3600)


def deaf(request_id: Any) -> None:
    os.close(0)
    time.sleep(3600)


def stuck(request_id: Any) -> None:
    time.sleep(3600)  # reads nothing any more


def leave(request_id: Any) -> None:
    os._exit(0)


def heirs(request_id: Any) -> None:
    """Dies; a child keeps its stdout and stderr open."""
    import subprocess

    subprocess.Popen([sys.executable, "-I", "-S", "-c", DEAF], stdin=subprocess.DEVNULL)
    os._exit(7)


def ask(request_id: Any) -> None:
    """Many questions to the client before the answer."""
    for number in range(200):
        question = {"jsonrpc": "2.0", "id": f"q{number}", "method": "sampling/createMessage", "params": {}}
        write(json.dumps(question).encode() + b"\n")
    answer(request_id, text("asked"))


def shout(request_id: Any) -> None:
    """Send a storm of list changes and log messages before the answer."""
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
