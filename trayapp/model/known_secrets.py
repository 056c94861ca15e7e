"""Secrets that this process was given: wherever such a value turns up in a text, in whatever form, it is taken out.

Names and shapes (secret_names, secret_shapes) find secrets of strangers; these are known letter by letter: what a
server's entry, the vault or a sign-in holds. The one state in this room, since a text may leave by any door.
Never here: which values of an entry are secrets (backends/launch_secrets), doors.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from trayapp.model.late import late
from trayapp.model.secret_shapes import REDACTED
from trayapp.model.text import visible

SHORTEST = 8  # characters; shorter ones would take words out of every text,
SHORTEST_MIXED = 6  # but for those with letters and digits
WORD_LONGEST = 9  # letters: a single word like `postgres` is a bad password, and a good name of a server
MOST = 1_000  # values of each kind; of more the oldest is forgotten, as tokens are that were renewed long ago
BASE64_GROUP = 3  # bytes that four letters hold: what is encoded behind others has one of three forms
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
        """From now on these are secrets; those that could be everyday words are left out. `renewed`: others follow them
        every hour, which make none forgotten that is told of but once."""
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
        """As new."""
        self._lasting, self._renewed, self._longest_first = {}, {}, ()

    def without(self, text: str) -> str:
        """`text` with REDACTED in the place of each."""
        for form in self._longest_first:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def without_in(self, value: Any) -> Any:
        """A JSON value with REDACTED in the place of each, in texts and names; `value` itself where there is none."""
        seen = visible("\n".join(_texts(value))) if self._longest_first else ""
        return value if self.without(seen) == seen else _replaced(value, self._without_seen)

    def _without_seen(self, text: str) -> str:
        seen = visible(text)
        without = self.without(seen)
        return text if without == seen else without


KNOWN = KnownSecrets()


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, names too. Not recursive: servers may nest as they like."""
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
    """A copy of a JSON value whose texts were changed."""
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
    """Whether a value is long and odd enough to be taken out of every text."""
    if value.isalpha() and value.isascii():
        return len(value) > WORD_LONGEST
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value.strip()) >= (SHORTEST_MIXED if mixed else SHORTEST) and REDACTED not in value


def _lines(value: str) -> list[str]:
    """Of a secret of several lines each one by itself, without what every private key has."""
    lines = [line.strip() for line in value.splitlines()]
    return [line for line in lines if "-----" not in line] if len(lines) > 1 else []


def _forms(value: str) -> tuple[str, ...]:
    data = value.encode("utf-8", "surrogatepass")
    encoded = [_encoded(encode, data, before) for encode in (b64encode, urlsafe_b64encode) for before in (0, 1, 2)]
    escaped = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    escaped += [text.replace("/", "\\/") for text in (value, *escaped)]  # as PHP has it
    escaped += [json.dumps(text)[1:-1] for text in escaped]  # JSON in JSON, as in logs
    escaped += [value.translate(signs) for signs in _HTML]
    quoted = [quote(data, safe=""), quote(data), quote_plus(data)]
    quoted += [_ESCAPE.sub(lambda found: found[0].lower(), text) for text in quoted]
    return tuple(dict.fromkeys((value, visible(value), *escaped, *quoted, *encoded)))


def _encoded(encode: Callable[[bytes], bytes], data: bytes, before: int) -> str:
    """The letters of base64 that `data` alone decides, with so many bytes before it in its group, as in `user:data`."""
    text = encode(bytes(before) + data).decode()
    return text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
