"""Regular expressions in bounded time, by RE2: it looks at each character once, and leaves other threads running.

Python's own engine backtracks: a pattern like `(a+)+b`, which any client may send, would block the gateway forever.
What RE2 cannot do (back references, lookaround) is refused.
"""

from __future__ import annotations

import re
import time

from trayapp.model.errors import ExitCode, MultiMcpError

LONGEST = 500  # characters of a pattern
LONGEST_TEXT = 2_000  # characters of a text that are searched; names and titles are far shorter
MEMORY_MOST = 1 << 20  # bytes of a compiled pattern: `(\pL\pM*){500}` is refused
WORK_MOST_S = 1.0  # processor time for all texts; an ordinary pattern needs microseconds for each

# Python syntax that RE2 does not know: \Z, \u0041, \U00000041, a{,3}. The `.` skips every other escape.
_PYTHON_ONLY = re.compile(r"\\(?:(Z)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)|\{,(\d+)\}", re.DOTALL)


class InvalidPatternError(MultiMcpError):
    """Raised for a regular expression that is invalid, too long or too slow, or that RE2 cannot match."""

    code = "invalid_pattern"
    exit_code = ExitCode.USAGE

    def __init__(self, pattern: str, why: str) -> None:
        super().__init__(
            f"The pattern {pattern[:LONGEST]} cannot be used: {why}",
            "Use RE2 syntax (no lookaround, no back references), or search with plain words",
        )


class Pattern:
    """A compiled pattern, case-insensitive. Raises InvalidPatternError."""

    def __init__(self, pattern: str) -> None:
        import re2  # loaded at the first search by pattern

        if len(pattern) > LONGEST:
            raise InvalidPatternError(pattern, "it is too long")
        options = re2.Options()
        options.case_sensitive = options.log_errors = False
        options.max_mem = MEMORY_MOST
        self._written = pattern
        self._work_s = 0.0
        try:
            self._compiled = re2.compile(_as_re2(pattern).encode(errors="replace"), options)
        except re2.error as error:
            raise InvalidPatternError(pattern, error.args[0].decode(errors="replace")) from None
        re2.purge()  # its cache would keep the last 128 patterns

    def matches(self, text: str) -> bool:
        """Return True if the pattern is found anywhere in the first LONGEST_TEXT characters of `text`.

        Raises InvalidPatternError once all texts so far have taken WORK_MOST_S.
        """
        if self._work_s > WORK_MOST_S:
            raise InvalidPatternError(self._written, "it takes too long on this text")
        began = time.thread_time()
        found = self._compiled.search(text[:LONGEST_TEXT].encode(errors="replace"))
        self._work_s += time.thread_time() - began
        return found is not None


def _as_re2(pattern: str) -> str:
    def respelled(found: re.Match[str]) -> str:
        end, short, long, most = found.groups()
        if short or long:
            return f"\\x{{{short or long}}}"
        return r"\z" if end else f"{{0,{most}}}" if most else found[0]

    return _PYTHON_ONLY.sub(respelled, pattern)
