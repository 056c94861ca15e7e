"""What an HTTP answer shows about its sender. The ids are those of the cases that each row covers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from trayapp.backends.http.responses import EventLines, ResponseKind, find_answer, kind_of, words
from trayapp.wire.jsonio import dumps

GRAPHQL = dumps({"errors": [{"message": "Must provide query string."}]})
RESULT = dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
REFUSED = dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Unauthorized"}})
JSON, EVENTS, PAGE = "application/json", "text/event-stream", "text/html; charset=utf-8"

# id, status, content type, body, WWW-Authenticate, kind
ANSWERS = [
    ("transport-21", 400, JSON, GRAPHQL, None, ResponseKind.OTHER),
    ("transport-22", 503, "", b"", None, ResponseKind.BUSY),
    ("too-many", 429, JSON, b"{}", None, ResponseKind.BUSY),
    ("behind-a-proxy", 502, PAGE, b"<html>", None, ResponseKind.BUSY),
    ("late-proxy", 504, PAGE, b"<html>", None, ResponseKind.BUSY),
    ("transport-24", 401, "", b"", None, ResponseKind.MAYBE_SIGN_IN),
    ("basic-only", 401, "", b"", 'Basic realm="x"', ResponseKind.MAYBE_SIGN_IN),
    ("bearer-among-others", 401, "", b"", 'Basic realm="a, b", Bearer realm="x"', ResponseKind.SIGN_IN),
    ("bearer-in-a-text", 401, "", b"", 'Basic realm="or, bearer token"', ResponseKind.MAYBE_SIGN_IN),
    ("another-scheme", 401, "", b"", "Bearerish x=y", ResponseKind.MAYBE_SIGN_IN),
    ("transport-25", 401, JSON, REFUSED, "Bearer", ResponseKind.SIGN_IN),
    ("bearer-with-more", 401, PAGE, b"", 'bearer resource_metadata="https://x.test/y"', ResponseKind.SIGN_IN),
    ("transport-26", 200, EVENTS, b"", None, ResponseKind.MCP),
    ("events-with-charset", 200, "Text/Event-Stream; charset=utf-8", b"", None, ResponseKind.MCP),
    ("transport-27", 200, JSON, RESULT, None, ResponseKind.MCP),
    ("rpc-error-at-400", 400, JSON, REFUSED, None, ResponseKind.MCP),
    ("rpc-error-at-503", 503, JSON, REFUSED, None, ResponseKind.MCP),
    ("batch", 200, JSON, b"[" + RESULT + b"]", None, ResponseKind.MCP),
    ("empty-batch", 200, JSON, b"[]", None, ResponseKind.OTHER),
    ("json-of-others", 200, JSON, GRAPHQL, None, ResponseKind.OTHER),
    ("half", 200, JSON, RESULT[:-3], None, ResponseKind.OTHER),
    ("json-rpc-1", 200, JSON, b'{"id":1,"result":1,"error":null}', None, ResponseKind.OTHER),
    ("page", 200, PAGE, b"<html>", None, ResponseKind.OTHER),
    ("events-at-404", 404, EVENTS, b"", None, ResponseKind.OTHER),
    ("server-error", 500, "", b"", None, ResponseKind.OTHER),
]


@pytest.mark.parametrize(
    ("status", "content_type", "body", "challenge", "kind"),
    [row[1:] for row in ANSWERS],
    ids=[row[0] for row in ANSWERS],
)
def test_kind(status: int, content_type: str, body: bytes, challenge: str | None, kind: ResponseKind) -> None:
    assert kind_of(status, content_type, body, challenge) is kind


def test_words_name_the_server_and_what_it_is_told_by() -> None:
    assert words("web", ResponseKind.BUSY, 503, PAGE) == "web is temporarily unavailable (HTTP 503)"
    assert words("web", ResponseKind.OTHER, 200, PAGE) == "web does not answer like an MCP server (HTTP 200, text/html)"
    assert len(words("web", ResponseKind.OTHER, 200, "x" * 10_000)) < 200


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


# -- line ends of event streams, whatever way the bytes are cut --


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
