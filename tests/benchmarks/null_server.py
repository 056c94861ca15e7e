"""An MCP server with minimal cost: raw frames on stdin and stdout, and no SDK. Run it with `python -I -S`.

`null_server.py [FILE]`: FILE holds the raw result of tools/list. Without it, the only tool is `echo`. Every tool
answers `{"size": N}` with N characters of text.
"""

import json
import os
import sys

CHUNK = 1 << 18  # bytes per read
LINE = 'row 17\t"Zo\u00eb" wrote C:\\notes\\a.txt, 12345 bytes\n'  # escapes and a wide character, as in real answers
INFO = {"name": "null", "version": "1.0"}
SCHEMA = {"type": "object", "properties": {"size": {"type": "integer", "description": "characters of text"}}}
TOOLS = [{"name": "echo", "description": "Text of the wanted length", "inputSchema": SCHEMA}]
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

results: dict[int, bytes] = {}  # results by size, cached so that making the text is not measured


def compact(value: object) -> bytes:
    """Return compact JSON, as servers write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def read_list() -> bytes:
    """Return the result of tools/list."""
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
    """Return the result of a request, or None for an unknown method."""
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
    """Return the response frame, or no bytes for a notification."""
    message = json.loads(line)
    if "id" not in message:
        return b""
    body = result(message["method"], message.get("params") or {})
    member = b'"result":' + body if body is not None else b'"error":{"code":-32601,"message":"Method not found"}'
    return b'{"jsonrpc":"2.0","id":' + compact(message["id"]) + b"," + member + b"}\n"


def serve() -> None:
    """Answer every request with a separate write, until stdin ends."""
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
