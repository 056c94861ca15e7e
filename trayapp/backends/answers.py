"""What an HTTP answer says about the address that gave it: an MCP server, one that is busy, or something else.

Never here: sending anything, what follows from it.
"""

from __future__ import annotations

import re
from enum import StrEnum

from trayapp.wire.jsonio import JsonError, loads

UNAVAILABLE = frozenset({429, 502, 503, 504})
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_BEARER = re.compile(r"(?:^|,)\s*bearer(?=\s|,|$)", re.IGNORECASE)
LONGEST_WORD = 60  # characters of a content type that are shown


class Kind(StrEnum):
    """What answers there; the values go into error texts, after the server's name."""

    MCP = "answered"
    BUSY = "is temporarily unavailable"
    SIGN_IN = "wants a sign-in"
    MAYBE_SIGN_IN = "may want a sign-in, but does not say which"
    OTHER = "does not answer as an MCP server does"


def kind_of(status: int, content_type: str = "", body: bytes = b"", challenge: str | None = None) -> Kind:
    """By an answer to a JSON-RPC request; `challenge` is its WWW-Authenticate header.

    An event stream is taken for MCP before it says anything: nothing else streams in answer to a JSON-RPC message.
    """
    if status == 401:
        return Kind.SIGN_IN if challenge is not None and _names_bearer(challenge) else Kind.MAYBE_SIGN_IN
    if is_json_rpc(body):
        return Kind.MCP
    if status in UNAVAILABLE:
        return Kind.BUSY
    if status == 200 and content_type.lower().startswith("text/event-stream"):
        return Kind.MCP
    return Kind.OTHER


def _names_bearer(challenge: str) -> bool:
    """Whether one of the challenges of a WWW-Authenticate is for a bearer (RFC 9110 11.6.1: there may be several)."""
    return _BEARER.search(_QUOTED.sub("", challenge)) is not None


def is_json_rpc(body: bytes) -> bool:
    """Whether that is a JSON-RPC message, or a batch of them."""
    try:
        message = loads(body)
    except JsonError:
        return False
    parts = message if isinstance(message, list) and message else [message]
    return all(isinstance(part, dict) and part.get("jsonrpc") == "2.0" for part in parts)


def words(server: str, kind: Kind, status: int, content_type: str = "") -> str:
    """One line for people: who, what, and by what it is told."""
    said = content_type.partition(";")[0].strip()[:LONGEST_WORD]
    told = f"HTTP {status}, {said}" if said and kind is Kind.OTHER else f"HTTP {status}"
    return f"{server} {kind} ({told})"
