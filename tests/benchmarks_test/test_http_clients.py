"""The minimal HTTP clients: responses are read whole however they are split, and each call gets its own answer."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.benchmarks.client import PROTOCOL, BrokenError, Conversation
from tests.benchmarks.http_answer import Answer
from tests.benchmarks.http_client import HttpClient
from tests.benchmarks.sse_client import SseClient

FRAME = b'{"jsonrpc":"2.0","id":1,"result":{}}'
EVENTS = b'event: message\ndata: {"method":"ping","id":9}\n\ndata:\n\nevent: message\ndata: ' + FRAME + b"\n\n"


def response(body: bytes, *headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode() + body


def chunked(*chunks: bytes) -> bytes:
    return b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in (*chunks, b""))


WHOLE = response(FRAME, "Content-Type: application/json", f"Content-Length: {len(FRAME)}")
STREAM = response(
    chunked(EVENTS[:70], EVENTS[70:]), "content-type: text/event-stream; charset=utf-8", "Transfer-Encoding: chunked"
)


@pytest.mark.parametrize("sent", [WHOLE, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("piece", [1, 2, 7, 50, 10_000])
def test_an_answer_in_pieces_is_read_whole(sent: bytes, piece: int) -> None:
    answer = Answer()
    done = [answer.feed(sent[at : at + piece]) for at in range(0, len(sent), piece)]
    assert done == [False] * (len(done) - 1) + [True]
    assert (answer.status, answer.message()) == (200, FRAME)


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nwhy",
        response(b"data: 1\n\n", "Content-Type: text/event-stream", "Content-Length: 9"),
    ],
    ids=["an error", "no answer among the events"],
)
def test_what_is_no_answer_breaks(sent: bytes) -> None:
    answer = Answer()
    assert answer.feed(sent)
    with pytest.raises(BrokenError):
        answer.message()


def test_what_is_no_http_breaks() -> None:
    with pytest.raises(BrokenError, match="not an HTTP answer"):
        Answer().feed(b"SSH-2.0-x\r\n\r\n")


RESULTS: dict[str, dict[str, object]] = {
    "initialize": {"protocolVersion": PROTOCOL, "capabilities": {}, "serverInfo": {"name": "door", "version": "1"}},
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
}


def answered(message: dict[str, Any]) -> bytes:
    """Return the answer to a request, or nothing for a notification."""
    if "id" not in message:
        return b""
    reply: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "tools/call":
        text = "x" * message["params"]["arguments"]["size"]
        return json.dumps(reply | {"result": {"content": [{"type": "text", "text": text}]}}).encode()
    result = RESULTS.get(message["method"])
    error = {"code": -32601, "message": "Method not found"}
    return json.dumps(reply | ({"result": result} if result else {"error": error})).encode()


class Door(BaseHTTPRequestHandler):
    """A server that answers each POST to /mcp directly, and serves the older transport's event stream at /sse."""

    protocol_version = "HTTP/1.1"
    answers: queue.Queue[bytes]  # sent on the event stream

    def do_POST(self) -> None:
        line = self.rfile.read(int(self.headers["Content-Length"]))
        frame = answered(json.loads(line))
        if self.path == "/message" and frame:
            self.answers.put(frame)
            frame = b""
        self.send_response(200 if frame else 202)
        self.send_header("Content-Length", str(len(frame)))
        self.send_header("Mcp-Session-Id", "s")
        self.end_headers()
        self.wfile.write(frame)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        data = b"/message"
        while data:
            self.wfile.write(chunked(b"data: " + data + b"\n\n")[: -len(b"0\r\n\r\n")])
            data = self.answers.get()

    def do_DELETE(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(params=["/mcp", "/sse"])
def client(request: pytest.FixtureRequest) -> Iterator[Conversation]:
    answers: queue.Queue[bytes] = queue.Queue()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Door", (Door,), {"answers": answers}))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}{request.param}"
    with SseClient(url) if request.param == "/sse" else HttpClient(url) as client:
        yield client
    answers.put(b"")  # ends the stream
    server.shutdown()
    thread.join()
    server.server_close()


def test_calls_get_their_own_answers_one_after_the_other_and_many_at_once(client: Conversation) -> None:
    client.initialize()
    assert client.tools() == ["echo"]
    assert len(client.timed("echo", 200_000, 3)) == 3
    assert client.flood("echo", 10, 50, 8) > 0
    assert client.listed() == ["echo"]  # no answer was left unread


def test_the_answer_of_an_unknown_method_is_an_error(client: Conversation) -> None:
    with pytest.raises(BrokenError, match="Method not found"):
        client.ask("nothing", {})
