"""Functions that download JSON or a file from a web address. They send no data about the user or the machine."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPException, HTTPResponse
from typing import IO, Any

from trayapp import __version__
from trayapp.model.errors import MultiMcpError

STEP_S = 10.0  # limit for each step: the connection, or one piece of the answer
ANSWER_S = 20.0  # limit for the whole answer, even if it keeps arriving slowly
FILE_S = 600.0  # limit for a whole file


class WebError(MultiMcpError):
    """Raised when an address gives no usable answer. `status` is the HTTP status, or 0 if there is none."""

    code = "web"

    def __init__(self, title: str, status: int = 0) -> None:
        super().__init__(title)
        self.status = status


def read_json(address: str, largest: int) -> Any:
    """Request the JSON at an address, at most `largest` bytes. Raises WebError, whose title is only the reason.

    Blocks for at most STEP_S per step and ANSWER_S in total.
    """
    with _answer(address, "application/json") as answer:
        try:
            return json.loads(b"".join(_pieces(answer, largest, ANSWER_S)))
        except (ValueError, RecursionError):
            raise WebError("Its answer is not JSON") from None


def read_file(address: str, target: IO[bytes], largest: int) -> None:
    """Download the file at an address, at most `largest` bytes, into `target`.

    Blocks for at most STEP_S per step and FILE_S in total. Raises WebError, whose title is only the reason.
    """
    with _answer(address, "application/octet-stream, */*") as answer:
        for piece in _pieces(answer, largest, FILE_S):
            target.write(piece)


@contextmanager
def _answer(address: str, accept: str) -> Iterator[HTTPResponse]:
    headers = {"Accept": accept, "User-Agent": f"multi-mcp/{__version__}"}
    try:
        opener = urllib.request.build_opener(_SafeRedirects())
        with opener.open(urllib.request.Request(address, headers=headers), timeout=STEP_S) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        with error:
            raise WebError(f"It answers with HTTP status {error.code}", status=error.code) from None
    except WebError:
        raise
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        title = str(getattr(reason, "strerror", None) or reason or type(reason).__name__)
        if isinstance(reason, TimeoutError):
            title = f"It does not answer within {STEP_S:g} s"
        elif isinstance(reason, HTTPException):
            title = "It ends the connection without a valid answer"
        raise WebError(title) from None


def _pieces(answer: HTTPResponse, largest: int, limit_s: float) -> Iterator[bytes]:
    """Yield an answer piece by piece. Raises WebError if it is too large or takes too long."""
    until = time.monotonic() + limit_s
    size = 0
    while piece := answer.read1(1 << 16):
        size += len(piece)
        if size > largest:
            raise WebError(f"Its answer is larger than {largest:,} bytes")
        if time.monotonic() > until:
            raise WebError("Its answer takes too long")
        yield piece


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect handler that refuses addresses without https, because anyone on the network path could answer them."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if not newurl.startswith("https://"):
            raise urllib.error.URLError("It redirects to an address without https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
