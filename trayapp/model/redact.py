"""Redaction of everything that looks like a secret, in a whole text or in a stream of pieces.

secret_patterns finds unknown secrets by name or shape. KNOWN holds those that this process was given: values from a
server's entry (backends/launch decides which), the vault or a sign-in. They are removed in every form in which they may
be encoded. KNOWN is the only state in this package: every place where text leaves the process needs it.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from trayapp.model.late import late
from trayapp.model.secret_patterns import REDACTED, may_have_shape, may_name, without_named, without_shapes
from trayapp.model.text import visible

__all__ = ["KNOWN", "REDACTED", "KnownSecrets", "LineRedactor", "redacted"]

SHORTEST = 8  # characters. A shorter value may be an ordinary word
SHORTEST_MIXED = 6  # characters of a value with both letters and digits
WORD_LONGEST = 9  # letters. A word of at most this length, such as `postgres`, is more often a name than a password
MOST = 1_000  # values of each kind that are kept. For a further one, the value noted longest ago is forgotten
_TAGS = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
_QUOTES = {ord('"'): "&quot;"}
_HTML = (_TAGS, _TAGS | _QUOTES, *(_TAGS | _QUOTES | {ord("'"): code} for code in ("&#x27;", "&#39;", "&apos;")))
_ESCAPE = late("%[0-9A-F]{2}")


class KnownSecrets:
    """Secrets given to this process, least recently noted first, each with the forms in which it may be written."""

    def __init__(self) -> None:
        self._lasting: dict[str, tuple[str, ...]] = {}
        self._renewed: dict[str, tuple[str, ...]] = {}
        self._longest_first: tuple[str, ...] = ()

    def note(self, values: Iterable[str], *, renewed: bool = False) -> None:
        """Add secrets, except everyday words. `renewed` ones, such as tokens, never displace others."""
        kept = self._renewed if renewed else self._lasting
        parts: list[str] = []
        for value in values:  # also add each line of a multi-line secret, except the header and footer of a private key
            lines = [line.strip() for line in value.splitlines()]
            parts += [value, *(line for line in lines if len(lines) > 1 and "-----" not in line)]
        worth = [part for part in parts if is_telling(part)]
        if not worth or (len(worth) == 1 and worth[0] in kept):
            return
        for value in worth:
            kept[value] = kept.pop(value, ()) or _forms(value)
        while len(kept) > MOST:
            del kept[next(iter(kept))]
        every = {form for forms in (*self._lasting.values(), *self._renewed.values()) for form in forms}
        self._longest_first = tuple(sorted(every, key=lambda form: (-len(form), form)))

    def without(self, text: str) -> str:
        """Return `text` with REDACTED in place of each secret."""
        for form in self._longest_first:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def without_in(self, value: Any) -> Any:
        """Return `value`, or a copy with REDACTED in place of each secret in its strings and keys."""
        seen = visible("\n".join(_texts(value))) if self._longest_first else ""
        if self.without(seen) == seen:
            return value

        def change(text: str) -> str:
            seen = visible(text)
            without = self.without(seen)
            return text if without == seen else without

        return _replaced(value, change)


KNOWN = KnownSecrets()


def _texts(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, including keys. Not recursive, because servers may nest without limit."""
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            todo += [*each, *each.values()]
        elif isinstance(each, list):
            todo += each


def _replaced(value: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of a JSON value with `change` applied to its strings and keys."""
    root = [value]
    todo: list[Any] = [root]
    while todo:
        holder = todo.pop()
        for key, inner in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(inner, str):
                holder[key] = change(inner)
            elif isinstance(inner, dict):
                holder[key] = {change(name): each for name, each in inner.items()}
                todo.append(holder[key])
            elif isinstance(inner, list):
                holder[key] = list(inner)
                todo.append(holder[key])
    return root[0]


def is_telling(value: str) -> bool:
    """Return True if a value is long and unusual enough to be removed from every text."""
    if value.isalpha() and value.isascii():
        return len(value) > WORD_LONGEST
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value.strip()) >= (SHORTEST_MIXED if mixed else SHORTEST) and REDACTED not in value


def _forms(value: str) -> tuple[str, ...]:
    data = value.encode("utf-8", "surrogatepass")
    encoded = []
    for encode in (b64encode, urlsafe_b64encode):
        for before in (0, 1, 2):  # bytes before the value in its group of three, as in `user:data`
            text = encode(bytes(before) + data).decode()
            encoded.append(
                text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
            )  # only the letters that do not depend on the bytes around the value
    escaped = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    escaped += [text.replace("/", "\\/") for text in (value, *escaped)]  # PHP's form
    escaped += [json.dumps(text)[1:-1] for text in escaped]  # JSON in JSON, as in logs
    escaped += [value.translate(signs) for signs in _HTML]
    quoted = [quote(data, safe=""), quote(data), quote_plus(data)]
    quoted += [_ESCAPE.sub(lambda found: found[0].lower(), text) for text in quoted]
    return tuple(dict.fromkeys((value, visible(value), *escaped, *quoted, *encoded)))


# --- whole texts and streams

HELD_LONGEST = 64 * 1024  # characters of an unfinished line that are buffered. The rest of a longer line is dropped
TAIL_DROPPED = 256  # characters dropped before a cut, because half a secret is not recognized
CUT = " [line cut]"

_LINE_END = late(r"\r\n|\n|\r(?!\Z)")  # a lone return at the very end may be half of a line end
_KEY_BEGIN = late(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = late(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|-----END")
_KEY_LINE = late(r"""[\s"'\\n,+|>=]*[A-Za-z0-9+/]*={0,2}[\s"'\\nr,+]*""")
_KEY_HEADER = late(r"\s*(?:Proc-Type|DEK-Info|Version|Comment|Hash)\s*:")
_KEY_RUN = late(r"[A-Za-z0-9+/=]{16,}")
_BLOCK_HEAD = late(  # the first line of a YAML block scalar that holds a secret
    r"""(\s*)(?:-\ )?["']?[\w.-]{0,48}?(?i:token|secret|password|passwd|passphrase|key)["']?\s*:\s*[|>][+-]?\d?\s*"""
)


def redacted(text: str) -> str:
    """Return `visible(text)` with REDACTED in place of each secret, line by line. Takes linear time."""
    lines = [_seen(line) for line in text.split("\n")]
    whole = "\n".join(lines)
    if len(lines) > 1 and not (
        may_name(whole) or may_have_shape(whole) or "-----BEGIN" in whole or KNOWN.without(whole) != whole
    ):
        return whole  # one check of all lines instead of some thirty per line
    state = _Lines()
    return "\n".join(map(state.take, lines))


def _seen(line: str) -> str:
    """Return a line as a reader sees it. Invisible characters are removed, because they could hide a secret."""
    return visible(line.rstrip("\r").replace("\r", " "))


class LineRedactor:
    """A form of `redacted` for text that arrives in pieces. A line is returned once it is complete."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._pieces: list[str] = []
        self._length = 0
        self._returned = False  # the last character is a carriage return: half a line end, or a whole one
        self._dropping = False

    def feed(self, text: str) -> str:
        """Return the lines that `text` completed, redacted, each with a newline, or "" if none."""
        self._pieces.append(text)
        self._length += len(text)
        has_end = self._returned or "\n" in text or "\r" in text
        if not has_end and self._length <= HELD_LONGEST:
            return ""
        *whole, held = _LINE_END.split("".join(self._pieces))
        out = [self._whole(line) for line in whole]
        if len(held) > HELD_LONGEST:
            out.append("" if self._dropping else self._shortened(held))
            self._dropping, held = True, ""
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
        return self._shortened(line) if len(line) > HELD_LONGEST else self._lines.take(_seen(line)) + "\n"

    def _shortened(self, line: str) -> str:
        return self._lines.take(_seen(line[:HELD_LONGEST]))[:-TAIL_DROPPED] + CUT + "\n"


class _Lines:
    """Line-by-line redaction that tracks whether it is inside a private key or a YAML block with a secret."""

    def __init__(self) -> None:
        self._in_key = False
        self._block_indent: int | None = None

    def take(self, line: str) -> str:
        """Return a line from `_seen`, redacted. Call it with each line of the text, in order."""
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
        return self.take(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
