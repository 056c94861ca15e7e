"""Secrets that this process was given. They are removed from every text, in every form in which they may be encoded.

secret_patterns finds unknown secrets by name or shape. The ones here are known literally: values from a
server's entry, the vault or a sign-in. This is the only state in this package, since a text may leave anywhere.
backends/launch decides which values of an entry are secrets.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from trayapp.model.late import late
from trayapp.model.secret_patterns import REDACTED
from trayapp.model.text import visible

SHORTEST = 8  # characters; shorter values would match words of any text,
SHORTEST_MIXED = 6  # except values with both letters and digits
WORD_LONGEST = 9  # letters: a single word like `postgres` is a bad password, but a good name for a server
MOST = 1_000  # values of each kind; beyond that the oldest is forgotten, such as a token renewed long ago
_TAGS = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
_QUOTES = {ord('"'): "&quot;"}
_HTML = (_TAGS, _TAGS | _QUOTES, *(_TAGS | _QUOTES | {ord("'"): code} for code in ("&#x27;", "&#39;", "&apos;")))
_ESCAPE = late("%[0-9A-F]{2}")


class KnownSecrets:
    """Values in the order in which they were last noted, each with the forms in which it may be written."""

    def __init__(self) -> None:
        self._lasting: dict[str, tuple[str, ...]] = {}
        self._renewed: dict[str, tuple[str, ...]] = {}
        self._longest_first: tuple[str, ...] = ()

    def note(self, values: Iterable[str], *, renewed: bool = False) -> None:
        """Add secrets. Values that could be everyday words are ignored.

        `renewed`: values that are replaced every hour. They are counted apart, so that they never displace lasting
        ones.
        """
        kept = self._renewed if renewed else self._lasting
        worth = [part for value in values for part in (value, *_lines(value)) if is_telling(part)]
        if not worth or (len(worth) == 1 and worth[0] in kept):
            return
        for value in worth:
            kept[value] = kept.pop(value, ()) or _forms(value)
        while len(kept) > MOST:
            del kept[next(iter(kept))]
        every = {form for forms in (*self._lasting.values(), *self._renewed.values()) for form in forms}
        self._longest_first = tuple(sorted(every, key=lambda form: (-len(form), form)))

    def forget(self) -> None:
        """Forget all values."""
        self._lasting, self._renewed, self._longest_first = {}, {}, ()

    def without(self, text: str) -> str:
        """Return `text` with REDACTED in place of each secret."""
        for form in self._longest_first:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def without_in(self, value: Any) -> Any:
        """Return `value`, or a copy with REDACTED in place of each secret in its strings and keys."""
        seen = visible("\n".join(_texts(value))) if self._longest_first else ""
        return value if self.without(seen) == seen else _replaced(value, self._without_seen)

    def _without_seen(self, text: str) -> str:
        seen = visible(text)
        without = self.without(seen)
        return text if without == seen else without


KNOWN = KnownSecrets()


def _texts(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, keys included. Not recursive: servers may nest without limit."""
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
    """Return a copy of a JSON value with `change` applied to its strings."""
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


def _lines(value: str) -> list[str]:
    """Return each line of a multi-line secret, without the header and footer of private keys."""
    lines = [line.strip() for line in value.splitlines()]
    return [line for line in lines if "-----" not in line] if len(lines) > 1 else []


def _forms(value: str) -> tuple[str, ...]:
    data = value.encode("utf-8", "surrogatepass")
    encoded = [_encoded(encode, data, before) for encode in (b64encode, urlsafe_b64encode) for before in (0, 1, 2)]
    escaped = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    escaped += [text.replace("/", "\\/") for text in (value, *escaped)]  # as PHP writes it
    escaped += [json.dumps(text)[1:-1] for text in escaped]  # JSON in JSON, as in logs
    escaped += [value.translate(signs) for signs in _HTML]
    quoted = [quote(data, safe=""), quote(data), quote_plus(data)]
    quoted += [_ESCAPE.sub(lambda found: found[0].lower(), text) for text in quoted]
    return tuple(dict.fromkeys((value, visible(value), *escaped, *quoted, *encoded)))


def _encoded(encode: Callable[[bytes], bytes], data: bytes, before: int) -> str:
    """Return the base64 letters that `data` alone determines, after `before` bytes in its group, as in `user:data`."""
    text = encode(bytes(before) + data).decode()
    return text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
