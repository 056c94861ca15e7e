"""Redaction of everything that looks like a secret, in a whole text or in a stream of pieces.

secret_patterns recognizes secrets; known_secrets holds the known ones.
"""

from __future__ import annotations

from trayapp.model.known_secrets import KNOWN
from trayapp.model.late import late
from trayapp.model.secret_patterns import REDACTED, may_have_shape, may_name, without_named, without_shapes
from trayapp.model.text import visible

__all__ = ["REDACTED", "LineRedactor", "redacted"]

HELD_LONGEST = 64 * 1024  # characters of an unfinished line that are held back; the rest of such a line is dropped
TAIL_DROPPED = 256  # characters before such a cut: half a secret is not recognized
CUT = " [line cut]"

_LINE_END = late(r"\r\n|\n|\r(?!\Z)")  # a lone return at the very end may be half of a line end
_KEY_BEGIN = late(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = late(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|-----END")
_KEY_LINE = late(r"""[\s"'\\n,+|>=]*[A-Za-z0-9+/]*={0,2}[\s"'\\nr,+]*""")
_KEY_HEADER = late(r"\s*(?:Proc-Type|DEK-Info|Version|Comment|Hash)\s*:")
_KEY_RUN = late(r"[A-Za-z0-9+/=]{16,}")
_BLOCK_HEAD = late(  # a YAML block scalar
    r"""(\s*)(?:-\ )?["']?[\w.-]{0,48}?(?i:token|secret|password|passwd|passphrase|key)["']?\s*:\s*[|>][+-]?\d?\s*"""
)


def redacted(text: str) -> str:
    """Return `visible(text)` with REDACTED in place of each secret. Lines stay lines. Takes linear time."""
    lines = [_seen(line) for line in text.split("\n")]
    whole = "\n".join(lines)
    if len(lines) > 1 and not _may_hold_secret(whole):
        return whole  # one look at all lines instead of some thirty at each
    state = _Lines()
    return "\n".join(map(state.take_seen, lines))


def _seen(line: str) -> str:
    """Return a line as a reader sees it. A secret may contain invisible characters. They are not returned."""
    return visible(line.rstrip("\r").replace("\r", " "))


def _may_hold_secret(text: str) -> bool:
    """Return False if no line of a visible text can hold a secret."""
    return may_name(text) or may_have_shape(text) or "-----BEGIN" in text or KNOWN.without(text) != text


class LineRedactor:
    """Like `redacted`, for text that arrives in pieces. A line is returned once it is complete."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._pieces: list[str] = []
        self._length = 0
        self._returned = False  # the last character is a return: half a line end, or a whole one
        self._dropping = False

    def feed(self, text: str) -> str:
        """Return the lines that `text` completed, redacted, each with a newline; "" if none."""
        self._pieces.append(text)
        self._length += len(text)
        has_end = self._returned or "\n" in text or "\r" in text
        if not has_end and self._length <= HELD_LONGEST:
            return ""
        *whole, held = _LINE_END.split("".join(self._pieces))
        out = [self._whole(line) for line in whole]
        if len(held) > HELD_LONGEST:
            out.append(self._cut(held))
            held = ""
        self._hold(held)
        return "".join(out)

    def end(self) -> str:
        """Return the remaining text as a line, or "" if nothing remains. Then reset."""
        held = "".join(self._pieces).rstrip("\r")
        text = self._whole(held) if held or self._dropping else ""
        self._lines = _Lines()
        self._hold("")
        return text

    def _hold(self, held: str) -> None:
        self._pieces = [held] if held else []
        self._length = len(held)
        self._returned = held.endswith("\r")

    def _whole(self, line: str) -> str:
        if self._dropping:
            self._dropping = False
            return ""
        return self._shortened(line) if len(line) > HELD_LONGEST else self._lines.take(line) + "\n"

    def _cut(self, line: str) -> str:
        text = "" if self._dropping else self._shortened(line)
        self._dropping = True
        return text

    def _shortened(self, line: str) -> str:
        return self._lines.take(line[:HELD_LONGEST])[:-TAIL_DROPPED] + CUT + "\n"


class _Lines:
    """Line-by-line redaction that tracks whether it is inside a private key or a YAML block with a secret."""

    def __init__(self) -> None:
        self._in_key = False
        self._block_indent: int | None = None

    def take(self, line: str) -> str:
        """Return one line, redacted, without its line end."""
        return self.take_seen(_seen(line))

    def take_seen(self, line: str) -> str:
        """Return one visible line, redacted."""
        if self._in_key:
            return KNOWN.without(self._key_line(line))
        if self._block_indent is not None and (not line.strip() or _indent(line) > self._block_indent):
            return line[: _indent(line)] + REDACTED if line.strip() else line
        self._block_indent = None
        return self._plain(line)

    def _plain(self, line: str) -> str:
        line = KNOWN.without(line)
        if "-----BEGIN" in line:
            line = self._without_key(line)
        if line.rstrip().endswith(("|", ">", "-", "+")) and (head := _BLOCK_HEAD.fullmatch(line)):
            self._block_indent = len(head[1])
            return line
        return without_shapes(without_named(line))

    def _without_key(self, line: str) -> str:
        """Return the line without private keys. A key that does not end in this line continues in the next."""
        parts: list[str] = []
        at = 0
        while (begin := _KEY_BEGIN.search(line, at)) is not None:
            end = _KEY_END.search(line, begin.end())
            parts += [line[at : begin.start()], REDACTED]
            at = end.end() if end else len(line)
            if end is None:
                parts.append(_KEY_RUN.sub("", line[begin.end() :]))
                self._in_key = True
        return "".join(parts) + line[at:]

    def _key_line(self, line: str) -> str:
        """Return a line after the start of a private key, redacted: part of the key, its end, or other text."""
        end = _KEY_END.search(line)
        if end is not None:
            self._in_key = False
            return REDACTED + self._plain(line[end.end() :])
        if _KEY_LINE.fullmatch(line) or _KEY_HEADER.match(line):
            return REDACTED if line.strip() else line
        if _KEY_RUN.search(line):
            return _KEY_RUN.sub(REDACTED, line)
        self._in_key = False
        return self.take_seen(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
