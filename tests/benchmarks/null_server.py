"""An MCP server that costs next to nothing: raw frames on stdin and stdout, no SDK. Run it with `python -I -S`.

`null_server.py [FILE]`: FILE holds the result of tools/list as it is sent, without it there is one tool, `echo`. Every
tool answers `{"size": N}` with N characters of text.
"""

import json
import os
import sys

CHUNK = 1 << 18  # bytes a read
LINE = 'row 17\t"Zo\u00eb" wrote C:\\notes\\a.txt, 12345 bytes\n'  # escapes and a wide character, as real answers have
INFO = {"name": "null", "version": "1.0"}
SCHEMA = {"type": "object", "properties": {"size": {"type": "integer", "description": "characters of text"}}}
TOOLS = [{"name": "echo", "description": "Text of the wanted length", "inputSchema": SCHEMA}]
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

results: dict[int, bytes] = {}  # by size: making the text must not be what is measured


def compact(value: object) -> bytes:
    """JSON as servers write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def read_list() -> bytes:
    """Return what tools/list answers."""
    if len(sys.argv) == 1:
        return compact({"tools": TOOLS})
    with open(sys.argv[1], "rb") as file:  # noqa: PTH123 - pathlib would be most of this program's start
        return file.read()


def text_of(size: int) -> bytes:
    """Return the result object with `size` characters of text."""
    if size not in results:
        text = (LINE * (size // len(LINE) + 1))[:size]
        results[size] = compact({"content": [{"type": "text", "text": text}]})
    return results[size]


def result(method: str, params: dict) -> "bytes | None":  # type: ignore[type-arg]
    """Return the result of a request; None for a method that is not known."""
    if method == "tools/call":
        return text_of(params.get("arguments", {}).get("size", 100))
    if method == "tools/list":
        return read_list()
    if method == "ping":
        return b"{}"
    if method == "initialize":
        wanted = params.get("protocolVersion")
        protocol = wanted if wanted in VERSIONS else VERSIONS[-1]
        return compact({"protocolVersion": protocol, "capabilities": {"tools": {}}, "serverInfo": INFO})
    return None


def answer(line: bytes) -> bytes:
    """Return the frame to send back; nothing for a notification."""
    message = json.loads(line)
    if "id" not in message:
        return b""
    body = result(message["method"], message.get("params") or {})
    member = b'"result":' + body if body is not None else b'"error":{"code":-32601,"message":"Method not found"}'
    return b'{"jsonrpc":"2.0","id":' + compact(message["id"]) + b"," + member + b"}\n"


def serve() -> None:
    """Answer every request, each with a write of its own, until stdin ends."""
    rest = b""
    while data := os.read(0, CHUNK):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            frame = answer(line)
            while frame:
                frame = frame[os.write(1, frame) :]


if __name__ == "__main__":
    try:
        serve()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)  # the client is gone
