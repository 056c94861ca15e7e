"""Long texts in a place that takes short ones only: parts first, then the manifest that makes them count.

A write that is cut short leaves the old text whole; a text whose parts do not fit its manifest is no text at all.
Never here: which place it is, what the texts mean.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Protocol

PLAIN = "1:"  # before a text that fits into its entry
MANIFEST = "2:"  # before a manifest: {"gen", "parts", "sum"}
READS = 3  # of an entry that another process is writing meanwhile
SUM_HEX = 32  # of a SHA-256 over the whole text: enough to tell a mixture of two from either
GENERATIONS = 2  # sets of parts that take turns: what a cut-off write left is overwritten by the next one
MAX_PARTS = 10_000  # more is no manifest of ours


class Entries(Protocol):
    """A place of short texts under names. Blocks. Everything raises KeyringUnavailableError."""

    limit: int | None  # UTF-16 code units of one text; None = no limit

    def get(self, name: str) -> str | None:
        """The text under that name, None when there is none."""

    def set(self, name: str, text: str) -> None:
        """Put it there, over whatever was there."""

    def delete(self, name: str) -> None:
        """Remove it; nothing happens when there is none."""


class MemoryEntries:
    """Entries that end with the process."""

    limit: int | None = None

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        """See Entries."""
        return self.texts.get(name)

    def set(self, name: str, text: str) -> None:
        """See Entries."""
        self.texts[name] = text

    def delete(self, name: str) -> None:
        """See Entries."""
        self.texts.pop(name, None)


class Records(Protocol):
    """A place of texts of any length. Blocks. Everything raises KeyringUnavailableError."""

    def read(self, key: str) -> str | None:
        """The text, None when there is none or when it is not whole."""

    def write(self, key: str, text: str) -> None:
        """Keep it; when this fails or is cut off, what was there before still is."""

    def delete(self, key: str) -> None:
        """Forget it."""


class ChunkedRecords:
    """Implements Records over Entries."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def read(self, key: str) -> str | None:
        """See Records. Read anew when somebody wrote meanwhile."""
        head = self._entries.get(key)
        for _ in range(READS):
            text = self._whole(key, head)
            if text is not None or head is None:
                return text
            before, head = head, self._entries.get(key)
            if head == before:
                return None  # torn: a write was cut off, or parts were removed by hand
        return None

    def write(self, key: str, text: str) -> None:
        """See Records."""
        old = _manifest(self._entries.get(key))
        if self._fits(text):
            self._entries.set(key, PLAIN + text)
            new_slot = None
        else:
            generation = (old["gen"] if old else 0) + 1
            new_slot = generation % GENERATIONS
            parts = split(text, self._entries.limit or len(text))
            for number, part in enumerate(parts):
                self._entries.set(_part(key, new_slot, number), part)
            manifest = {"gen": generation, "parts": len(parts), "sum": _sum(text)}
            self._entries.set(key, MANIFEST + json.dumps(manifest))
        if old and old["gen"] % GENERATIONS != new_slot:
            self._drop(key, old["gen"] % GENERATIONS)

    def delete(self, key: str) -> None:
        """See Records. What a cut-off write left goes as well."""
        self._entries.delete(key)
        for slot in range(GENERATIONS):
            self._drop(key, slot)

    def _fits(self, text: str) -> bool:
        return self._entries.limit is None or length(PLAIN + text) <= self._entries.limit

    def _whole(self, key: str, head: str | None) -> str | None:
        if head is None or head.startswith(PLAIN):
            return head[len(PLAIN) :] if head else None
        manifest = _manifest(head)
        if manifest is None:
            return None
        slot = manifest["gen"] % GENERATIONS
        parts = [self._entries.get(_part(key, slot, number)) for number in range(manifest["parts"])]
        text = "".join(part or "" for part in parts)
        return text if _sum(text) == manifest["sum"] else None

    def _drop(self, key: str, slot: int) -> None:
        for number in range(MAX_PARTS):
            name = _part(key, slot, number)
            if self._entries.get(name) is None:
                return
            self._entries.delete(name)


def split(text: str, limit: int) -> list[str]:
    """`text` in parts of at most `limit` UTF-16 code units; no letter is cut in two. `limit` is at least 2."""
    parts: list[str] = []
    start = size = 0
    for position, letter in enumerate(text):
        units = 2 if letter > "\uffff" else 1
        if size + units > limit:
            parts.append(text[start:position])
            start, size = position, 0
        size += units
    return [*parts, text[start:]] if start < len(text) else parts


def length(text: str) -> int:
    """UTF-16 code units, which is what Windows counts."""
    return len(text) + sum(letter > "\uffff" for letter in text)


def _part(key: str, slot: int, number: int) -> str:
    return f"{key}#{slot}.{number}"


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:SUM_HEX]


def _manifest(head: str | None) -> dict[str, Any] | None:
    if head is None or not head.startswith(MANIFEST):
        return None
    try:
        read: dict[str, Any] = json.loads(head[len(MANIFEST) :])
        sound = type(read["gen"]) is int and type(read["parts"]) is int and 0 <= read["parts"] <= MAX_PARTS
    except (ValueError, TypeError, KeyError):
        return None
    return read if sound and "sum" in read else None
