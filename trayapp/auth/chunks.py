"""Long texts in a store for short ones: the parts are written first, then the manifest that makes them valid.

An interrupted write leaves the old text intact. A text whose parts do not match its manifest counts as missing.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Protocol

PLAIN = "1:"  # prefix of a text that fits in its entry
MANIFEST = "2:"  # prefix of a manifest: {"gen", "parts", "sum"}
READS = 3  # attempts to read an entry that another process is writing
SUM_HEX = 32  # hex digits of a SHA-256 over the whole text: enough to detect a mixture of two texts
GENERATIONS = 2  # alternating sets of parts: the next write overwrites what an interrupted one left
MAX_PARTS = 10_000  # a manifest with more is not ours


class Entries(Protocol):
    """A store of short texts by name. Its methods block and raise KeyringUnavailableError."""

    limit: int | None  # UTF-16 code units of one text; None = no limit

    def get(self, name: str) -> str | None:
        """Return the text under that name, or None."""

    def set(self, name: str, text: str) -> None:
        """Store the text under that name and replace any other."""

    def delete(self, name: str) -> None:
        """Delete the text, if there is one."""


class Records(Protocol):
    """A store of texts of any length. Its methods block and raise KeyringUnavailableError."""

    def read(self, key: str) -> str | None:
        """Return the text, or None if it is missing or incomplete."""

    def write(self, key: str, text: str) -> None:
        """Store the text. If this fails or is interrupted, the previous text remains."""

    def delete(self, key: str) -> None:
        """Delete the text."""


class ChunkedRecords:
    """Records over Entries: a text that is too long for one entry is stored in parts, with a manifest."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def read(self, key: str) -> str | None:
        """Return the text, or None if it is missing or incomplete. Read again if another process wrote meanwhile."""
        head = self._entries.get(key)
        for _ in range(READS):
            text = self._whole(key, head)
            if text is not None or head is None:
                return text
            before, head = head, self._entries.get(key)
            if head == before:
                return None  # torn: a write was interrupted, or parts were deleted by hand
        return None

    def write(self, key: str, text: str) -> None:
        """Store the text, in parts if it is long."""
        old = _manifest(self._entries.get(key))
        if self._entries.limit is None or length(PLAIN + text) <= self._entries.limit:
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
        """Delete the text, and what interrupted writes left."""
        self._entries.delete(key)
        for slot in range(GENERATIONS):
            self._drop(key, slot)

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
    """Return `text` in parts of at most `limit` UTF-16 code units. No character is split, so `limit` is at least 2."""
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
    """Return the length in UTF-16 code units, as counted by Windows."""
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
