"""History rows: one for each call, with secrets redacted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from trayapp.catalog.tokens import tokens
from trayapp.history.ended_call import HEAD_BYTES, Caller, EndedCall, Outcome
from trayapp.model.redact import TAIL_DROPPED, redacted
from trayapp.model.secret_patterns import REDACTED
from trayapp.model.text import one_line
from trayapp.wire.jsonio import JsonError, dumps, loads

TEXT_MOST = 2_048  # characters that a row keeps of the arguments, and as many of the result
HEAD_LOOKED_AT = 2 * (TEXT_MOST + TAIL_DROPPED)  # characters that are unescaped at first: usually enough for `_cut`
LONGEST_ESCAPE = 6
SAMPLE = 256  # characters of a tool's first result in a batch. Their tokens are extrapolated to all its results
ERROR_MOST = 240
NAME_MOST = 200
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\u001b": "\x1b", "\\u001B": "\x1b"}
IS_ERROR = b'"isError":true'
# Patterns for an answer that was cut and cannot be parsed. They match nothing inside a JSON string, because quotes are
# escaped there.
_MEMBER = re.compile(rb'"(result|error)"\s*:\s*')
_WORDS = re.compile(rf'"(?:message|text)"\s*:\s*"((?:[^"\\]|\\.){{0,{ERROR_MOST * LONGEST_ESCAPE}}})')


class Row(NamedTuple):
    """A recorded call, with a field for each column. `time`: when it ended, in Unix seconds. `ms`: its duration."""

    time: float
    client: str
    session: str
    project: str
    server: str
    tool: str
    kind: str  # the tool's class: read | write | destructive; "" = unknown, or no tool was called
    outcome: Outcome
    ms: float
    sent: int  # bytes
    received: int  # bytes
    tokens: int  # of the result, estimated
    allowed: str
    error: str
    arguments: str
    result: str


class RowMaker:
    """The maker of the rows of one batch. A text that occurs in several calls is redacted once."""

    def __init__(self, *, with_texts: bool) -> None:
        self._with_texts = with_texts
        self._name = cache(_name)
        self._kept: dict[str, str] = {}  # JSON text -> its redacted and cut form
        # (server, tool) -> tokens per character, counted only once: counting takes longer than all other work on a row
        self._density: dict[tuple[str, str], float] = {}

    def row(self, call: EndedCall, caller: Caller, time: float, kind: str) -> Row:
        """Return the row of a call, with secrets redacted. `time`, `kind`: as in Row."""
        params = call.params if isinstance(call.params, Mapping) else {}
        given: Any = params.get("arguments") or {}
        if call.method not in ("tools/call", "prompts/get"):
            given = {name: value for name, value in params.items() if name != "_meta"}
        tool = str(params.get("name", ""))
        if call.method != "tools/call":
            tool = f"{call.method} {params.get('name') or params.get('uri') or ''}".strip()
        arguments = _json(given)
        answer = _parsed(call.answer)
        result, error = _result_text(answer, call.answer)
        outcome = call.outcome or _outcome(answer, call.answer)
        said = call.error or error or (_first_words(answer) if outcome == "error" else "")
        received = call.size or len(result)

        def safe_result() -> str:
            if answer is None:  # missing, cut or invalid: undo the escapes in the text, if any
                return _unescaped(result)
            return _safe(answer.get("error", answer.get("result")), result)

        return Row(
            time,
            self._name(caller.client),
            caller.session,
            self._name(caller.project),
            self._name(call.server),
            self._name(tool),
            kind,
            outcome,
            round((call.ended - call.began) * 1000, 3),
            len(arguments) if arguments.isascii() else len(arguments.encode("utf-8", "replace")),
            received,
            self._tokens((call.server, tool), result, max(len(result), received)),
            call.allowed,
            one_line(redacted(said[: ERROR_MOST * 2]))[:ERROR_MOST] if said else "",
            self._keep(arguments, lambda: _safe(given, arguments)),
            self._keep(result, safe_result),
        )

    def _keep(self, text: str, safe: Callable[[], str]) -> str:
        """Return the redacted and shortened text for the row, or "" if the settings exclude texts.

        `safe`: returns the text in a form in which no escape hides a secret from redaction.
        """
        if self._with_texts and text not in self._kept:
            self._kept[text] = _cut(safe())
        return self._kept.get(text, "")

    def _tokens(self, tool: tuple[str, str], result: str, size: int) -> int:
        """Return the estimated tokens of a result of `size` bytes, from the tool's first result in this batch.

        Return 0 if there is no text to estimate from.
        """
        if tool not in self._density:
            if not result:
                return 0
            sample = result[:SAMPLE]
            self._density[tool] = tokens(sample) / len(sample)
        return round(self._density[tool] * size)


def _name(text: str) -> str:
    return one_line(redacted(text[:NAME_MOST]))


def _json(value: Any) -> str:
    try:
        return dumps(value).decode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return ""


def _parsed(answer: bytes | dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the parsed answer, or None if it is missing, cut, or invalid."""
    if isinstance(answer, dict):
        return answer
    if answer is None or len(answer) >= HEAD_BYTES:
        return None
    try:
        message = loads(answer)
    except JsonError:
        return None
    return message if isinstance(message, dict) else None


def _result_text(answer: dict[str, Any] | None, raw: bytes | dict[str, Any] | None) -> tuple[str, str]:
    """Return the JSON text of an answer's result or error, and the error message ("" if there is none).

    If the `raw` answer was cut, the JSON text is incomplete.
    """
    if answer is None:
        head = raw[:HEAD_BYTES] if isinstance(raw, bytes) else b""
        member = _MEMBER.search(head)
        text = head[member.end() if member is not None else 0 :].decode("utf-8", "replace")
        words = _WORDS.search(text) if _outcome(None, raw) != "ok" else None
        return text, _unescaped(words[1]) if words is not None else ""
    if isinstance(error := answer.get("error"), dict):
        return _json(error), str(error.get("message", ""))
    return _json(answer.get("result", {})), ""


def _outcome(answer: dict[str, Any] | None, raw: bytes | dict[str, Any] | None) -> Outcome:
    if answer is not None:
        if "error" in answer:
            return "failed"
        result = answer.get("result")
        return "error" if isinstance(result, dict) and result.get("isError") is True else "ok"
    if not isinstance(raw, bytes):
        return "ok"
    if (member := _MEMBER.search(raw)) is not None and member[1] == b"error":
        return "failed"
    return "error" if b'"isError"' in raw and IS_ERROR in raw.replace(b" ", b"") else "ok"


def _first_words(answer: dict[str, Any] | None) -> str:
    """Return the first text in the content of an answer's result, or "" if there is none."""
    content = (answer or {}).get("result", {}).get("content")
    for item in content if isinstance(content, list) else ():
        if isinstance(item, dict) and isinstance(item.get("text"), str):
            return str(item["text"])
    return ""


def _safe(value: Any, text: str) -> str:
    """Return the JSON text of a value. Secrets are redacted in strings with escapes, where `_cut` could not find them.

    `text`: the value's JSON text, which is returned unchanged if it has no escapes.
    """
    if "\\" not in text:
        return text
    left = [TEXT_MOST * 2]  # characters still to read. `_cut` drops the rest of the text

    def safe(inner: Any) -> Any:
        if isinstance(inner, str):
            left[0] -= len(inner)
            head = inner[: TEXT_MOST * 2]
            return (redacted(head) if "\\" in _json(head) else head) if left[0] > -TEXT_MOST * 2 else ""
        if left[0] < 0:
            return None
        if isinstance(inner, dict):
            return {name: safe(value) for name, value in inner.items()}
        return [safe(item) for item in inner] if isinstance(inner, list) else inner

    return _json(safe(value))


def _unescaped(text: str) -> str:
    """Return the beginning of a JSON text, as much of it as `_cut` reads or more, with its common escapes undone."""
    most = HEAD_LOOKED_AT
    while True:
        found = text[:most]
        for escape, letter in _ESCAPES.items():
            found = found.replace(escape, letter)
        if most >= len(text) or len(found) > HEAD_LOOKED_AT // 2 + LONGEST_ESCAPE:
            return found
        most *= 2


def _cut(text: str) -> str:
    """Return a text redacted and cut to TEXT_MOST characters.

    If the text is longer, the end of the redacted part is dropped, since a secret that was cut off there would not have
    been recognized.
    """
    head = text[: TEXT_MOST + TAIL_DROPPED]
    safe = redacted(head)
    is_whole = len(head) == len(text) or safe.endswith(REDACTED)
    return (safe if is_whole else safe[:-TAIL_DROPPED])[:TEXT_MOST]
