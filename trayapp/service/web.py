"""Request JSON from a web address. No data of the user or the machine is sent."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from email.message import Message
from http.client import HTTPException, HTTPResponse
from typing import IO, Any

from trayapp import __version__
from trayapp.model.errors import MultiMcpError

STEP_S = 10.0  # for each step: a connection, a piece of the answer
ANSWER_S = 20.0  # for the whole answer, also one that arrives slowly
PIECE = 1 << 16


class WebError(MultiMcpError):
    """Raised when an address gives no usable answer. `status`: the HTTP status, 0 without one."""

    code = "web"

    def __init__(self, title: str, hint: str = "", status: int = 0) -> None:
        super().__init__(title, hint)
        self.status = status


def read_json(address: str, largest: int) -> Any:
    """Return the JSON at an address, at most `largest` bytes. Blocks, at most 30 s.

    Raises WebError, whose title is only the reason.
    """
    headers = {"Accept": "application/json", "User-Agent": f"multi-mcp/{__version__}"}
    try:
        with _opener().open(urllib.request.Request(address, headers=headers), timeout=STEP_S) as answer:
            return json.loads(_body(answer, largest))
    except urllib.error.HTTPError as error:
        with error:
            raise WebError(f"It answers with HTTP status {error.code}", status=error.code) from None
    except WebError:
        raise
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None)
        raise WebError(str(getattr(reason, "strerror", None) or reason or type(error).__name__)) from None
    except (ValueError, RecursionError):
        raise WebError("Its answer is not JSON") from None


def _body(answer: HTTPResponse, largest: int) -> bytes:
    until = time.monotonic() + ANSWER_S
    body = bytearray()
    while piece := answer.read1(PIECE):
        body += piece
        if len(body) > largest:
            raise WebError(f"Its answer is larger than {largest:,} bytes")
        if time.monotonic() > until:
            raise WebError("Its answer takes too long")
    return bytes(body)


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects to addresses without https, which anyone on the network path could answer."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if not newurl.startswith("https://"):
            raise urllib.error.URLError("It redirects to an address without https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_SafeRedirects())
