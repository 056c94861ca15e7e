"""What an HTTP answer says about who gave it. The ids are those of the cases that each row stands for."""

from __future__ import annotations

import pytest

from trayapp.backends.answers import Kind, kind_of, words
from trayapp.wire.jsonio import dumps

GRAPHQL = dumps({"errors": [{"message": "Must provide query string."}]})
RESULT = dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
REFUSED = dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Unauthorized"}})
JSON, EVENTS, PAGE = "application/json", "text/event-stream", "text/html; charset=utf-8"

# id, status, content type, body, WWW-Authenticate, kind
ANSWERS = [
    ("transport-21", 400, JSON, GRAPHQL, None, Kind.OTHER),
    ("transport-22", 503, "", b"", None, Kind.BUSY),
    ("too-many", 429, JSON, b"{}", None, Kind.BUSY),
    ("behind-a-proxy", 502, PAGE, b"<html>", None, Kind.BUSY),
    ("late-proxy", 504, PAGE, b"<html>", None, Kind.BUSY),
    ("transport-24", 401, "", b"", None, Kind.MAYBE_SIGN_IN),
    ("basic-only", 401, "", b"", 'Basic realm="x"', Kind.MAYBE_SIGN_IN),
    ("bearer-among-others", 401, "", b"", 'Basic realm="a, b", Bearer realm="x"', Kind.SIGN_IN),
    ("bearer-in-a-text", 401, "", b"", 'Basic realm="or, bearer token"', Kind.MAYBE_SIGN_IN),
    ("another-scheme", 401, "", b"", "Bearerish x=y", Kind.MAYBE_SIGN_IN),
    ("transport-25", 401, JSON, REFUSED, "Bearer", Kind.SIGN_IN),
    ("bearer-with-more", 401, PAGE, b"", 'bearer resource_metadata="https://x.test/y"', Kind.SIGN_IN),
    ("transport-26", 200, EVENTS, b"", None, Kind.MCP),
    ("events-with-charset", 200, "Text/Event-Stream; charset=utf-8", b"", None, Kind.MCP),
    ("transport-27", 200, JSON, RESULT, None, Kind.MCP),
    ("rpc-error-at-400", 400, JSON, REFUSED, None, Kind.MCP),
    ("rpc-error-at-503", 503, JSON, REFUSED, None, Kind.MCP),
    ("batch", 200, JSON, b"[" + RESULT + b"]", None, Kind.MCP),
    ("empty-batch", 200, JSON, b"[]", None, Kind.OTHER),
    ("json-of-others", 200, JSON, GRAPHQL, None, Kind.OTHER),
    ("half", 200, JSON, RESULT[:-3], None, Kind.OTHER),
    ("json-rpc-1", 200, JSON, b'{"id":1,"result":1,"error":null}', None, Kind.OTHER),
    ("page", 200, PAGE, b"<html>", None, Kind.OTHER),
    ("events-at-404", 404, EVENTS, b"", None, Kind.OTHER),
    ("server-error", 500, "", b"", None, Kind.OTHER),
]


@pytest.mark.parametrize(
    ("status", "content_type", "body", "challenge", "kind"),
    [row[1:] for row in ANSWERS],
    ids=[row[0] for row in ANSWERS],
)
def test_kind(status: int, content_type: str, body: bytes, challenge: str | None, kind: Kind) -> None:
    assert kind_of(status, content_type, body, challenge) is kind


def test_words_name_the_server_and_what_it_is_told_by() -> None:
    assert words("web", Kind.BUSY, 503, PAGE) == "web is temporarily unavailable (HTTP 503)"
    assert words("web", Kind.OTHER, 200, PAGE) == "web does not answer as an MCP server does (HTTP 200, text/html)"
    assert len(words("web", Kind.OTHER, 200, "x" * 10_000)) < 200
