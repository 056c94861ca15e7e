"""Tests of reading HTTP responses: the kind of server, the wording of failures, JSON answers and event streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from trayapp.backends.http.responses import EventLines, find_answer, is_mcp, words
from trayapp.wire.jsonio import dumps

GRAPHQL = dumps({"errors": [{"message": "Must provide query string."}]})
RESULT = dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
JSON, EVENTS, PAGE = "application/json", "text/event-stream", "text/html; charset=utf-8"

# id, status, content type, body
OF_MCP = [
    ("transport-26", 200, EVENTS, b""),
    ("events-with-charset", 200, "Text/Event-Stream; charset=utf-8", b""),
    ("transport-27", 200, JSON, RESULT),
    ("batch", 200, JSON, b"[" + RESULT + b"]"),
]
OF_OTHERS = [
    ("transport-21", 400, JSON, GRAPHQL),
    ("empty-batch", 200, JSON, b"[]"),
    ("json-of-others", 200, JSON, GRAPHQL),
    ("half", 200, JSON, RESULT[:-3]),
    ("json-rpc-1", 200, JSON, b'{"id":1,"result":1,"error":null}'),
    ("page", 200, PAGE, b"<html>"),
    ("events-at-404", 404, EVENTS, b""),
]


@pytest.mark.parametrize(
    ("status", "content_type", "body"), [row[1:] for row in OF_MCP], ids=[row[0] for row in OF_MCP]
)
def test_a_response_of_an_mcp_server_is_recognized(status: int, content_type: str, body: bytes) -> None:
    assert is_mcp(status, content_type, body)


@pytest.mark.parametrize(
    ("status", "content_type", "body"), [row[1:] for row in OF_OTHERS], ids=[row[0] for row in OF_OTHERS]
)
def test_a_response_of_another_server_is_recognized(status: int, content_type: str, body: bytes) -> None:
    assert not is_mcp(status, content_type, body)


SIGN_IN = "web needs a sign-in (HTTP 401)"
MAYBE_SIGN_IN = "web may need a sign-in, but does not say which kind (HTTP 401)"


@pytest.mark.parametrize(
    ("status", "content_type", "challenge", "said"),
    [
        pytest.param(503, PAGE, "", "web is temporarily unavailable (HTTP 503)", id="transport-22"),
        pytest.param(429, JSON, "", "web is temporarily unavailable (HTTP 429)", id="too-many"),
        pytest.param(502, PAGE, "", "web is temporarily unavailable (HTTP 502)", id="behind-a-proxy"),
        pytest.param(504, PAGE, "", "web is temporarily unavailable (HTTP 504)", id="late-proxy"),
        pytest.param(401, "", "", MAYBE_SIGN_IN, id="transport-24"),
        pytest.param(401, "", 'Basic realm="x"', MAYBE_SIGN_IN, id="basic-only"),
        pytest.param(401, "", 'Basic realm="a, b", Bearer realm="x"', SIGN_IN, id="bearer-among-others"),
        pytest.param(401, "", 'Basic realm="or, bearer token"', MAYBE_SIGN_IN, id="bearer-in-a-text"),
        pytest.param(401, "", "Bearerish x=y", MAYBE_SIGN_IN, id="another-scheme"),
        pytest.param(401, JSON, "Bearer", SIGN_IN, id="transport-25"),
        pytest.param(401, PAGE, 'bearer resource_metadata="https://x.test/y"', SIGN_IN, id="bearer-with-more"),
        pytest.param(200, PAGE, "", "web does not answer like an MCP server (HTTP 200, text/html)", id="page"),
        pytest.param(500, "", "", "web does not answer like an MCP server (HTTP 500)", id="server-error"),
    ],
)
def test_words_say_what_a_refusing_server_needs(status: int, content_type: str, challenge: str, said: str) -> None:
    assert words("web", status, content_type, challenge) == said


def test_words_shorten_a_content_type() -> None:
    assert len(words("web", 200, "x" * 10_000)) < 200


def answer(request_id: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, **(more or {"result": {"n": 1}})}


OTHER = {"jsonrpc": "2.0", "method": "notifications/x"}
FAILED = {"code": -5, "message": "no"}
NO_RESULT = {"code": -32603, "message": "It has no result object"}
NOT_OURS = {"code": -32603, "message": "It does not answer the request"}
NEITHER = {"code": -32603, "message": "It has neither a result nor an error"}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (answer(7), None),
        (answer(7, error=FAILED), None),
        (answer("7"), None),
        ([answer(7)], answer(7)),
        ([OTHER, answer(6), answer("7")], answer(7)),
        (answer(None, error=FAILED), answer(7, error=FAILED)),
        (answer(7, result=None), answer(7, error=NO_RESULT)),
        (answer(7, result={}, error=None), answer(7, result={})),
        (answer(8), answer(7, error=NOT_OURS)),
        ([answer(8)], answer(7, error=NOT_OURS)),
        (OTHER, answer(7, error=NOT_OURS)),
        ([], answer(7, error=NOT_OURS)),
        ({"jsonrpc": "2.0", "id": 7}, answer(7, error=NEITHER)),
    ],
)
def test_a_json_response_is_the_answer_to_its_request_or_an_error(said: Any, meant: Any) -> None:
    assert find_answer(said, 7, "It") == meant


# -- line endings of event streams, however the bytes are split --


class Chunks(httpx2.AsyncByteStream):
    def __init__(self, *parts: bytes) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


async def read(*parts: bytes) -> list[bytes]:
    return [part async for part in EventLines(Chunks(*parts))]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.anyio
async def test_lines_end_alike_however_they_are_cut(end: bytes) -> None:
    said = b"\xef\xbb\xbf: hello" + end + b"data: a" + end + b"data: b" + end + end
    for at in range(3, len(said)):
        for then in range(at, len(said)):
            given = b"".join(await read(said[:at], said[at:then], said[then:]))
            assert given == b": hello\ndata: a\ndata: b\n\n"


@pytest.mark.anyio
async def test_an_event_that_ends_with_a_return_is_given_at_once() -> None:
    assert await read(b"data: a\r\r", b"\ndata: b\r\n", b"\r", b"\n") == [b"data: a\n\n", b"data: b\n", b"\n"]
