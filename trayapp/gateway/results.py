"""Results looked over for hidden text and orders once they are out: a finding is a problem of that server, once.

What a client gets is never changed, held up or kept. Never here: definitions (approvals), what counts as a finding.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from trayapp.catalog.inspect import inspect_result
from trayapp.model.status import Problem
from trayapp.wire.jsonio import JsonError
from trayapp.wire.messages import Reply

log = logging.getLogger(__name__)

READ_MOST = 16 * 1024  # bytes of a result that are looked at
SHARE = 0.03  # of the time that passes may go into looking: what comes faster than that is passed on unseen
AHEAD_S = 0.02  # that may be spent before any time has passed: the first results are the telling ones
# Parts of what is looked for, as they stand in JSON, byte for character: looking into bytes takes three times as long.
# A result without any of them is not even decoded. A part is only looked for where what its group begins with is there:
# one byte is found, or not, fifty times as fast as two.
MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("\xf3", ("\xf3\xa0",)),
    ("\xe2", ("\xe2\x80\x8b", "\xe2\x80\x8c", "\xe2\x80\xae", "\xe2\x80\xad")),
    ("\\u", ("\\udb40", "\\u200", "\\u202", "\\u001b", "\\u001B")),
    ("<", ("<!--", "<|im_")),
    (">", ("system>",)),
    ("", ("gnore ", "GNORE ", "isregard ", "IMPORTANT", "SYSTEM", "the user", "id_rsa", ".ssh", "nstruction")),
)


TEXTS_MOST = 500  # of one result
DATA = frozenset({"blob", "type", "mimeType", "uri", "role", "_meta"})  # members that no model reads as words
ENCODED = ("image", "audio")  # content whose data is none, either


class Results:
    """Of one gateway. `clock`: seconds, for what looking costs."""

    def __init__(self, changed: Callable[[], None], clock: Callable[[], float] = time.perf_counter) -> None:
        self._changed = changed
        self._clock = clock
        self._began = clock()
        self._spent_s = 0.0
        self._found: dict[str, tuple[str, Problem]] = {}
        self._seen: set[tuple[str, str]] = set()  # server, code: the user knows, until this gateway ends

    @property
    def problems(self) -> tuple[Problem, ...]:
        """One for each server whose results were found to hide something."""
        return tuple(problem for _, problem in self._found.values())

    def of(self, server: str | None) -> list[dict[str, str]]:
        """What was found, of one server or of all, as `approve --json` says it."""
        found = ((name, *what) for name, what in self._found.items() if server in (None, name))
        return [{"server": name, "code": code, "reason": problem.message} for name, code, problem in found]

    def dismiss(self, server: str, code: str) -> None:
        """The user knows: the same of the same server is no news any more, whatever else of it is."""
        self._seen.add((server, code))
        if server in self._found and self._found[server][0] == code:
            del self._found[server]
            self._changed()

    def look(self, server: str, reply: Reply) -> None:
        """Look at an answer that went to a client."""
        if server in self._found:
            return
        now = self._clock()
        if self._spent_s > AHEAD_S + SHARE * (now - self._began):
            return
        code = _suspicious(reply)
        self._spent_s += self._clock() - now
        if code is not None and (server, code) not in self._seen:
            self._note(server, code)

    def _note(self, server: str, code: str) -> None:
        """The result itself is nowhere repeated: it may hold what is nobody's business."""
        what = f"A result of {server} hides text or gives orders to a model ({code})"
        hint = "It was passed on as it came: do not trust what that server, or what it reads, says"
        hint += ". To be told of that no more: multi-mcp approve"
        self._found[server] = code, Problem("", 0, what, hint, server=server, fatal=False)
        log.warning("%s", what)
        self._changed()


def _suspicious(reply: Reply) -> str | None:
    """The code of a serious finding in the answer's first part."""
    if reply.frame and not _has_mark(reply.frame[:READ_MOST].decode("latin-1")):
        return None
    text = _text(reply)
    return next((found.code for found in inspect_result(text) if found.severity == "high"), None) if text else None


def _has_mark(head: str) -> bool:
    for first, marks in MARKS:
        if first in head:
            for mark in marks:
                if mark in head:
                    return True
    return False


def _text(reply: Reply) -> str:
    """The texts of a small answer; of one that was never parsed, which is large, its raw head."""
    if reply.is_large:
        return reply.frame[:READ_MOST].decode("utf-8", "replace").replace("\\n", "\n")
    try:
        message = reply.message
    except JsonError:
        return ""
    said = islice(_said(message.get("result", message.get("error"))), TEXTS_MOST)
    return "\n\n".join(said)[:READ_MOST]


def _said(value: Any) -> Iterator[str]:
    """The texts of a result, in whatever form: of a tool, a resource, a prompt, an error. Not what is data by type."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            todo += reversed(value)
        elif isinstance(value, dict):
            skipped = DATA | {"data"} if value.get("type") in ENCODED else DATA
            todo += (inner for key, inner in reversed(value.items()) if key not in skipped)
